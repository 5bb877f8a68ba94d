"""The fold: each unit once, in sampling order, under the terms of its epoch."""

import random

import pytest

from tests.integration.monitor.playing import Player
from winnow.assurance import monitor, state
from winnow.assurance.ledger import Fate
from winnow.storage import folding, observations, raw, replay, streams, watched
from winnow.storage.policy import Policy


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


async def test_new_units_fold_as_stored_ones(player):
    """Units that are folded before they are written come to the same ledger, keys and state as units that were stored first."""
    rng = random.Random(7)
    events = []
    for n in range(60):
        grade = {"loss": float(rng.random() < 0.2), "grader": "rule 2" if n >= 40 else "rule 1"}
        match rng.randrange(5):
            case 0:  # sampled, and graded later
                events += [(n, player.event(f"u{n}")), (n + rng.uniform(0, 9), player.event(f"u{n}", sampled=False, **grade))]
            case 1:  # the grade comes first, in the same batch or an earlier one
                events += [(n - rng.uniform(0, 9), player.event(f"u{n}", sampled=False, **grade)), (n, player.event(f"u{n}"))]
            case 2:  # never graded
                events.append((n, player.event(f"u{n}")))
            case _:
                events += [(n, player.event(f"u{n}", **grade)), (n + 0.5, player.event(f"u{n}", loss=1.0))]
    ordered = [event for _, event in sorted(events, key=lambda e: e[0])]
    batches = [ordered[i : i + 7] for i in range(0, len(ordered), 7)]
    player.policy = Policy(limit=5)  # some streams are behind by more than one transaction takes
    ledgers = []
    for stream in ("stored", "taken"):
        player.stream = stream
        async with player.db.transaction() as tx:  # no alarm: it would come at the level of the stream's own place
            await streams.register(tx, player.fleet, stream, config={"alpha": 0.9}, weight=None, now=player.clock())
        for batch in batches:
            named = [event.model_copy(update={"stream": stream}) for event in batch]
            if stream == "taken":
                await player.send(named)
            else:
                async with player.db.transaction() as tx:
                    stored = await observations.put(tx, named, now=player.clock())
                    await folding.fold(tx, stored.streams, player.policy, now=player.clock())
        player.clock.passes(seconds=601)
        while (await player.tick()).fates.total():
            pass
        row = await player.state()
        units = await player.rows(
            "SELECT seq, unit, probability, sampled_at, loss, lo, grader, graded_at, grade_stored_at IS NULL AS ungraded, fate, epoch,"
            " decided_at IS NULL AS undecided FROM observations WHERE fleet = $1 AND stream = $2 ORDER BY seq",
            player.fleet, stream,
        )  # fmt: skip
        keys = await player.rows(
            "SELECT unit, seq, early_grade FROM observation_keys WHERE fleet = $1 AND stream = $2 ORDER BY unit", player.fleet, stream
        )
        counts = (row.epoch, row.last_seq, row.folded, row.missing, row.refused, row.log_evidence)
        ledgers.append((counts, [tuple(r) for r in units], [tuple(r) for r in keys]))
        async with player.db.transaction() as tx:
            assert (await replay.replay(tx, player.key, now=player.clock())).identical
        player.clock.passes(seconds=-601)
    assert ledgers[0] == ledgers[1]
    assert ledgers[0][0][:2] == (2, 60)
    assert ledgers[0][0][3] > 3


async def test_units_are_found_by_the_key(player):
    """What is known of a unit is found by the key of its name even on a table without statistics, never by reading its stream."""
    async with player.db.transaction() as tx:
        # Which index, is the question; of a table that autovacuum has just found empty the planner would read the one page.
        await raw.execute(tx, "SET LOCAL enable_seqscan = off")
        plan = await raw.fetch(
            tx, "EXPLAIN SELECT seq FROM observation_keys WHERE fleet = $1 AND stream = $2 AND unit = $3", player.fleet, "harm", "u1"
        )
    assert any("observation_keys_pkey" in r[0] for r in plan), plan


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
