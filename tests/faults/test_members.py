"""Members of a group come, go, and take too long."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from services.retriever.handlers import RetrieverHandler
from tests.benchmarks.boundaries import Factory
from tests.faults.ground import Ground
from tests.faults.stages import acknowledged, all_committed, committed, letters, one_body_each, publish, running
from tests.harness.waiting import eventually
from winnow.contracts.events import Candidate
from winnow.messaging.records import Handled, Received

#: Seconds that the slow handler takes, and milliseconds that a batch may take.
SLOW_S, MAX_POLL_MS = 4.0, 1_500


async def test_second_member_joins_under_load(ground: Ground) -> None:
    """A second member of every stage joins and leaves under load, and nothing is lost, changed or out of order."""
    runs = list(Factory.load(fleet="members").runs(60, length=3))
    thirds = [[run[index] for run in runs] for index in range(3)]
    samples = [sample for third in thirds for sample in third]
    async with running(ground):
        await publish(ground, *thirds[0])
        async with running(ground) as second:
            await publish(ground, *thirds[1])
            await eventually(second.joined, what="the second member is in its groups")
            await all_committed(ground, *thirds[0])
        await publish(ground, *thirds[2])
        await all_committed(ground, *samples)
        await acknowledged(ground)
    one_body_each(await committed(ground), *samples)
    assert await letters(ground) == []


async def test_handler_beyond_max_poll(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that outlives its poll interval runs twice, in two members, and has one effect."""
    samples = [sample for run in Factory.load(fleet="slow").runs(6, length=2) for sample in run]
    impatient = replace_settings(ground, max_poll_interval_ms=MAX_POLL_MS)
    handle, calls = RetrieverHandler.handle, 0

    async def slowly(self: RetrieverHandler, batch: Sequence[Received[Candidate]]) -> Handled:
        nonlocal calls
        calls += 1
        if calls == 1:
            await asyncio.sleep(SLOW_S)
        return await handle(self, batch)

    monkeypatch.setattr(RetrieverHandler, "handle", slowly)
    await publish(ground, *samples)
    async with running(impatient), running(impatient):
        await all_committed(ground, *samples)
        await acknowledged(ground)
    assert calls > 1
    one_body_each(await committed(ground), *samples)
    assert await letters(ground) == []


def replace_settings(ground: Ground, **changes: int) -> Ground:
    """Return the same ground with other settings."""
    return replace(ground, settings=ground.settings.model_copy(update=changes))
