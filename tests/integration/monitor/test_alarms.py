"""An alarm acts in the transaction that found it; only a release, by a person or by fresh evidence, ends it."""

import math
import random
import uuid
from datetime import timedelta

import pytest

from tests.harness.pipeline import ScriptedJudge, Stages, candidate
from tests.integration.monitor.playing import Player
from tests.integration.storage import builders
from winnow.assurance import intervals, monitor
from winnow.assurance.config import MonitorConfig
from winnow.assurance.terms import weight_of
from winnow.contracts.errors import NotFound
from winnow.contracts.events import Alert
from winnow.contracts.vocabulary import AlertKind, Decision, Guarantee, Mode
from winnow.storage import alarms, alerts, certificates, families, fleets, outbox, replay, streams
from winnow.storage.alarms import Acting
from winnow.storage.certificates import Certificate
from winnow.storage.policy import Policy, Recertify

ACTING = Acting(webhook=True)


@pytest.fixture
def player(db, fleet, clock) -> Player:
    return Player(db, fleet, clock, policy=Policy(acting=ACTING))


async def _release(player, because="looked at it"):
    async with player.db.transaction() as tx:
        return await alarms.release(tx, player.fleet, by="ops", because=because, webhook=False, now=player.clock.passes(seconds=1))


async def _held(player):
    async with player.db.transaction() as tx:
        return (await fleets.load(tx, [player.fleet]))[player.fleet]


def _certificate(fleet, now, **record) -> Certificate:
    return Certificate(
        certificate_id=uuid.uuid4(), fleet=fleet, compressor="c", judge="local", judge_version="1", tau=0.5, grader="rule 1",
        data_sha256="0" * 64, method="exact", alpha=0.1, delta=0.05, n=100, losses=3, denominator="all", bound=0.08, record=record,
        issued_at=now - timedelta(days=1), expires_at=now + timedelta(days=30),
    )  # fmt: skip


def _almost(config: MonitorConfig) -> list[float]:
    """Losses that bring a stream to a quarter of its own level and no further."""
    state, losses = monitor.initial(config), []
    while state.log_evidence < math.log(config.level / 4):
        state, losses = monitor.update(config, state, 0.2), [*losses, 0.2]
    assert state.alarm_at is None
    return losses


async def test_an_alarm_acts_at_once(player):
    """The transaction that folds the unit which alarms holds the fleet, revokes its certificates and writes event and delivery."""
    now = player.clock()
    resting, other = _certificate(player.fleet, now), _certificate(player.fleet, now, stream="another")
    async with player.db.transaction() as tx:
        for one in (resting, other):
            await certificates.issue(tx, one, by="ops")
    await player.play([0.0] * 50)
    report = await player.play([1.0] * 30)
    kinds = [a.kind for a in report.alerts]
    assert kinds == [AlertKind.RAISED, AlertKind.HELD, AlertKind.CERTIFICATE_REVOKED]
    raised = report.alerts[0]
    assert raised.guarantee is Guarantee.ANYTIME
    assert raised.change_window is not None
    assert raised.change_window[0] <= 51 <= raised.change_window[1]
    assert "held the fleet" in raised.done
    held = await _held(player)
    assert (held.held_by, held.held_because) == ("drift_monitor", raised.because)
    async with player.db.transaction() as tx:
        revoked = {c.certificate_id: c.revoked_at is not None for c in await certificates.listed(tx, player.fleet)}
        assert revoked == {resting.certificate_id: True, other.certificate_id: False}
        stored = await alerts.page(tx, player.fleet)
    assert {a.alert_id for a in stored} == {a.alert_id for a in report.alerts}
    rows = await player.rows("SELECT event_id, topic FROM outbox WHERE fleet = $1", player.fleet)
    assert {uuid.UUID(str(r["event_id"])) for r in rows} == {a.alert_id for a in report.alerts}
    deliveries = await player.rows("SELECT body FROM webhook_deliveries WHERE fleet = $1 ORDER BY delivery_id", player.fleet)
    assert Alert.model_validate_json(deliveries[0]["body"]) == raised
    (epoch,) = await player.rows("SELECT * FROM monitor_epochs WHERE fleet = $1 AND stream = 'harm'", player.fleet)
    assert (epoch["alarm_rule"], uuid.UUID(str(epoch["alert_id"]))) == ("own", raised.alert_id)
    assert epoch["alarm_evidence"] == pytest.approx(raised.log_evidence)


