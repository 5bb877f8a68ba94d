"""Partitions: made once, ahead or on demand, by whoever comes first, without stopping the others."""

import asyncio
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.integration.storage.builders import candidate, evidence, stored
from winnow.storage import partitions, raw, stages

#: hypothesis takes bounds without a zone and adds its own.
EARLY, LATE = datetime(2000, 1, 1), datetime(2100, 1, 1)  # noqa: DTZ001
PARENTS = {"entries", "evidence_passages", "entry_evidence", "scores", "decisions", "judge_calls", "stage_outputs", "observations"}


async def _of_month(db, month: str) -> set[str]:
    async with db.transaction() as tx:
        rows = await raw.fetch(
            tx, "SELECT relname AS n FROM pg_class WHERE relispartition AND relkind = 'r' AND relname LIKE $1", f"%{month}"
        )
        return {r["n"].removesuffix("_" + month) for r in rows}


async def test_ahead(db):
    """This month and the next three are made for every partitioned table."""
    async with db.transaction() as tx:
        await partitions.ensure_ahead(tx, now=datetime(2031, 11, 30, 23, tzinfo=UTC))
    for month in ("2031_11", "2031_12", "2032_01", "2032_02"):
        assert await _of_month(db, month) == PARENTS


async def test_concurrent_creation(db):
    """Several transactions that need the same months at once all get them, and none fails."""
    days = [date(2033, m, 5) for m in (1, 2, 3)]

    async def ensure(order) -> None:
        async with db.transaction() as tx:
            await partitions.ensure(tx, order)

    await asyncio.gather(*(ensure(days if k % 2 else days[::-1]) for k in range(4)))
    for month in ("2033_01", "2033_02", "2033_03"):
        assert await _of_month(db, month) == PARENTS


async def test_creation_does_not_stop_writers(db, fleet, now):
    """While one transaction has made a month and is still open, another writes and reads other months without waiting."""
    boundary = await stored(db, candidate(fleet), now)
    async with db.transaction() as maker:
        await partitions.ensure(maker, [date(2034, 1, 1)])
        async with asyncio.timeout(10), db.transaction() as tx:
            await raw.execute(tx, "SET LOCAL lock_timeout = '2s'")
            assert await stages.store_evidence(tx, [evidence(boundary)], now=now) == {boundary.key}


async def test_a_rolled_back_month_is_made_again(db):
    """A month whose creation was rolled back is not taken for there."""

    class GivenUp(Exception):
        """Ends the transaction."""

    async def give_up() -> None:
        async with db.transaction() as tx:
            await partitions.ensure(tx, [date(2035, 1, 1)])
            raise GivenUp

    with pytest.raises(GivenUp):
        await give_up()
    assert await _of_month(db, "2035_01") == set()
    for _ in range(2):
        async with db.transaction() as tx:
            await partitions.ensure(tx, [date(2035, 1, 1)])
    assert await _of_month(db, "2035_01") == PARENTS


async def test_the_months_are_utc(db, fleet):
    """A boundary at the turn of a month elsewhere lies in the UTC month, whatever the session's time zone."""
    at = datetime(2026, 5, 1, 1, 0, tzinfo=timezone(timedelta(hours=9)))
    boundary = await stored(db, candidate(fleet, boundary_at=at), datetime(2026, 5, 1, tzinfo=UTC))
    async with db.transaction() as tx:
        await raw.execute(tx, "SET LOCAL TimeZone = 'Asia/Tokyo'")
        await stages.store_evidence(tx, [evidence(boundary)], now=at)
        rows = await raw.fetch(tx, "SELECT DISTINCT tableoid::regclass::text AS t FROM entries WHERE fleet = $1", fleet)
    assert [r["t"] for r in rows] == ["entries_2026_04"]


async def test_partitions_are_closed(db, database):
    """A partition shows nothing and takes nothing by its own name, not even to a role that was granted it."""
    async with db.transaction() as tx:
        await partitions.ensure(tx, [date(2036, 1, 1)])
        await raw.execute(tx, "GRANT SELECT ON entries_2036_01 TO winnow_service")
        row = await raw.fetch_one(
            tx, "SELECT relrowsecurity, relforcerowsecurity, (SELECT count(*) FROM pg_policy WHERE polrelid = c.oid) AS policies"
            " FROM pg_class c WHERE oid = 'entries_2036_01'::regclass"
        )  # fmt: skip
    assert tuple(row) == (True, True, 0)


@given(
    st.datetimes(timezones=st.just(UTC), min_value=EARLY, max_value=LATE),
    st.integers(min_value=-40, max_value=40),
)
def test_months(moment, count):
    """Months are counted over the ends of years."""
    first = partitions.month_of(moment)
    assert (first.year, first.month, first.day) == (moment.year, moment.month, 1)
    moved = partitions.months_after(first, count)
    assert (moved.year - first.year) * 12 + moved.month - first.month == count
    assert partitions.months_after(moved, -count) == first


@pytest.mark.parametrize("days", [-401, -400, 0, 2, 3])
def test_anchor_times(days):
    """A clock is believed within its limits, both included."""
    now = datetime(2026, 11, 30, tzinfo=UTC)
    at = now + timedelta(days=days)
    assert partitions.anchor_time(at, now) == (at if -400 <= days <= 2 else now)
    assert partitions.anchor_time(None, now) == now
