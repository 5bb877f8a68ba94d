"""scores -> the committed summary.

A batch goes, in one transaction: load what is stored -> read the gate of each fleet (hold, certificate, monitor) and what was asked back in
each run -> decide boundary by boundary in the order of the run, so that a child finds the roots of its parent -> store decisions and
committed bytes -> commit; then publish what is *stored*, with what became of canaries, and acknowledge.
"""

from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from opentelemetry.context import Context
from opentelemetry.util.types import AttributeValue

from services.pruner import canaries
from winnow.compaction.carry import Support, roots
from winnow.compaction.decide import DEFAULT_TAU, Fate, Judged, fates, without
from winnow.contracts.envelope import encode
from winnow.contracts.events import Committed, Entry, EntryDecision, Score, Scores, Text, sha256
from winnow.contracts.topics import COMMITTED, OBSERVATION, SCORES, Topic
from winnow.contracts.vocabulary import Decision, DecisionReason, FindingKind, Mode, Outcome, Reason, RootSource, Rules, Verdict, mildest
from winnow.messaging.records import Dead, Handled, Outgoing, Received
from winnow.storage import bindings, boundaries, entries, erase, fleets, originals, recovery, stages
from winnow.storage.boundaries import Boundary, ParentLookup
from winnow.storage.database import Database, Transaction
from winnow.storage.keys import ContentKey, Key, Stage
from winnow.storage.originals import Content, Kind, NewHandle
from winnow.storage.outputs import outgoing_of, output_of
from winnow.telemetry import Attr
from winnow.telemetry.telemetry import Telemetry
from winnow.telemetry.traces import annotate, within

#: What `pinned_by` says of an entry that an agent asked back.
PINNED_BY = "recovery"
#: Outcomes after which nothing may be pruned.
UNTOUCHED = (Outcome.UNJUDGED, Outcome.NOT_A_SUMMARY)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """What a boundary handed on: its texts and the root of each of its entries."""

    boundary_id: UUID
    candidate_sha256: str
    committed_sha256: str
    roots: Mapping[str, RootSource]


@dataclass(slots=True)
class _Run:
    """The boundaries of one run that this batch has decided, newest last: the database does not show them before they are stored."""

    written: list[_Written] = field(default_factory=list)

    def parent_of(self, boundary: Boundary) -> _Written | None:
        """The boundary of this batch that wrote M: the one that the host names, else by committed text, else by candidate."""
        m, named = boundary.previous_sha256, boundary.previous_boundary_id
        newest = self.written[::-1]
        orders = (
            [w for w in newest if w.boundary_id == named and m in {w.committed_sha256, w.candidate_sha256}],
            [w for w in newest if w.committed_sha256 == m],
            [w for w in newest if w.candidate_sha256 == m],
        )
        return next((found[0] for found in orders if found), None)


