"""candidate -> entries, pooled evidence, provenance, features.

A batch goes: look up what is known -> examine what is new -> one transaction (boundaries, originals, handles, evidence) -> publish what
is *stored* -> acknowledge. The first stored answer wins; a redelivery publishes it again.
"""

import asyncio
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from opentelemetry.util.types import AttributeValue
from pydantic import ValidationError

from services.retriever import rejections
from services.retriever.planting import Planter
from services.retriever.rejections import Refused
from winnow.compaction.analysis import FEATURES_VERSION
from winnow.compaction.boundary import NOTHING_GIVEN, Examined, examine
from winnow.compaction.parse import PARSER_VERSION
from winnow.compaction.recovered import keys_of, relabelled
from winnow.contracts import limits
from winnow.contracts.errors import Gone, HashMismatch, NotFound, TooLarge
from winnow.contracts.events import Canary, Candidate, ClaimCheck, Evidence, Messages, Text, sha256
from winnow.contracts.topics import CANDIDATE, EVIDENCE, Topic
from winnow.contracts.vocabulary import Reason, Rules
from winnow.judging.canaries import Ground
from winnow.messaging.records import Handled, Outgoing, Received
from winnow.storage import boundaries, canaries, erase, fleets, originals, recovery, stages
from winnow.storage.boundaries import Boundary, NewBoundary, Status
from winnow.storage.database import Database
from winnow.storage.keys import Key, Stage
from winnow.storage.originals import Content, Kind, NewHandle
from winnow.storage.outputs import outgoing_of, output_of
from winnow.telemetry import Attr
from winnow.telemetry.traces import annotate

#: Characters of a boundary above which the core works in a thread: 100,000 take about 0.1 s, in which no heartbeat would be sent.
INLINE_CHARACTERS = 100_000
#: Characters of what the user asked of the compressor that a judge is shown: a focus is a sentence, and the event must stay small.
FOCUS_CHARACTERS = 4_000
#: Bytes of claimed messages that are in memory at once (one claim may be larger): a hundred of 64 MiB would be 6 GB before they are parsed.
CLAIMED_BYTES = 16 * limits.MIB
#: Age of an erasure that may have come between the choice of a donor and the storing of the answer, far above the time of a batch. What was
#: erased longer ago gave no donor: its fleet, or a run of its name, may have gone on since.
MEANWHILE = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Work:
    """One candidate with its messages at hand."""

    received: Received[Candidate]
    messages: Messages  # what Winnow gave back among them is known as that
    content: bytes  # the stored form of the messages, as the host sent them
    messages_sha256: str
    request_sha256: str
    #: Of texts that Winnow gave back, whether an environment had returned them.
    given: Mapping[str, bool] = field(default_factory=lambda: NOTHING_GIVEN)

    @property
    def key(self) -> Key:
        """Fleet and boundary id."""
        return Key(self.received.event.fleet, self.received.event.boundary_id)

    def refused(self, reason: Reason, error: str) -> Refused:
        """This candidate, not judged."""
        return Refused(received=self.received, request_sha256=self.request_sha256, reason=reason, error=error)


