"""Runs: what is heard of them keeps them open, their end or silence closes them, and a coin picks what they say."""

import random
import uuid
from datetime import timedelta

import pytest

from services.drift_monitor.handlers import CommittedHandler, Patience, RuntimeHandler
from services.drift_monitor.loops import Closer
from services.drift_monitor.telling import Teller
from tests.harness.pipeline import ScriptedJudge, Stages, candidate
from tests.integration.monitor.playing import Player
from winnow.contracts.events import JudgeId, RuntimeEvent
from winnow.contracts.vocabulary import Adopted, AlertKind, Mode, Reason, RuntimeEventKind
from winnow.storage import fleets, folding, originals, thresholds, watching
from winnow.storage.alarms import Acting
from winnow.storage.keys import StreamKey
from winnow.storage.policy import Policy
from winnow.storage.thresholds import Limits
from winnow.telemetry import Telemetry

TEXT = "## A\n- HAT136 costs $152\n- a guess\n"
PATIENCE = Patience(idle=timedelta(hours=1), settle=timedelta(minutes=1))


class Coin(random.Random):
    """Always falls as it is told."""

    falls = 0.0

    def random(self) -> float:
        return self.falls


class House:
    """The monitor's handlers and closer, and the stages before them."""

    def __init__(self, db, fleet, clock) -> None:
        self.telemetry = Telemetry.plain("drift_monitor")
        tell = Teller(self.telemetry)
        point, policy = fleets.Point(), Policy()
        self.coin = Coin()
        self.judge = ScriptedJudge({"guess": 0.1})
        self.judge.id = JudgeId(name="local", version="1")
        self.stages = Stages(db, judge=self.judge, now=clock)
        self.runtime = RuntimeHandler(db, default_point=point, patience=PATIENCE, clock=clock, tell=tell)
        self.committed = CommittedHandler(db, policy=policy, limits=Limits(loop_boundaries=5), patience=PATIENCE, clock=clock, tell=tell)
        self.closer = Closer(db, policy, clock, tell, self.coin)
        self.player = Player(db, fleet, clock)
        self.fleet, self.clock = fleet, clock

    async def boundary(self, run, index=1, **more):
        """One boundary through all stages and the monitor."""
        made = candidate(TEXT, fleet=self.fleet, run=run, index=index, **more)
        committed = await self.stages.one(made)
        record = self.stages.received("committed", self.committed.model, committed.key, committed.model_dump_json().encode())
        for _ in range(2):  # at least once is how it comes
            await self.committed.handle([record])
        return committed

    async def told(self, run, kind, **more):
        """One runtime event, twice."""
        event = RuntimeEvent(fleet=self.fleet, event_id=uuid.uuid4(), run=run, kind=kind, at=self.clock(), **more)
        record = self.stages.received("runtime", RuntimeEvent, event.key, event.model_dump_json().encode())
        for _ in range(2):
            await self.runtime.handle([record])

    async def closed(self):
        """Close what is due; the runs of this fleet that were ever closed."""
        while await self.closer.step():
            pass
        return {r["run"]: r for r in await self.player.rows("SELECT * FROM run_units WHERE fleet = $1", self.fleet)}

    async def values(self, stream):
        rows = await self.player.rows(
            "SELECT unit, loss, fate FROM observations WHERE fleet = $1 AND stream = $2 ORDER BY seq", self.fleet, stream
        )
        return [(r["unit"], r["loss"], r["fate"]) for r in rows]


@pytest.fixture
def house(db, fleet, clock) -> House:
    return House(db, fleet, clock)


async def test_another_event_under_a_taken_id_is_a_dead_letter(house):
    """An adoption under the id of another one is not dropped in silence, in one batch or later; a repetition is none."""
    first = RuntimeEvent(
        fleet=house.fleet, event_id=uuid.uuid4(), run="r", kind=RuntimeEventKind.ADOPTED, at=house.clock(), boundary_id=uuid.uuid4(),
        adopted="candidate",
    )  # fmt: skip
    other = first.model_copy(update={"adopted": Adopted.COMMITTED})
    batch = [house.stages.received("runtime", RuntimeEvent, e.key, e.model_dump_json().encode()) for e in (first, other)]
    assert len({house.runtime.identity(received.event) for received in batch}) == 2
    for records in (batch, batch[1:], batch):
        handled = await house.runtime.handle(records)
        assert [(dead.record, dead.reason) for dead in handled.dead] == [(batch[1].record, Reason.ID_CONFLICT)]
    rows = await house.player.rows("SELECT adopted FROM runtime_events WHERE fleet = $1", house.fleet)
    assert [r["adopted"] for r in rows] == ["candidate"]
    assert house.telemetry.metrics.value("winnow_runtime_events_total", kind="adopted") == 1


