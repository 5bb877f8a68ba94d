"""The database goes away, or says that it is full."""

import asyncio

import pytest

from tests.benchmarks.boundaries import Factory
from tests.faults.ground import Ground, prepare
from tests.faults.stages import CONSUMED, Running, acknowledged, all_committed, committed, letters, one_body_each, publish, rows, running
from tests.harness.waiting import eventually
from winnow.embedded import BrokerHandle, PostgresServer

#: Seconds that the database stays away: longer than all attempts of one batch, so that batches go back to the broker.
AWAY_S = 4.0

FULL = """
CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = 'disk_full';
END $$
"""


@pytest.fixture
async def own_ground(own_postgres: PostgresServer, broker: BrokerHandle) -> Ground:
    """A database server of this test's own beside the shared broker."""
    return await prepare(own_postgres, broker)


async def test_database_away_for_a_while(own_ground: Ground, own_postgres: PostgresServer) -> None:
    """While the database is away nothing is lost and nothing is a dead letter; when it is back, everything goes on by itself."""
    samples = [sample for run in Factory.load(fleet="away").runs(30, length=3) for sample in run]
    before, during = samples[:15], samples[15:]
    async with running(own_ground):
        await publish(own_ground, *before)
        await all_committed(own_ground, *before)
        await asyncio.to_thread(own_postgres.kill)
        await publish(own_ground, *during)
        await asyncio.sleep(AWAY_S)
        await asyncio.to_thread(own_postgres.start)
        await all_committed(own_ground, *samples)
        await acknowledged(own_ground)
    one_body_each(await committed(own_ground), *samples)
    assert await letters(own_ground) == []


def retried(stages: Running) -> bool:
    """Tell whether any stage has sent a batch back."""
    return any(stages.batches(name, topic, "retried") for name, topic in CONSUMED[:3])


@pytest.mark.parametrize("table", ["originals", pytest.param("decisions", marks=pytest.mark.long)])
async def test_disk_full(table: str, ground: Ground) -> None:
    """A full disk is waited for: no dead letter, nothing half done, and all goes on when there is room again."""
    fleet = f"full-{table}"
    samples = Factory.load(fleet=fleet).run(0, length=3)
    await rows(ground, FULL)
    await rows(ground, f"CREATE TRIGGER full_disk BEFORE INSERT ON {table} FOR EACH ROW EXECUTE FUNCTION full_disk()")
    try:
        async with running(ground) as stages:
            await publish(ground, *samples)
            await eventually(lambda: retried(stages), what="a batch went back to the broker")
            stored = await rows(ground, "SELECT committed_at FROM boundaries WHERE fleet = $1", fleet)
            half_done = [row for row in stored if table == "originals" or row["committed_at"] is not None]
            assert half_done == []
            assert await letters(ground) == []
            await rows(ground, f"DROP TRIGGER full_disk ON {table}")
            await all_committed(ground, *samples)
            await acknowledged(ground)
    finally:
        await rows(ground, "DROP FUNCTION full_disk() CASCADE")
    one_body_each(await committed(ground), *samples)
    assert await letters(ground) == []
