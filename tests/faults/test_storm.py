"""Everything at once."""

import os
import random
from dataclasses import replace

import asyncpg
import pytest

from tests.faults import plan as plans
from tests.faults import storm, verdict
from tests.faults.crew import Crew
from tests.faults.ground import Ground
from tests.faults.wire import read_all
from tests.harness.processes import Spawner
from winnow.contracts.topics import COMMITTED, DEAD_LETTER
from winnow.embedded import BrokerHandle, Capability, PostgresServer

SERVICES = ("retriever", "judge", "pruner", "drift_monitor")


@pytest.mark.needs(Capability.PERSISTENCE, Capability.CONTROL, Capability.IDEMPOTENCE)
@pytest.mark.parametrize(
    ("boundaries", "kills", "deadline_s"),
    [
        pytest.param(200, 2, 110.0, id="scaled", marks=pytest.mark.timeout(180)),
        pytest.param(2_000, 10, 840.0, id="full", marks=[pytest.mark.long, pytest.mark.timeout(960)]),
    ],
)
async def test_storm(
    boundaries: int,
    kills: int,
    deadline_s: float,
    storm_ground: Ground,
    own_postgres: PostgresServer,
    own_broker: BrokerHandle,
    spawn: Spawner,
) -> None:
    """Every valid boundary ends in one row and one body, in order, and every invalid record in one dead letter, whatever is struck down."""
    seed = int(os.environ.get("WINNOW_STORM_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
    storm.say(f"WINNOW_STORM_SEED={seed}")
    plan = plans.make(boundaries, seed)
    storm.say(str(plans.kinds(plan.shots)))
    async with Crew(spawn, storm_ground.environment(), SERVICES) as crew:
        planned = storm.blows(crew, own_postgres, own_broker, kills=kills, rng=random.Random(seed))
        try:
            poison = await storm.rage(plan, storm_ground.settings, storm_ground.asyncpg_url, planned, deadline_s=deadline_s)
        except BaseException:
            storm.say(crew.tails())
            raise
        storm.say(f"ended by themselves and started again: {crew.deaths}")
    left = verdict.Aftermath(
        plan=plan,
        poison=poison,
        committed=await read_all(storm_ground.settings, COMMITTED),
        letters=await read_all(storm_ground.settings, DEAD_LETTER),
    )
    connection = await asyncpg.connect(storm_ground.asyncpg_url)
    try:
        found = await verdict.findings(connection, left)
        assert not found, "\n".join([f"seed {seed}", *found, crew.tails()])
        await sees_what_is_wrong(connection, left)
    finally:
        await connection.close()


async def sees_what_is_wrong(connection: asyncpg.Connection, left: verdict.Aftermath) -> None:
    """Spoil what is left, one thing at a time: a verdict that finds nothing then says nothing about the storm either."""
    backwards = replace(left, committed=left.committed[::-1])
    assert any("runs out of order" in finding for finding in await verdict.findings(connection, backwards))
    judged = next(record for record in left.committed if b'"outcome":"judged"' in record.value)
    first = replace(judged, value=judged.value.replace(b'"late":false', b'"late":true'))
    changed = replace(left, committed=[first, *left.committed])
    assert any("differing committed bodies" in finding for finding in await verdict.findings(connection, changed))
    silent = replace(left, letters=left.letters[:0])
    assert any("that the topic does not have" in finding for finding in await verdict.findings(connection, silent))
    await connection.execute("DELETE FROM dead_letters WHERE id = (SELECT min(id) FROM dead_letters)")
    await connection.execute("DELETE FROM decisions WHERE boundary_id = (SELECT min(boundary_id::text)::uuid FROM boundaries)")
    await connection.execute("UPDATE boundaries SET parent_boundary_id = NULL")
    found = await verdict.findings(connection, left)
    for what in ("without a dead letter", "another number of decisions", "another parent"):
        assert any(what in finding for finding in found), what
