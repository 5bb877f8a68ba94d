"""Between an event and the record that is stored for it: exact bytes, or a claim check where the body is above its topic's limit."""

from dataclasses import dataclass

from opentelemetry.context import Context

from winnow.contracts import ids
from winnow.contracts.envelope import encode
from winnow.contracts.errors import TooLarge
from winnow.contracts.events import BoundaryRef, ClaimCheck
from winnow.contracts.topics import Topic
from winnow.messaging.records import Outgoing
from winnow.storage.originals import Content, Kind, NewHandle, new_handle
from winnow.storage.stages import Output, StoredOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class Overflow:
    """The body of an event above its topic's limit, to be stored as an original in the same transaction."""

    content: Content
    handle: NewHandle


def output_of(topic: Topic, event: BoundaryRef, *, traceparent: str | None = None) -> tuple[Output, Overflow | None]:
    """The record to store for `event`. Where there is an `Overflow`, its body is a claim check for it."""
    overflow = None
    try:
        body = encode(topic, event)
    except TooLarge:
        content = Content.of(event.fleet, event.model_dump_json())
        handle = NewHandle(handle=new_handle(), fleet=event.fleet, sha256=content.sha256, kind=Kind.EVENT, boundary_id=event.boundary_id)
        claim = ClaimCheck(fleet=event.fleet, handle=handle.handle, sha256=content.sha256, size=len(content.data))
        overflow = Overflow(content=content, handle=handle)
        body = claim.model_dump_json().encode()
    output = Output(
        event_type=topic.event_type,
        record_key=event.key,
        event_id=ids.event_id(event.fleet, event.boundary_id, topic.event_type),
        body=body,
        claim=overflow is not None,
        traceparent=traceparent,
    )
    return output, overflow


def outgoing_of(topic: Topic, stored: StoredOutput, context: Context | None) -> Outgoing:
    """Publish a stored answer, within the trace of the record that asked for it: the same body and id every time."""
    return Outgoing(
        topic=topic,
        key=stored.output.record_key,
        body=stored.output.body,
        event_id=str(stored.output.event_id),
        time=stored.created_at,
        context=context,
        traceparent=stored.output.traceparent,
        claim=stored.output.claim,
    )
