"""The client of an agent runtime: ask Winnow at a compaction boundary, and go on whatever happens."""

import asyncio
import logging
import math
import re
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Self, cast
from uuid import UUID, uuid4

from pydantic import ValidationError

from winnow.client.api import BoundaryView, PrunedPage, RecoveryRequest, RunView, SearchPage
from winnow.client.recovery import Recovered
from winnow.client.reporter import CAPACITY, Reporter
from winnow.client.result import Because, Compaction, Unheard, own
from winnow.client.settle import settle
from winnow.client.transport import Transport
from winnow.contracts.deadline import Deadline
from winnow.contracts.envelope import explain
from winnow.contracts.errors import Conflict, Permanent, TooLarge
from winnow.contracts.events import Candidate, Observation, RuntimeEvent
from winnow.contracts.places import Place
from winnow.contracts.vocabulary import Adopted, RuntimeEventKind

log = logging.getLogger("winnow.client")

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")

#: Seconds that an agent waits unless it says otherwise. A host's own compaction time-out is a minute or more (its summariser just took
#: several seconds); Winnow stays far below it.
DEADLINE_S = 10.0
#: Seconds. The transport keeps the deadline itself and knows best why; this much later it is cut off whether or not it did.
BACKSTOP_S = 0.1
#: Seconds that reading an original or a run's history may take.
READ_S = 30.0
#: Seconds that reports may take to be delivered at close.
DRAIN_S = 3.0
#: Seconds at most for a deadline: an agent that would wait an hour has a mistake in its units.
MOST_S = 3600.0
#: Characters of `because` in an event, as the contract limits it.
BECAUSE_CHARS = 500
#: Boundaries that `history` gives at most.
HISTORY_MOST = 10_000