class RetrieverHandler:
    """Consumes candidates."""

    topic: Topic = CANDIDATE
    model = Candidate

    def __init__(
        self, database: Database, *, default_point: fleets.Point, clock: Callable[[], datetime], canary_share: float = 0.0
    ) -> None:
        """`default_point` is the first operating point of a fleet that is seen for the first time.

        `canary_share`: share of boundaries whose judge is also asked about entries with known answers.
        """
        self._database = database
        self._default_point = default_point
        self._clock = clock
        self._planter = Planter(database, canary_share)

    def identity(self, event: Candidate) -> Hashable:
        """Equal events are one; the same id with other content is looked at as the conflict that it is."""
        return event

    async def handle(self, batch: Sequence[Received[Candidate]]) -> Handled:
        """Retrieve for a batch, some at a time where large messages are claimed. See the module's docstring for the order."""
        parts = [await self._handle(portion) for portion in portions(batch)]
        return Handled(outgoing=[o for part in parts for o in part.outgoing], dead=[d for part in parts for d in part.dead])

    async def _handle(self, batch: Sequence[Received[Candidate]]) -> Handled:
        """Retrieve for candidates whose messages fit into memory together."""
        works, refused = await self._open(batch)
        keys = [Key(r.event.fleet, r.event.boundary_id) for r in batch]
        async with self._database.reading() as tx:
            known = await boundaries.load(tx, keys)
            answered = await stages.load_outputs(tx, [k for k, b in known.items() if b.evidence_at is not None], Stage.EVIDENCE)
        # The claim check of a redelivery may have expired since: what is stored is published all the same.
        done = {id(r) for r in refused if r.key in answered and known[r.key].request_sha256 == r.request_sha256}
        again = [outgoing_of(EVIDENCE, answered[r.key], r.received.context) for r in refused if id(r) in done]
        refused = [r for r in refused if id(r) not in done]
        new = await self._knowing([w for w in works if w.key not in answered and _agrees(w, known.get(w.key))])
        examined = {}
        for work in new:
            try:
                examined[work.key, work.request_sha256] = await self._examine(work)
            except TooLarge as exc:
                refused.append(work.refused(Reason.TOO_LARGE, str(exc)))
        planted = await self._planter.plant(
            {w.key: _ground(w, examined[w.key, w.request_sha256]) for w in new if (w.key, w.request_sha256) in examined}
        )
        try:
            stored, fresh = await self._store([w for w in new if (w.key, w.request_sha256) in examined], examined, planted)
        except TooLarge as exc:  # of its evidence: no limit of the candidate rules that out
            if len(batch) > 1:
                raise  # whose it was shows when they come one by one
            stored, fresh = {}, {}
            refused.append(works[0].refused(Reason.TOO_LARGE, str(exc)))
        answers = answered | fresh
        missing = [w.key for w in works if w.key not in answers]
        if missing:  # another worker was first, or the boundary is another request's
            async with self._database.reading() as tx:
                answers |= await stages.load_outputs(tx, missing, Stage.EVIDENCE)
                known |= await boundaries.load(tx, missing)
        outgoing: list[Outgoing] = []
        for work in works:
            request = stored.get(work.key) or (known[work.key].request_sha256 if work.key in known else None)
            if request is not None and request != work.request_sha256:
                refused.append(work.refused(Reason.ID_CONFLICT, "the boundary id was submitted before with other content; use a new id"))
            elif (answer := answers.get(work.key)) is not None:
                outgoing.append(outgoing_of(EVIDENCE, answer, work.received.context))
                annotate(work.received.context, _told(work, examined.get((work.key, work.request_sha256))))
        rejected = await rejections.settle(self._database, refused, now=self._clock())
        return Handled(outgoing=(*again, *outgoing, *rejected), dead=[r.dead for r in refused])

    async def _open(self, batch: Sequence[Received[Candidate]]) -> tuple[list[_Work], list[Refused]]:
        """Resolve claim checks; what this fleet does not have is refused."""
        works: list[_Work] = []
        refused: list[Refused] = []

        def refuse(received: Received[Candidate], reason: Reason, error: str) -> None:
            refused.append(Refused(received=received, request_sha256=received.event.request_sha256(), reason=reason, error=error))

        for received in batch:
            event = received.event
            try:
                if event.messages is None:
                    messages = event.inline_messages()
                    content = messages.content()
                else:
                    async with self._database.transaction() as tx:
                        original = await originals.resolve(tx, event.fleet, event.messages.handle, now=self._clock())
                    content = _claimed(original, event.messages)
                    # 64 MiB of messages take seconds, in which no heartbeat would be sent.
                    messages = await asyncio.to_thread(Messages.model_validate_json, content)
            except (NotFound, Gone):
                refuse(received, Reason.CLAIM_LOST, "the claim check names no original of this fleet")
            except HashMismatch:
                refuse(received, Reason.HASH_MISMATCH, "the claim check's hash is not the original's")
            except ValidationError:
                refuse(received, Reason.INVALID, "the claimed original does not hold messages")
            else:
                digest = sha256(content)
                works.append(
                    _Work(
                        received=received,
                        messages=messages,
                        content=content,
                        messages_sha256=digest,
                        request_sha256=event.request_sha256(digest),
                    )
                )
        return works, refused

    async def _knowing(self, works: Sequence[_Work]) -> list[_Work]:
        """The works with the origins that their messages really have: what was recovered is a source only where an environment said it."""
        asked: dict[str, set[str]] = {}
        for work in works:
            asked.setdefault(work.key.fleet, set()).update(keys_of((*work.messages.history, *work.messages.retained)))
        given: dict[str, dict[str, bool]] = {}
        if any(asked.values()):
            async with self._database.reading() as tx:
                given = await recovery.given_of_many(tx, asked)
        found = []
        for work in works:
            if work.received.event.rules is Rules.WINNOW:
                of_fleet = given.get(work.key.fleet, NOTHING_GIVEN)
                h, r = (relabelled(messages, of_fleet) for messages in (work.messages.history, work.messages.retained))
                known = work.messages.model_copy(update={"history": h, "retained": r})
                found.append(replace(work, messages=known, given=of_fleet))
            else:  # the published system takes every output for a source
                found.append(work)
        return found

    async def _examine(self, work: _Work) -> Examined:
        """Run the core, off the event loop where it takes long enough to starve heartbeats. Raise `TooLarge` above the limit of entries."""
        event = work.received.event
        core = partial(
            examine,
            event.candidate,
            task=event.task,
            previous=event.previous_summary,
            history=work.messages.history,
            retained=work.messages.retained,
            host=event.host,
            profile=event.profile,
            rules=event.rules,
            pins=event.pins,
            user_turns_survive=event.user_turns_survive,
            given=work.given,
        )
        if len(work.content) + len(event.candidate) > INLINE_CHARACTERS:
            found = await asyncio.to_thread(core)
        else:
            found = core()
            await asyncio.sleep(0)  # the other services of this process get their turn
        return found

    async def _store(
        self, works: Sequence[_Work], examined: dict[tuple[Key, str], Examined], planted: Mapping[Key, tuple[Canary, ...]]
    ) -> tuple[dict[Key, str], dict[Key, stages.StoredOutput]]:
        """One transaction with all that is new. Return the request hash that each boundary now stands for, and what this call stored."""
        if not works:
            return {}, {}
        now = self._clock()
        async with self._database.transaction() as tx:
            current = await fleets.ensure(tx, {w.key.fleet for w in works}, default=self._default_point, now=now)
            contents: list[Content] = []
            for work in works:
                contents.extend(_contents(work))
            await originals.put(tx, contents)
            rows = [
                NewBoundary.of(
                    w.received.event,
                    received_at=now,
                    history_sha256=w.messages_sha256,
                    request_sha256=w.request_sha256,
                    traceparent=w.received.envelope.traceparent,
                )
                for w in works
            ]
            inserted = await boundaries.insert_new(tx, rows)
            donors = {(k.fleet, c.donor) for k, made in planted.items() for c in made if c.donor is not None}
            gone = await erase.erased_runs(tx, donors, since=now - MEANWHILE)
            handles: list[NewHandle] = []
            answers: list[stages.EvidenceAnswer] = []
            for work, found in zip(works, inserted, strict=True):
                if found.status is Status.CONFLICT:
                    continue
                have = {} if found.status is Status.INSERTED else await originals.handles_of(tx, *work.key)
                own = {kind: have.get(kind) or originals.new_handle() for kind in _kinds(work)}
                handles.extend(_handles(work, {k: h for k, h in own.items() if k not in have}))
                event = _evidence(work, examined[work.key, work.request_sha256], found.boundary, current[work.key.fleet], own)
                if own_canaries := [c for c in planted.get(work.key, ()) if (work.key.fleet, c.donor) not in gone]:
                    event = event.model_copy(update={"canaries": tuple(own_canaries)})
                output, overflow = output_of(EVIDENCE, event, traceparent=work.received.envelope.traceparent)
                if overflow is not None:
                    await originals.put(tx, [overflow.content])
                    handles.append(overflow.handle)
                answers.append(stages.EvidenceAnswer(event=event, output=output))
            await originals.put_handles(tx, handles)
            done = await stages.store_evidence(tx, answers, now=now)
            await canaries.note(
                tx, [donor for a in answers if Key(a.event.fleet, a.event.boundary_id) in done for donor in _donors(a.event)]
            )
        requests = {found.boundary.key: found.boundary.request_sha256 for found in inserted}
        return requests, stages.stored_by(answers, done, Stage.EVIDENCE, now=now)


