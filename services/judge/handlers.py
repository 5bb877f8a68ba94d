"""evidence -> one probability, verdict and explanation an entry.

A batch goes: look up what is answered -> store the intent of each remote call -> ask -> one transaction (scores, calls) -> publish what is
*stored* -> acknowledge. A stored answer is never asked for again; a crash in the middle of a call may repeat that call, visible in
`judge_calls`.
"""

import asyncio
import time
import uuid
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from winnow.contracts.deadline import Deadline
from winnow.contracts.events import Evidence, Message, Messages, Scores, Text
from winnow.contracts.topics import EVIDENCE, SCORES, Topic
from winnow.contracts.vocabulary import Outcome, Reason
from winnow.judging.port import Judge, JudgeAnswer, JudgeRequest
from winnow.messaging.records import Dead, Handled, Received
from winnow.storage import boundaries, fleets, judge_calls, originals, stages
from winnow.storage.boundaries import Boundary
from winnow.storage.database import Database
from winnow.storage.keys import Key, Stage
from winnow.storage.originals import Content, NewHandle
from winnow.storage.outputs import outgoing_of, output_of
from winnow.telemetry.telemetry import Telemetry

#: Boundaries that are judged at the same time; it bounds the load on a remote judge.
REMOTE_CONCURRENCY = 4
#: Seconds for one boundary where it has no deadline of its own.
JUDGE_TIMEOUT_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answered:
    """A judge's answer with the calls that it took."""

    received: Received[Evidence]
    event: Scores
    calls: tuple[tuple[judge_calls.Intent, judge_calls.Finished], ...]


class JudgeHandler:
    """Consumes evidence."""

    topic: Topic = EVIDENCE
    model = Evidence

    def __init__(
        self, database: Database, judges: Mapping[str, Judge], *, fallback: str, clock: Callable[[], datetime], telemetry: Telemetry
    ) -> None:
        """`judges` by name, as operating points name them; `fallback` answers where a named one is not there, late or without an answer."""
        self._database = database
        self._judges = judges
        self._fallback = judges[fallback]
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
        dead: list[Dead] = []
        valid: list[Received[Evidence]] = []
        for received, key in zip(batch, keys, strict=True):
            boundary = known.get(key)
            if boundary is None:
                error = "the boundary was never stored, or was erased"
                dead.append(Dead(record=received.record, reason=Reason.UNKNOWN_BOUNDARY, error=error))
            elif boundary.request_sha256 != received.event.request_sha256:
                error = "the evidence is for another request than the stored one"
                dead.append(Dead(record=received.record, reason=Reason.ID_CONFLICT, error=error))
            else:
                valid.append(received)
        new = [r for r in valid if Key(r.event.fleet, r.event.boundary_id) not in stored]
        names = {id(r): _judge_of(known[Key(r.event.fleet, r.event.boundary_id)], points) for r in new}
        answers = await self._ask(new, names, known)
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
        self, batch: Sequence[Received[Evidence]], names: Mapping[int, str | None], known: Mapping[Key, Boundary]
    ) -> list[_Answered]:
        """Ask the judge of each boundary, a few at a time; a local judge never waits, so its boundaries come one after another."""
        gate = asyncio.Semaphore(REMOTE_CONCURRENCY)

        async def one(received: Received[Evidence]) -> _Answered:
            """Judge one boundary."""
            name = names[id(received)]
            judge = self._judges.get(name or "", self._fallback)
            boundary = known[Key(received.event.fleet, received.event.boundary_id)]
            async with gate:
                event, calls = await self._judge(judge, received.event, name, boundary)
            await asyncio.sleep(0)  # the other services of this process get their turn
            return _Answered(received=received, event=event, calls=calls)

        return list(await asyncio.gather(*(one(r) for r in batch)))

    async def _judge(
        self, judge: Judge, event: Evidence, asked: str | None, boundary: Boundary
    ) -> tuple[Scores, tuple[tuple[judge_calls.Intent, judge_calls.Finished], ...]]:
        """One boundary: nothing to judge, too late for a remote judge, the judge's answer, or the fallback's."""
        if event.not_a_summary is not None:
            return _nothing(event, judge, Outcome.NOT_A_SUMMARY, event.not_a_summary), ()
        if not event.entries:
            return _nothing(event, judge, Outcome.JUDGED, Reason.NO_ENTRIES), ()
        request = await self._request(event, judge)
        fallback_for = asked if asked is not None and asked != judge.id.name else None
        if judge.capabilities.remote and event.deadline is not None and event.deadline <= self._clock():
            answer, _ = await self._call(self._fallback, request, boundary)
            return _scores(event, answer, outcome=Outcome.UNJUDGED, reason=Reason.DEADLINE, fallback_for=judge.id.name), ()
        answer, calls = await self._call(judge, request, boundary)
        if answer.outcome is Outcome.UNJUDGED and judge is not self._fallback:
            second, more = await self._call(self._fallback, request, boundary)
            self._telemetry.metrics.count("winnow_judge_requests_total", judge=judge.id.name, result="fallback")
            return _scores(event, second, fallback_for=judge.id.name), (*calls, *more)
        return _scores(event, answer, fallback_for=fallback_for), calls

    async def _call(
        self, judge: Judge, request: JudgeRequest, boundary: Boundary
    ) -> tuple[JudgeAnswer, tuple[tuple[judge_calls.Intent, judge_calls.Finished], ...]]:
        """Ask one judge. A remote call's intent is committed before it starts; what it cost is stored with the answer."""
        now = self._clock()
        left = JUDGE_TIMEOUT_S if boundary.deadline is None else max(0.0, (boundary.deadline - now).total_seconds())
        intent = judge_calls.Intent(
            call_id=uuid.uuid4(),
            fleet=boundary.fleet,
            boundary_id=boundary.boundary_id,
            boundary_at=boundary.boundary_at,
            judge=judge.id.name,
            judge_version=judge.id.version,
            started_at=now,
        )
        if judge.capabilities.remote:
            async with self._database.transaction() as tx:
                await judge_calls.start(tx, [intent])
        began = time.perf_counter()
        answer = await judge.judge(request, Deadline.after(min(left, JUDGE_TIMEOUT_S), time.monotonic))
        took = time.perf_counter() - began
        metrics = self._telemetry.metrics
        metrics.observe("winnow_judge_seconds", took, judge=judge.id.name)
        result = "failed" if answer.outcome is Outcome.UNJUDGED else "answered"
        metrics.count("winnow_judge_requests_total", judge=judge.id.name, result=result)
        for score in answer.scores:
            if score.score is not None:
                metrics.observe("winnow_judge_score", score.score, judge=judge.id.name)
        return answer, ((intent, _finished(intent, answer, self._clock(), took)),)

    async def _request(self, event: Evidence, judge: Judge) -> JudgeRequest:
        """The evidence with its texts at hand, where the judge reads them; they are not fetched for one that does not."""
        if not judge.capabilities.reads_texts:
            return JudgeRequest(evidence=event, task=event.task.text or "", previous=None, retained=())
        task = await self._text(event.fleet, event.task)
        previous = None if event.previous is None else await self._text(event.fleet, event.previous)
        retained = Messages.model_validate_json(await self._text(event.fleet, event.retained)).retained
        return JudgeRequest(evidence=event, task=task, previous=previous, retained=tuple[Message, ...](retained))

    async def _text(self, fleet: str, text: Text) -> str:
        """The text itself: inline, or from the originals."""
        if text.text is not None:
            return text.text
        async with self._database.transaction() as tx:
            return (await originals.resolve(tx, fleet, text.handle or "", now=self._clock())).data.decode()

    async def _store(self, answers: Sequence[_Answered]) -> dict[Key, stages.StoredOutput]:
        """One transaction with all scores and what their calls cost. Return what this call has stored."""
        now = self._clock()
        contents: list[Content] = []
        handles: list[NewHandle] = []
        rows: list[stages.ScoresAnswer] = []
        for answer in answers:
            output, overflow = output_of(SCORES, answer.event, traceparent=answer.received.envelope.traceparent)
            if overflow is not None:
                contents.append(overflow.content)
                handles.append(overflow.handle)
            rows.append(stages.ScoresAnswer(event=answer.event, output=output))
        async with self._database.transaction() as tx:
            if contents:
                await originals.put(tx, contents)
                await originals.put_handles(tx, handles)
            done = await stages.store_scores(tx, rows, now=now)
            started = {name for name, judge in self._judges.items() if judge.capabilities.remote}
            calls = [c for a in answers for c in a.calls]
            await judge_calls.finish(tx, [f for i, f in calls if i.judge in started])
            await judge_calls.record(tx, [(i, f) for i, f in calls if i.judge not in started])
        return stages.stored_by(rows, done, Stage.SCORES, now=now)


