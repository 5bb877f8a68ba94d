"""Monthly partitions of the large children, created ahead of need and on demand."""

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.storage import raw

#: A host's clock is believed this far back (a replayed archive) and this far ahead (a time zone taken for UTC, and some drift).
MOST_BACK = timedelta(days=400)
MOST_AHEAD = timedelta(days=2)
#: Months that are created before they begin.
MONTHS_AHEAD = 3
#: Key in a connection's own notes (`AsyncConnection.info`): the months whose partitions it has seen. Kept for recent months only, which
#: retention never drops, so a note is never wrong.
_SEEN = "winnow_months"


def anchor_time(boundary_at: datetime | None, received_at: datetime) -> datetime:
    """`boundary_at`, or `received_at` where the host said nothing or its clock is absurd: more than 400 days back or 2 days ahead."""
    if boundary_at is None or not received_at - MOST_BACK <= boundary_at <= received_at + MOST_AHEAD:
        return received_at
    return boundary_at


def month_of(moment: datetime | date) -> date:
    """First day of the UTC month."""
    day = moment.astimezone(UTC).date() if isinstance(moment, datetime) else moment
    return day.replace(day=1)


def months_after(month: date, count: int) -> date:
    """The first day of the month that is `count` after (or, negative, before) `month`."""
    number = month.year * 12 + month.month - 1 + count
    return date(number // 12, number % 12 + 1, 1)


async def ensure(tx: AsyncConnection, days: Iterable[datetime | date]) -> None:
    """Create the partitions of the months of `days`, where missing. Safe under concurrency; blocks no reader or writer.

    They appear with the caller's transaction. Free of charge for months that this connection has seen.
    """
    seen: set[date] = tx.info.setdefault(_SEEN, set())
    missing = sorted({month_of(d) for d in days} - seen)
    if not missing:
        return
    # observations, like every partitioned table, has a partition of each month: the function makes them together.
    names = [f"public.observations_{m:%Y_%m}" for m in missing]
    there = await raw.fetch(
        tx, "SELECT n, to_regclass(n) IS NOT NULL AS there FROM unnest($1::text[]) WITH ORDINALITY AS x(n, i) ORDER BY i", names
    )
    today = await raw.fetch_one(tx, "SELECT (now() AT TIME ZONE 'UTC')::date AS day")
    recent = months_after(month_of(today["day"] if today else date.max), -1)
    for month, row in zip(missing, there, strict=True):
        if not row["there"]:
            await raw.execute(tx, "SELECT winnow_ensure_partitions($1)", month)
        elif month >= recent:
            seen.add(month)


async def ensure_ahead(tx: AsyncConnection, *, now: datetime, months: int = MONTHS_AHEAD) -> None:
    """Create the partitions of this month and of `months` more."""
    first = month_of(now)
    await ensure(tx, [months_after(first, i) for i in range(months + 1)])