def portions(batch: Sequence[Received[Candidate]]) -> Iterator[list[Received[Candidate]]]:
    """Cut a batch where claimed messages exceed `CLAIMED_BYTES`. A claim check that understates its size is refused when it is opened."""
    portion: list[Received[Candidate]] = []
    size = 0
    for received in batch:
        claim = received.event.messages
        more = 0 if claim is None else claim.size
        if portion and size + more > CLAIMED_BYTES:
            yield portion
            portion, size = [], 0
        portion.append(received)
        size += more
    if portion:
        yield portion


def _claimed(original: originals.Resolved, claim: ClaimCheck) -> bytes:
    """The bytes that a claim check names. Raise `HashMismatch` where it states another hash or size."""
    if original.sha256 != claim.sha256 or len(original.data) != claim.size:
        raise HashMismatch
    return original.data


def _agrees(work: _Work, known: Boundary | None) -> bool:
    """Nothing is stored under this id, or the same request."""
    return known is None or known.request_sha256 == work.request_sha256


def _kinds(work: _Work) -> tuple[Kind, ...]:
    """The originals of a boundary."""
    previous = () if work.received.event.previous_summary is None else (Kind.PREVIOUS,)
    return (Kind.TASK, Kind.HISTORY, Kind.CANDIDATE, *previous)


