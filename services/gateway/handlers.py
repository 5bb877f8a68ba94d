"""What the gateway does, apart from HTTP: one transaction a request, as the role that sees one fleet.

A submission goes: one transaction (originals, boundary, outbox row), commit, only then an answer. Who waits for the result waits on
Postgres. Nothing here talks to Kafka.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar
from uuid import UUID, uuid4

from sqlalchemy.ext.asyncio import AsyncConnection

from services.gateway.problems import ProblemError, overloaded
from services.gateway.watch import CommitWatch
from winnow.client.api import BoundaryView, ProblemReason, RecoveryRequest, Status
from winnow.contracts import ids
from winnow.contracts.deadline import Deadline
from winnow.contracts.envelope import decode, decode_claim, encode
from winnow.contracts.errors import Conflict, EventIdTaken, Gone, NotFound, TooLarge
from winnow.contracts.events import Candidate, ClaimCheck, Committed, Event, Observation, RuntimeEvent
from winnow.contracts.places import Place
from winnow.contracts.topics import CANDIDATE, OBSERVATION, RUNTIME, Topic
from winnow.contracts.vocabulary import Mode, RuntimeEventKind
from winnow.storage import boundaries, entries, originals, outbox, recovery, runs, runtime_events, search, stages
from winnow.storage.boundaries import Boundary, NewBoundary
from winnow.storage.database import Database, transient
from winnow.storage.entries import EntryHistory
from winnow.storage.keys import ContentKey, Key, Stage
from winnow.storage.originals import Content, Described, Kind, NewHandle
from winnow.storage.outbox import NewMessage
from winnow.storage.recovery import Found
from winnow.storage.search import HitPage, PrunedPage

T = TypeVar("T")

#: Attempts of a transaction that meets a passing error: a restarted server breaks each pooled connection once.
ATTEMPTS = 4
#: Searches of originals at once: each works up to a second and holds about 40 MiB.
MOST_SEARCHES = 4
#: Seconds before the second attempt; doubled for each further one.
FIRST_PAUSE_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What became of a submitted boundary: as it is stored, and its result where there is one in time."""

    boundary: Boundary
    result: Committed | None


