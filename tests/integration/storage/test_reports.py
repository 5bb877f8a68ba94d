"""What is reported: runtime events, judge calls, alerts, API keys, boundaries that are stuck."""

import uuid
from datetime import timedelta
from decimal import Decimal

import pytest

from tests.integration.storage.builders import candidate, evidence, scores, stored, told
from winnow.contracts.access import Role
from winnow.contracts.errors import NotFound, Permanent
from winnow.contracts.events import Alert, RuntimeEvent
from winnow.contracts.vocabulary import Adopted, AlertKind, RuntimeEventKind
from winnow.storage import alerts, api_keys, erase, fleets, judge_calls, raw, runs, runtime_events, stages, stuck
from winnow.storage.keys import Key
from winnow.storage.originals import Kind


def _event(fleet, now, kind=RuntimeEventKind.ADOPTED, **more) -> RuntimeEvent:
    return RuntimeEvent(fleet=fleet, event_id=uuid.uuid4(), run="run-1", kind=kind, at=now, **more)


async def test_runtime_events_are_stored_once(db, fleet, now):
    """An event counts once by its id; what a runtime adopted may be reported before the boundary is stored."""
    event = candidate(fleet)
    early = _event(fleet, now, boundary_id=event.boundary_id, adopted=Adopted.CANDIDATE)
    async with db.transaction() as tx:
        assert await runtime_events.store(tx, [early, early], now=now) == {early.event_id}
        assert await runtime_events.store(tx, [early], now=now) == set()
    await stored(db, event, now)
    late = _event(fleet, now + timedelta(seconds=1), boundary_id=event.boundary_id, adopted=Adopted.COMMITTED)
    async with db.transaction() as tx:
        assert await runtime_events.adopted(tx, [Key(fleet, event.boundary_id)]) == {Key(fleet, event.boundary_id): Adopted.CANDIDATE}
        await runtime_events.store(tx, [late], now=now)
        rows = await raw.fetch(tx, "SELECT adopted, adopted_at FROM boundary_history WHERE fleet = $1", fleet)
    assert [(r["adopted"], r["adopted_at"]) for r in rows] == [("committed", late.at)]


async def test_ended_runs_and_recoveries(db, fleet, now):
    """`run_ended` ends the run, `recovered` is a recovery of what its handle names."""
    whole = await told(db, candidate(fleet), now)
    ended = _event(fleet, now + timedelta(hours=1), RuntimeEventKind.RUN_ENDED)
    recovered = _event(fleet, now, RuntimeEventKind.RECOVERED, handle=whole.handles[Kind.HISTORY], because="a\x00b")
    async with db.transaction() as tx:
        await runtime_events.store(tx, [recovered, ended], now=now)
        (run,) = (await runs.page(tx, fleet)).runs
        rows = await raw.fetch(tx, "SELECT kind, boundary_id, via FROM recoveries WHERE fleet = $1", fleet)
    assert (run.ended_at, run.boundaries) == (ended.at, 1)
    assert [(r["kind"], r["boundary_id"], r["via"]) for r in rows] == [("history", whole.boundary.boundary_id, "runtime")]


async def test_judge_calls(db, fleet, now):
    """A call is visible before it ends and complete afterwards; a crash in between stays visible."""
    boundary = await stored(db, candidate(fleet), now)
    intents = [
        judge_calls.Intent(
            call_id=uuid.uuid4(), fleet=fleet, boundary_id=boundary.boundary_id, boundary_at=boundary.boundary_at, judge="jev",
            judge_version="2", started_at=now,
        )
        for _ in range(3)
    ]  # fmt: skip
    ends = [
        judge_calls.Finished(
            call_id=i.call_id, fleet=fleet, boundary_id=i.boundary_id, boundary_at=i.boundary_at, finished_at=now, latency_ms=12.5,
            model="m", requests=2, input_tokens=1000, output_tokens=10, cost_usd=Decimal("0.000123"), error=e,
        )
        for i, e in zip(intents, (None, "429 from the provider", None), strict=True)
    ]  # fmt: skip
    async with db.transaction() as tx:
        await judge_calls.start(tx, intents[:2])
        await judge_calls.record(tx, [(intents[2], ends[2])])
        await judge_calls.finish(tx, ends[:1])
    async with db.transaction() as tx:
        rows = await raw.fetch(
            tx, "SELECT calls, failed, unfinished, input_tokens, cost_usd FROM judge_cost_daily WHERE fleet = $1 ORDER BY calls", fleet
        )
        assert [tuple(r) for r in rows] == [(1, 0, 1, None, None), (2, 0, 0, 2000, Decimal("0.000246"))]
        await judge_calls.finish(tx, ends[1:2])
        rows = await raw.fetch(tx, "SELECT calls, failed, unfinished FROM judge_cost_daily WHERE fleet = $1", fleet)
    assert [tuple(r) for r in rows] == [(3, 1, 0)]


