"""evidence -> one probability, verdict and explanation an entry.

A batch goes: look up what is answered -> store the intent of each remote call -> ask -> one transaction (scores, calls, alerts) -> publish
what is *stored* -> acknowledge. A stored answer is never asked for again; a crash in the middle of a call may repeat that call, visible in
`judge_calls`.
"""

import asyncio
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from opentelemetry.util.types import AttributeValue

from services.judge import genai
from services.judge.asking import Asking, Told
from winnow.compaction.decide import DEFAULT_TAU
from winnow.contracts.events import Evidence
from winnow.contracts.topics import EVIDENCE, SCORES, Topic
from winnow.contracts.vocabulary import Reason, Rules
from winnow.judging.port import Judge
from winnow.messaging.records import Dead, Handled, Received
from winnow.storage import alerts, boundaries, erase, fleets, judge_calls, originals, stages
from winnow.storage.boundaries import Boundary
from winnow.storage.database import Database
from winnow.storage.keys import Key, Stage
from winnow.storage.originals import Content, NewHandle
from winnow.storage.outputs import outgoing_of, output_of
from winnow.telemetry import Attr
from winnow.telemetry.telemetry import Telemetry
from winnow.telemetry.traces import annotate, within

#: Boundaries that are judged at the same time; it bounds the load on a remote judge.
REMOTE_CONCURRENCY = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answered:
    """A boundary with what its judges said."""

    received: Received[Evidence]
    told: Told


