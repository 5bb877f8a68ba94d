"""Dead letters: the original bytes and headers of what could not be handled, and why. Unique on (topic, partition, offset)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.vocabulary import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDeadLetter:
    """A record as it arrived. `error` names fields and never quotes content. `fleet` and `run` where they could be read."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    reason: Reason
    error: str
    service: str
    attempts: int = 1
    fleet: str | None = None
    run: str | None = None
    timestamp: datetime | None = None  # of the record


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A stored dead letter."""

    id: int
    letter: NewDeadLetter
    created_at: datetime
    replayed_at: datetime | None
    replays: int


async def add(tx: AsyncConnection, letters: Sequence[NewDeadLetter], *, now: datetime) -> list[DeadLetter]:
    """Store what is not stored yet; return the new ones, in the order given. A redelivered poison record is stored once."""
    raise NotImplementedError


async def page(
    tx: AsyncConnection,
    *,
    topic: str | None = None,
    reason: Reason | None = None,
    fleet: str | None = None,
    before_id: int | None = None,
    limit: int = 50,
) -> list[DeadLetter]:
    """Dead letters, newest first; `before_id` is the id of the last one seen."""
    raise NotImplementedError


async def get(tx: AsyncConnection, letter_id: int) -> DeadLetter:
    """One dead letter. Raise `NotFound`."""
    raise NotImplementedError


async def mark_replayed(tx: AsyncConnection, ids: Sequence[int], *, now: datetime) -> None:
    """The original bytes were published to their topic again."""
    raise NotImplementedError
