"""Monthly partitions of the large children, created ahead of need and on demand."""

from collections.abc import Iterable
from datetime import date, datetime

from sqlalchemy.ext.asyncio import AsyncConnection


def anchor_time(boundary_at: datetime | None, received_at: datetime) -> datetime:
    """`boundary_at`, or `received_at` where the host said nothing or its clock is absurd: more than 400 days back or 2 days ahead."""
    raise NotImplementedError


async def ensure(tx: AsyncConnection, months: Iterable[date]) -> None:
    """Create the partitions of the months of these dates, where missing. Safe under concurrency; blocks no reader or writer."""
    raise NotImplementedError


async def ensure_ahead(tx: AsyncConnection, *, now: datetime, months: int = 3) -> None:
    """Create the partitions of this month and of `months` more."""
    raise NotImplementedError
