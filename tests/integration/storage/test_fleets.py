"""Fleets: operating points are append-only, holds are read under a lock, no readable state never means free."""

import asyncio
import uuid
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.harness.pipeline import Stages, candidate
from tests.harness.waiting import eventually
from winnow.contracts.errors import NotFound
from winnow.contracts.vocabulary import Mode
from winnow.judging.local import LocalJudge
from winnow.storage import bindings, boundaries, certificates, fleets, glance, inspection, raw
from winnow.storage.fleets import Point
from winnow.storage.keys import Key

STALE = timedelta(seconds=30)


async def _gate(db, fleet, now):
    async with db.transaction() as tx:
        return (await fleets.gate(tx, [fleet], now=now, stale_after=STALE))[fleet]


async def _shown_as_certified(db, fleet, now) -> bool:
    """What the console and the doctor say, which is one thing."""
    async with db.transaction() as tx:
        waiting = await glance.waiting(tx, fleet, since=now, now=now, alive_since=now)
        backlog = await inspection.backlog(tx, stuck_after=STALE)
    assert waiting is not None
    assert waiting.certified.because == dict(backlog.uncertified).get(fleet)
    return waiting.certified.because is None


async def test_ensure_is_once(db, now):
    """Concurrent first sights of a fleet make one row with one operating point; later defaults change nothing."""
    name = f"fleet-{uuid.uuid4().hex[:12]}"

    async def ensure(tau: float) -> fleets.Fleet:
        async with db.transaction() as tx:
            return (await fleets.ensure(tx, [name], default=Point(tau=tau), now=now))[name]

    found = await asyncio.gather(*(ensure(t) for t in (0.1, 0.2, 0.3, 0.4)))
    assert len({f.operating_point for f in found}) == 1
    assert (await ensure(0.9)).operating_point == found[0].operating_point


async def test_points_follow_each_other(db, fleet, now):
    """A new operating point is current from then on; the old one is still found by its number; both are in the audit log's reach."""
    async with db.transaction() as tx:
        old = (await fleets.load(tx, [fleet]))[fleet].operating_point
        new = await fleets.set_point(tx, fleet, Point(mode=Mode.SHADOW, tau=0.25), by="ops", because="trial", now=now)
        assert (await fleets.load(tx, [fleet]))[fleet].operating_point == new
        assert await fleets.points(tx, [old.id, new.id, 10**12]) == {old.id: old, new.id: new}
        rows = await raw.fetch(tx, "SELECT action, actor, because, details FROM audit_log WHERE fleet = $1", fleet)
    assert [(r["action"], r["actor"], r["because"], r["details"]["tau"]) for r in rows] == [("fleet.point", "ops", "trial", 0.25)]


@pytest.mark.parametrize("table", ["operating_points", "audit_log"])
@pytest.mark.parametrize("change", ["UPDATE {} SET fleet = fleet", "DELETE FROM {}", "TRUNCATE {} CASCADE"])
async def test_append_only(db, fleet, now, table, change):
    """Operating points and audit rows cannot be changed, deleted or truncated, not even by the owner."""
    with pytest.raises(Exception, match="append-only"):
        async with db.transaction() as tx:
            await raw.execute(tx, change.format(table))


@pytest.mark.parametrize("tau", [-0.1, 1.1, float("nan")])
async def test_tau_is_a_share(db, fleet, now, tau):
    """A threshold outside 0 to 1 is refused by the database."""
    from winnow.storage.database import data_error

    with pytest.raises(Exception, match="operating_points_tau") as caught:
        async with db.transaction() as tx:
            await fleets.set_point(tx, fleet, Point(tau=tau), by="ops", because=None, now=now)
    assert data_error(caught.value)


async def test_hold_and_release(db, fleet, now):
    """A hold closes the gate with its first reason until it is released; each change is in the audit log once."""
    assert not (await _gate(db, fleet, now)).held
    async with db.transaction() as tx:
        assert await fleets.hold(tx, fleet, by="monitor", because="harm doubled", now=now, alert_id=uuid.uuid4())
        assert not await fleets.hold(tx, fleet, by="ops", because="another", now=now)
    gate = await _gate(db, fleet, now)
    assert (gate.held, gate.because) == (True, "harm doubled")
    async with db.transaction() as tx:
        assert await fleets.release(tx, fleet, by="ops", because="mended", now=now)
        assert not await fleets.release(tx, fleet, by="ops", because="again", now=now)
        rows = await raw.fetch(tx, "SELECT action FROM audit_log WHERE fleet = $1 ORDER BY id", fleet)
    assert [r["action"] for r in rows] == ["fleet.hold", "fleet.release"]
    assert not (await _gate(db, fleet, now)).held


