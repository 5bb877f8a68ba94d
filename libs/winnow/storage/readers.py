"""SQL readers: one login role a fleet, which sees the views and of them its own fleet's rows."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A reader's role and the fleet that it sees."""

    role: str
    fleet: str
    created_at: datetime


async def create(tx: AsyncConnection, fleet: str, role: str, password: str, *, by: str, now: datetime) -> Reader:
    """Create login role `role` for `fleet`, or give an existing reader of that fleet a new password. Raise `NotFound`, `Conflict`."""
    raise NotImplementedError


async def drop(tx: AsyncConnection, role: str, *, by: str, now: datetime) -> None:
    """Drop a reader's role. Raise `NotFound`."""
    raise NotImplementedError


async def listed(tx: AsyncConnection) -> list[Reader]:
    """All readers, by role."""
    raise NotImplementedError