async def test_alerts(db, fleet, now):
    """An alert is stored once and comes back as it was told."""
    one = Alert(
        fleet=fleet, alert_id=uuid.uuid4(), kind=AlertKind.RAISED, at=now, stream="harm", log_evidence=3.2, change_window=(10, 20),
        because="harm doubled", done="held the fleet",
    )  # fmt: skip
    two = Alert(fleet=fleet, alert_id=uuid.uuid4(), kind=AlertKind.RELEASED, at=now + timedelta(hours=1), because="mended", done="released")
    async with db.transaction() as tx:
        assert await alerts.add(tx, [one, two]) == {one.alert_id, two.alert_id}
        assert await alerts.add(tx, [one]) == set()
        assert await alerts.page(tx, fleet) == [two, one]
        assert await alerts.page(tx, fleet, before=two.at) == [one]


async def test_alerts_of_one_moment_are_paged(db, fleet, now):
    """Pages that end between alerts of one moment leave none out and repeat none."""
    stored = [
        Alert(fleet=fleet, alert_id=uuid.uuid4(), kind=AlertKind.RAISED, at=now - timedelta(hours=n % 2), because="harm", done="held")
        for n in range(7)
    ]
    seen: list[Alert] = []
    async with db.transaction() as tx:
        await alerts.add(tx, stored)
        while len(seen) <= len(stored):
            last = {"before": seen[-1].at, "behind": seen[-1].alert_id} if seen else {}
            found = await alerts.page(tx, fleet, limit=2, **last)
            seen += found
            if len(found) < 2:
                break
        assert seen == await alerts.page(tx, fleet)
    assert sorted(a.alert_id for a in seen) == sorted(a.alert_id for a in stored)


async def test_api_keys(db, fleet, now):
    """A key works until it is revoked; the database has only its hash; it works in the gateway's role before a fleet is known."""
    async with db.transaction() as tx:
        secret, key = await api_keys.create(tx, fleet, name="ci\x00", by="ops", now=now)
        assert secret.startswith("wnw_")
        assert len(secret) == 47
        everything = await raw.fetch(tx, "SELECT k::text AS row FROM api_keys k UNION ALL SELECT a::text FROM audit_log a")
    assert not any(secret[4:] in r["row"] for r in everything)
    async with db.fleet_transaction("") as tx:
        assert (await api_keys.verify(tx, secret, now=now)) == key
        for wrong in (secret[:-1], secret + "x", "wnw_" + "A" * 43, "", "\x00", "ключ"):
            assert await api_keys.verify(tx, wrong, now=now) is None
    async with db.transaction() as tx:
        assert [k.last_used_at for k in await api_keys.listed(tx, fleet)] == [now]
        await api_keys.verify(tx, secret, now=now + timedelta(seconds=59))
        assert [k.last_used_at for k in await api_keys.listed(tx, fleet)] == [now]
        assert (await api_keys.revoke(tx, key.key_id, by="ops", now=now)).revoked_at == now
        assert (await api_keys.revoke(tx, key.key_id, by="ops", now=now + timedelta(hours=1))).revoked_at == now
        assert await api_keys.verify(tx, secret, now=now) is None
        with pytest.raises(NotFound):
            await api_keys.revoke(tx, uuid.uuid4(), by="ops", now=now)
        with pytest.raises(NotFound):
            await api_keys.create(tx, "nobody", name="x", by="ops", now=now)
        with pytest.raises(Permanent, match="runtime, grader, auditor, operator"):
            await api_keys.create(tx, fleet, name="x", role="root", by="ops", now=now)


async def test_keys_expire(db, fleet, now):
    """A key works until it expires, and none is made that has expired already."""
    until = now + timedelta(hours=1)
    async with db.transaction() as tx:
        secret, key = await api_keys.create(tx, fleet, name="x", expires_at=until, by="ops", now=now)
        assert await api_keys.verify(tx, secret, now=until - timedelta(seconds=1))
        assert await api_keys.verify(tx, secret, now=until) is None
        assert (key.alive(now), key.alive(until)) == (True, False)
        with pytest.raises(Permanent, match="expired already"):
            await api_keys.create(tx, fleet, name="x", expires_at=now, by="ops", now=now)