class WinnowClient:
    """Asks Winnow for the committed summary of a boundary; fail-open in everything that is Winnow's.

    Use as `async with WinnowClient(transport) as client:`, within one event loop. Safe for many compactions at once.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        fleet: str = "default",
        deadline_s: float = DEADLINE_S,
        strict: bool = False,
        drain_s: float = DRAIN_S,
        report_capacity: int = CAPACITY,
        traceparent: Callable[[], str | None] | None = None,
        recovery_tool: bool | None = None,
    ) -> None:
        """`fleet` is used for reports that name no boundary; `deadline_s` is the default of `compact`.

        `strict` lets `compact` raise `IdConflict`. `traceparent` gives the W3C trace context to continue, asked at each compaction.
        `recovery_tool`: whether the agents of this client can ask back what was pruned (`winnow mcp`, or `client.tools`); said with every
        report, so that it is known of a run whose end nobody reports. Left out, nobody says: recovery is not observable then.
        """
        self._transport = transport
        self._fleet = fleet
        self._deadline_s = checked_seconds(deadline_s)
        self._strict = strict
        self._drain_s = drain_s
        self._traceparent = traceparent
        self._recovery_tool = recovery_tool
        self._reporter = Reporter(transport.report, capacity=report_capacity)
        self._open = False

    def __repr__(self) -> str:
        """Where it goes and what waits."""
        return f"<WinnowClient({self._transport!r}, {self._reporter!r})>"

    async def __aenter__(self) -> Self:
        """Make the transport ready. Never fails for an outage."""
        await self._transport.start()
        self._open = True
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Close; see `close`."""
        await self.close()

    async def close(self) -> None:
        """Deliver the reports that wait, for at most `drain_s`, then let go of connections."""
        if self._open:
            self._open = False
            try:
                await self._reporter.close(self._drain_s)
            finally:
                await self._transport.close()

    async def compact(self, boundary: Candidate, *, deadline_s: float | None = None, strict: bool | None = None) -> Compaction:
        """Submit a boundary and return what the agent goes on with, after at most `deadline_s` seconds.

        Whatever is wrong with Winnow, the result is the agent's own candidate and `bypassed_because` says why. What the agent used is
        published in the background. Raise `TypeError` or `ValueError` for wrong arguments, and `IdConflict` where `strict` is set and the
        boundary id belongs to other content.
        """
        if not isinstance(cast("object", boundary), Candidate):  # callers without a type checker
            msg = "compact() takes a Candidate; build one with winnow.client.boundary(...)"
            raise TypeError(msg)
        seconds = self._deadline_s if deadline_s is None else checked_seconds(deadline_s)
        begun = time.monotonic()
        try:
            result = await self._ask(boundary, seconds)
        except Unheard as exc:
            result = own(boundary, exc.because)
        except TooLarge:
            result = own(boundary, Because.TOO_LARGE)
        except Conflict:
            result = own(boundary, Because.ID_CONFLICT)
        except TimeoutError:
            result = own(boundary, Because.DEADLINE)
        except Exception:  # an agent must never stop because of Winnow, not even for a defect of this client
            log.exception("compact_failed")
            result = own(boundary, Because.INTERNAL)
        result = replace(result, elapsed_s=time.monotonic() - begun)
        self._tell(boundary, result)
        if result.bypassed_because is Because.ID_CONFLICT and (self._strict if strict is None else strict):
            raise Conflict
        return result

    async def original(self, handle: str) -> bytes:
        """The exact bytes of an original. Raise `NotFound`, `Gone`, `HashMismatch`, `Permanent` or `Retryable`."""
        return await self._transport.original(handle, self._reading())

    async def boundary(self, boundary_id: UUID) -> BoundaryView:
        """A boundary as Winnow stores it, with its result where there is one. Raise `NotFound`, `Permanent` or `Retryable`."""
        return await self._transport.boundary(boundary_id, self._reading())

    async def history(self, run: str, *, most: int = 1_000) -> list[BoundaryView]:
        """The boundaries of a run, newest first, `most` of them (10,000 at most). Raise `Permanent` or `Retryable`."""
        views: list[BoundaryView] = []
        cursor: str | None = None
        deadline = self._reading()
        while True:
            page = await self._transport.history(run, cursor, deadline)
            views.extend(page.items)
            cursor = page.next_cursor
            if cursor is None or len(views) >= min(most, HISTORY_MOST):
                return views[: min(most, HISTORY_MOST)]

    async def expand(
        self, handle: str, *, run: str | None = None, start: int = 0, end: int | None = None, event_id: UUID | None = None
    ) -> Recovered:
        """Ask an original, or a part of one, back for an agent: its exact bytes, or those of `[start, end)`.

        Winnow notes it and tells it itself (do not report `recovered` besides); an entry that is asked back is kept for the rest of the run
        that it belongs to. `run` is the run that asks, where it is another one. The same `event_id` is one recovery.

        Raise `NotFound`, `Gone`, `HashMismatch`, `Permanent` or `Retryable`: then the agent has nothing back, and must not be told so.
        """
        try:
            asked = RecoveryRequest(handle=handle, run=run, event_id=event_id or uuid4(), start=start, end=end)
        except ValidationError as exc:
            raise Permanent(explain(exc)) from None
        return await self._transport.recover(asked, self._reading())

    async def search_history(self, query: str, *, run: str | None = None, cursor: str | None = None, limit: int = 10) -> SearchPage:
        """Places in the fleet's history, or in one run's, that hold words of `query`; `expand` gives all of one.

        Raise `NotFound` for a run that is not there, `Permanent` or `Retryable`.
        """
        return await self._transport.search(query, run, cursor, limit, self._reading())

    async def pruned_entries(self, run: str, *, cursor: str | None = None, limit: int = 20) -> PrunedPage:
        """What was pruned from the summaries of a run, the newest boundary first. Raise as `search_history`."""
        return await self._transport.pruned(run, cursor, limit, self._reading())

    async def runs(self, *, most: int = 50) -> list[RunView]:
        """The fleet's runs, the most recently active first, `most` of them (500 at most). Raise `Permanent` or `Retryable`."""
        return list((await self._transport.runs(None, most, self._reading())).items)

    def adopted(self, boundary: Candidate, which: Adopted, *, because: str | None = None) -> None:
        """Report which text the agent goes on with. `compact` does so itself; a host that decided otherwise afterwards says it here."""
        self._publish(
            fleet=boundary.fleet,
            run=boundary.run,
            kind=RuntimeEventKind.ADOPTED,
            boundary_id=boundary.boundary_id,
            adopted=which,
            because=because[:BECAUSE_CHARS] if because else None,
        )

    def bypassed(self, run: str, because: str, *, boundary_id: UUID | None = None, fleet: str | None = None) -> None:
        """Report that a compaction went past Winnow: the host fell back to another way."""
        self._publish(
            fleet=fleet or self._fleet,
            run=run,
            kind=RuntimeEventKind.BYPASSED,
            boundary_id=boundary_id,
            because=because[:BECAUSE_CHARS] or "unknown",
        )

    def run_ended(self, run: str, *, recovery_tool: bool | None = None, fleet: str | None = None) -> None:
        """Report that a run is over: it is graded as one unit.

        `recovery_tool`: whether its agent could ask back what was pruned; left out, as the client was told. Only then does it count that it
        never did; where nobody says, recovery is not observable for this run.
        """
        self._publish(fleet=fleet or self._fleet, run=run, kind=RuntimeEventKind.RUN_ENDED, recovery_tool=recovery_tool)

    def recovered(self, run: str, handle: str, *, boundary_id: UUID | None = None, fleet: str | None = None) -> None:
        """Report that the host gave an original to its agent from a copy of its own; the agent therefore has a tool for it.

        `handle` may name a part (`<handle>.e5`): that entry is kept for the rest of its run. What `expand` gave is reported already.
        """
        place = Place.parse(handle)
        self._publish(
            fleet=fleet or self._fleet,
            run=run,
            kind=RuntimeEventKind.RECOVERED,
            handle=place.handle,
            part=place.suffix,
            boundary_id=boundary_id,
            recovery_tool=True,
        )

    def observe(self, observation: Observation) -> None:
        """Report that a unit was sampled or graded, for the drift monitor."""
        self._reporter.publish(observation)

    async def drain(self, seconds: float) -> bool:
        """Wait until all reports are delivered or given up, at most `seconds`; tell whether they are."""
        return await self._reporter.drain(seconds)

    async def _ask(self, boundary: Candidate, seconds: float) -> Compaction:
        """Ask and check the answer."""
        if not self._open:
            raise Unheard(Because.CLOSED)
        deadline = Deadline.after(seconds, time.monotonic)
        if boundary.deadline is None:
            boundary = boundary.model_copy(update={"deadline": datetime.now(UTC) + timedelta(seconds=seconds)})
        request_sha256 = boundary.request_sha256()
        async with asyncio.timeout(seconds + BACKSTOP_S):
            committed = await self._transport.ask(boundary, request_sha256, deadline, self._trace())
        return settle(boundary, request_sha256, committed)

    def _trace(self) -> str | None:
        """The trace to continue, if there is a well-formed one; a defect of the host's tracing never costs a compaction."""
        if self._traceparent is None:
            return None
        try:
            said = self._traceparent()
            return said if said is not None and _TRACEPARENT.fullmatch(said) else None
        except Exception:  # whatever the host's tracing raises
            log.exception("traceparent_failed")
            return None

    def _tell(self, boundary: Candidate, result: Compaction) -> None:
        """Report what the agent uses, and where Winnow was not heard also that."""
        if result.bypassed_because is not None:
            log.warning("bypassed", extra={"because": result.bypassed_because.value, "boundary_id": str(result.boundary_id)})
            if result.bypassed_because.bypassed:
                self.bypassed(boundary.run, result.bypassed_because.value, boundary_id=boundary.boundary_id, fleet=boundary.fleet)
        because = result.bypassed_because
        if because is Because.REJECTED and result.reason is not None:
            self.adopted(boundary, result.source, because=f"{because}: {result.reason}")
        else:
            self.adopted(boundary, result.source, because=because)

    def _publish(self, **fields: object) -> None:
        """Queue a runtime event; raises `pydantic.ValidationError` for fields that the caller got wrong."""
        if fields.get("recovery_tool") is None:
            fields["recovery_tool"] = self._recovery_tool
        event = RuntimeEvent.model_validate({"event_id": uuid4(), "at": datetime.now(UTC), **fields})
        if self._open:
            self._reporter.publish(event)

    @staticmethod
    def _reading() -> Deadline:
        return Deadline.after(READ_S, time.monotonic)


def checked_seconds(value: float) -> float:
    """A deadline in seconds; 0 means: do not wait. Raise `ValueError` for what is none."""
    if math.isnan(value) or not 0 <= value <= MOST_S:
        msg = f"deadline_s must be between 0 and {MOST_S:g} seconds"
        raise ValueError(msg)
    return float(value)
