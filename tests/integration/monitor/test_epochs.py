"""Epochs: whatever changes what a loss means begins another one; what comes from before it is counted and not folded."""

import pytest

from tests.integration.monitor.playing import Player
from tests.integration.storage import builders
from winnow.assurance.ledger import Fate
from winnow.assurance.terms import Budgets
from winnow.contracts.vocabulary import AlertKind
from winnow.storage import fleets, folding, replay, streams, watched
from winnow.storage.fleets import Point
from winnow.storage.policy import Policy


@pytest.fixture
def player(db, fleet, clock) -> Player:
    return Player(db, fleet, clock)


async def _epochs(player, stream="harm"):
    return await player.rows("SELECT * FROM monitor_epochs WHERE fleet = $1 AND stream = $2 ORDER BY epoch", player.fleet, stream)


async def _identical(player, stream="harm") -> bool:
    async with player.db.transaction() as tx:
        return (await replay.replay(tx, player.key._replace(stream=stream), now=player.clock())).identical


async def test_another_grader(player):
    """Another grader begins an epoch; what the one before still grades is refused, and the epoch after it is not disturbed."""
    await player.play([0.0, 0.0])
    await player.play([0.0], grader="rule 2")
    await player.play([1.0])
    await player.play([0.0], grader="rule 2")
    assert await player.fates() == ["folded", "folded", "folded", "refused", "folded"]
    first, second = await _epochs(player)
    assert (second["from_seq"], second["because"]) == (3, "grader rule 2 follows rule 1")
    assert first["signature"]["grader"] == "rule 1"
    row = await player.state()
    assert (row.epoch, row.refused, row.folded) == (2, 1, 4)
    assert await _identical(player)


async def test_another_operating_point(player):
    """A unit of a newer operating point begins an epoch; one whose boundary was judged under the older is refused."""
    now = player.clock()
    boundaries = []
    for run in "ab":
        event = builders.candidate(player.fleet, run=run)
        async with player.db.transaction() as tx:
            point = (await fleets.load(tx, [player.fleet]))[player.fleet].operating_point.id
        await builders.told(player.db, event, now)
        await player.rows("UPDATE boundaries SET operating_point = $2 WHERE boundary_id = $1", event.boundary_id, point)
        boundaries.append(event.boundary_id)
        async with player.db.transaction() as tx:
            await fleets.set_point(tx, player.fleet, Point(tau=0.4), by="ops", because=None, now=now)
    old, new = boundaries
    for boundary in (old, old, new, old, new):
        await player.play([0.0], boundary_id=boundary)
    assert await player.fates() == ["folded", "folded", "folded", "refused", "folded"]
    assert [e["from_seq"] for e in await _epochs(player)] == [1, 3]
    player.stream = "unjudged"
    for boundary in (old, new):
        await player.play([0.0], boundary_id=boundary, grader="anybody")
    assert len(await _epochs(player, "unjudged")) == 2


async def test_another_configuration(player):
    """A stream that is set anew begins an epoch with its next unit; what was left out stays as it was."""
    await player.play([0.0] * 3)
    async with player.db.transaction() as tx:
        await streams.register(tx, player.fleet, "harm", config={"alpha": 0.2, "missing": "skip"}, weight=None, now=player.clock())
    await player.play([0.0])
    first, second = await _epochs(player)
    assert (first["config"]["alpha"], second["config"]["alpha"], second["missing"]) == (0.05, 0.2, "skip")
    assert (second["because"], second["config"]["method"]) == ("the configuration was changed", first["config"]["method"])
    await player.play([0.0])
    assert len(await _epochs(player)) == 2
    assert await _identical(player)


async def test_later_defaults_are_for_new_streams(player):
    """What the settings say counts for streams that come later: one that runs goes on as it began."""
    await player.play([0.0])
    player.policy = Policy(budgets=Budgets(risk_alpha=0.2, delta=0.5, watermark_s=1))
    await player.play([0.0])
    assert len(await _epochs(player)) == 1
    player.stream = "other"
    await player.play([0.0])
    assert (await _epochs(player, "other"))[0]["config"]["alpha"] == 0.2


