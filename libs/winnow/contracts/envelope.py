"""CloudEvents in binary mode: the headers of a record, and the way between record and event.

Headers (CloudEvents 1.0, Kafka binding, section 3.2): `ce_specversion`, `ce_id`, `ce_source`, `ce_type`, `ce_time`, `ce_subject`,
`content-type`, and `traceparent` for the trace. `winnow_claim` marks a record whose body is a claim check for the event's body.
"""

import re
from collections.abc import Iterable
from datetime import datetime
from typing import NamedTuple, TypeVar

from pydantic import ValidationError

from winnow.contracts.errors import Permanent, SchemaTooNew, TooLarge
from winnow.contracts.events import ClaimCheck, Event
from winnow.contracts.topics import Topic
from winnow.contracts.vocabulary import Reason

Headers = list[tuple[str, bytes]]
E = TypeVar("E", bound=Event)

CLAIM_HEADER = "winnow_claim"
TRACEPARENT = "traceparent"
#: Headers that are read, and their fields of `Envelope`.
_FIELDS = {
    "ce_type": "type",
    "ce_id": "id",
    "ce_source": "source",
    "ce_time": "time",
    TRACEPARENT: "traceparent",
    CLAIM_HEADER: "claim",
}
_TYPE = re.compile(r"(?P<name>[a-z.-]{1,100})\.v(?P<major>\d{1,4})")


class Invalid(Permanent):
    """The record is not an event of its topic; mend the producer, then replay the dead letter."""


class Envelope(NamedTuple):
    """What the headers of a record say. Every field may be missing: a plain producer may send the body alone."""

    type: str | None = None
    id: str | None = None
    source: str | None = None
    time: str | None = None
    traceparent: str | None = None
    claim: bool = False


def headers_for(topic: Topic, *, event_id: str, source: str, subject: str, time: datetime, claim: bool = False) -> Headers:
    """CloudEvents headers of an event on `topic`. `source` is the service or runtime, `subject` the record key."""
    headers = {
        "ce_specversion": "1.0",
        "ce_id": event_id,
        "ce_source": source,
        "ce_type": topic.event_type,
        "ce_subject": subject,
        "ce_time": time.isoformat(),
        "content-type": "application/json",
    }
    if claim:
        headers[CLAIM_HEADER] = "1"
    return [(name, value.encode()) for name, value in headers.items()]


def read_headers(headers: Iterable[tuple[str, bytes | None]]) -> Envelope:
    """Read the headers that Winnow knows; others may hold any bytes and are ignored. Raise `Invalid` where a known one is not UTF-8."""
    known: dict[str, str] = {}
    for name, value in headers:
        field = _FIELDS.get(name)
        if field is None or field in known:  # the first of a name counts
            continue
        try:
            known[field] = (value or b"").decode()
        except UnicodeDecodeError as exc:
            if name == TRACEPARENT:  # a broken trace never costs an event
                continue
            msg = f"header {name} is not UTF-8"
            raise Invalid(msg, reason=Reason.BAD_HEADERS) from exc
    claim = known.pop("claim", None) == "1"
    return Envelope(**known, claim=claim)


def check_type(topic: Topic, envelope: Envelope) -> None:
    """The record is of its topic's type and major version. Raise `SchemaTooNew` for a newer one, `Invalid` for another type."""
    if envelope.type is None or envelope.type == topic.event_type:
        return
    said, own = _TYPE.fullmatch(envelope.type), _TYPE.fullmatch(topic.event_type)
    if own is None or said is None or said["name"] != own["name"] or int(said["major"]) < int(own["major"]):
        msg = f"ce_type {envelope.type[:100]!r} does not belong on {topic.name}"
        raise Invalid(msg, reason=Reason.BAD_HEADERS)
    if int(said["major"]) > int(own["major"]):
        msg = f"{envelope.type} is newer than {topic.event_type}; deploy a service that reads it"
        raise SchemaTooNew(msg)


def decode(model: type[E], body: bytes | None) -> E:
    """Validate a body. Raise `Invalid` with a reason code; the text names fields and never quotes their content."""
    if not body:
        msg = "the record has no body"
        raise Invalid(msg, reason=Reason.TOMBSTONE)
    try:
        return model.model_validate_json(body)
    except ValidationError as exc:
        raise Invalid(explain(exc), reason=reason_of(exc)) from None


def decode_claim(body: bytes | None) -> ClaimCheck:
    """Read the claim check that stands for a body. Raise `Invalid`."""
    if not body:
        msg = "the record has no body"
        raise Invalid(msg, reason=Reason.TOMBSTONE)
    try:
        return ClaimCheck.model_validate_json(body)
    except ValidationError as exc:
        raise Invalid(explain(exc)) from None


def encode(topic: Topic, event: Event) -> bytes:
    """The body of an event. Raise `TooLarge` above the topic's limit: the caller then sends a claim check."""
    body = event.model_dump_json().encode()
    if len(body) > topic.max_body_bytes:
        msg = f"the body has {len(body)} bytes, {topic.name} takes {topic.max_body_bytes}; send a claim check"
        raise TooLarge(msg)
    return body


#: Fields that are filled in where they are left out.
_FILLED = {("boundary_id",), ("candidate_sha256",)}


def explain(exc: ValidationError, most: int = 3) -> str:
    """One line on what is wrong: field paths and messages, never the input (it is somebody's content)."""
    errors = exc.errors(include_input=False, include_url=False, include_context=False)
    # What a candidate fills in from its other fields is missing only because one of those is wrong.
    errors = [e for e in errors if e["type"] != "missing" or e["loc"] not in _FILLED] or errors
    said = "; ".join(f"{'.'.join(str(p) for p in e['loc']) or 'body'}: {e['msg']}" for e in errors[:most])
    return said + (f"; and {len(errors) - most} more" if len(errors) > most else "")


def reason_of(exc: ValidationError) -> Reason:
    """The reason code that fits a validation error: hashes and sizes have codes of their own."""
    text = explain(exc)
    if "is not the hash of" in text:
        return Reason.HASH_MISMATCH
    if "is longer than" in text:
        return Reason.TOO_LARGE
    return Reason.INVALID