async def test_a_run_that_ends(house):
    """A run is closed a moment after its end and becomes one unit of each stream that it says something of, folded at once."""
    await house.boundary("r")
    await house.told("r", RuntimeEventKind.RUN_ENDED)
    house.clock.passes(seconds=59)
    assert await house.closed() == {}
    house.clock.passes(seconds=2)
    row = (await house.closed())["r"]
    assert (row["because"], row["boundaries"], row["probability"], row["unjudged"], row["fallback"]) == ("run_ended", 1, 1.0, False, False)
    assert row["recovered"] is None
    assert await house.values("unjudged") == [("r", 0.0, "folded")]
    assert await house.values("fallback") == [("r", 0.0, "folded")]
    assert await house.values("recovery") == []
    (view,) = await house.player.rows("SELECT recovery FROM run_outcomes WHERE fleet = $1", house.fleet)
    assert view["recovery"] == "not_observable"
    assert house.telemetry.metrics.value("winnow_runs_closed_total", because="run_ended") == 1


async def test_silence_closes(house):
    """A run of which nothing is heard is closed after the idle time; what is heard meanwhile begins it again."""
    await house.boundary("r")
    house.clock.passes(minutes=50)
    await house.boundary("r", 2)
    house.clock.passes(minutes=50)
    assert await house.closed() == {}
    house.clock.passes(minutes=11)
    row = (await house.closed())["r"]
    assert (row["because"], row["boundaries"], row["probability"]) == ("idle", 2, 0.5)


async def test_the_coin(house):
    """The coin picks the boundary, in the order of their time, and is written down."""
    first = await house.boundary("r")
    house.judge.fails = True
    house.clock.passes(seconds=5)
    second = await house.boundary("r", 2)
    await house.told("r", RuntimeEventKind.RUN_ENDED)
    house.clock.passes(minutes=2)
    house.coin.falls = 0.75
    row = (await house.closed())["r"]
    assert (str(row["boundary_id"]), row["coin"]) == (str(second.boundary_id), 0.75)
    assert row["unjudged"]
    assert await house.values("unjudged") == [("r", 1.0, "folded")]
    assert first.boundary_id != second.boundary_id


async def test_a_closed_run_is_a_unit_once(house):
    """A run that is heard of again after it was closed is closed again without another unit."""
    await house.boundary("r")
    await house.told("r", RuntimeEventKind.RUN_ENDED)
    house.clock.passes(minutes=2)
    before = (await house.closed())["r"]["closed_at"]
    await house.boundary("r", 2)
    house.clock.passes(hours=2)
    assert (await house.closed())["r"]["closed_at"] == before
    assert len(await house.values("unjudged")) == 1
    assert await house.player.rows("SELECT FROM open_runs WHERE fleet = $1", house.fleet) == []


@pytest.mark.parametrize("asks", [True, False])
async def test_recovery(house, asks):
    """Recovery is a unit where the runtime said that the agent can ask back: 1 where it asked back something of a boundary that pruned.

    That somebody looked at the original counts for nothing.
    """
    committed = await house.boundary("r")
    assert committed.pruned == 1
    async with house.stages.database.transaction() as tx:
        looked = await originals.resolve(tx, house.fleet, committed.candidate_handle, now=house.clock())
        await originals.record_recovery(tx, looked, via="gateway", now=house.clock())
    if asks:
        await house.told("r", RuntimeEventKind.RECOVERED, handle=committed.candidate_handle)
    await house.told("r", RuntimeEventKind.RUN_ENDED, recovery_tool=True)
    house.clock.passes(minutes=2)
    await house.closed()
    assert await house.values("recovery") == [("r", float(asks), "folded")]


