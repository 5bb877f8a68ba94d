"""From a record to a valid event: headers, type, claim check, schema, key, in this order. No I/O but the fetching of claims."""

from collections.abc import Sequence
from typing import NamedTuple

from winnow.contracts import limits
from winnow.contracts.envelope import Envelope, check_type, decode, decode_claim, read_headers
from winnow.contracts.errors import Permanent, SchemaTooNew
from winnow.contracts.events import ClaimCheck, sha256
from winnow.contracts.topics import Topic
from winnow.contracts.vocabulary import Reason
from winnow.messaging.ports import ClaimStore
from winnow.messaging.records import Dead, E, Record
from winnow.telemetry.redaction import describe_without_content


class Opened(NamedTuple):
    """A record whose headers are read: its body is there, or a claim check for it."""

    record: Record
    envelope: Envelope
    claim: ClaimCheck | None = None


def dead_of(record: Record, exc: Exception) -> Dead:
    """The dead letter of a record that `exc` makes impossible to handle."""
    reason = exc.reason if isinstance(exc, Permanent) else Reason.INVALID
    return Dead(record=record, reason=str(reason), error=describe_without_content(exc))


def open_record(topic: Topic, record: Record) -> Opened | Dead:
    """Read the headers. Raise `SchemaTooNew` for an event of a newer major version; everything else that is wrong is a dead letter."""
    try:
        envelope = read_headers(record.headers)
        check_type(topic, envelope)
        claim = decode_claim(record.value) if envelope.claim else None
    except SchemaTooNew:
        raise
    except Permanent as exc:
        return dead_of(record, exc)
    if claim is not None and claim.size > limits.ORIGINAL_BYTES:
        error = f"the claim check says {claim.size} bytes, at most {limits.ORIGINAL_BYTES} are kept"
        return Dead(record=record, reason=Reason.TOO_LARGE, error=error)
    return Opened(record, envelope, claim)


async def resolve(opened: Sequence[Opened], claims: ClaimStore | None) -> dict[tuple[str, int, int], bytes | Dead]:
    """The bodies that claim checks stand for, by position: exact bytes, or a dead letter where they are lost or not what was promised."""
    asked = [(o, o.claim) for o in opened if o.claim is not None]
    if not asked:
        return {}
    if claims is None:
        bodies: Sequence[bytes | None] = [None] * len(asked)
    else:
        bodies = await claims.fetch([claim for _, claim in asked])
    found: dict[tuple[str, int, int], bytes | Dead] = {}
    for (one, claim), body in zip(asked, bodies, strict=True):
        if body is None:
            error = "the claim check points at nothing that this fleet has; it expired, was erased, or was never stored"
            found[one.record.position] = Dead(record=one.record, reason=Reason.CLAIM_LOST, error=error)
        elif len(body) != claim.size or sha256(body) != claim.sha256:
            error = "the stored bytes have another size or hash than the claim check says"
            found[one.record.position] = Dead(record=one.record, reason=Reason.HASH_MISMATCH, error=error)
        else:
            found[one.record.position] = body
    return found


def validate(model: type[E], opened: Opened, body: bytes | None) -> E | Dead:
    """The event of a body. The record key must be the one that its body has: order and tenancy rest on it."""
    try:
        event = decode(model, body)
    except Permanent as exc:
        return dead_of(opened.record, exc)
    except (ValueError, RecursionError) as exc:  # whatever a validator lets through is the input's fault, and must not stop a partition
        return dead_of(opened.record, exc)
    if opened.claim is not None and opened.claim.fleet != event.fleet:
        return Dead(record=opened.record, reason=Reason.CLAIM_LOST, error="the claim check belongs to another fleet than the event")
    key: str | None = getattr(event, "key", None)
    if key is not None and opened.record.key != key.encode():
        error = "the record key is not the one that its body has; produce with the key that the topic registry names"
        return Dead(record=opened.record, reason=Reason.KEY_MISMATCH, error=error)
    return event
