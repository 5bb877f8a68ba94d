"""What `winnow rejudge` does: stored boundaries, one page after another, back to their originals and to a judge."""

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal

from pydantic import ValidationError

from winnow.cli.evaluating import Progress
from winnow.compaction.recovered import keys_of
from winnow.contracts.deadline import Deadline
from winnow.contracts.errors import HashMismatch, TooLarge
from winnow.contracts.events import Messages
from winnow.contracts.vocabulary import Outcome
from winnow.judging.adapters.plan import Stage
from winnow.judging.offline import request_of
from winnow.judging.port import Judge, JudgeAnswer, JudgeCall, JudgeRequest
from winnow.storage import judge_calls, originals, recovery, rejudging
from winnow.storage.boundaries import Boundary
from winnow.storage.database import Database
from winnow.storage.keys import ContentKey
from winnow.storage.rejudging import Pending, Where
from winnow.storage.stages import text_key

#: Boundaries that are read at once; their originals are in memory together.
PAGE = 8
#: Boundaries that a remote judge is asked about at the same time.
CONCURRENCY = 4


@dataclass(slots=True)
class Done:
    """What became of the boundaries."""

    judged: int = 0
    scores: int = 0
    #: By reason.
    left_out: Counter[str] = field(default_factory=Counter)
    #: None: some call did not say.
    input_tokens: int | None = 0
    cost_usd: Decimal | None = Decimal(0)


class LeftOut(Exception):
    """A boundary cannot be judged again, and why."""


class Pace:
    """Lets at most so many through a minute, evenly."""

    def __init__(self, per_minute: float) -> None:
        """`per_minute` may be a fraction."""
        self._every = 60.0 / per_minute
        self._next = 0.0

    async def wait(self) -> None:
        """Wait for this one's turn."""
        now = time.monotonic()
        self._next = max(self._next, now)
        turn = self._next
        self._next += self._every
        if turn > now:
            await asyncio.sleep(turn - now)


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The boundaries that are wanted, and the judge that they are for."""

    judge: Judge
    where: Where
    per_minute: float  # for remote judges
    timeout_s: float

    async def pending(self, database: Database) -> Pending:
        """How much there is to do."""
        async with database.reading() as tx:
            return await rejudging.count(tx, self.where, self.judge.id)

    async def run(self, database: Database, progress: Progress, number: int) -> Done:
        """Judge `number` boundaries, one page after another; each is stored as soon as it is judged, so that nothing is done twice."""
        done = Done()
        after: Boundary | None = None
        asked = 0
        pace = Pace(self.per_minute)
        gate = asyncio.Semaphore(CONCURRENCY if self.judge.capabilities.remote else 1)
        with progress.of("boundaries judged again", number) as told:
            while asked < number:
                async with database.reading() as tx:
                    page = await rejudging.page(tx, self.where, self.judge.id, after, min(PAGE, number - asked))
                if not page:
                    break
                after = page[-1]
                await asyncio.gather(*(self._one(database, boundary, pace, gate, done) for boundary in page))
                asked += len(page)
                told(asked)
        return done

    async def _one(self, database: Database, boundary: Boundary, pace: Pace, gate: asyncio.Semaphore, done: Done) -> None:
        """Judge one boundary and store its scores, or count why not."""
        async with gate:
            try:
                request = await _request(database, boundary)
                if self.judge.capabilities.remote:
                    await pace.wait()
                answer = await self._asked(database, boundary, request, done)
                if answer.outcome is Outcome.UNJUDGED:
                    raise LeftOut("the judge gave no answer")  # noqa: TRY301  one road for all that is left out
            except LeftOut as why:
                done.left_out[str(why)] += 1
                return
            async with database.transaction() as tx:
                for said in (answer, *answer.others):
                    done.scores += await rejudging.store(tx, boundary.key, said.judge, said.scores)
            done.judged += 1

    async def _asked(self, database: Database, boundary: Boundary, request: JudgeRequest, done: Done) -> JudgeAnswer:
        """Ask; a remote judge's intent is stored first and what it took afterwards, as the service does."""
        limit = Deadline.after(self.timeout_s, time.monotonic)
        if not self.judge.capabilities.remote:
            return await self.judge.judge(request, limit)
        intent = judge_calls.Intent(
            call_id=uuid.uuid4(),
            fleet=boundary.fleet,
            boundary_id=boundary.boundary_id,
            boundary_at=boundary.boundary_at,
            judge=self.judge.id.name,
            judge_version=self.judge.id.version,
            started_at=datetime.now(UTC),
        )
        async with database.transaction() as tx:
            await judge_calls.start(tx, [intent])
        began = time.monotonic()
        answer = await self.judge.judge(request, limit)
        finished = _finished(intent, answer, latency_ms=1000 * (time.monotonic() - began))
        async with database.transaction() as tx:
            await judge_calls.finish(tx, [finished])
        known = None not in {done.input_tokens, finished.input_tokens}
        done.input_tokens = (done.input_tokens or 0) + (finished.input_tokens or 0) if known else None
        done.cost_usd = None if done.cost_usd is None or finished.cost_usd is None else done.cost_usd + finished.cost_usd
        return answer