def _judge_of(boundary: Boundary, points: Mapping[int, fleets.OperatingPoint]) -> str | None:
    """The judge of the operating point that the retriever stamped; what an event says of it decides nothing."""
    stamped = None if boundary.operating_point is None else points.get(boundary.operating_point)
    return stamped.point.judge if stamped is not None else None


def _finished(intent: judge_calls.Intent, answer: JudgeAnswer, at: datetime, took: float) -> judge_calls.Finished:
    """What all requests of one answer came to."""

    def total(values: Sequence[int | None]) -> int | None:
        """Sum of what is known; None where nothing is."""
        known = [v for v in values if v is not None]
        return sum(known) if known else None

    costs = [c.cost_usd for c in answer.calls if c.cost_usd is not None]
    return judge_calls.Finished(
        call_id=intent.call_id,
        fleet=intent.fleet,
        boundary_id=intent.boundary_id,
        boundary_at=intent.boundary_at,
        finished_at=at,
        latency_ms=took * 1000,
        model=answer.judge.model,
        requests=sum(c.requests for c in answer.calls) or 1,
        input_tokens=total([c.input_tokens for c in answer.calls]),
        output_tokens=total([c.output_tokens for c in answer.calls]),
        cost_usd=sum((Decimal(str(c)) for c in costs), Decimal(0)) if costs else None,
        error=next((c.error for c in answer.calls if c.error), None),
    )


def _scores(
    event: Evidence,
    answer: JudgeAnswer,
    *,
    outcome: Outcome | None = None,
    reason: Reason | None = None,
    fallback_for: str | None = None,
) -> Scores:
    """The event of an answer; `outcome` and `reason` override the judge's own."""
    return Scores(
        fleet=event.fleet,
        run=event.run,
        boundary_id=event.boundary_id,
        request_sha256=event.request_sha256,
        candidate_sha256=event.candidate_sha256,
        operating_point=event.operating_point,
        deadline=event.deadline,
        judge=answer.judge,
        outcome=outcome or answer.outcome,
        reason=reason or answer.reason,
        fallback_for=fallback_for,
        scores=answer.scores,
    )


def _nothing(event: Evidence, judge: Judge, outcome: Outcome, reason: Reason) -> Scores:
    """Nothing was there to judge."""
    return _scores(event, JudgeAnswer(judge=judge.id, outcome=outcome, reason=reason, scores=(), calls=()))
