"""Retention: drops partitions, purges what was sent, collects originals that nothing refers to."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncConnection


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How long what is kept. History counts by whole months of the boundary's time."""

    history: timedelta = timedelta(days=365)
    outputs: timedelta = timedelta(days=30)
    outbox: timedelta = timedelta(days=7)
    dead_letters: timedelta = timedelta(days=90)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a pass removed."""

    partitions: tuple[str, ...]
    boundaries: int
    outbox: int
    dead_letters: int
    originals: int
    handles: int


async def apply(tx: AsyncConnection, policy: Policy, *, now: datetime) -> Kept:
    """Apply `policy` once, with an audit row. Safe to run at any time and from several processes (one waits for the other)."""
    raise NotImplementedError


async def collect_originals(tx: AsyncConnection, *, now: datetime, fleet: str | None = None, grace: timedelta = timedelta(hours=1)) -> int:
    """Delete originals that no boundary, live handle or queued event refers to and that nobody stored or touched within `grace`."""
    raise NotImplementedError