async def test_a_horizon(player):
    """A stream with a horizon begins an epoch after it, with a share of the error budget of its own."""
    async with player.db.transaction() as tx:
        await streams.register(tx, player.fleet, "harm", config={"mode": "horizon", "horizon": 4}, weight=None, now=player.clock())
    await player.play([0.0] * 10)
    assert [e["from_seq"] for e in await _epochs(player)] == [1, 5, 9]
    assert "horizon" in (await _epochs(player))[1]["because"]
    assert await _identical(player)


async def test_what_a_stream_did_not_declare(player):
    """A loss of another range, or a unit drawn more rarely than declared, is refused and counted."""
    await player.play([0.0, 1.0])
    await player.play([-0.5], lo=-1.0)
    await player.play([0.0], p=0.5)
    assert await player.fates() == ["folded", "folded", "refused", "refused"]


async def test_paired_losses(player):
    """A stream whose first unit is a paired difference is watched as one."""
    await player.play([-1.0, 0.0, 1.0], lo=-1.0)
    assert (await _epochs(player))[0]["config"]["lo"] == -1.0
    assert await player.fates() == ["folded"] * 3


async def test_probabilities(player):
    """Units are weighed by how often they are drawn, against the rarest that the stream declared."""
    async with player.db.transaction() as tx:
        await streams.register(tx, player.fleet, "harm", config={"min_probability": 0.1}, weight=None, now=player.clock())
    await player.play([1.0], p=0.1)
    rare = (await player.state()).log_evidence
    player.stream = "often"
    async with player.db.transaction() as tx:
        await streams.register(tx, player.fleet, "often", config={"min_probability": 0.1}, weight=None, now=player.clock())
    await player.play([1.0], p=1.0)
    assert 0 < (await player.state()).log_evidence < rare


async def test_missing_grades_alarm(player):
    """Grades that stop coming raise an alarm of their own, whatever becomes of the losses."""
    async with player.db.transaction() as tx:
        await streams.register(tx, player.fleet, "harm", config={"missing": "skip"}, weight=None, now=player.clock())
    await player.play([0.0] * 10)
    await player.send([player.event(f"silent{i}") for i in range(40)])
    player.clock.passes(seconds=601)
    report = await player.tick()
    assert report.fates[Fate.MISSING] == 40
    assert [(a.stream, a.kind) for a in report.alerts] == [("missing:harm", AlertKind.RAISED), ("missing:harm", AlertKind.HELD)]
    assert (await player.state()).status == "ok"
    assert await _identical(player)
    assert await _identical(player, "missing:harm")


async def test_timers(player):
    """A stream whose first unit waits has a timer; one that nothing waits for has none, and others' locks are passed by."""
    await player.send([player.event("a")])

    async def due():
        async with player.db.transaction() as tx:
            return [k for k in await folding.due(tx, limit=1_000, now=player.clock()) if k.fleet == player.fleet]

    assert await due() == []
    player.clock.passes(seconds=601)
    assert await due() == [player.key]
    async with player.db.transaction() as tx:
        await watched.lock(tx, [player.key])
        assert await due() == []
    await player.tick()
    assert await due() == []
    assert await player.fates() == ["missing"]


async def test_a_configuration_that_cannot_run(player):
    """A stream whose registered numbers make no monitor holds its fleet and says which number; it is never watched by a guess."""
    async with player.db.transaction() as tx:
        await streams.register(tx, player.fleet, "harm", config={"alpha": 0.1, "method": "nobody's"}, weight=None, now=player.clock())
    report = await player.play([0.0])
    assert [a.kind for a in report.alerts] == [AlertKind.RAISED, AlertKind.HELD]
    assert "method" in report.alerts[0].because
    assert await player.fates() == [None]
    assert (await player.play([0.0])).alerts == []


async def test_two_names_of_one_family(player):
    """Each stream keeps the place in its family that it had first; another fleet's streams have places of their own."""
    for name in ("b", "a", "recovery"):
        player.stream = name
        await player.play([0.0])
    rows = await player.rows("SELECT stream, family, position FROM streams WHERE fleet = $1 ORDER BY family, position", player.fleet)
    assert [(r["family"], r["position"]) for r in rows if r["stream"] in {"a", "b"}] == [("risk", 1), ("risk", 2)]
    labels = {r["stream"]: r["position"] for r in rows if r["family"] == "label_free"}
    assert set(labels) == {"missing:a", "missing:b", "recovery"}
    assert sorted(labels.values()) == [1, 2, 3]
