"""A remote judge: the port's contract over any provider's protocol."""

import asyncio
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

from winnow.compaction.text import one_line
from winnow.contracts.deadline import Deadline
from winnow.contracts.events import Entry, Evidence, JudgeId, Passage, Score
from winnow.contracts.vocabulary import Outcome, Reason, Verdict
from winnow.judging.adapters.endpoint import Called, Endpoint, failure_of
from winnow.judging.adapters.failures import UNBILLED, Failed, Failure
from winnow.judging.adapters.masking import Masker
from winnow.judging.adapters.material import material_of
from winnow.judging.adapters.plan import Part, Plan, Planner
from winnow.judging.adapters.transport import Reply, Transport, within
from winnow.judging.adapters.wire import Reading, Wire
from winnow.judging.explanation import LINE_CHARS
from winnow.judging.port import Capabilities, JudgeAnswer, JudgeCall, JudgeRequest
from winnow.judging.verdict import concluded

T = TypeVar("T", int, float)


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars for a million tokens."""

    input_usd: float
    output_usd: float = 0.0

    def of(self, reading: Reading) -> float | None:
        """What an answer cost; None where the provider did not say how many tokens it took."""
        if reading.input_tokens is None or (reading.output_tokens is None and self.output_usd > 0):
            return None
        return (reading.input_tokens * self.input_usd + (reading.output_tokens or 0) * self.output_usd) / 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class RemotePolicy:
    """What one boundary may take."""

    #: Seconds for the whole boundary, masking, retries and all; the boundary's own deadline may be sooner.
    timeout_s: float
    #: Requests at the same time.
    fan_out: int = 4
    #: Requests of one boundary, without retries: each re-sends and pays for the whole state.
    most_requests: int = 32
    #: Identical requests whose answers are combined by their median; odd, so that at every tau the median says what most of them say.
    votes: int = 1
    #: Models that may be asked; the boundary's compressor where it is one of them, else the first.
    models: tuple[str, ...]
    #: What the answering model's name must begin with; None: any name is taken, and stored.
    expect_model: str | None = None
    #: By asked model; a model without one costs an unknown amount, never nothing.
    prices: Mapping[str, Price]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """What became of one part."""

    #: By entry number; what has no usable answer is not in it.
    scores: Mapping[int, float]
    model: str | None
    call: JudgeCall


class RemoteJudge:
    """Asks a provider; see the port for the contract.

    Everything is masked and planned first, off the event loop. Then the requests go out, a few at a time; after one has failed no further
    one is sent, those under way are waited for. Each request is all or nothing; each entry's answer stands alone.
    """

    def __init__(  # noqa: PLR0913  the parts of a judge, each by its name
        self,
        name: str,
        *,
        wire: Wire,
        endpoint: Endpoint,
        transport: Transport,
        planner: Planner,
        masker: Callable[[], Masker],
        policy: RemotePolicy,
        context_tokens: int,
        now: Callable[[], datetime],
        provider: str | None = None,
        server: str | None = None,
    ) -> None:
        """Nothing is opened.

        `masker` is made when a boundary comes, not before: its detectors take half a second to load. `provider` and `server` are told by
        the capabilities, for traces.
        """
        self._wire = wire
        self._endpoint = endpoint
        self._transport = transport
        self._planner = planner
        self._masker = masker
        self._policy = policy
        self._now = now
        version = f"{wire.version}/{'+'.join(policy.models)}" + (f"/votes-{policy.votes}" if policy.votes > 1 else "")
        self._id = JudgeId(name=name, version=version[:200])
        self._capabilities = Capabilities(
            remote=True,
            deterministic=False,
            refutes=True,
            reads_texts=True,
            context_tokens=context_tokens,
            provider=provider,
            server=server,
        )

    def __repr__(self) -> str:
        """Name and version; no URL and no key."""
        return f"<RemoteJudge {self._id.name} {self._id.version}>"

    @property
    def id(self) -> JudgeId:
        """The configured name; the version has layout, wording and asked models."""
        return self._id

    @property
    def capabilities(self) -> Capabilities:
        """Remote and not deterministic; caps come from the evidence's own findings, as with every judge."""
        return self._capabilities

    async def close(self) -> None:
        """Let go of connections."""
        await self._transport.close()

    async def judge(self, request: JudgeRequest, deadline: Deadline) -> JudgeAnswer:
        """Judge a boundary; see the port."""
        evidence = request.evidence
        if not evidence.entries:
            return JudgeAnswer(judge=self._id, outcome=Outcome.JUDGED, reason=Reason.NO_ENTRIES, scores=(), calls=())
        model = self._model_for(evidence)
        whole = deadline.at_most(self._policy.timeout_s)
        if whole.passed:
            return self._unjudged((self._skipped(model, Failure.DEADLINE, len(evidence.entries)),))
        try:
            plan = await within(whole, asyncio.to_thread(self._plan, request))
        except Failed:
            return self._unjudged((self._skipped(model, Failure.DEADLINE, len(evidence.entries)),))
        most = max(1, self._policy.most_requests // self._policy.votes)
        asked = await self._ask(plan.parts[:most], model, whole)
        calls = [a.call for a in asked]
        if capped := sum(len(part.items) for part in plan.parts[most:]):
            calls.append(self._skipped(model, Failure.REQUESTS_CAPPED, capped))
        if plan.left:
            calls.append(self._skipped(model, Failure.STATE_TOO_LARGE, len(plan.left)))
        return self._answer(evidence, asked, tuple(calls))

    def _model_for(self, evidence: Evidence) -> str:
        """The compressor's own model where it is one that may be asked."""
        own, models = evidence.compressor, self._policy.models
        return own if own is not None and own in models else models[0]

    def _plan(self, request: JudgeRequest) -> Plan:
        """Mask and plan. Pure, and for large spans tens of milliseconds: runs in a thread."""
        return self._planner.plan(material_of(request, self._masker()))

    async def _ask(self, parts: Sequence[Part], model: str, deadline: Deadline) -> list[_Asked]:
        """Ask for all parts, bounded; none is begun after another has failed."""
        gate = asyncio.Semaphore(self._policy.fan_out)
        broken = False

        async def vote(body: bytes, numbers: Sequence[int]) -> Called[Reading]:
            """One request, with its retries."""
            nonlocal broken
            async with gate:
                if broken:
                    return Called(answer=None, failure=Failure.NOT_SENT, requests=0, seconds=0.0)
                called = await self._endpoint.call(self._wire.headers(), body, lambda reply: self._read(reply, numbers), deadline)
                if called.answer is None:
                    broken = True
                return called

        async def one(part: Part) -> _Asked:
            """One part, with all its votes."""
            body = self._wire.body(part, model)
            numbers = [item.n for item in part.items]
            return self._asked(part, model, await asyncio.gather(*(vote(body, numbers) for _ in range(self._policy.votes))))

        return list(await asyncio.gather(*(one(part) for part in parts)))

    def _asked(self, part: Part, model: str, votes: Sequence[Called[Reading]]) -> _Asked:
        """What all votes of a part came to."""
        readings = tuple(vote.answer for vote in votes if vote.answer is not None)
        scores = {
            item.n: statistics.median_high(said)
            for item in part.items
            if (said := [r.scores[item.n] for r in readings if item.n in r.scores])
        }
        failures = [vote.failure for vote in votes if vote.failure is not None]
        error = Failure.ANSWERS_UNUSABLE if len(scores) < len(part.items) else None
        if not readings:
            error = next((f for f in failures if f is not Failure.NOT_SENT), Failure.NOT_SENT)
        known = all(failure in UNBILLED for failure in failures)
        price = self._policy.prices.get(model) if known else None
        call = JudgeCall(
            judge=self._id,
            model=_models(readings) or model,
            asked_model=model,
            requests=sum(vote.requests for vote in votes),
            input_tokens=_sum([r.input_tokens for r in readings]) if known else None,
            output_tokens=_sum([r.output_tokens for r in readings]) if known else None,
            cost_usd=None if price is None else _sum([price.of(r) for r in readings]),
            latency_ms=max((vote.seconds for vote in votes), default=0.0) * 1000,
            error=None if error is None else error.value,
            entries=len(part.items),
            stage=part.stage.value,
            evidence_truncated=part.truncated,
        )
        return _Asked(scores=scores, model=_models(readings), call=call)

    def _read(self, reply: Reply, asked: Sequence[int]) -> Reading:
        """Check status, body and model. Raise `Failed`."""
        failed = failure_of(reply, self._now)
        if failed is not None:
            raise Failed(Failure.UNPAID) if failed.failure is Failure.REFUSED and self._wire.unpaid(reply) else failed
        reading = self._wire.read(reply.body, asked)
        expected = self._policy.expect_model
        if expected is not None and not (reading.model or "").startswith(expected):
            raise Failed(Failure.WRONG_MODEL)
        return reading

    def _answer(self, evidence: Evidence, asked: Sequence[_Asked], calls: tuple[JudgeCall, ...]) -> JudgeAnswer:
        """All parts together, one score an entry in their order."""
        p = {n: value for part in asked for n, value in part.scores.items()}
        if not p:
            return self._unjudged(calls)
        judge = self._id.model_copy(update={"model": ", ".join(sorted({part.model for part in asked if part.model}))[:200] or None})
        pool = {passage.id: passage for passage in evidence.passages}
        scores = tuple(_score(entry, p.get(entry.n), evidence, pool, judge) for entry in evidence.entries)
        partial = len(p) < len(evidence.entries)
        return JudgeAnswer(
            judge=judge,
            outcome=Outcome.JUDGED_PARTIAL if partial else Outcome.JUDGED,
            reason=Reason.UNSCORED_ENTRIES if partial else None,
            scores=scores,
            calls=calls,
        )

    def _unjudged(self, calls: tuple[JudgeCall, ...]) -> JudgeAnswer:
        """No entry has an answer."""
        late = all(call.error == Failure.DEADLINE for call in calls)
        reason = Reason.DEADLINE if late else Reason.JUDGE_FAILED
        return JudgeAnswer(judge=self._id, outcome=Outcome.UNJUDGED, reason=reason, scores=(), calls=calls)

    def _skipped(self, model: str, why: Failure, entries: int) -> JudgeCall:
        """Entries for which nothing was sent."""
        return JudgeCall(judge=self._id, model=model, requests=0, error=why.value, entries=entries)


def _score(entry: Entry, p: float | None, evidence: Evidence, pool: Mapping[int, Passage], judge: JudgeId) -> Score:
    """Score and verdict, as of every judge; the explanation says who gave the number."""
    said_by = judge.model or judge.name
    if p is None:
        why = f"not scored: no usable answer from {said_by}"
        return Score(n=entry.n, verdict=Verdict.UNSCORED, provenance=entry.provenance, explanation=one_line(why, LINE_CHARS))
    found = concluded(entry, p, evidence, pool)
    return found.model_copy(update={"explanation": one_line(f"{said_by} says {p:.2f}; {found.explanation}", LINE_CHARS)})


def _models(readings: Sequence[Reading]) -> str | None:
    """The models that answered, as they name themselves."""
    return ", ".join(sorted({r.model for r in readings if r.model})) or None


def _sum(values: Sequence[T | None]) -> T | None:
    """The sum; None where there is nothing, or one is unknown: half a sum would look like a whole one."""
    known = [v for v in values if v is not None]
    return sum(known[1:], start=known[0]) if known and len(known) == len(values) else None