async def test_an_alert_says_how_much_was_seen(player):
    """Rates before and since the change come with intervals: exact ones of counts, wider ones of graded losses; neither is a guarantee."""
    async with player.db.transaction() as tx:
        await streams.register(tx, player.fleet, "harm", config={"binary": True, "alpha": 0.1}, weight=None, now=player.clock())
    for player.stream in ("harm", "graded"):
        await player.play([0.0] * 100)
        report = await player.play([1.0] * 30)
        (row,) = await player.rows("SELECT details FROM alerts WHERE alert_id = $1", report.alerts[0].alert_id)
        said = row["details"]["intervals"]
        assert (said["guarantee"], said["confidence"]) == ("none", 0.95)
        assert 0 == said["before"][0] < said["before"][1] < said["after"][0] < said["after"][1] == 1
        assert f"95% interval {said['after'][0]:.3g} to {said['after'][1]:.3g}" in report.alerts[0].because
        assert said["method"] == ("exact binomial" if player.stream == "harm" else "Hoeffding")
        if player.stream == "harm":
            units, n = row["details"]["units"], row["details"]["units"] - 100
            assert said["epoch"] == pytest.approx(intervals.exact(n, units, 0.95))


async def test_a_frozen_stream_tells_nothing_again(player):
    """After its alarm the state stays as it was, to the bit, however much is folded, and nothing is raised twice."""
    await player.play([1.0] * 40)
    before = await player.state()
    report = await player.play([1.0] * 40)
    after = await player.state()
    assert (after.state, after.status, after.last_seq) == (before.state, "alarm", 80)
    assert report.alerts == []
    async with player.db.transaction() as tx:
        assert (await replay.replay(tx, player.key, now=player.clock())).identical


async def test_the_next_boundary_obeys(player):
    """A boundary that is committed after the alarm is annotated and prunes nothing; the ones before it and after the release prune."""
    stages = Stages(player.db, judge=ScriptedJudge({"guess": 0.1}), now=player.clock)

    async def commit(index):
        made = candidate("## A\n- HAT136 costs $152\n- a guess\n", fleet=player.fleet, run="r", index=index)
        return await stages.one(made)

    first = await commit(1)
    assert (first.mode, first.pruned) == (Mode.ENFORCE, 1)
    await player.play([1.0] * 40)
    second = await commit(2)
    assert (second.mode, second.pruned, second.held) == (Mode.ANNOTATE, 0, True)
    assert any(d.decision is Decision.PRUNED for d in second.decisions)
    assert await _release(player)
    third = await commit(3)
    assert (third.mode, third.pruned, third.held) == (Mode.ENFORCE, 1, False)


async def test_a_release_begins_a_new_epoch(player):
    """A release is audited, tells, and gives every stream that alarmed a new epoch with a smaller share of the error budget."""
    await player.play([1.0] * 40)
    released = await _release(player)
    assert released.streams == ("harm",)
    row = await player.state()
    assert (row.epoch, row.last_seq, row.status) == (2, 40, "insufficient")
    await player.play([0.0] * 5)
    assert (await player.state()).status == "ok"
    shares = [
        r["error_share"]
        for r in await player.rows("SELECT * FROM monitor_epochs WHERE fleet = $1 AND stream = 'harm' ORDER BY epoch", player.fleet)
    ]
    assert shares[1] == pytest.approx(shares[0] / 4)
    audit = await player.rows("SELECT action, because FROM audit_log WHERE fleet = $1 AND action = 'fleet.release'", player.fleet)
    assert [r["because"] for r in audit] == ["looked at it"]
    assert not (await _release(player)).released
    with pytest.raises(NotFound):
        async with player.db.transaction() as tx:
            await alarms.release(tx, "nobody", by="ops", because="x", webhook=False, now=player.clock())