class JudgeHandler:
    """Consumes evidence."""

    topic: Topic = EVIDENCE
    model = Evidence

    def __init__(
        self, database: Database, judges: Mapping[str, Judge], *, fallback: str, clock: Callable[[], datetime], telemetry: Telemetry
    ) -> None:
        """`judges` by name, as operating points name them; `fallback` answers where a named one is not there, late or without an answer."""
        self._database = database
        self._asking = Asking(database, judges, fallback=fallback, clock=clock, telemetry=telemetry)
        self._clock = clock
        self._points = fleets.KnownPoints()
        self._telemetry = telemetry

    def identity(self, event: Evidence) -> Hashable:
        """A boundary's request."""
        return event.fleet, event.boundary_id, event.request_sha256

    async def handle(self, batch: Sequence[Received[Evidence]]) -> Handled:
        """Judge a batch. See the module's docstring for the order."""
        keys = [Key(r.event.fleet, r.event.boundary_id) for r in batch]
        async with self._database.reading() as tx:
            known = await boundaries.load(tx, keys)
            stored = await stages.load_outputs(tx, [k for k, b in known.items() if b.scored_at is not None], Stage.SCORES)
            points = await self._points.get(tx, {b.operating_point for b in known.values() if b.operating_point is not None})
            erased = await erase.erased_runs(tx, {(r.event.fleet, r.event.run) for r, k in zip(batch, keys, strict=True) if k not in known})
        dead: list[Dead] = []
        valid: list[Received[Evidence]] = []
        for received, key in zip(batch, keys, strict=True):
            boundary = known.get(key)
            if boundary is None and (received.event.fleet, received.event.run) in erased:
                self._telemetry.metrics.count("winnow_erased_records_total", service="judge")
            elif boundary is None:
                error = "the boundary was never stored"
                dead.append(Dead(record=received.record, reason=Reason.UNKNOWN_BOUNDARY, error=error))
            elif boundary.request_sha256 != received.event.request_sha256:
                error = "the evidence is for another request than the stored one"
                dead.append(Dead(record=received.record, reason=Reason.ID_CONFLICT, error=error))
            else:
                valid.append(received)
        new = [r for r in valid if Key(r.event.fleet, r.event.boundary_id) not in stored]
        answers = await self._ask(new, known, points)
        if answers:
            stored |= await self._store(answers)
        missing = [key for r in new if (key := Key(r.event.fleet, r.event.boundary_id)) not in stored]
        if missing:  # another worker was first; its answer is the one that stands
            async with self._database.reading() as tx:
                stored |= await stages.load_outputs(tx, missing, Stage.SCORES)
        outgoing = [
            outgoing_of(SCORES, stored[key], r.context) for r in valid if (key := Key(r.event.fleet, r.event.boundary_id)) in stored
        ]
        return Handled(outgoing=outgoing, dead=dead)

    async def _ask(
        self, batch: Sequence[Received[Evidence]], known: Mapping[Key, Boundary], points: Mapping[int, fleets.OperatingPoint]
    ) -> list[_Answered]:
        """Ask the judge of each boundary, a few at a time; a local judge never waits, so its boundaries come one after another."""
        gate = asyncio.Semaphore(REMOTE_CONCURRENCY)

        async def one(received: Received[Evidence]) -> _Answered:
            """Judge one boundary."""
            boundary = known[Key(received.event.fleet, received.event.boundary_id)]
            point = points.get(boundary.operating_point) if boundary.operating_point is not None else None
            # The judge of the operating point that the retriever stamped; what an event says of it decides nothing.
            named = None if point is None else point.point.judge
            async with gate:
                with within(received.context):
                    told = await self._asking.ask(received.event, named, boundary, received.context)
            annotate(received.context, _said(told))
            tau = DEFAULT_TAU if point is None or boundary.rules is Rules.PUBLISHED else point.point.tau
            genai.tell(self._telemetry.evaluations, received.context, told.event, tau=tau)
            await asyncio.sleep(0)  # the other services of this process get their turn
            return _Answered(received=received, told=told)

        return list(await asyncio.gather(*(one(r) for r in batch)))

    async def _store(self, answers: Sequence[_Answered]) -> dict[Key, stages.StoredOutput]:
        """One transaction with all scores and what their calls cost. Return what this call has stored."""
        now = self._clock()
        contents: list[Content] = []
        handles: list[NewHandle] = []
        rows: list[stages.ScoresAnswer] = []
        for answer in answers:
            told = answer.told
            output, overflow = output_of(SCORES, told.event, traceparent=answer.received.envelope.traceparent)
            if overflow is not None:
                contents.append(overflow.content)
                handles.append(overflow.handle)
            rows.append(stages.ScoresAnswer(event=told.event, output=output, extra=told.others))
        raised = {alert.alert_id: alert for answer in answers for alert in answer.told.alerts}
        causes = {alert.alert_id: answer.received.context for answer in reversed(answers) for alert in answer.told.alerts}
        async with self._database.transaction() as tx:
            if contents:
                await originals.put(tx, contents, handles=handles)
            done = await stages.store_scores(tx, rows, now=now)
            await judge_calls.finish(tx, [ended for answer in answers for ended in answer.told.finished])
            await judge_calls.record(tx, [call for answer in answers for call in answer.told.recorded])
            # Where there is a webhook, the drift monitor finds alerts that have no delivery yet: this service needs to know of none.
            fresh = await alerts.publish(tx, list(raised.values()), webhook=False, now=now)
        for alert in fresh:
            self._telemetry.metrics.count("winnow_alerts_total", kind=alert.kind.value)
            with within(causes[alert.alert_id]):
                self._telemetry.log.error("alert_raised", kind=alert.kind.value, because=alert.because)
        return stages.stored_by(rows, done, Stage.SCORES, now=now)


def _said(told: Told) -> dict[Attr, AttributeValue | None]:
    """What the span of a boundary says of its judging."""
    event = told.event
    return {
        Attr.BOUNDARY_ID: str(event.boundary_id),
        Attr.JUDGE: event.judge.name,
        Attr.OUTCOME: event.outcome.value,
        Attr.REASON: event.reason.value if event.reason else None,
        Attr.ENTRIES_TOTAL: len(event.scores),
        Attr.ENTRIES_UNSCORED: sum(score.score is None for score in event.scores),
    }