def _finished(intent: judge_calls.Intent, answer: JudgeAnswer, *, latency_ms: float) -> judge_calls.Finished:
    """What all requests for one boundary came to, members of an ensemble included."""
    calls = answer.calls
    order = [stage.value for stage in Stage]
    costs = [call.cost_usd for call in calls]
    return judge_calls.Finished(
        call_id=intent.call_id,
        fleet=intent.fleet,
        boundary_id=intent.boundary_id,
        boundary_at=intent.boundary_at,
        finished_at=datetime.now(UTC),
        latency_ms=latency_ms,
        model=answer.judge.model,
        requests=sum(call.requests for call in calls),
        input_tokens=_sum([call.input_tokens for call in calls]),
        output_tokens=_sum([call.output_tokens for call in calls]),
        cost_usd=None if None in costs else sum((Decimal(str(cost)) for cost in costs), Decimal(0)),
        error=_error(answer, calls),
        parts=len(calls) or None,
        state_stage=max((call.stage for call in calls if call.stage in order), key=order.index, default=None),
        evidence_truncated=any(call.evidence_truncated for call in calls) if calls else None,
    )


def _error(answer: JudgeAnswer, calls: Sequence[JudgeCall]) -> str | None:
    """What went wrong, where something did."""
    failed = next((call.error for call in calls if call.error), None)
    return failed or (None if answer.reason is None or answer.outcome is not Outcome.UNJUDGED else answer.reason.value)


def _sum(values: Sequence[int | None]) -> int | None:
    """The sum, None where a part is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


async def _request(database: Database, boundary: Boundary) -> JudgeRequest:
    """The boundary from its originals, examined as it is today. Raise `LeftOut` where that gives other entries than were stored."""
    names = {
        "task": boundary.task_sha256,
        "history": boundary.history_sha256,
        "candidate": boundary.candidate_sha256,
        "previous": boundary.previous_sha256,
    }
    wanted = {name: ContentKey(boundary.fleet, sha) for name, sha in names.items() if sha is not None}
    try:
        async with database.reading() as tx:
            found = await originals.get(tx, set(wanted.values()))
            stored = await rejudging.wordings(tx, boundary)
    except HashMismatch:
        raise LeftOut("an original is damaged") from None
    texts = {name: found.get(key) for name, key in wanted.items()}
    task, history, candidate, previous = (texts.get(name) for name in names)
    if task is None or history is None or candidate is None or (boundary.previous_sha256 is not None and previous is None):
        raise LeftOut("its originals are gone")
    try:
        messages = Messages.model_validate_json(history)
        async with database.reading() as tx:
            given = await recovery.given(tx, boundary.fleet, keys_of((*messages.history, *messages.retained)))
        examined, request = request_of(
            candidate.decode(),
            task=task.decode(),
            previous=None if previous is None else previous.decode(),
            history=messages.history,
            retained=messages.retained,
            host=boundary.host,
            profile=boundary.profile,
            rules=boundary.rules,
            user_turns_survive=boundary.user_turns_survive,
            index=boundary.boundary_index,
            compressor=boundary.compressor,
            given=given,
        )
    except (ValidationError, UnicodeDecodeError, TooLarge):
        raise LeftOut("its originals are not what this version reads") from None
    if [(entry.n, text_key(entry.text)) for entry in examined.analysis.entries] != stored:
        raise LeftOut("this version finds other entries in it than were stored")
    return request
