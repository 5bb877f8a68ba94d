"""The client for runtimes without an event loop: the same client, on a loop in a thread of its own."""

import asyncio
import concurrent.futures
import logging
import threading
import weakref
from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any, Self, TypeVar
from uuid import UUID

from winnow.client.api import BoundaryView, PrunedPage, RunView, SearchPage
from winnow.client.client import DEADLINE_S, READ_S, WinnowClient, checked_seconds
from winnow.client.recovery import Recovered
from winnow.client.result import Because, Compaction, own
from winnow.client.transport import Transport
from winnow.contracts.errors import Retryable
from winnow.contracts.events import Candidate, Observation
from winnow.contracts.vocabulary import Adopted

log = logging.getLogger("winnow.client")
T = TypeVar("T")

#: Seconds beyond a deadline after which the loop's thread counts as stuck; the agent then goes on without it.
STUCK_S = 1.0


class SyncWinnowClient:
    """`WinnowClient` for synchronous code; methods mean the same and may be called from any thread.

    Use as `with SyncWinnowClient(transport) as client:`. Not to be carried over a fork: threads do not come along.
    """

    def __init__(self, transport: Transport, **options: Any) -> None:  # noqa: ANN401  the options of WinnowClient, checked by it
        """`options` are those of `WinnowClient`."""
        self._client = WinnowClient(transport, **options)
        self._deadline_s = float(options.get("deadline_s", DEADLINE_S))
        self._drain_s = float(options.get("drain_s", READ_S))
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def __repr__(self) -> str:
        """The client inside."""
        return f"<Sync{repr(self._client)[1:]}"

    def __enter__(self) -> Self:
        """Start the thread and make the transport ready."""
        loop = self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=_serve, args=(loop,), name="winnow-client", daemon=True)
        self._thread.start()
        weakref.finalize(self, _stop, loop)
        self._call(self._client.__aenter__(), READ_S)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close; see `close`."""
        self.close()

    def close(self) -> None:
        """Deliver the reports that wait, close the client, end the thread."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        try:
            self._call(self._client.close(), self._drain_s + READ_S)
        finally:
            self._loop = self._thread = None
            _stop(loop)
            thread.join(READ_S)

    def compact(self, boundary: Candidate, *, deadline_s: float | None = None, strict: bool | None = None) -> Compaction:
        """Submit a boundary and return what the agent goes on with; see `WinnowClient.compact`."""
        if self._loop is None and isinstance(boundary, Candidate):
            return own(boundary, Because.CLOSED)
        limit = self._deadline_s if deadline_s is None else checked_seconds(deadline_s)
        try:
            return self._call(self._client.compact(boundary, deadline_s=deadline_s, strict=strict), limit + STUCK_S)
        except Retryable:
            log.exception("loop_stuck")
            return own(boundary, Because.INTERNAL)

    def original(self, handle: str) -> bytes:
        """The exact bytes of an original; see `WinnowClient.original`."""
        return self._call(self._client.original(handle), READ_S + STUCK_S)

    def boundary(self, boundary_id: UUID) -> BoundaryView:
        """A boundary as Winnow stores it; see `WinnowClient.boundary`."""
        return self._call(self._client.boundary(boundary_id), READ_S + STUCK_S)

    def history(self, run: str, *, most: int = 1_000) -> list[BoundaryView]:
        """The boundaries of a run; see `WinnowClient.history`."""
        return self._call(self._client.history(run, most=most), READ_S + STUCK_S)

    def expand(
        self, handle: str, *, run: str | None = None, start: int = 0, end: int | None = None, event_id: UUID | None = None
    ) -> Recovered:
        """Ask an original, or a part of one, back for an agent; see `WinnowClient.expand`."""
        return self._call(self._client.expand(handle, run=run, start=start, end=end, event_id=event_id), READ_S + STUCK_S)

    def search_history(self, query: str, *, run: str | None = None, cursor: str | None = None, limit: int = 10) -> SearchPage:
        """Places in the history that hold words of `query`; see `WinnowClient.search_history`."""
        return self._call(self._client.search_history(query, run=run, cursor=cursor, limit=limit), READ_S + STUCK_S)

    def pruned_entries(self, run: str, *, cursor: str | None = None, limit: int = 20) -> PrunedPage:
        """What was pruned from the summaries of a run; see `WinnowClient.pruned_entries`."""
        return self._call(self._client.pruned_entries(run, cursor=cursor, limit=limit), READ_S + STUCK_S)

    def runs(self, *, most: int = 50) -> list[RunView]:
        """The fleet's runs, the most recently active first; see `WinnowClient.runs`."""
        return self._call(self._client.runs(most=most), READ_S + STUCK_S)

    def adopted(self, boundary: Candidate, which: Adopted, *, because: str | None = None) -> None:
        """Report which text the agent goes on with; see `WinnowClient.adopted`."""
        self._do(lambda: self._client.adopted(boundary, which, because=because))

    def bypassed(self, run: str, because: str, *, boundary_id: UUID | None = None, fleet: str | None = None) -> None:
        """Report that a compaction went past Winnow; see `WinnowClient.bypassed`."""
        self._do(lambda: self._client.bypassed(run, because, boundary_id=boundary_id, fleet=fleet))

    def run_ended(self, run: str, *, recovery_tool: bool | None = None, fleet: str | None = None) -> None:
        """Report that a run is over; see `WinnowClient.run_ended`."""
        self._do(lambda: self._client.run_ended(run, recovery_tool=recovery_tool, fleet=fleet))

    def recovered(self, run: str, handle: str, *, boundary_id: UUID | None = None, fleet: str | None = None) -> None:
        """Report that an original was given to the agent; see `WinnowClient.recovered`."""
        self._do(lambda: self._client.recovered(run, handle, boundary_id=boundary_id, fleet=fleet))

    def observe(self, observation: Observation) -> None:
        """Report that a unit was sampled or graded; see `WinnowClient.observe`."""
        self._do(lambda: self._client.observe(observation))

    def drain(self, seconds: float) -> bool:
        """Wait until all reports are delivered or given up; see `WinnowClient.drain`."""
        return self._call(self._client.drain(seconds), seconds + STUCK_S)

    def _do(self, work: Callable[[], None]) -> None:
        """Run something short on the loop, and let its error come out here."""

        async def run() -> None:
            work()

        self._call(run(), STUCK_S)

    def _call(self, work: Coroutine[Any, Any, T], seconds: float) -> T:
        """Run a coroutine on the loop. Raise `Retryable` where the loop does not answer in time."""
        if self._loop is None:
            work.close()
            msg = "the client is closed or was not entered: use it as `with SyncWinnowClient(...) as client:`"
            raise Retryable(msg)
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(seconds)
        except concurrent.futures.TimeoutError:
            if future.done():  # the coroutine's own
                raise
            future.cancel()
            msg = f"the client's loop did not answer within {seconds:g} s"
            raise Retryable(msg) from None
        except BaseException:
            future.cancel()
            raise


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    """Run the loop until it is stopped, then let its tasks end."""
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def _stop(loop: asyncio.AbstractEventLoop) -> None:
    """Ask the loop to stop; harmless where it is closed."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(loop.stop)
