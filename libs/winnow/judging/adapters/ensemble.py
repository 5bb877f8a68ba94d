"""Several judges as one: any of them, their mean, or what most of them say."""

import asyncio
import hashlib
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum

from winnow.compaction.text import one_line
from winnow.contracts.deadline import Deadline
from winnow.contracts.events import JudgeId, Score
from winnow.contracts.vocabulary import Outcome, Reason, Verdict
from winnow.judging.explanation import LINE_CHARS
from winnow.judging.port import Capabilities, Judge, JudgeAnswer, JudgeCall, JudgeRequest
from winnow.judging.verdict import concluded


class Combine(StrEnum):
    """How the members' probabilities become one. An entry that only some have answered is combined from those."""

    ANY = "any"  # the highest: kept where one member would keep it
    MEAN = "mean"
    MAJORITY = "majority"  # the median: kept where at least half of the members would keep it, at whatever tau

    def of(self, values: Sequence[float]) -> float:
        """The combined probability of at least one value."""
        match self:
            case Combine.ANY:
                return max(values)
            case Combine.MEAN:
                return min(max(values), statistics.fmean(values))  # rounding may not lift it above what was said
            case Combine.MAJORITY:
                return statistics.median_high(values)


class EnsembleJudge:
    """Asks its members at the same time; where none answers, its fallbacks in order. See the port for the contract."""

    def __init__(self, name: str, members: Sequence[Judge], *, combine: Combine, fallbacks: Sequence[Judge] = ()) -> None:
        """`members`: at least one; `fallbacks`: asked one after another, each for the whole boundary."""
        if not members:
            raise ValueError("an ensemble has at least one member")
        self._members = tuple(members)
        self._fallbacks = tuple(fallbacks)
        self._combine = combine
        of = "\n".join(f"{j.id.name} {j.id.version}" for j in members)
        self._id = JudgeId(name=name, version=f"{combine}-{len(members)}/{hashlib.sha256(of.encode()).hexdigest()[:12]}")
        every = [judge.capabilities for judge in members]
        limits = [c.context_tokens for c in every if c.context_tokens is not None]
        reads = any(judge.capabilities.reads_texts for judge in (*members, *fallbacks))
        self._capabilities = Capabilities(
            remote=any(judge.capabilities.remote for judge in (*members, *fallbacks)),
            deterministic=all(c.deterministic for c in every),
            refutes=all(c.refutes for c in every),
            reads_texts=reads,
            context_tokens=min(limits, default=None),
        )

    @property
    def id(self) -> JudgeId:
        """The configured name; the version changes with the rule and with any member's version."""
        return self._id

    @property
    def capabilities(self) -> Capabilities:
        """Remote where one of them is."""
        return self._capabilities

    async def judge(self, request: JudgeRequest, deadline: Deadline) -> JudgeAnswer:
        """Judge a boundary; see the port. Where a fallback answers, the answer is the fallback's, under its own name."""
        answers = await asyncio.gather(*(member.judge(request, deadline) for member in self._members))
        calls = tuple(call for judge, answer in zip(self._members, answers, strict=True) for call in _named(judge, answer))
        said = [answer for answer in answers if answer.outcome is not Outcome.UNJUDGED]
        if said:
            return self._combined(request, said, calls)
        for judge in self._fallbacks:
            answer = await judge.judge(request, deadline)
            calls += _named(judge, answer)
            if answer.outcome is not Outcome.UNJUDGED:
                return JudgeAnswer(
                    judge=answer.judge,
                    outcome=answer.outcome,
                    reason=answer.reason,
                    scores=answer.scores,
                    calls=calls,
                    others=answer.others,
                )
        late = all(answer.reason is Reason.DEADLINE for answer in answers)
        reason = Reason.DEADLINE if late else Reason.JUDGE_FAILED
        return JudgeAnswer(judge=self._id, outcome=Outcome.UNJUDGED, reason=reason, scores=(), calls=calls)

    def _combined(self, request: JudgeRequest, said: Sequence[JudgeAnswer], calls: tuple[JudgeCall, ...]) -> JudgeAnswer:
        """One score an entry from the members that have one."""
        evidence = request.evidence
        pool = {passage.id: passage for passage in evidence.passages}
        by_entry: dict[int, dict[str, float]] = {}
        for answer in said:
            for score in answer.scores:
                if score.p is not None:
                    by_entry.setdefault(score.n, {})[answer.judge.name] = score.p
        scores: list[Score] = []
        for entry in evidence.entries:
            values = by_entry.get(entry.n)
            if not values:
                why = "not scored: no member of the ensemble gave a usable answer"
                scores.append(Score(n=entry.n, verdict=Verdict.UNSCORED, provenance=entry.provenance, explanation=why))
                continue
            found = concluded(entry, self._combine.of(list(values.values())), evidence, pool)
            scores.append(found.model_copy(update={"explanation": one_line(f"{_told(values)}; {found.explanation}", LINE_CHARS)}))
        partial = any(score.p is None for score in scores)
        models = sorted({answer.judge.model for answer in said if answer.judge.model})
        return JudgeAnswer(
            judge=self._id.model_copy(update={"model": ", ".join(models)[:200] or None}),
            outcome=Outcome.JUDGED_PARTIAL if partial else Outcome.JUDGED,
            reason=Reason.UNSCORED_ENTRIES if partial else None,
            scores=tuple(scores),
            calls=calls,
            others=tuple(other for answer in said for other in (answer, *answer.others)),
        )


def _named(judge: Judge, answer: JudgeAnswer) -> tuple[JudgeCall, ...]:
    """The calls of a member, each with who was asked."""
    return tuple(call if call.judge is not None else replace(call, judge=judge.id) for call in answer.calls)


def _told(values: Mapping[str, float]) -> str:
    """Who says what."""
    return ", ".join(f"{name} {p:.2f}" for name, p in values.items())