async def test_label_free_streams_may_only_tell(player):
    """Where the settings say so, an alarm of a stream that nobody grades is raised and holds nothing."""
    player.stream = "unjudged"
    player.policy = Policy(acting=Acting(hold_on_label_free=False))
    report = await player.play([1.0] * 40)
    assert [a.kind for a in report.alerts] == [AlertKind.RAISED]
    assert (await _held(player)).held_since is None


async def test_unreadable_state_holds(player):
    """A state that was altered is never started afresh: the fleet is held, the row is kept, and nothing is folded until it is repaired."""
    await player.play([0.0] * 18 + [1.0] * 2)
    good = await player.state()
    await player.rows(
        "UPDATE monitor_states SET state = replace(state, '\"n\":20', '\"n\":19') WHERE fleet = $1 AND stream = 'harm'", player.fleet
    )
    spoilt = (await player.state()).state
    assert spoilt != good.state
    report = await player.play([0.0])
    assert [a.kind for a in report.alerts] == [AlertKind.RAISED, AlertKind.HELD]
    assert "checksum" in report.alerts[0].because
    row = await player.state()
    assert (row.state, row.status, row.last_seq) == (spoilt, "held", 20)
    assert (await player.play([0.0])).alerts == []
    async with player.db.transaction() as tx:
        came = await replay.replay(tx, player.key, now=player.clock(), repair=True)
    assert not came.identical
    assert (await player.state()).state == good.state
    await player.tick()
    assert (await player.state()).last_seq == 22


async def test_a_release_gives_an_unreadable_state_up(player):
    """Releasing a fleet whose state cannot be read opens a new epoch, and what stood there goes to the audit log."""
    await player.play([0.0] * 3)
    await player.rows("UPDATE monitor_states SET state = '\u2603' WHERE fleet = $1 AND stream = 'harm'", player.fleet)
    await player.play([0.0])
    assert (await _release(player)).streams == ("harm",)
    (given_up,) = await player.rows("SELECT details FROM audit_log WHERE fleet = $1 AND action = 'stream.state_given_up'", player.fleet)
    assert given_up["details"]["state"] == "\u2603"
    await player.tick()
    row = await player.state()
    assert (row.epoch, row.last_seq, row.status) == (2, 4, "ok")


async def test_fresh_units_end_a_hold(player):
    """Where it is allowed, a hold ends when units after the alarm show that the risk is below the margin, and not before its time."""
    player.policy = Policy(acting=Acting(), recertify=Recertify(margin=0.8, delta=0.05))
    await player.play([1.0] * 40)
    await player.play([0.0] * 60)
    assert (await player.state()).status == "alarm"
    await player.play([0.0] * 400)
    assert (await player.state()).status == "recovered"
    hour = timedelta(hours=1)

    async def ready():
        async with player.db.transaction() as tx:
            return [f for f in await families.recertified(tx, held_for=hour, now=player.clock()) if f == player.fleet]

    assert await ready() == []
    player.clock.passes(hours=1)
    assert await ready() == [player.fleet]
    await player.play([1.0])
    assert (await player.state()).status == "recovered"


async def test_no_hold_ends_on_what_is_still_bad(player):
    """Units that are no better than the budget do not end a hold."""
    player.policy = Policy(acting=Acting(), recertify=Recertify())
    await player.play([1.0] * 40)
    rng = random.Random(7)
    await player.play([float(rng.random() < 0.05) for _ in range(1_000)])
    assert (await player.state()).status == "alarm"


