"""A resubmission on the other side of midnight."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from services.judge.handlers import JudgeHandler
from services.pruner.handlers import PrunerHandler
from services.retriever.handlers import RetrieverHandler
from tests.benchmarks.boundaries import Factory
from tests.faults.ground import Ground
from tests.faults.stages import acknowledged, all_committed, committed, letters, one_body_each, publish, rows
from winnow.contracts.vocabulary import Mode
from winnow.judging.local import LocalJudge
from winnow.messaging.bus import Bus
from winnow.storage.adapters import bus_for
from winnow.storage.database import Database
from winnow.storage.fleets import Point
from winnow.telemetry import Telemetry

NOVEMBER = datetime(2026, 11, 30, 23, 59, 59, 900_000, tzinfo=UTC)
DECEMBER = datetime(2026, 12, 1, 0, 0, 1, tzinfo=UTC)
#: Age of a heartbeat that would hold the fleet, if it asked for one.
STALE_AFTER = timedelta(minutes=1)
CHILDREN = ("entries", "evidence_passages", "entry_evidence", "scores", "decisions", "stage_outputs")


@asynccontextmanager
async def stages_at(ground: Ground, now: datetime) -> AsyncIterator[None]:
    """Run the three stages by a clock that stands still."""

    def clock() -> datetime:
        return now

    telemetry = {name: Telemetry.plain(name) for name in ("retriever", "judge", "pruner")}
    point = Point(mode=Mode.ENFORCE, tau=0.5, judge="local")
    wire: dict[str, Callable[[Database, Bus], object]] = {
        "retriever": lambda db, bus: bus.subscribe(RetrieverHandler(db, default_point=point, clock=clock)),
        "judge": lambda db, bus: bus.subscribe(
            JudgeHandler(db, {"local": LocalJudge()}, fallback="local", clock=clock, telemetry=telemetry["judge"])
        ),
        "pruner": lambda db, bus: bus.subscribe(
            PrunerHandler(db, clock=clock, monitor_stale_after=STALE_AFTER, telemetry=telemetry["pruner"])
        ),
    }
    async with Database(ground.database_url) as database:
        buses = [await bus_for(database, ground.settings, telemetry[name], clock) for name in wire]
        try:
            for bus, subscribe in zip(buses, wire.values(), strict=True):
                subscribe(database, bus)
                await bus.start()
            yield
        finally:
            for bus in buses:
                await bus.stop()


async def test_copy_across_the_end_of_a_month(ground: Ground) -> None:
    """A boundary that comes again in the next month is the same boundary: one row, children of one month, one body."""
    [sample] = Factory.load(fleet="midnight").run(0, length=1)
    await publish(ground, sample)
    async with stages_at(ground, NOVEMBER):
        await all_committed(ground, sample)
        await acknowledged(ground)
    await publish(ground, sample)
    async with stages_at(ground, DECEMBER):
        await acknowledged(ground)
    [row] = await rows(ground, "SELECT boundary_at, committed_at FROM boundaries WHERE fleet = 'midnight'")
    assert row["boundary_at"] == row["committed_at"] == NOVEMBER
    for table in CHILDREN:
        times = await rows(ground, f"SELECT DISTINCT boundary_at FROM {table} WHERE fleet = 'midnight'")  # noqa: S608  a name from above
        assert [r["boundary_at"] for r in times] == [NOVEMBER], table
    bodies = await committed(ground)
    one_body_each(bodies, sample)
    assert [len(copies) for copies in bodies.values()] == [2]
    assert await letters(ground) == []
