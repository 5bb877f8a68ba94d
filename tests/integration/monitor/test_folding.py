"""The fold: each unit once, in sampling order, under the terms of its epoch."""

import pytest

from tests.integration.monitor.playing import Player
from winnow.assurance import monitor, state
from winnow.assurance.ledger import Fate
from winnow.storage import replay, watched


@pytest.fixture
def player(db, fleet, clock) -> Player:
    return Player(db, fleet, clock)


async def test_a_first_unit_opens_an_epoch(player):
    """The first unit that is graded gives the stream a place in its family, settles its configuration, and is folded."""
    report = await player.play([0.0, 1.0, 0.0])
    assert report.fates[Fate.FOLDED] == 3
    assert await player.fates() == ["folded"] * 3
    row = await player.state()
    assert (row.epoch, row.last_seq, row.folded, row.status, row.due_at) == (1, 3, 3, "ok", None)
    (stream,) = await player.rows("SELECT * FROM streams WHERE fleet = $1 AND stream = 'harm'", player.fleet)
    assert (stream["family"], stream["position"], stream["weight"]) == ("risk", 1, 0.5)
    assert stream["config"]["alpha"] == 0.05
    (epoch,) = await player.rows("SELECT * FROM monitor_epochs WHERE fleet = $1 AND stream = 'harm'", player.fleet)
    assert (epoch["from_seq"], epoch["signature"]["grader"], epoch["because"]) == (1, "rule 1", "first unit")
    async with player.db.transaction() as tx:
        found = (await watched.load(tx, [player.key]))[player.key]
        again = await replay.replay(tx, player.key, now=player.clock())
    expected = monitor.fold(found.watched.epoch.config, monitor.initial(found.watched.epoch.config), [0.0, 1.0, 0.0])
    assert row.state == state.dump(expected, stream=f"{player.fleet}/harm", epoch=1)
    assert again.identical


async def test_order_of_sampling(player):
    """Grades that come in another order than the samples are folded in the order of the samples, behind the one that waits."""
    await player.send([player.event(u) for u in "abc"])
    assert (await player.send([player.event("b", loss=1.0, sampled=False)])).fates[Fate.FOLDED] == 0
    report = await player.send([player.event("a", loss=0.0, sampled=False)])
    assert report.fates[Fate.FOLDED] == 2
    assert await player.fates() == ["folded", "folded", None]


async def test_missing_grades(player):
    """A grade that does not come in time is counted and folded as a loss of 1; when it comes after all it is late, and nothing changes."""
    await player.send([player.event("a")])
    await player.play([0.0, 0.0])
    assert await player.fates() == [None, None, None]
    player.clock.passes(seconds=599)
    assert (await player.tick()).fates[Fate.MISSING] == 0
    player.clock.passes(seconds=2)
    report = await player.tick()
    assert (report.fates[Fate.MISSING], report.fates[Fate.FOLDED]) == (1, 2)
    before = await player.state()
    await player.send([player.event("a", loss=0.0, sampled=False)])
    after = await player.state()
    assert (after.state, after.late, after.missing) == (before.state, 1, 1)
    assert await player.fates() == ["late", "folded", "folded"]
    beside = await player.state("missing:harm")
    assert (beside.last_seq, beside.folded) == (3, 3)
    async with player.db.transaction() as tx:
        for name in ("harm", "missing:harm"):
            assert (await replay.replay(tx, player.key._replace(stream=name), now=player.clock())).identical
