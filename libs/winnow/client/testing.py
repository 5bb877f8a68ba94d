"""A Winnow without network for the tests of agent runtimes: a transport that answers from memory."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

from winnow.client.api import BoundaryPage, BoundaryView, PrunedPage, RecoveryRequest, RunPage, RunView, SearchHit, SearchPage, Status
from winnow.client.recovery import Recovered
from winnow.client.transport import Report
from winnow.contracts.deadline import Deadline
from winnow.contracts.errors import Conflict, NotFound, WinnowError
from winnow.contracts.events import Candidate, Committed, Text
from winnow.contracts.vocabulary import Mode, Outcome

#: What answers a candidate: the committed event, or None for no answer before the deadline.
Answers = Callable[[Candidate, str], Committed | None]


def unpruned(candidate: Candidate, request_sha256: str) -> Committed:
    """The answer that commits the candidate as it was written."""
    return Committed(
        fleet=candidate.fleet,
        run=candidate.run,
        boundary_id=candidate.boundary_id,
        request_sha256=request_sha256,
        candidate_sha256=candidate.candidate_sha256,
        operating_point=1,
        deadline=candidate.deadline,
        agent=candidate.agent,
        index=candidate.index,
        outcome=Outcome.JUDGED,
        mode=Mode.ENFORCE,
        rules=candidate.rules,
        profile=candidate.profile or "markdown",
        tau=0.5,
        summary=Text.of(candidate.candidate),
        committed_sha256=candidate.candidate_sha256,
        committed_at=datetime.now(UTC),
    )


class MemoryTransport:
    """Keeps everything in memory; `answers` decides what Winnow says. Meets the same contract as the real transports."""

    def __init__(self, answers: Answers = unpruned) -> None:
        """`answers` gets each new candidate with its request hash; it may raise what `Transport.ask` may raise."""
        self._answers = answers
        self._asked: dict[tuple[str, UUID], tuple[Candidate, str, Committed | None]] = {}
        #: Originals by handle, for `original`, `recover` and, by the words that they hold, `search`.
        self.originals: dict[str, bytes] = {}
        #: What was asked back, in order.
        self.recovered: list[RecoveryRequest] = []
        #: What was pruned, by run, for `pruned`.
        self.pruned_entries: dict[str, PrunedPage] = {}
        #: What was reported, in order.
        self.reports: list[Report] = []
        #: Raised by every call while set: an outage.
        self.outage: WinnowError | None = None
        self.open = False

    async def start(self) -> None:
        """Nothing to connect."""
        self.open = True

    async def close(self) -> None:
        """Nothing to let go of."""
        self.open = False

    async def ask(self, candidate: Candidate, request_sha256: str, deadline: Deadline, traceparent: str | None) -> Committed:
        """Answer as `answers` says; a resubmission gets the stored answer."""
        del traceparent  # there is nowhere to pass it on to
        self._up()
        key = (candidate.fleet, candidate.boundary_id)
        if key not in self._asked:
            self._asked[key] = (candidate, request_sha256, self._answers(candidate, request_sha256))
        _, first_sha256, committed = self._asked[key]
        if first_sha256 != request_sha256:
            raise Conflict
        if committed is None:
            await asyncio.sleep(deadline.remaining())
            raise TimeoutError
        return committed

    async def report(self, event: Report) -> None:
        """Keep the event."""
        self._up()
        self.reports.append(event)

    async def original(self, handle: str, deadline: Deadline) -> bytes:
        """The bytes kept under `handle`."""
        del deadline  # nothing here takes time
        self._up()
        if handle not in self.originals:
            raise NotFound
        return self.originals[handle]

    async def recover(self, asked: RecoveryRequest, deadline: Deadline) -> Recovered:
        """The bytes kept under the handle that is asked for."""
        data = await self.original(asked.handle, deadline)
        self.recovered.append(asked)
        return Recovered(
            handle=asked.handle, data=data[asked.start : asked.end], start=asked.start, size=len(data), kind="candidate", source=False
        )

    async def search(self, query: str, run: str | None, cursor: str | None, limit: int, deadline: Deadline) -> SearchPage:
        """The originals that hold the query as it stands, on one page."""
        del cursor, deadline  # one page, at once
        self._up()
        hits = [
            SearchHit(
                handle=handle, what="message", run=run or "run", boundary_id=UUID(int=0), index=1, score=1.0,
                excerpt=" ".join(data.decode(errors="replace").split())[:240],
            )
            for handle, data in self.originals.items()
            if query.encode() in data
        ]  # fmt: skip
        return SearchPage(items=tuple(hits[:limit]), boundaries=1, complete=True)

    async def pruned(self, run: str, cursor: str | None, limit: int, deadline: Deadline) -> PrunedPage:
        """What a test has put there for the run."""
        del cursor, limit, deadline  # one page, at once
        self._up()
        if run not in self.pruned_entries:
            raise NotFound
        return self.pruned_entries[run]

    async def runs(self, cursor: str | None, limit: int, deadline: Deadline) -> RunPage:
        """The runs that were asked for, the latest first, on one page."""
        del cursor, deadline  # one page, at once
        self._up()
        named = list(dict.fromkeys(candidate.run for candidate, _, _ in reversed(self._asked.values())))
        return RunPage(items=tuple(RunView(run=run, agent="agent", boundaries=1) for run in named[:limit]))

    async def boundary(self, boundary_id: UUID, deadline: Deadline) -> BoundaryView:
        """What was asked under this id."""
        del deadline  # nothing here takes time
        self._up()
        for (_, known), (candidate, _, committed) in self._asked.items():
            if known == boundary_id:
                return _view(candidate, committed).model_copy(update={"result": committed})
        raise NotFound

    async def history(self, run: str, cursor: str | None, deadline: Deadline) -> BoundaryPage:
        """All boundaries of the run, newest first, on one page."""
        del cursor, deadline  # one page, at once
        self._up()
        views = [_view(candidate, committed) for candidate, _, committed in self._asked.values() if candidate.run == run]
        return BoundaryPage(items=tuple(sorted(views, key=lambda view: -view.index)))

    def _up(self) -> None:
        if self.outage is not None:
            raise self.outage


def _view(candidate: Candidate, committed: Committed | None) -> BoundaryView:
    return BoundaryView(
        boundary_id=candidate.boundary_id,
        fleet=candidate.fleet,
        run=candidate.run,
        agent=candidate.agent,
        index=candidate.index,
        status=Status.RECEIVED if committed is None else Status.COMMITTED,
        candidate_sha256=candidate.candidate_sha256,
        mode=committed.mode if committed else None,
        outcome=committed.outcome if committed else None,
        committed_sha256=committed.committed_sha256 if committed else None,
    )
