"""The AsyncAPI document: committed, in step with the code, and true of the events."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from winnow.contracts import events, topics
from winnow.contracts.asyncapi import document

ROOT = Path(__file__).parents[2]
SNAPSHOT = ROOT / "docs" / "asyncapi.json"
GOLDEN = Path(__file__).parent / "golden" / "v1"


def refs(node: Any) -> list[str]:
    if isinstance(node, dict):
        return [v for k, v in node.items() if k == "$ref" and isinstance(v, str)] + [r for v in node.values() for r in refs(v)]
    return [r for v in node for r in refs(v)] if isinstance(node, list) else []


def test_the_committed_document_is_what_the_code_says():
    """`docs/asyncapi.json` does not drift from the models and the topic registry."""
    assert json.loads(SNAPSHOT.read_text()) == document(), "the contracts changed; if that is meant: winnow asyncapi > docs/asyncapi.json"


def test_every_reference_leads_somewhere():
    """Each `$ref` of the document resolves inside it."""
    doc = document()
    for ref in set(refs(doc)):
        node: Any = doc
        for part in ref.removeprefix("#/").split("/"):
            assert part in node, ref
            node = node[part]


def test_each_topic_is_a_channel_that_is_sent_and_received():
    """A prefix stands before every address, and each channel has both directions."""
    doc = document("t1.")
    assert {c["address"] for c in doc["channels"].values()} == {"t1." + t.name for t in topics.TOPICS}
    for action in ("send", "receive"):
        assert len([o for o in doc["operations"].values() if o["action"] == action]) == len(topics.TOPICS)


def test_the_document_names_retention_and_size_of_each_topic():
    """An operator can create the topics from the document alone."""
    for topic in topics.TOPICS:
        channel = next(c for c in document()["channels"].values() if c["address"] == topic.name)
        configuration = channel["bindings"]["kafka"]["topicConfiguration"]
        assert configuration == {"retention.ms": int(topic.retention.total_seconds() * 1000), "max.message.bytes": topic.max_record_bytes}


@pytest.mark.parametrize("topic", [t for t in topics.TOPICS if t.event], ids=lambda t: t.name)
def test_each_message_has_a_summary(topic):
    """A reader of the document learns what each message is."""
    assert document()["components"]["messages"][topic.event.__name__]["summary"]


@pytest.mark.parametrize(
    "model", [m for m in vars(events).values() if isinstance(m, type) and issubclass(m, events.Model)], ids=lambda m: m.__name__
)
def test_every_field_is_described(model):
    """No field of any event, at any depth, leaves a reader to guess."""
    assert [name for name, field in model.model_fields.items() if not field.description] == []


@pytest.mark.parametrize("path", sorted(p for p in GOLDEN.glob("*.json") if p.stem not in {"headers", "messages"}), ids=lambda p: p.stem)
def test_the_schemas_of_the_document_accept_the_golden_events(path):
    """What the code accepts, the published schema accepts too."""
    stored = json.loads(path.read_text())
    doc = document()
    body = stored["body"]
    if stored["model"] == "Candidate":  # the reader fills these two; the schema shows the event as it is stored
        body = {"boundary_id": "7d0b1c52-8f6e-5a9d-b1a4-2f7c6e1d9a30", "candidate_sha256": "0" * 64} | body
    schema = {"$ref": f"#/components/schemas/{stored['model']}", "components": doc["components"]}
    jsonschema.Draft202012Validator(schema).validate(body)
