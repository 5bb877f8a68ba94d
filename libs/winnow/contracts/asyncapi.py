"""The AsyncAPI 3 document of the bus, generated from the topic registry (FastStream's own would have empty payloads: untyped handlers)."""

from typing import Any

from winnow import __version__
from winnow.contracts.topics import TOPICS, Topic

_HEADERS: dict[str, Any] = {
    "type": "object",
    "description": "CloudEvents 1.0, binary mode. All are optional on input; Winnow writes all of them.",
    "properties": {
        "ce_specversion": {"type": "string", "const": "1.0"},
        "ce_id": {"type": "string", "description": "De-duplication key together with ce_source."},
        "ce_source": {"type": "string"},
        "ce_type": {"type": "string", "description": "The topic's name; another major version pauses consumption."},
        "ce_subject": {"type": "string", "description": "The record key."},
        "ce_time": {"type": "string", "format": "date-time"},
        "content-type": {"type": "string", "const": "application/json"},
        "traceparent": {"type": "string", "description": "W3C trace context."},
        "winnow_claim": {"type": "string", "const": "1", "description": "The body is a claim check for the event's body."},
    },
}


def document(prefix: str = "") -> dict[str, Any]:
    """Build the document; `prefix` stands before every topic name."""
    schemas: dict[str, Any] = {}
    channels: dict[str, Any] = {}
    messages: dict[str, Any] = {}
    operations: dict[str, Any] = {}
    for topic in TOPICS:
        channel = topic.name.replace(".", "_").replace("-", "_")
        message = topic.event.__name__ if topic.event else "DeadLetter"
        messages[message] = _message(topic, schemas)
        channels[channel] = _channel(topic, prefix, message)
        operations[f"send_{channel}"] = _operation("send", channel, message, topic.produced_by)
        operations[f"receive_{channel}"] = _operation("receive", channel, message, topic.consumed_by)
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Winnow",
            "version": __version__,
            "description": "Compaction boundaries on the bus, from candidate to committed summary; runtime events, observations, alerts.",
        },
        "defaultContentType": "application/json",
        "channels": channels,
        "operations": operations,
        "components": {"messages": messages, "schemas": dict(sorted(schemas.items()))},
    }


def _message(topic: Topic, schemas: dict[str, Any]) -> dict[str, Any]:
    """One message; its schema and all that it refers to go into `schemas`."""
    if topic.event is None:
        return {"name": topic.event_type, "title": "DeadLetter", "payload": {"description": "The original bytes, whatever they were."}}
    schema = topic.event.model_json_schema(ref_template="#/components/schemas/{model}", mode="validation")
    schemas.update(schema.pop("$defs", {}))
    schemas[topic.event.__name__] = schema
    return {
        "name": topic.event_type,
        "title": topic.event.__name__,
        "summary": (topic.event.__doc__ or "").strip().splitlines()[0],
        "contentType": "application/json",
        "headers": _HEADERS,
        "payload": {"$ref": f"#/components/schemas/{topic.event.__name__}"},
    }


def _channel(topic: Topic, prefix: str, message: str) -> dict[str, Any]:
    """One topic."""
    return {
        "address": prefix + topic.name,
        "description": topic.description,
        "messages": {message: {"$ref": f"#/components/messages/{message}"}},
        "bindings": {
            "kafka": {
                "topicConfiguration": {
                    "retention.ms": int(topic.retention.total_seconds() * 1000),
                    "max.message.bytes": topic.max_record_bytes,
                },
                "bindingVersion": "0.5.0",
            }
        },
        "x-key": topic.key,
        "x-max-body-bytes": topic.max_body_bytes,
    }


def _operation(action: str, channel: str, message: str, who: tuple[str, ...]) -> dict[str, Any]:
    """One direction of a topic."""
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{channel}"},
        "summary": ", ".join(who),
        "messages": [{"$ref": f"#/channels/{channel}/messages/{message}"}],
    }