class Gateway:
    """The gateway's work. Every method takes the fleet of the API key and sees nothing else."""

    def __init__(self, database: Database, watch: CommitWatch, *, now: Callable[[], datetime], upload_ttl: timedelta) -> None:
        """`now` is the wall clock; an uploaded original can be claimed for `upload_ttl`."""
        self._database = database
        self._watch = watch
        self._now = now
        self._upload_ttl = upload_ttl
        self._searches = asyncio.Semaphore(MOST_SEARCHES)

    async def submit(self, candidate: Candidate, traceparent: str | None) -> Boundary:
        """Store a boundary with its originals and its record for the bus, once. Raise `Conflict`, `ProblemError`."""

        async def store(tx: AsyncConnection) -> Boundary:
            history = await self._messages(tx, candidate)
            row = NewBoundary.of(
                candidate,
                received_at=self._now(),
                history_sha256=history,
                request_sha256=candidate.request_sha256(history),
                traceparent=traceparent,
            )
            (inserted,) = await boundaries.insert_new(tx, [row])
            if inserted.status is boundaries.Status.CONFLICT:
                raise Conflict
            if inserted.status is boundaries.Status.INSERTED:
                await outbox.add(tx, [_message(CANDIDATE, candidate, candidate.run, _candidate_id(candidate), traceparent)])
            return inserted.boundary

        return await self._transact(candidate.fleet, store)

    async def _messages(self, tx: AsyncConnection, candidate: Candidate) -> str:
        """Store the texts, and H and R where they are inline; return the hash of H and R. What is claimed is looked at, never loaded."""
        said = (candidate.task, candidate.candidate, candidate.previous_summary)
        texts = [Content.of(candidate.fleet, text) for text in said if text is not None]
        claim = candidate.messages
        if claim is None:
            messages = Content.of(candidate.fleet, candidate.inline_messages().content())
            await originals.put(tx, [messages, *texts])
            return messages.sha256
        try:
            found = await originals.describe(tx, candidate.fleet, claim.handle, now=self._now())
            if found.sha256 != claim.sha256 or found.size != claim.size:
                raise ProblemError(ProblemReason.HASH_MISMATCH, "messages.sha256 or messages.size is not that of the stored original")
            await originals.put(tx, texts, kept=[ContentKey(candidate.fleet, found.sha256)])
        except (NotFound, Gone):
            raise ProblemError(ProblemReason.CLAIM_LOST, "upload the messages with POST /v1/originals and send that claim check") from None
        return found.sha256

    async def boundary(self, fleet: str, boundary_id: UUID, wait: Deadline) -> Submission:
        """A boundary, with its result as soon as there is one, at the latest when `wait` has passed. Raise `NotFound`."""
        key = Key(fleet, boundary_id)
        with self._watch.interest(key) as changed:
            while True:
                changed.clear()
                found = await self._transact(fleet, lambda tx: self._load(tx, key))
                if found.result is not None or wait.passed or self._watch.draining:
                    return found
                try:
                    async with asyncio.timeout(wait.remaining()):
                        await changed.wait()
                except TimeoutError:
                    continue  # one last look: it may have been committed while nobody said so

    async def _load(self, tx: AsyncConnection, key: Key) -> Submission:
        boundary = (await boundaries.load(tx, [key])).get(key)
        if boundary is None:
            raise NotFound(f"there is no boundary {key.boundary_id} in this fleet")
        if boundary.committed_at is None:
            return Submission(boundary=boundary, result=None)
        stored = (await stages.load_outputs(tx, [key], Stage.COMMITTED)).get(key)
        if stored is None:  # its partition was dropped; the anchor stays
            return Submission(boundary=boundary, result=None)
        body = stored.output.body
        if stored.output.claim:
            body = (await originals.resolve(tx, key.fleet, decode_claim(body).handle, now=self._now())).data
        result = decode(Committed, body)
        if result.mode is Mode.SHADOW:  # verdicts of a shadow are for the people who watch it: see the entries
            result = result.model_copy(update={"decisions": ()})
        return Submission(boundary=boundary, result=result)

    async def boundaries(self, fleet: str, run: str | None, cursor: str | None, limit: int) -> boundaries.Page:
        """One page of boundaries, newest first. Raise `BadCursor`."""
        return await self._transact(fleet, lambda tx: boundaries.page(tx, fleet, run=run, cursor=cursor, limit=limit))

    async def runs(self, fleet: str, cursor: str | None, limit: int) -> runs.RunPage:
        """One page of runs, the most recently active first. Raise `BadCursor`."""
        return await self._transact(fleet, lambda tx: runs.page(tx, fleet, cursor=cursor, limit=limit))

    async def entries(self, fleet: str, boundary_id: UUID) -> tuple[EntryHistory, ...]:
        """All entries of a boundary with score, decision and evidence. Raise `NotFound`."""
        key = Key(fleet, boundary_id)

        async def read(tx: AsyncConnection) -> tuple[EntryHistory, ...]:
            await self._load_anchor(tx, key)
            return await entries.history(tx, key)

        return await self._transact(fleet, read)

    async def _load_anchor(self, tx: AsyncConnection, key: Key) -> Boundary:
        boundary = (await boundaries.load(tx, [key])).get(key)
        if boundary is None:
            raise NotFound(f"there is no boundary {key.boundary_id} in this fleet")
        return boundary

    async def described(self, fleet: str, place: Place) -> Described:
        """What an original is, without its bytes. Raise `NotFound`, `Gone`."""
        return await self._transact(fleet, lambda tx: originals.describe(tx, fleet, place.handle, now=self._now()))

    async def look(self, fleet: str, place: Place) -> Found:
        """The exact bytes of a place; that they were looked at is noted. Raise `NotFound`, `Gone`."""

        async def read(tx: AsyncConnection) -> Found:
            now = self._now()
            found = await recovery.find(tx, fleet, place, now=now)
            await originals.record_recovery(tx, found.original, via="gateway", now=now, given=found.given())
            return found

        return await self._transact(fleet, read)

    async def recover(self, fleet: str, asked: RecoveryRequest, traceparent: str | None) -> Found:
        """The exact bytes of a place for the agent that asks: noted, told as `recovered`, and an entry is pinned for its run.

        All of it is committed before the bytes are given, so what comes back in a history is known then. The same `event_id` is one
        recovery. Raise `NotFound`, `Gone`, `ProblemError`.
        """
        place = Place.parse(asked.handle)
        event_id = asked.event_id or uuid4()

        async def read(tx: AsyncConnection) -> Found:
            now = self._now()
            found = (await recovery.find(tx, fleet, place, now=now)).cut(asked.start, asked.end)
            if found.size and not found.data:  # nothing would be given: no recovery, and no pin
                raise ProblemError(ProblemReason.INVALID, f"start, end: there is nothing between them; it has {found.size} bytes")
            run = asked.run or found.run
            if run is None:
                raise ProblemError(ProblemReason.INVALID, "run: say which run asks; no boundary has claimed this upload")
            new = await recovery.asked_back(tx, found, run=run, event_id=event_id, now=now)
            event = RuntimeEvent(
                fleet=fleet,
                event_id=event_id,
                run=run,
                kind=RuntimeEventKind.RECOVERED,
                at=now,
                boundary_id=found.original.boundary_id,
                handle=place.handle,
                part=place.suffix,
                recovery_tool=True,
            )
            if not await outbox.add(tx, [_message(RUNTIME, event, run, event_id, traceparent)]) and new:
                await _check_waiting(tx, RUNTIME, event)
            return found

        return await self._transact(fleet, read)

    async def search(self, fleet: str, query: str, *, run: str | None, cursor: str | None, limit: int) -> HitPage:
        """One page of places that hold words of `query`. Raise `NotFound`, `BadCursor`, and `ProblemError` where too many search."""
        if self._searches.locked():
            raise overloaded("too many searches at once", 1, status=503)
        async with self._searches:
            gathered = await self._transact(fleet, lambda tx: search.gather(tx, fleet, run=run, cursor=cursor, now=self._now()))
            return await asyncio.to_thread(search.find, gathered, query, limit)

    async def pruned(self, fleet: str, run: str, cursor: str | None, limit: int) -> PrunedPage:
        """One page of what was pruned of a run. Raise `NotFound`, `BadCursor`."""
        return await self._transact(fleet, lambda tx: search.pruned(tx, fleet, run, cursor=cursor, limit=limit, now=self._now()))

    async def store(self, fleet: str, data: bytes) -> ClaimCheck:
        """Keep bytes and give a claim check for them. Raise `TooLarge`."""
        content = await asyncio.to_thread(Content.of, fleet, data)
        handle = originals.new_handle()

        async def write(tx: AsyncConnection) -> None:
            expires = self._now() + self._upload_ttl
            new = NewHandle(handle=handle, fleet=fleet, sha256=content.sha256, kind=Kind.HISTORY, expires_at=expires)
            await originals.put(tx, [content], handles=[new])

        await self._transact(fleet, write)
        return ClaimCheck(fleet=fleet, handle=handle, sha256=content.sha256, size=len(data))

    async def runtime_event(self, event: RuntimeEvent, traceparent: str | None) -> None:
        """Store what a runtime reports, for the bus. Raise `EventIdTaken`."""
        message = _message(RUNTIME, event, event.run, event.event_id, traceparent)

        async def write(tx: AsyncConnection) -> None:
            if not await outbox.add(tx, [message]):
                await _check_waiting(tx, RUNTIME, event)
            elif await runtime_events.taken(tx, [event]):  # its record was sent, and purged since
                raise EventIdTaken

        await self._transact(event.fleet, write)

    async def observation(self, event: Observation, traceparent: str | None) -> None:
        """Store an observation, for the bus. Raise `EventIdTaken`; once the first record is purged, its id tells nothing any more."""
        message = _message(OBSERVATION, event, event.unit, event.event_id, traceparent)

        async def write(tx: AsyncConnection) -> None:
            if not await outbox.add(tx, [message]):
                await _check_waiting(tx, OBSERVATION, event)

        await self._transact(event.fleet, write)

    async def _transact(self, fleet: str, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Run `work` in one transaction of the fleet, again where a passing error ended it: everything here is idempotent."""
        attempt = 1
        while True:
            try:
                async with self._database.fleet_transaction(fleet) as tx:
                    return await work(tx)
            except Exception as exc:
                if attempt >= ATTEMPTS or not transient(exc):
                    raise
            await asyncio.sleep(FIRST_PAUSE_S * 2 ** (attempt - 1) * random.uniform(0.5, 1.0))  # noqa: S311  jitter, not a secret
            attempt += 1


def view(found: Boundary, result: Committed | None = None) -> BoundaryView:
    """A stored boundary as the API tells of it."""
    status = Status.RECEIVED
    for stage, at in ((Status.EVIDENCE, found.evidence_at), (Status.SCORED, found.scored_at), (Status.COMMITTED, found.committed_at)):
        if at is not None:
            status = stage
    return BoundaryView(
        boundary_id=found.boundary_id,
        fleet=found.fleet,
        run=found.run,
        agent=found.agent,
        index=found.boundary_index,
        status=status,
        mode=found.effective_mode,
        outcome=found.outcome,
        reason=found.reason,
        held=found.held,
        late=found.late,
        entries=found.entries,
        pruned=found.pruned,
        candidate_sha256=found.candidate_sha256,
        committed_sha256=found.committed_sha256,
        parent_boundary_id=found.parent_boundary_id,
        boundary_at=found.boundary_at,
        received_at=found.received_at,
        committed_at=found.committed_at,
        result=result,
    )


def _candidate_id(candidate: Candidate) -> UUID:
    return ids.event_id(candidate.fleet, candidate.boundary_id, CANDIDATE.event_type)


async def _check_waiting(tx: AsyncConnection, topic: Topic, event: RuntimeEvent | Observation) -> None:
    """See that the record in the outbox under the event's id says the same. Raise `EventIdTaken`."""
    body = await outbox.body(tx, event.fleet, topic.name, event.event_id)
    if body is None or decode(type(event), body).said != event.said:
        raise EventIdTaken


def _message(topic: Topic, event: Candidate | RuntimeEvent | Observation, run: str, event_id: UUID, traceparent: str | None) -> NewMessage:
    """The outbox row of an event."""
    return NewMessage(
        fleet=event.fleet,
        topic=topic.name,
        key=event.key,
        body=_body(topic, event),
        event_id=event_id,
        headers={},
        run=run,
        boundary_id=event.boundary_id,
        traceparent=traceparent,
    )


def _body(topic: Topic, event: Event) -> bytes:
    """The event's bytes. Raise `ProblemError` where the topic does not take them."""
    try:
        return encode(topic, event)
    except TooLarge:
        detail = f"the event has more than {topic.max_body_bytes} bytes; store messages with POST /v1/originals and send their claim check"
        raise ProblemError(ProblemReason.TOO_LARGE, detail) from None