async def test_the_family_freezes_streams_together(player):
    """Streams that gained evidence together alarm at a shared level, frozen at what they had; the ledger replays it."""
    names = [f"s{i}" for i in range(8)]
    for place, name in enumerate(names, start=1):
        player.stream = name
        await player.play(_almost(MonitorConfig(alpha=0.05, delta=0.03, weight=weight_of(place, 1))))
    before = {n: await player.state(n) for n in names}
    assert all(s.status == "ok" for s in before.values())
    async with player.db.transaction() as tx:
        assert await families.lead(tx)
        told = await families.evaluate(tx, ACTING, fleet_delta=1e-6, now=player.clock())
    alarmed = {a.stream for a in told if a.kind is AlertKind.RAISED}
    assert alarmed == set(names)
    assert [a.kind for a in told].count(AlertKind.HELD) == 1
    for name in alarmed:
        row = await player.state(name)
        assert (row.status, row.log_evidence) == ("alarm", before[name].log_evidence)
        async with player.db.transaction() as tx:
            assert (await replay.replay(tx, player.key._replace(stream=name), now=player.clock())).identical
    rules = await player.rows("SELECT DISTINCT alarm_rule FROM monitor_epochs WHERE fleet = $1 AND alarm_at IS NOT NULL", player.fleet)
    assert [r["alarm_rule"] for r in rules] == ["e-bh"]


async def test_the_fleet_alarms_as_a_whole(player):
    """Evidence that no stream has alone holds the fleet; its release begins every stream anew, and the alarm does not come again."""
    names = [f"s{i}" for i in range(6)]
    for name in names:
        player.stream = name
        await player.play([1.0, 1.0, 1.0])
    async with player.db.transaction() as tx:
        assert await families.lead(tx)
        told = await families.evaluate(tx, ACTING, fleet_delta=0.5, now=player.clock())
    assert [(a.kind, a.stream) for a in told] == [(AlertKind.RAISED, None), (AlertKind.HELD, None)]
    assert len((await _release(player)).streams) >= len(names)
    async with player.db.transaction() as tx:
        assert await families.lead(tx)
        assert await families.evaluate(tx, ACTING, fleet_delta=0.5, now=player.clock()) == []


async def test_one_leads(db):
    """Families are looked at by one process at a time."""
    async with db.transaction() as one, db.transaction() as two:
        assert await families.lead(one)
        assert not await families.lead(two)


async def test_alerts_reach_the_outbox_in_order(player):
    """What was raised is on the way to the bus under the fleet's key."""
    await player.play([1.0] * 40)
    async with player.db.transaction() as tx:
        waiting = [m.message for m in await outbox.claim(tx, 10_000) if m.message.fleet == player.fleet]
    assert [Alert.model_validate_json(m.body).kind for m in waiting] == [AlertKind.RAISED, AlertKind.HELD]
    assert {m.key for m in waiting} == {player.fleet}


async def test_a_warning_holds_nothing(player):
    """The warn level of a stream is told of once, and nothing is held."""
    async with player.db.transaction() as tx:
        await streams.register(tx, player.fleet, "harm", config={"alpha": 0.3, "warn_alpha": 0.1}, weight=None, now=player.clock())
    await player.play([0.25] * 400)
    assert [a.kind for a in player.alerts] == [AlertKind.WARNED]
    assert (await player.state()).status == "warn"
    await player.play([0.25] * 10)
    assert len(player.alerts) == 1
    assert (await _held(player)).held_since is None


async def test_whose_losses_brought_the_evidence(player):
    """An alarm names the boundaries and agents whose units brought the evidence."""
    now, known = player.clock(), {}
    for agent in ("calm", "wild"):
        event = builders.candidate(player.fleet, run=agent, agent=agent)
        await builders.told(player.db, event, now)
        known[agent] = event.boundary_id
    for _ in range(15):
        await player.play([0.0], boundary_id=known["calm"])
        await player.play([1.0], boundary_id=known["wild"])
    raised = next(a for a in player.alerts if a.kind is AlertKind.RAISED)
    shares = {(s.group, s.value): s.share for s in raised.attribution}
    assert shares["agent", "wild"] > 1
    assert shares["agent", "calm"] < 0
