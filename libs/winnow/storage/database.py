"""The pool of connections, transactions as one role or one fleet, notifications, and which errors pass by themselves."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from sqlalchemy.ext.asyncio import AsyncConnection

#: Channel with `fleet/boundary_id` of every boundary that is committed.
COMMITTED_CHANNEL = "winnow_committed"
#: Channel that tells relays of new outbox rows.
OUTBOX_CHANNEL = "winnow_outbox"


class Database:
    """A pool of connections to one database. `async with Database(url) as database:` or `await close()` when done."""

    def __init__(self, url: str, *, pool_size: int = 5, application_name: str = "winnow") -> None:
        raise NotImplementedError

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """One transaction as the pipeline: sees all fleets. Commits at the end, rolls back on an exception."""
        raise NotImplementedError
        yield

    @asynccontextmanager
    async def fleet_transaction(self, fleet: str) -> AsyncIterator[AsyncConnection]:
        """One transaction as role `winnow_gateway`, which sees and writes rows of `fleet` alone."""
        raise NotImplementedError
        yield

    async def ping(self) -> None:
        """Ask the server for an answer. Raise what it raises."""
        raise NotImplementedError

    async def listen(self, channel: str, callback: Callable[[str], None], *, connected: Callable[[], None] | None = None) -> None:
        """Call `callback` with each payload, for ever, on a connection of its own that is made anew when it is lost.

        Run it as a task and cancel it to stop. What was notified while the connection was down is lost: `connected` is called after each
        (re)connection, so that the caller looks at the table once.
        """
        raise NotImplementedError

    async def close(self) -> None:
        """Close all connections."""
        raise NotImplementedError


def transient(exc: BaseException) -> bool:
    """The same transaction may succeed later: connection lost, server starting or full, deadlock, serialization, time-out."""
    raise NotImplementedError


def data_error(exc: BaseException) -> bool:
    """A fault of the row itself (bad value, constraint): run the batch again record by record."""
    raise NotImplementedError