async def test_keys_rotate_with_an_overlap(db, fleet, now):
    """A new key may do what the old one may; both work until the overlap is over, which never gives the old one more time."""
    async with db.transaction() as tx:
        old, key = await api_keys.create(tx, fleet, name="ci", role=Role.OPERATOR, by="ops", now=now)
        new, made = await api_keys.rotate(tx, key.key_id, overlap=timedelta(hours=2), by="ops", now=now)
        assert (made.replaces, made.name, made.role, made.fleets) == (key.key_id, "ci", Role.OPERATOR, (fleet,))
        at = now + timedelta(hours=1)
        assert {(await api_keys.verify(tx, secret, now=at)).key_id for secret in (old, new)} == {key.key_id, made.key_id}
        await api_keys.rotate(tx, key.key_id, overlap=timedelta(days=9), by="ops", now=now)
        at = now + timedelta(hours=2)
        assert await api_keys.verify(tx, old, now=at) is None
        assert await api_keys.verify(tx, new, now=at)
        with pytest.raises(api_keys.DeadKey):
            await api_keys.rotate(tx, key.key_id, overlap=timedelta(hours=2), by="ops", now=at)


async def test_keys_of_several_fleets(db, fleet, now):
    """Keys of auditors and operators cover several fleets, those of programs one; an erased fleet is covered by no key."""
    other, third = f"{fleet}-b", f"{fleet}-c"
    async with db.transaction() as tx:
        await fleets.ensure(tx, [other, third], default=fleets.Point(), now=now)
        secret, key = await api_keys.create(tx, fleet, also=[other, fleet, other, third], name="x", role="auditor", by="ops", now=now)
        assert key.fleets == (fleet, other, third)
        assert (await api_keys.verify(tx, secret, now=now)).fleets == key.fleets
        assert [k.key_id for k in await api_keys.listed(tx, other)] == [key.key_id]
        for role in (Role.RUNTIME, Role.GRADER):
            with pytest.raises(Permanent, match="one fleet"):
                await api_keys.create(tx, fleet, also=[other], name="x", role=role, by="ops", now=now)
        with pytest.raises(NotFound):
            await api_keys.create(tx, fleet, also=["nobody"], name="x", role="auditor", by="ops", now=now)
        await erase.erase_fleet(tx, other, by="ops", now=now)
        assert (await api_keys.verify(tx, secret, now=now)).fleets == (fleet, third)


async def test_stuck_boundaries(db, fleet, now):
    """A boundary that waits too long in a stage is found with the answer to publish again, ever more rarely; a finished one is not."""
    past = now - timedelta(minutes=10)
    waits = {stage: await stored(db, candidate(fleet, index=i), past) for i, stage in enumerate(("retriever", "judge", "pruner"), 1)}
    await told(db, candidate(fleet, index=9), past)
    async with db.transaction() as tx:
        await raw.execute(tx, "DELETE FROM boundaries WHERE fleet <> $1 AND committed_at IS NULL", fleet)
        await stages.store_evidence(tx, [evidence(waits["judge"]), evidence(waits["pruner"])], now=past)
        await stages.store_scores(tx, [scores(waits["pruner"])], now=past)
    minute = timedelta(minutes=1)
    async with db.transaction() as tx:
        assert await stuck.find(tx, older_than=timedelta(hours=1), now=now) == []
        found = {s.boundary.boundary_id: s for s in await stuck.find(tx, older_than=minute, now=now)}
        async with db.transaction() as other:
            assert await stuck.find(other, older_than=minute, now=now) == []
    assert set(found) == {b.boundary_id for b in waits.values()}
    assert found[waits["retriever"].boundary_id].republish is None
    assert found[waits["judge"].boundary_id].republish.output == evidence(waits["judge"]).output
    assert found[waits["pruner"].boundary_id].republish.output == scores(waits["pruner"]).output
    assert {s.sweeps for s in found.values()} == {1}
    async with db.transaction() as tx:
        assert await stuck.find(tx, older_than=minute, now=now + 1.5 * minute) == []
        assert len(await stuck.find(tx, older_than=minute, now=now + 3 * minute)) == 3
        assert await stuck.find(tx, older_than=minute, now=now + 6 * minute) == []
        assert len(await stuck.find(tx, older_than=minute, now=now + 8 * minute)) == 3
