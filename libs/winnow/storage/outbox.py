"""The outbox: what starts from HTTP, the CLI or a timer is written here with its effects, and a relay publishes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """A record to publish. `topic` is the registry's name, without prefix; `headers` are UTF-8 texts."""

    fleet: str
    topic: str
    key: str
    body: bytes
    event_id: UUID
    headers: Mapping[str, str]
    run: str | None = None  # so that erasing a run finds it
    traceparent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxMessage:
    """A record that waits. `id` grows in the order of insertion."""

    id: int
    message: NewMessage
    created_at: datetime
    attempts: int


async def add(tx: AsyncConnection, messages: Sequence[NewMessage]) -> None:
    """Write records with the caller's effects; NOTIFY `winnow_outbox` on commit. The same (topic, event id) is written once."""
    raise NotImplementedError


async def claim(tx: AsyncConnection, limit: int = 500) -> list[OutboxMessage]:
    """Lock the oldest unsent records until the transaction ends: SKIP LOCKED between relays, and at most one relay has a key at a time."""
    raise NotImplementedError


async def mark_sent(tx: AsyncConnection, ids: Sequence[int], *, now: datetime) -> None:
    """The records were acknowledged by the broker."""
    raise NotImplementedError


async def mark_failed(tx: AsyncConnection, ids: Sequence[int], error: str) -> None:
    """Count an attempt that failed; the records stay unsent. `error` never quotes content."""
    raise NotImplementedError


async def depth(tx: AsyncConnection) -> tuple[int, datetime | None]:
    """How many records wait, and since when the oldest does."""
    raise NotImplementedError


async def purge(tx: AsyncConnection, *, older_than: timedelta, now: datetime) -> int:
    """Delete what was sent longer ago. Return how many."""
    raise NotImplementedError