async def test_bypassed_is_a_fallback(house):
    """A boundary that the runtime went past counts as fallback."""
    committed = await house.boundary("r")
    await house.told("r", RuntimeEventKind.BYPASSED, boundary_id=committed.boundary_id, because="timeout")
    await house.told("r", RuntimeEventKind.RUN_ENDED)
    house.clock.passes(minutes=2)
    await house.closed()
    assert await house.values("fallback") == [("r", 1.0, "folded")]


async def test_a_run_without_boundaries(house):
    """A run that never compacted is closed and says nothing."""
    await house.told("r", RuntimeEventKind.RUN_ENDED)
    house.clock.passes(minutes=2)
    row = (await house.closed())["r"]
    assert (row["boundaries"], row["boundary_id"]) == (0, None)
    assert await house.values("unjudged") == []


async def test_boundaries_are_counted_once(house):
    """A boundary that is delivered twice is counted once: in its fleet's activity and in the profile of its judge."""
    for index in (1, 2):
        await house.boundary("r", index)
    (active,) = await house.player.rows(
        "SELECT sum(boundaries) AS n, sum(not_judged) AS bad FROM fleet_activity WHERE fleet = $1", house.fleet
    )
    assert (active["n"], active["bad"]) == (2, 0)
    rows = await house.player.rows("SELECT * FROM prune_profiles WHERE fleet = $1 ORDER BY later", house.fleet)
    assert [(r["later"], r["learned_boundaries"], r["learned_rate"]) for r in rows] == [(False, 1, 0.5), (True, 1, 0.5)]


async def test_a_loop(house):
    """A run that compacts again and again within minutes is told of once, with the guarantee class none, and holds nothing."""
    for index in range(1, 7):
        await house.boundary("loop", index, mode=Mode.SHADOW)
    rows = await house.player.rows("SELECT kind, guarantee, because FROM alerts WHERE fleet = $1", house.fleet)
    assert [(r["kind"], r["guarantee"]) for r in rows] == [(AlertKind.RAISED, "none")]
    assert "loop" in rows[0]["because"]
    async with house.player.db.transaction() as tx:
        assert (await fleets.load(tx, [house.fleet]))[house.fleet].held_since is None


async def test_rate_and_silence(house):
    """Many more boundaries than usual, and none for longer than ever, are told of; what is usual is not."""
    start = watching.slot_of(house.clock())
    quiet = [(house.fleet, start - timedelta(minutes=10 * i), 10, 0) for i in range(2, 20)]

    async def active(rows):
        for row in rows:
            await house.player.rows("INSERT INTO fleet_activity (fleet, slot, boundaries, not_judged) VALUES ($1, $2, $3, $4)", *row)

    async def found(**passes):
        async with house.player.db.transaction() as tx:
            now = house.clock() + timedelta(**passes)
            return [f.identity[1] for f in await thresholds.look(tx, Limits(), Acting(), now=now) if f.fleet == house.fleet]

    await active(quiet)
    assert await found() == []
    await active([(house.fleet, start, 120, 0)])
    assert await found() == ["rate"]
    assert await found(hours=2) == []
    assert await found(hours=7) == ["silence"]


async def test_nobody_judges(house):
    """A row of boundaries that were not judged is told of."""
    house.judge.fails = True
    for index in range(1, 4):
        await house.boundary("r", index)
    async with house.player.db.transaction() as tx:
        for most, told in ((3, ["not_judged_in_row"]), (4, [])):
            found = await thresholds.look(tx, Limits(not_judged_in_row=most), Acting(), now=house.clock())
            assert [f.identity[1] for f in found if f.fleet == house.fleet] == told


async def test_fold_of_a_closed_run_needs_no_timer(house):
    """Nothing waits behind a unit that came with its value."""
    await house.boundary("r")
    await house.told("r", RuntimeEventKind.RUN_ENDED)
    house.clock.passes(minutes=2)
    await house.closed()
    async with house.player.db.transaction() as tx:
        keys = await folding.due(tx, limit=1_000, now=house.clock() + timedelta(days=1))
    assert StreamKey(house.fleet, "unjudged") not in keys
