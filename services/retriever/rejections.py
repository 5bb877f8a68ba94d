"""Candidates that are not judged: what their runtime is told, and how the boundary that the gateway stored for one comes to its end."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from winnow.contracts import ids
from winnow.contracts.envelope import encode
from winnow.contracts.events import Candidate, Committed
from winnow.contracts.topics import COMMITTED
from winnow.contracts.vocabulary import Outcome, Reason
from winnow.messaging.records import Dead, Outgoing, Received
from winnow.storage import boundaries, originals, stages
from winnow.storage.boundaries import Boundary
from winnow.storage.database import Database
from winnow.storage.keys import Key, Stage
from winnow.storage.outputs import outgoing_of, output_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Refused:
    """One candidate that cannot be judged."""

    received: Received[Candidate]
    request_sha256: str
    reason: Reason
    error: str

    @property
    def key(self) -> Key:
        """Fleet and boundary id."""
        return Key(self.received.event.fleet, self.received.event.boundary_id)

    @property
    def dead(self) -> Dead:
        """Its dead letter."""
        return Dead(record=self.received.record, reason=self.reason, error=self.error)


async def settle(database: Database, refused: Sequence[Refused], *, now: datetime) -> list[Outgoing]:
    """Answer each refused candidate with `rejected`.

    What came over HTTP is stored before it is looked at: such a boundary gets the rejection as its stored end, else it would wait for ever
    and its candidate be swept again and again. What came over Kafka alone has no boundary, and gets none: replayed once its cause is
    mended, it is judged.
    """
    if not refused:
        return []
    async with database.transaction() as tx:
        known = await boundaries.load(tx, [r.key for r in refused])
        waiting = {r.key: r for r in refused if _is_its_own(r, known.get(r.key))}
        answers = []
        for one in waiting.values():
            event = _rejection(one)
            output, overflow = output_of(COMMITTED, event, traceparent=one.received.envelope.traceparent)
            if overflow is not None:
                await originals.put(tx, [overflow.content], handles=[overflow.handle])
            answers.append(stages.CommittedAnswer(event=event, output=output))
        await stages.store_committed(tx, answers, now=now)
        stored = await stages.load_outputs(tx, list(waiting), Stage.COMMITTED)
    return [
        outgoing_of(COMMITTED, stored[one.key], one.received.context) if waiting.get(one.key) is one else _unstored(one) for one in refused
    ]


def _is_its_own(refused: Refused, known: Boundary | None) -> bool:
    """The stored boundary is this very request: not the first of two with one id, of which this is the second."""
    return known is not None and known.request_sha256 == refused.request_sha256


def _unstored(refused: Refused) -> Outgoing:
    """The rejection of a request that has no boundary of its own; the request's hash keeps it apart from the first one's result."""
    event = _rejection(refused)
    return Outgoing(
        topic=COMMITTED,
        key=event.key,
        body=encode(COMMITTED, event),
        event_id=str(ids.event_id(event.fleet, event.boundary_id, f"rejected/{refused.request_sha256}")),
        time=event.committed_at,
        context=refused.received.context,
    )


def _rejection(refused: Refused) -> Committed:
    """The event. Its time is the record's, so that every repetition has the same body."""
    event = refused.received.event
    return Committed(
        fleet=event.fleet,
        run=event.run,
        agent=event.agent,
        boundary_id=event.boundary_id,
        request_sha256=refused.request_sha256,
        candidate_sha256=event.candidate_sha256,
        operating_point=0,
        deadline=event.deadline,
        index=event.index,
        outcome=Outcome.REJECTED,
        reason=refused.reason,
        mode=event.mode,
        rules=event.rules,
        profile=event.profile or "unknown",
        tau=0.0,
        summary=None,
        committed_sha256=None,
        committed_at=datetime.fromtimestamp(refused.received.record.timestamp / 1000, UTC),
    )
