"""A process dies at the worst moment."""

import asyncio
import signal
import sys

import pytest

from tests.benchmarks.boundaries import Factory, Sample
from tests.faults.ground import Ground
from tests.faults.stages import PATIENCE_S, STAGES, acknowledged, all_committed, committed, letters, one_body_each, publish, rows, running
from tests.faults.wire import read_all
from tests.harness.processes import Spawner
from winnow.contracts.topics import COMMITTED, EVIDENCE, SCORES
from winnow.embedded import Capability

OUTPUT = {"retriever": ("evidence", EVIDENCE), "judge": ("scores", SCORES), "pruner": ("committed", COMMITTED)}


@pytest.fixture
def samples(request: pytest.FixtureRequest) -> list[Sample]:
    """Two runs of two boundaries in a fleet of this test's own."""
    factory = Factory.load(fleet=f"crash{abs(hash(request.node.name)) % 10**8}")
    return [sample for number in range(2) for sample in factory.run(number, length=2)]


@pytest.mark.needs(Capability.PERSISTENCE)
@pytest.mark.parametrize(
    ("stage", "moment"),
    [
        ("retriever", "before"),
        ("pruner", "before"),
        pytest.param("judge", "before", marks=pytest.mark.long),
        pytest.param("pruner", "after", marks=pytest.mark.long),
        pytest.param("retriever", "after", marks=pytest.mark.long),
        pytest.param("judge", "after", marks=pytest.mark.long),
    ],
)
async def test_crash_around_publication(stage: str, moment: str, ground: Ground, samples: list[Sample], spawn: Spawner) -> None:
    """A stage that dies between commit and publication, or before its acknowledgement, loses nothing and answers the same again."""
    ahead = STAGES[: STAGES.index(stage)]
    await publish(ground, *samples)
    doomed = spawn.command([sys.executable, "-m", "tests.faults.crashing", stage, moment], env=ground.environment(), label=stage)
    if ahead:
        async with running(ground, *ahead):
            assert await asyncio.to_thread(doomed.wait, PATIENCE_S) == -signal.SIGKILL
    else:
        assert await asyncio.to_thread(doomed.wait, PATIENCE_S) == -signal.SIGKILL
    name, topic = OUTPUT[stage]
    stored = await rows(ground, "SELECT boundary_id FROM stage_outputs WHERE fleet = $1 AND stage = $2", samples[0].event.fleet, name)
    published = await read_all(ground.settings, topic)
    assert stored, "it died too early: nothing was committed"
    assert bool(published) == (moment == "after")
    async with running(ground):
        await all_committed(ground, *samples)
        await acknowledged(ground)
    one_body_each(await committed(ground), *samples)
    assert await letters(ground) == []