async def test_unknown_fleets(db, now):
    """An unknown fleet is held; changing it says that there is none."""
    gate = await _gate(db, "nobody", now)
    assert (gate.held, gate.because) == (True, "the fleet is unknown")
    async with db.transaction() as tx:
        with pytest.raises(NotFound, match="nobody"):
            await fleets.hold(tx, "nobody", by="x", because="y", now=now)


async def test_a_hold_waits_for_the_pruner(db, fleet, now):
    """While a pruner's transaction has read the gate, a hold waits for it; so nothing is committed as free after the hold."""
    held = asyncio.Event()

    async def hold() -> None:
        async with db.transaction() as tx:
            await fleets.hold(tx, fleet, by="monitor", because="harm", now=now)
        held.set()

    async with db.transaction() as tx:
        assert not (await fleets.gate(tx, [fleet], now=now, stale_after=STALE))[fleet].held
        task = asyncio.create_task(hold())
        waiting = "SELECT count(*) AS n FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%FOR NO KEY UPDATE%'"

        async def waits() -> bool:
            async with db.transaction() as other:  # a new one each time: activity is looked at once a transaction
                return (await raw.fetch(other, waiting))[0]["n"] > 0

        await eventually(waits, 10)
        assert not held.is_set()
    await asyncio.wait_for(task, 10)
    assert (await _gate(db, fleet, now)).held


async def test_required_certificates(db, fleet, now):
    """Where a certificate is required, only one for this judge and threshold that is neither expired nor revoked opens the gate."""
    point = Point(require_certificate=True)
    async with db.transaction() as tx:
        await fleets.set_point(tx, fleet, point, by="ops", because=None, now=now)
    gate = await _gate(db, fleet, now)
    assert (gate.held, gate.because) == (True, "no valid certificate for this judge and threshold")

    def certificate(**more) -> certificates.Certificate:
        given = {
            "certificate_id": uuid.uuid4(), "fleet": fleet, "compressor": "m", "judge": "local", "judge_version": "1", "tau": 0.5,
            "grader": "g", "data_sha256": "0" * 64, "method": "exact binomial (fixed-n)", "alpha": 0.05, "delta": 0.05, "n": 100,
            "losses": 1.0, "denominator": "all tasks", "bound": 0.047, "record": {"p": [0.01]}, "issued_at": now - timedelta(hours=1),
            "expires_at": now + timedelta(days=1), **more,
        }  # fmt: skip
        return certificates.Certificate(**given)

    another = {"record": {"certificate": {"operating_point": "1000000"}}}
    early, late = {"issued_at": now + timedelta(minutes=1)}, {"expires_at": now - timedelta(minutes=1)}
    for wrong in ({"judge": "jev"}, {"tau": 0.4}, early, late, another):
        async with db.transaction() as tx:
            await certificates.issue(tx, certificate(**wrong), by="ops")
        assert (await _gate(db, fleet, now)).held, wrong
        assert not await _shown_as_certified(db, fleet, now), wrong
    async with db.transaction() as tx:
        current = (await fleets.load(tx, [fleet]))[fleet].operating_point.id
    valid = certificate(record={"certificate": {"operating_point": str(current)}})
    async with db.transaction() as tx:
        await certificates.issue(tx, valid, by="ops")
    assert not (await _gate(db, fleet, now)).held
    assert await _shown_as_certified(db, fleet, now)
    async with db.transaction() as tx:
        assert valid in await certificates.listed(tx, fleet)
        assert valid.certificate_id in await certificates.revoke(tx, fleet, by="monitor", because="alarm", now=now)
        assert await certificates.revoke(tx, fleet, by="monitor", because="alarm", now=now) == []
    assert (await _gate(db, fleet, now)).held


async def test_watched_fleets(db, fleet, now):
    """Where a live monitor is demanded, a missing or stale heartbeat closes the gate and a fresh one opens it."""
    async with db.transaction() as tx:
        await raw.execute(tx, "DELETE FROM monitor_heartbeats")
        await fleets.set_point(tx, fleet, Point(hold_if_monitor_stale=True), by="ops", because=None, now=now)
    assert (await _gate(db, fleet, now)).because == "the drift monitor gives no sign of life"
    async with db.transaction() as tx:
        await fleets.heartbeat(tx, "m1", now=now - timedelta(seconds=31))
        await fleets.heartbeat(tx, "m1", now=now - timedelta(seconds=40))
    assert (await _gate(db, fleet, now)).held
    async with db.transaction() as tx:
        await fleets.heartbeat(tx, "m2", now=now - timedelta(seconds=29))
    assert not (await _gate(db, fleet, now)).held


