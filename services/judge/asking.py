"""One boundary and its judges: the one that its operating point names, then the fallbacks, the local one last.

A remote judge is never asked past the boundary's deadline, and gets less than what is left of it, so that a fallback still can answer. Its
intent is committed before it is asked; what its calls cost is stored with the answer. Beside a remote answer stands what the local judge
says, as the reference that tells a drift.
"""

import asyncio
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from functools import partial

from opentelemetry.context import Context

from services.judge import genai, spans
from winnow.compaction.recovered import keys_of, relabelled
from winnow.contracts import ids
from winnow.contracts.deadline import Deadline
from winnow.contracts.events import Alert, CanaryScore, Evidence, JudgeId, Message, Messages, Scores, Text
from winnow.contracts.vocabulary import AlertKind, Outcome, Reason, Rules
from winnow.judging.adapters.failures import UNBILLED, Failure
from winnow.judging.adapters.plan import Stage
from winnow.judging.canaries import with_canaries
from winnow.judging.port import Judge, JudgeAnswer, JudgeCall, JudgeRequest
from winnow.storage import judge_calls, originals, recovery
from winnow.storage.boundaries import Boundary
from winnow.storage.database import Database
from winnow.telemetry.telemetry import Telemetry

#: Seconds for one boundary where it has no deadline of its own.
JUDGE_TIMEOUT_S = 30.0
#: Share of the time left that a remote judge may take: a fallback, the pruner and the way back need the rest.
REMOTE_SHARE = 0.8
#: Name of the judge that answers last of all.
LAST_RESORT = "local"