def _contents(work: _Work) -> list[Content]:
    """Task, history, candidate and previous summary, to be stored once a fleet."""
    event = work.received.event
    texts: list[bytes | str] = [event.task, event.candidate]
    if event.previous_summary is not None:
        texts.append(event.previous_summary)
    return [Content.of(event.fleet, text) for text in texts] + [Content(fleet=event.fleet, sha256=work.messages_sha256, data=work.content)]


def _handles(work: _Work, names: dict[Kind, str]) -> list[NewHandle]:
    """Handles for the originals of a boundary."""
    event = work.received.event
    hashes = {
        Kind.TASK: sha256(event.task),
        Kind.HISTORY: work.messages_sha256,
        Kind.CANDIDATE: event.candidate_sha256,
        Kind.PREVIOUS: sha256(event.previous_summary or ""),
    }
    return [
        NewHandle(handle=handle, fleet=event.fleet, sha256=hashes[kind], kind=kind, boundary_id=event.boundary_id)
        for kind, handle in names.items()
    ]


def _ground(work: _Work, found: Examined) -> Ground:
    """The boundary that canaries may be planted in."""
    event = work.received.event
    return Ground(
        run=event.run,
        task=event.task,
        previous=event.previous_summary,
        history=work.messages.history,
        retained=work.messages.retained,
        rules=event.rules,
        examined=found,
    )


def _told(work: _Work, found: Examined | None) -> dict[Attr, AttributeValue | None]:
    """What the span of a candidate says of it: counts, never texts. `found` is None for what was answered before."""
    event = work.received.event
    return {
        Attr.BOUNDARY_ID: str(event.boundary_id),
        Attr.BOUNDARY_INDEX: event.index,
        Attr.HOST: event.host,
        Attr.MODE: event.mode.value,
        Attr.CHARS_BEFORE: len(event.candidate),
        Attr.ENTRIES_TOTAL: None if found is None else len(found.analysis.entries),
        Attr.EVIDENCE_PASSAGES: None if found is None else len(found.analysis.passages),
    }


def _donors(event: Evidence) -> Iterator[tuple[str, str, UUID, datetime]]:
    """The runs whose entries an answer holds as canaries, so that erasing them finds it."""
    for canary in event.canaries:
        if canary.donor is not None:
            yield event.fleet, canary.donor, event.boundary_id, event.boundary_at


def _evidence(work: _Work, found: Examined, boundary: Boundary, fleet: fleets.Fleet, own: dict[Kind, str]) -> Evidence:
    """The event for the judge."""
    event = work.received.event
    return Evidence(
        fleet=event.fleet,
        run=event.run,
        agent=event.agent,
        boundary_id=event.boundary_id,
        request_sha256=work.request_sha256,
        candidate_sha256=event.candidate_sha256,
        operating_point=fleet.operating_point.id,
        deadline=boundary.deadline,
        index=event.index,
        boundary_at=boundary.boundary_at,
        mode=event.mode,
        rules=event.rules,
        host=event.host,
        profile=found.parsed.profile,
        user_turns_survive=found.user_turns_survive,
        not_a_summary=found.parsed.outcome,
        task=Text.of(event.task, own[Kind.TASK]),
        previous=None if event.previous_summary is None else Text.of(event.previous_summary, own[Kind.PREVIOUS]),
        retained=_retained(work, own[Kind.HISTORY]),
        custom_instructions=None if event.custom_instructions is None else event.custom_instructions[:FOCUS_CHARACTERS],
        compressor=event.compressor,
        passages=found.analysis.passages,
        entries=found.analysis.entries,
        parser_version=PARSER_VERSION,
        features_version=FEATURES_VERSION,
        messages_sha256=work.messages_sha256,
        warnings=(*found.parsed.warnings, *found.analysis.warnings),
    )


def _retained(work: _Work, history: str) -> Text:
    """R as a text of its own; above the inline limit the handle of H and R stands for it."""
    content = Messages(retained=work.messages.retained).content()
    if len(content) <= limits.INLINE_TEXT_BYTES:
        return Text.of(content.decode())
    return Text(sha256=work.messages_sha256, size=len(work.content), handle=history)