@pytest.mark.parametrize("wrong", ["judge_version", "compressor"])
async def test_the_console_the_doctor_and_the_pruner_say_the_same(db, fleet, now, wrong):
    """A certificate for another judge version or compressor than the last boundary's covers none of the three, in the same words."""
    stages = Stages(db, judge=LocalJudge())
    first = await stages.one(candidate("## Decisions\n- HAT136 costs $152\n", fleet=fleet, compressor="gpt:5"))
    async with db.transaction() as tx:
        point = await fleets.set_point(tx, fleet, Point(require_certificate=True), by="ops", because=None, now=now)
        boundary = (await boundaries.load(tx, [Key(fleet, first.boundary_id)]))[Key(fleet, first.boundary_id)]
        bound = {"judge_version": boundary.judge_version, "compressor": "gpt 5"} | {wrong: "another"}
        certificate = certificates.Certificate(
            certificate_id=uuid.uuid4(), fleet=fleet, judge="local", tau=0.5, grader="g", data_sha256="0" * 64, method="exact (fixed-n)",
            alpha=0.05, delta=0.05, n=100, losses=1.0, denominator="all", bound=0.047, issued_at=now - timedelta(hours=1),
            record={"certificate": {"operating_point": str(point.id)}}, expires_at=now + timedelta(days=1), **bound,
        )  # fmt: skip
        await certificates.issue(tx, certificate, by="ops")
    assert await _shown_as_certified(db, fleet, now), "nothing is known yet of what this operating point serves"
    assert not (await _gate(db, fleet, now)).held
    second = await stages.one(candidate("## Decisions\n- HAT136 costs $152\n", fleet=fleet, run="second", compressor="gpt:5"))
    async with db.transaction() as tx:
        key = Key(fleet, second.boundary_id)
        held = (await boundaries.load(tx, [key]))[key]
        (standing,) = await bindings.standings(tx, [fleet], now=now)
    assert (held.held, held.held_because) == (True, f"no valid certificate for this {wrong.replace('_', ' ')}")
    assert (standing.because, standing.until, standing.required) == (held.held_because, None, True)
    assert not await _shown_as_certified(db, fleet, now)


SERVED = bindings.Served(judge="local", judge_version="3", tau=0.5, operating_point=7, compressor="gpt:5 mini")
BINDING = bindings.Binding(judge="local", judge_version="3", tau=0.5, operating_point="7", compressor="gpt 5 mini")
ANYTHING = replace(BINDING, judge_version=bindings.NOT_STATED, operating_point=None, compressor=bindings.NOT_STATED)


@pytest.mark.parametrize(
    ("bindings", "served", "because"),
    [
        ([BINDING], SERVED, None),
        ([ANYTHING], replace(SERVED, judge_version="4", operating_point=8, compressor=None), None),
        ([BINDING], replace(SERVED, judge_version="4"), "judge version"),
        ([BINDING], replace(SERVED, judge="jev"), "judge"),
        ([BINDING], replace(SERVED, operating_point=8), "operating point"),
        ([BINDING], replace(SERVED, compressor="gpt 6"), "compressor"),
        ([BINDING], replace(SERVED, compressor=None), "compressor"),
        ([BINDING], replace(SERVED, tau=0.4, operating_point=8), "threshold and operating point"),
        ([BINDING, replace(BINDING, compressor="gpt 6")], replace(SERVED, compressor="gpt 6"), None),
        ([replace(BINDING, judge="jev", tau=0.1), BINDING], replace(SERVED, judge_version="4"), "judge version"),
        ([], SERVED, "judge and threshold"),
    ],
)
def test_a_certificate_covers_what_it_names(bindings, served, because):
    """A boundary is certified where one certificate agrees in everything that it names; else the gate says in what none does."""
    gate = fleets.Gate(fleet="f", held=False, because=None, certificates=tuple(bindings)).serving(served)
    assert (gate.held, gate.because) == (because is not None, because and f"no valid certificate for this {because}")
    assert not fleets.Gate(fleet="f", held=False, because=None).serving(served).held
    assert fleets.Gate(fleet="f", held=True, because="drift", certificates=(ANYTHING,)).serving(served).because == "drift"
