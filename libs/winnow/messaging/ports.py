"""What messaging asks of storage. Adapters in `winnow.storage` fulfil these; tests use the fakes of `winnow.messaging.fakes`."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from winnow.contracts.events import ClaimCheck


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A row of the dead-letter table: the original record, and why it is there."""

    #: Topic name on the broker, prefix included; unique together with partition and offset.
    topic: str
    partition: int
    offset: int
    key: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    value: bytes | None
    #: Milliseconds since the epoch, of the original record.
    timestamp: int
    reason: str
    error: str
    service: str
    attempts: int
    at: datetime
    #: Tenant by the record key, where it names one; what `winnow erase` goes by.
    fleet: str | None = None
    #: Run by the record key.
    run: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxItem:
    """A row of the outbox: an event whose cause is stored and whose sending is owed."""

    id: int
    #: Name in the topic registry, without prefix.
    topic: str
    key: str
    body: bytes
    event_id: str
    time: datetime
    traceparent: str | None = None
    claim: bool = False


class DeadLetterStore(Protocol):
    """The dead-letter table."""

    async def add(self, letters: Sequence[DeadLetter]) -> Sequence[tuple[str, int, int]]:
        """Store letters in one transaction; known positions change nothing. Return the positions that are new.

        Called by consumers before they acknowledge. May block on the database; raises a transient error where it is away.
        """
        ...


class ClaimStore(Protocol):
    """The originals that claim checks point at."""

    async def fetch(self, claims: Sequence[ClaimCheck]) -> Sequence[bytes | None]:
        """The exact bytes of each claim, in order; None where this fleet has no such original, or had it erased.

        Implementations look up handle *and* fleet; hash and size are checked by the caller. Raises a transient error where
        the database is away.
        """
        ...


class OutboxStore(Protocol):
    """The outbox table, whose lock keeps relays of several processes from sending the rows of one key out of order."""

    async def relay(self, limit: int, send: Callable[[Sequence[OutboxItem]], Awaitable[Sequence[int]]]) -> int:
        """Claim up to `limit` unsent rows in id order, call `send`, mark the ids that it returns as sent; return how many.

        One transaction: a crash before its end sends the rows again. Returns 0 at once where another relay holds the lock.
        """
        ...

    async def depth(self) -> tuple[int, float]:
        """Unsent rows, and the age of the oldest in seconds (0 where there is none)."""
        ...


class StuckStore(Protocol):
    """Boundaries that wait in a stage for longer than they should."""

    async def sweep(self, *, older_than_s: float, limit: int, send: Callable[[Sequence[OutboxItem]], Awaitable[Sequence[int]]]) -> int:
        """Call `send` with the event that each stuck boundary waits for; return how many were claimed.

        Up to `limit` boundaries whose next stage has not answered for `older_than_s`, oldest first. Item ids are numbers within the call;
        those that `send` returns were published. One transaction: two sweepers never publish the same boundary at the same time, and
        an implementation waits longer after each sweep of one boundary.
        """
        ...
