"""The port between the client and the way to Winnow."""

from typing import Protocol
from uuid import UUID

from winnow.client.api import BoundaryPage, BoundaryView, PrunedPage, RecoveryRequest, RunPage, SearchPage
from winnow.client.recovery import Recovered
from winnow.contracts.deadline import Deadline
from winnow.contracts.events import Candidate, Committed, Observation, RuntimeEvent

Report = RuntimeEvent | Observation


class Transport(Protocol):
    """A way to Winnow. One event loop; many calls at once."""

    async def start(self) -> None:
        """Make ready. Called once, before anything else; never raises for an outage, which every call meets anew."""

    async def close(self) -> None:
        """Let go of connections. Called once, also after a failed start; calls under way end with an error."""

    async def ask(self, candidate: Candidate, request_sha256: str, deadline: Deadline, traceparent: str | None) -> Committed:
        """Submit a boundary and wait for its answer until `deadline`; resubmitting is safe and finds the stored answer.

        Raise `Unheard` with the reason where there is none in time, `Conflict` where the id belongs to other content.
        """

    async def report(self, event: Report) -> None:
        """Deliver an event. Raise `Permanent` where it will never be taken, anything else where a later try may succeed."""

    async def original(self, handle: str, deadline: Deadline) -> bytes:
        """The exact bytes of an original. Raise `NotFound`, `Gone`, `HashMismatch` or `Retryable`."""

    async def boundary(self, boundary_id: UUID, deadline: Deadline) -> BoundaryView:
        """One boundary, with its result where there is one. Raise `NotFound` or `Retryable`."""

    async def history(self, run: str, cursor: str | None, deadline: Deadline) -> BoundaryPage:
        """One page of a run's boundaries, newest first. Raise `Retryable`."""

    async def recover(self, asked: RecoveryRequest, deadline: Deadline) -> Recovered:
        """The exact bytes of a place, for an agent that asks; noted once by `event_id`. Raise as `original`."""

    async def search(self, query: str, run: str | None, cursor: str | None, limit: int, deadline: Deadline) -> SearchPage:
        """One page of places in the history, best first. Raise `NotFound` for a run that is not there, `Permanent` or `Retryable`."""

    async def pruned(self, run: str, cursor: str | None, limit: int, deadline: Deadline) -> PrunedPage:
        """One page of what was pruned of a run, the newest boundary first. Raise as `search`."""

    async def runs(self, cursor: str | None, limit: int, deadline: Deadline) -> RunPage:
        """One page of the fleet's runs, the most recently active first. Raise `Retryable`."""