class PrunerHandler:
    """Consumes scores."""

    topic: Topic = SCORES
    model = Scores

    def __init__(self, database: Database, *, clock: Callable[[], datetime], monitor_stale_after: timedelta, telemetry: Telemetry) -> None:
        """`monitor_stale_after`: age of the drift monitor's heartbeat that holds fleets whose operating point says so."""
        self._database = database
        self._clock = clock
        self._points = fleets.KnownPoints()
        self._stale_after = monitor_stale_after
        self._telemetry = telemetry

    def identity(self, event: Scores) -> Hashable:
        """A boundary's request."""
        return event.fleet, event.boundary_id, event.request_sha256

    async def handle(self, batch: Sequence[Received[Scores]]) -> Handled:
        """Prune a batch. See the module's docstring for the order."""
        keys = [Key(r.event.fleet, r.event.boundary_id) for r in batch]
        now = self._clock()
        dead: list[Dead] = []
        async with self._database.transaction() as tx:
            known = await boundaries.load(tx, keys)
            stored = await stages.load_outputs(tx, [k for k, b in known.items() if b.committed_at is not None], Stage.COMMITTED)
            erased = await erase.erased_runs(tx, {(r.event.fleet, r.event.run) for r, k in zip(batch, keys, strict=True) if k not in known})
            valid = [r for r in batch if self._valid(r, known, erased, dead)]
            new = [r for r in valid if Key(r.event.fleet, r.event.boundary_id) not in stored]
            fresh: list[Committed] = []
            if new:
                answers = await self._commit(tx, new, known, now)
                done = await stages.store_committed(tx, answers, now=now)
                fresh = [a.event for a in answers if Key(a.event.fleet, a.event.boundary_id) in done]
                stored |= stages.stored_by(answers, done, Stage.COMMITTED, now=now)
                lost = [key for r in new if (key := Key(r.event.fleet, r.event.boundary_id)) not in done]
                if lost:  # another worker was first; its answer is the one that stands
                    stored |= await stages.load_outputs(tx, lost, Stage.COMMITTED)
            points = await self._points.get(
                tx, {_stamped(known[Key(r.event.fleet, r.event.boundary_id)]) for r in valid if r.event.canaries}
            )
        self._count(fresh, known, {(r.event.fleet, r.event.boundary_id): r.context for r in valid})
        told = {(event.fleet, event.boundary_id): event for event in fresh}
        for received in valid:
            if (event := told.get((received.event.fleet, received.event.boundary_id))) is not None:
                annotate(received.context, _told(event))
        outgoing: list[Outgoing] = []
        for received in valid:
            key = Key(received.event.fleet, received.event.boundary_id)
            if key in stored:
                outgoing.append(outgoing_of(COMMITTED, stored[key], received.context))
                outgoing.extend(_observed(received, points.get(_stamped(known[key])), stored[key].created_at))
        return Handled(outgoing=outgoing, dead=dead)

    def _valid(
        self, received: Received[Scores], known: Mapping[Key, Boundary], erased: Collection[tuple[str, str]], dead: list[Dead]
    ) -> bool:
        """The scores are for the boundary that is stored under this id, and for its bytes. Of an erased run nothing is kept."""
        event = received.event
        boundary = known.get(Key(event.fleet, event.boundary_id))
        if boundary is None and (event.fleet, event.run) in erased:
            self._telemetry.metrics.count("winnow_erased_records_total", service="pruner")
            return False
        if boundary is None:
            reason, error = Reason.UNKNOWN_BOUNDARY, "the boundary was never stored"
        elif boundary.request_sha256 != event.request_sha256:
            reason, error = Reason.ID_CONFLICT, "the scores are for another request than the stored one"
        elif boundary.candidate_sha256 != event.candidate_sha256:
            reason, error = Reason.HASH_MISMATCH, "the scores are for other bytes than the stored candidate"
        elif boundary.evidence_at is None:
            reason, error = Reason.UNKNOWN_BOUNDARY, "the boundary has no stored entries yet"
        else:
            return True
        dead.append(Dead(record=received.record, reason=reason, error=error))
        return False

    async def _commit(
        self, tx: Transaction, batch: Sequence[Received[Scores]], known: Mapping[Key, Boundary], now: datetime
    ) -> list[stages.CommittedAnswer]:
        """Decide, and store the committed texts, within `tx`. Return what was decided."""
        keys = [Key(r.event.fleet, r.event.boundary_id) for r in batch]
        gates = await fleets.gate(tx, {k.fleet for k in keys}, now=now, stale_after=self._stale_after)
        points = await self._points.get(tx, {_stamped(known[k]) for k in keys})
        listed = await entries.outlines(tx, keys)
        texts = await originals.get(tx, {ContentKey(k.fleet, known[k].candidate_sha256) for k in keys})
        handles = await originals.handles_of_many(tx, keys)
        asking = [known[k] for k in keys if known[k].previous_sha256 is not None]
        found = await boundaries.find_parents(tx, [_lookup(b) for b in asking])
        parents = {b.key: p for b, p in zip(asking, found, strict=True) if p is not None}
        inherited = await entries.roots_of(tx, {p.boundary.key for p in parents.values()})
        pinned = await _pinned(tx, [known[k] for k in keys])
        runs: dict[tuple[str, str], _Run] = {}
        contents: list[Content] = []
        new_handles: list[NewHandle] = []
        answers: list[stages.CommittedAnswer] = []
        for received, key in zip(batch, keys, strict=True):
            boundary, event = known[key], received.event
            run = runs.setdefault((boundary.fleet, boundary.run), _Run())
            parent_id, above = _parent(boundary, run, parents, inherited)
            candidate = texts[ContentKey(key.fleet, boundary.candidate_sha256)]
            own = dict(handles.get(key, {}))
            if Kind.COMMITTED not in own:
                own[Kind.COMMITTED] = originals.new_handle()
            decided = _decide(
                boundary, event, listed.get(key, ()), candidate,
                gate=gates[key.fleet], point=points[_stamped(boundary)].point, above=above, parent_id=parent_id,
                pinned=pinned.get(key, frozenset()), handles=own, now=now,
            )  # fmt: skip
            run.written.append(decided.written)
            content = Content.of(key.fleet, decided.committed)
            contents.append(content)
            if Kind.COMMITTED not in handles.get(key, {}):
                new_handles.append(
                    NewHandle(
                        handle=own[Kind.COMMITTED], fleet=key.fleet, sha256=content.sha256, kind=Kind.COMMITTED, boundary_id=key.boundary_id
                    )
                )
            output, overflow = output_of(COMMITTED, decided.event, traceparent=received.envelope.traceparent)
            if overflow is not None:
                contents.append(overflow.content)
                new_handles.append(overflow.handle)
            answers.append(stages.CommittedAnswer(event=decided.event, output=output))
        await originals.put(tx, contents, handles=new_handles)
        return answers

    def _count(self, fresh: Sequence[Committed], known: Mapping[Key, Boundary], contexts: Mapping[tuple[str, UUID], Context]) -> None:
        """Metrics and lines of what this call decided; `contexts`: the trace of each boundary."""
        metrics = self._telemetry.metrics
        for event in fresh:
            reason = event.reason.value if event.reason else ""
            metrics.count("winnow_outcomes_total", service="pruner", outcome=event.outcome.value, reason=reason)
            took = (event.committed_at - known[Key(event.fleet, event.boundary_id)].received_at).total_seconds()
            metrics.observe("winnow_boundary_seconds", took, outcome=event.outcome.value)
            if pinned := sum(d.reason is DecisionReason.RECOVERED for d in event.decisions):
                metrics.count("winnow_pinned_by_recovery_total", pinned)
            with within(contexts.get((event.fleet, event.boundary_id))):
                self._telemetry.log.debug(
                    "boundary_committed", boundary=str(event.boundary_id), outcome=event.outcome.value, reason=reason,
                    mode=event.mode.value, kept=len(event.decisions) - event.pruned, pruned=event.pruned,
                )  # fmt: skip
        for (section_class, decision), number in Counter((d.section_class, d.decision) for event in fresh for d in event.decisions).items():
            metrics.count("winnow_entries_total", number, section_class=section_class.value, decision=decision.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Decided:
    """One boundary, decided."""

    event: Committed
    committed: bytes
    written: _Written


def _told(event: Committed) -> dict[Attr, AttributeValue | None]:
    """What the span of a boundary says of its end: counts, never texts."""
    decisions = Counter(d.decision for d in event.decisions)
    return {
        Attr.BOUNDARY_ID: str(event.boundary_id),
        Attr.BOUNDARY_INDEX: event.index,
        Attr.MODE: event.mode.value,
        Attr.OUTCOME: event.outcome.value,
        Attr.REASON: event.reason.value if event.reason else None,
        Attr.THRESHOLD: event.tau,
        Attr.JUDGE: None if event.judge is None else event.judge.name,
        Attr.ENTRIES_TOTAL: len(event.decisions),
        Attr.ENTRIES_KEPT: len(event.decisions) - decisions[Decision.PRUNED],
        Attr.ENTRIES_PRUNED: decisions[Decision.PRUNED],
        Attr.ENTRIES_PINNED: sum(d.pinned_by is not None for d in event.decisions),
        Attr.ENTRIES_UNSCORED: sum(d.score is None for d in event.decisions),
        Attr.CHARS_AFTER: len(event.summary.text) if isinstance(event.summary, Text) and event.summary.text is not None else None,
    }


def _observed(received: Received[Scores], point: fleets.OperatingPoint | None, at: datetime) -> Iterator[Outgoing]:
    """What became of the boundary's canaries: the same observations at every redelivery."""
    if point is None or not received.event.canaries:
        return
    for observation in canaries.observations(received.event, tau=point.point.tau, at=at):
        body = encode(OBSERVATION, observation)
        event_id = str(observation.event_id)
        yield Outgoing(topic=OBSERVATION, key=observation.key, body=body, event_id=event_id, time=at, context=received.context)


async def _pinned(tx: Transaction, decided: Sequence[Boundary]) -> dict[Key, frozenset[int]]:
    """Entries of boundaries that have the wording of one that was asked back in their run, by number; most runs have none."""
    pins = await recovery.pins_of(tx, {(b.fleet, b.run) for b in decided})
    of = {b.key: pins[b.fleet, b.run] for b in decided if (b.fleet, b.run) in pins}
    worded = await recovery.wordings_of(tx, list(of))
    return {key: frozenset(n for n, wording in worded.get(key, {}).items() if wording in keys) for key, keys in of.items()}


def _stamped(boundary: Boundary) -> int:
    """The operating point that the retriever stamped; what an event says of it decides nothing."""
    return boundary.operating_point or 0


def _lookup(boundary: Boundary) -> ParentLookup:
    """Ask for the boundary that wrote M."""
    return ParentLookup(
        fleet=boundary.fleet,
        run=boundary.run,
        boundary_id=boundary.boundary_id,
        previous_boundary_id=boundary.previous_boundary_id,
        previous_sha256=boundary.previous_sha256 or "",
    )


def _parent(
    boundary: Boundary,
    run: _Run,
    parents: Mapping[Key, boundaries.Parent],
    inherited: Mapping[Key, Mapping[str, RootSource]],
) -> tuple[UUID | None, Mapping[str, RootSource] | None]:
    """The boundary that wrote M and its roots; this batch's own boundaries are newer than the stored ones."""
    if boundary.previous_sha256 is None:
        return None, None
    if (fresh := run.parent_of(boundary)) is not None:
        return fresh.boundary_id, fresh.roots
    if (stored := parents.get(boundary.key)) is not None:
        return stored.boundary.boundary_id, inherited.get(stored.boundary.key, {})
    return None, None


def _decide(  # noqa: PLR0913  everything that a decision rests on, each by its name
    boundary: Boundary,
    event: Scores,
    listed: Sequence[Entry],
    candidate: bytes,
    *,
    gate: fleets.Gate,
    point: fleets.Point,
    above: Mapping[str, RootSource] | None,
    parent_id: UUID | None,
    pinned: Collection[int],
    handles: Mapping[Kind, str],
    now: datetime,
) -> _Decided:
    """Decide one boundary. Pure."""
    judged = event.outcome not in UNTOUCHED
    gate = gate.serving(_served(boundary, event, point))
    tau = DEFAULT_TAU if boundary.rules is Rules.PUBLISHED else point.tau
    scores = {s.n: s for s in event.scores}
    supported = {n: None if s.score is None else s.score >= tau for n, s in scores.items()}
    found = roots(
        [Support(n=e.n, sources=e.sources, previous_key=e.previous_key, supported=supported.get(e.n) if judged else None) for e in listed],
        above,
    )
    missing = judged and any(e.n not in scores for e in listed)
    fate = fates(
        [
            Judged(
                n=e.n, above=tuple(n for n in (e.parent, e.lead_in) if n is not None), span=e.span, pinned_by=e.pinned_by, root=found[e.n],
                score=scores[e.n].score if e.n in scores else None,
                verdict=scores[e.n].verdict if e.n in scores else Verdict.UNSCORED,
                stale=e.n in scores and FindingKind.STALE in scores[e.n].flags,
                recovered=e.n in pinned,
            )
            for e in listed
        ],
        tau=tau, rules=boundary.rules, judged=judged, prune_stale=point.prune_stale,
    )  # fmt: skip
    mode = mildest(boundary.mode, point.mode, *([Mode.ANNOTATE] if gate.held else []))
    gone = {f.n for f in fate if f.decision is Decision.PRUNED} if mode is Mode.ENFORCE else set()
    committed = without(candidate, [e.span for e in listed if e.n in gone])
    outcome, reason = event.outcome, event.reason
    if missing and outcome is Outcome.JUDGED:
        outcome, reason = Outcome.JUDGED_PARTIAL, Reason.UNSCORED_ENTRIES
    late = boundary.deadline is not None and now > boundary.deadline
    result = Committed(
        fleet=boundary.fleet,
        run=boundary.run,
        agent=boundary.agent,
        boundary_id=boundary.boundary_id,
        request_sha256=boundary.request_sha256,
        candidate_sha256=boundary.candidate_sha256,
        operating_point=_stamped(boundary),
        deadline=boundary.deadline,
        index=boundary.boundary_index,
        outcome=outcome,
        reason=reason,
        mode=mode,
        held=gate.held,
        held_because=gate.because,
        rules=boundary.rules,
        profile=boundary.profile or "unknown",
        tau=tau,
        judge=event.judge,
        fallback_for=event.fallback_for,
        summary=Text.of(committed.decode(), handles[Kind.COMMITTED]),
        committed_sha256=sha256(committed),
        pruned=len(gone),
        decisions=tuple(_entry_decision(e, f, scores.get(e.n), found[e.n].source) for e, f in zip(listed, fate, strict=True)),
        parent_boundary_id=parent_id,
        candidate_handle=handles.get(Kind.CANDIDATE),
        history_handle=handles.get(Kind.HISTORY),
        committed_at=now,
        late=late,
        warnings=boundary.warnings,
    )
    written = _Written(
        boundary_id=boundary.boundary_id,
        candidate_sha256=boundary.candidate_sha256,
        committed_sha256=sha256(committed),
        roots={e.key: found[e.n].source for e in listed},
    )
    return _Decided(event=result, committed=committed, written=written)


def _served(boundary: Boundary, event: Scores, point: fleets.Point) -> bindings.Served:
    """What a certificate must be for, to cover this boundary."""
    return bindings.Served(
        judge=event.judge.name,
        judge_version=event.judge.version,
        tau=point.tau,
        operating_point=_stamped(boundary),
        compressor=boundary.compressor,
    )


def _entry_decision(entry: Entry, fate: Fate, score: Score | None, root: RootSource) -> EntryDecision:
    """The decision as the event and the table say it."""
    return EntryDecision(
        n=entry.n,
        section=entry.section,
        section_class=entry.section_class,
        span=entry.span,
        decision=fate.decision,
        reason=fate.reason,
        score=score.score if score else None,
        verdict=score.verdict if score else Verdict.UNSCORED,
        provenance=entry.provenance,
        root_source=root,
        explanation=score.explanation if score else "no usable answer: kept",
        flags=score.flags if score else (),
        pinned_by=PINNED_BY if fate.reason is DecisionReason.RECOVERED else entry.pinned_by,
    )