_ALERTS: Mapping[str, tuple[AlertKind, str]] = {
    Failure.UNAUTHORISED.value: (AlertKind.JUDGE_UNAUTHORISED, "refuses the key"),
    Failure.UNPAID.value: (AlertKind.JUDGE_UNPAID, "says that the account is out of credit"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What is stored of one boundary's judging."""

    event: Scores
    #: What other judges said of the same boundary, for the record.
    others: tuple[Scores, ...] = ()
    #: Intents that stand in the table already, with how they ended.
    finished: tuple[judge_calls.Finished, ...] = ()
    #: Calls that are stored as a whole.
    recorded: tuple[tuple[judge_calls.Intent, judge_calls.Finished], ...] = ()
    alerts: tuple[Alert, ...] = ()


class Asking:
    """Asks for one boundary at a time; keeps nothing between two."""

    def __init__(
        self, database: Database, judges: Mapping[str, Judge], *, fallback: str, clock: Callable[[], datetime], telemetry: Telemetry
    ) -> None:
        """`judges` by name, `local` among them; `fallback` is asked where the named one is not there or gives no answer."""
        self._database = database
        self._judges = judges
        self._fallback = fallback
        self._clock = clock
        self._telemetry = telemetry

    async def ask(self, event: Evidence, named: str | None, boundary: Boundary, context: Context | None = None) -> Told:
        """Nothing to judge, or the answer of the first judge that has one; without any, the boundary is unjudged and its text stands."""
        order = [name for name in dict.fromkeys((named or self._fallback, self._fallback, LAST_RESORT)) if name in self._judges]
        first = self._judges[order[0]]
        if event.not_a_summary is not None:
            return _nothing(event, first, Outcome.NOT_A_SUMMARY, event.not_a_summary)
        if not event.entries:
            return _nothing(event, first, Outcome.JUDGED, Reason.NO_ENTRIES)
        calls = _Calls(boundary, context)
        judge, late, answer = (
            first,
            False,
            JudgeAnswer(judge=first.id, outcome=Outcome.UNJUDGED, reason=Reason.JUDGE_FAILED, scores=(), calls=()),
        )
        for name in order:
            judge = self._judges[name]
            if judge.capabilities.remote and self._left(boundary) <= 0:
                late = True
                self._telemetry.metrics.count("winnow_judge_requests_total", judge=name, result="skipped")
                continue
            answer = await self._call(judge, await self._request(event, judge), boundary, calls)
            if answer.outcome is not Outcome.UNJUDGED:
                break
        wanted = named or order[0]
        fallback_for = wanted if answer.judge.name != wanted else None
        if fallback_for is not None and fallback_for in self._judges:
            self._telemetry.metrics.count("winnow_judge_requests_total", judge=fallback_for, result="fallback")
        outcome, reason = (Outcome.UNJUDGED, Reason.DEADLINE) if late else (answer.outcome, answer.reason)
        said = _scores(event, answer, outcome=outcome, reason=reason, fallback_for=fallback_for)
        if calls.canaries:
            said = said.model_copy(update={"canaries": calls.canaries})
        others = [_scores(event, other, outcome=other.outcome, reason=other.reason) for other in answer.others]
        if (reference := await self._reference(event, answer, judge)) is not None:
            others.append(_scores(event, reference, outcome=reference.outcome, reason=reference.reason))
        return Told(
            event=said,
            others=tuple(_distinct(said.judge, others)),
            finished=tuple(calls.finished),
            recorded=tuple(calls.recorded),
            alerts=tuple(self._alerts(boundary.fleet, calls.failures)),
        )

    def _left(self, boundary: Boundary) -> float:
        """Seconds until the boundary's deadline."""
        return JUDGE_TIMEOUT_S if boundary.deadline is None else (boundary.deadline - self._clock()).total_seconds()

    async def _call(self, judge: Judge, request: JudgeRequest, boundary: Boundary, calls: "_Calls") -> JudgeAnswer:
        """Ask one judge."""
        remote = judge.capabilities.remote
        left = min(max(0.0, self._left(boundary)), JUDGE_TIMEOUT_S) * (REMOTE_SHARE if remote else 1.0)
        intent = calls.intent(judge.id, self._clock())
        if remote:
            async with self._database.transaction() as tx:
                await judge_calls.start(tx, [intent])
        began, began_ns = time.perf_counter(), time.time_ns()
        answer = await judge.judge(with_canaries(request), Deadline.after(left, time.monotonic))
        took = time.perf_counter() - began
        ended_ns = began_ns + int(took * 1e9)
        spans.record(self._telemetry.traces, calls.context, self._judges, judge, answer, began_ns=began_ns, ended_ns=ended_ns)
        answer = calls.without_canaries(request.evidence, answer)
        calls.end(intent, judge.id, answer, self._clock(), took, started=remote)
        self._count(judge, answer, took)
        for call in answer.calls:
            genai.count(self._telemetry.metrics, judge if call.judge is None else self._judges.get(call.judge.name, judge), call)
        return answer

    def _count(self, judge: Judge, answer: JudgeAnswer, took: float) -> None:
        """Metrics of one answer."""
        metrics, name = self._telemetry.metrics, judge.id.name
        metrics.observe("winnow_judge_seconds", took, judge=name)
        failed = answer.outcome is Outcome.UNJUDGED
        metrics.count("winnow_judge_requests_total", judge=name, result="failed" if failed else "answered")
        for score in answer.scores:
            if score.score is not None:
                metrics.observe("winnow_judge_score", score.score, judge=name)
        for call in answer.calls:
            asked = name if call.judge is None else call.judge.name
            if call.error is not None:
                metrics.count("winnow_judge_failures_total", judge=asked, failure=call.error)
            if call.input_tokens is not None:
                metrics.count("winnow_judge_tokens_total", call.input_tokens, judge=asked, direction="input")
            if call.output_tokens is not None:
                metrics.count("winnow_judge_tokens_total", call.output_tokens, judge=asked, direction="output")
            if call.cost_usd is not None:
                metrics.count("winnow_judge_cost_usd_total", call.cost_usd, judge=asked)
        if failed:
            errors = sorted({call.error for call in answer.calls if call.error is not None})
            self._telemetry.log.warning("judge_failed", judge=name, error=", ".join(errors) or (answer.reason or ""))

    async def _reference(self, event: Evidence, answer: JudgeAnswer, judge: Judge) -> JudgeAnswer | None:
        """What the local judge says where a remote one has answered, and how far the two are apart."""
        local = self._judges[LAST_RESORT]
        if not answer.scores or not judge.capabilities.remote or local.capabilities.remote or answer.judge.name == local.id.name:
            return None
        reference = await local.judge(await self._request(event, local), Deadline.after(JUDGE_TIMEOUT_S, time.monotonic))
        own = {score.n: score.p for score in reference.scores}
        for score in answer.scores:
            p = own.get(score.n)
            if p is not None and score.p is not None:
                self._telemetry.metrics.observe("winnow_judge_disagreement", abs(score.p - p), judge=answer.judge.name)
        return reference if reference.scores else None

    def _alerts(self, fleet: str, failures: Iterable[tuple[JudgeId, str]]) -> Iterable[Alert]:
        """One alert a judge, kind and hour: a key that is refused is refused for every boundary."""
        now = self._clock()
        for judge, error in dict.fromkeys(((judge.name, error) for judge, error in failures if error in _ALERTS)):
            kind, because = _ALERTS[error]
            yield Alert(
                fleet=fleet,
                alert_id=ids.alert_id(fleet, kind, judge, now.strftime("%Y-%m-%dT%H")),
                kind=kind,
                at=now,
                because=f"the judge {judge} {because}",
                done="it is left alone for a while; the fallback answers, or candidates are committed as they were written",
            )

    async def _request(self, event: Evidence, judge: Judge) -> JudgeRequest:
        """The evidence with its texts at hand, where the judge reads them; they are not fetched for one that does not."""
        if not judge.capabilities.reads_texts:
            return JudgeRequest(evidence=event, task=event.task.text or "", previous=None, retained=())
        task = await self._text(event.fleet, event.task)
        previous = None if event.previous is None else await self._text(event.fleet, event.previous)
        text = await self._text(event.fleet, event.retained)
        # R above the inline limit comes with all of H: up to 64 MiB, in which no heartbeat would be sent.
        parse = partial(Messages.model_validate_json, text)
        if event.retained.text is not None:  # what the retriever wrote: origins are those that the messages really have
            return JudgeRequest(evidence=event, task=task, previous=previous, retained=tuple[Message, ...](parse().retained))
        retained = await self._known((await asyncio.to_thread(parse)).retained, event)
        return JudgeRequest(evidence=event, task=task, previous=previous, retained=retained)

    async def _known(self, retained: Sequence[Message], event: Evidence) -> tuple[Message, ...]:
        """R as its host stored it, with what Winnow gave back known as that, as the retriever knows it."""
        if event.rules is not Rules.WINNOW:
            return tuple(retained)
        async with self._database.reading() as tx:
            return relabelled(retained, await recovery.given(tx, event.fleet, keys_of(retained)))

    async def _text(self, fleet: str, text: Text) -> str:
        """The text itself: inline, or from the originals."""
        if text.text is not None:
            return text.text
        async with self._database.transaction() as tx:
            return (await originals.resolve(tx, fleet, text.handle or "", now=self._clock())).data.decode()


class _Calls:
    """The calls that one boundary took."""

    def __init__(self, boundary: Boundary, context: Context | None) -> None:
        self._boundary = boundary
        #: The trace that the calls belong to.
        self.context = context
        self.finished: list[judge_calls.Finished] = []
        self.recorded: list[tuple[judge_calls.Intent, judge_calls.Finished]] = []
        self.failures: list[tuple[JudgeId, str]] = []
        #: What the last judge that was asked said of the canaries.
        self.canaries: tuple[CanaryScore, ...] = ()

    def without_canaries(self, evidence: Evidence, answer: JudgeAnswer) -> JudgeAnswer:
        """`answer` about the boundary's own entries alone; what it says of the canaries is kept here."""
        planted = {canary.entry.n: canary for canary in evidence.canaries}
        if not planted:
            return answer
        self.canaries = tuple(
            CanaryScore(kind=planted[score.n].kind, score=score, counts=planted[score.n].counts)
            for score in answer.scores
            if score.n in planted
        )
        return _about(answer, {entry.n for entry in evidence.entries})

    def intent(self, judge: JudgeId, at: datetime) -> judge_calls.Intent:
        """That `judge` is about to be asked."""
        return judge_calls.Intent(
            call_id=uuid.uuid4(),
            fleet=self._boundary.fleet,
            boundary_id=self._boundary.boundary_id,
            boundary_at=self._boundary.boundary_at,
            judge=judge.name,
            judge_version=judge.version,
            started_at=at,
        )

    def end(self, intent: judge_calls.Intent, judge: JudgeId, answer: JudgeAnswer, at: datetime, took: float, *, started: bool) -> None:
        """How it ended: the row of the judge that was asked, and one row for each member that an ensemble asked."""
        own: list[JudgeCall] = []
        members: dict[tuple[str, str], tuple[JudgeId, list[JudgeCall]]] = {}
        for call in answer.calls:
            asked = call.judge or judge
            if (asked.name, asked.version) == (judge.name, judge.version):
                own.append(call)
            else:
                members.setdefault((asked.name, asked.version), (asked, []))[1].append(call)
            if call.error is not None:
                self.failures.append((asked, call.error))
        failed = answer.outcome is Outcome.UNJUDGED and not own
        finished = _finished(intent, own, at, took * 1000, model=answer.judge.model, error=Reason.JUDGE_FAILED.value if failed else None)
        if started:
            self.finished.append(finished)
        else:
            self.recorded.append((intent, finished))
        for asked, calls in members.values():
            row = self.intent(asked, intent.started_at)
            slowest = max(call.latency_ms for call in calls)
            self.recorded.append((row, _finished(row, calls, at, slowest, model=next((c.model for c in calls), None), error=None)))


def _finished(
    intent: judge_calls.Intent, calls: Sequence[JudgeCall], at: datetime, latency_ms: float, *, model: str | None, error: str | None
) -> judge_calls.Finished:
    """What all requests of one judge for one boundary came to. A sum with an unknown part is unknown."""
    answered = [call for call in calls if call.requests and call.error not in UNBILLED]
    costs = [call.cost_usd for call in answered]
    return judge_calls.Finished(
        call_id=intent.call_id,
        fleet=intent.fleet,
        boundary_id=intent.boundary_id,
        boundary_at=intent.boundary_at,
        finished_at=at,
        latency_ms=latency_ms,
        model=model,
        requests=sum(call.requests for call in calls),
        input_tokens=_sum([call.input_tokens for call in answered]),
        output_tokens=_sum([call.output_tokens for call in answered]),
        cost_usd=None if not costs or None in costs else sum((Decimal(str(cost)) for cost in costs), Decimal(0)),
        error=next((call.error for call in calls if call.error), error),
        parts=len(calls) or None,
        state_stage=_furthest(calls),
        evidence_truncated=any(call.evidence_truncated for call in calls) if calls else None,
    )


def _about(answer: JudgeAnswer, numbers: Collection[int]) -> JudgeAnswer:
    """An answer with the scores of these entries alone, and the outcome that they give."""
    scores = tuple(score for score in answer.scores if score.n in numbers)
    others = tuple(_about(other, numbers) for other in answer.others)
    if answer.outcome is Outcome.UNJUDGED or not any(score.p is not None for score in scores):
        reason = answer.reason if answer.outcome is Outcome.UNJUDGED else Reason.JUDGE_FAILED
        return replace(answer, outcome=Outcome.UNJUDGED, reason=reason, scores=(), others=others)
    partial = any(score.p is None for score in scores)
    outcome, reason = (Outcome.JUDGED_PARTIAL, Reason.UNSCORED_ENTRIES) if partial else (Outcome.JUDGED, None)
    return replace(answer, outcome=outcome, reason=reason, scores=scores, others=others)


def _sum(values: Sequence[int | None]) -> int | None:
    """The sum of what is known entirely; None where there is nothing or one is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None


def _furthest(calls: Sequence[JudgeCall]) -> str | None:
    """The furthest stage of shrinking; None where nothing was asked."""
    order = [stage.value for stage in Stage]
    return max((call.stage for call in calls if call.stage in order), key=order.index, default=None)


def _distinct(judge: JudgeId, others: Iterable[Scores]) -> Iterable[Scores]:
    """Each judge's scores once: a row of the table is one judge's word on one entry."""
    seen = {(judge.name, judge.version)}
    for other in others:
        who = (other.judge.name, other.judge.version)
        if other.scores and who not in seen:
            seen.add(who)
            yield other


def _scores(event: Evidence, answer: JudgeAnswer, *, outcome: Outcome, reason: Reason | None, fallback_for: str | None = None) -> Scores:
    """The event of an answer."""
    return Scores(
        fleet=event.fleet,
        run=event.run,
        boundary_id=event.boundary_id,
        request_sha256=event.request_sha256,
        candidate_sha256=event.candidate_sha256,
        operating_point=event.operating_point,
        deadline=event.deadline,
        judge=answer.judge,
        outcome=outcome,
        reason=reason,
        fallback_for=fallback_for,
        scores=answer.scores,
    )


def _nothing(event: Evidence, judge: Judge, outcome: Outcome, reason: Reason) -> Told:
    """Nothing was there to judge."""
    answer = JudgeAnswer(judge=judge.id, outcome=outcome, reason=reason, scores=(), calls=())
    return Told(event=_scores(event, answer, outcome=outcome, reason=reason))
