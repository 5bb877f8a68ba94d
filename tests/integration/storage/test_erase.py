"""Erasure and retention: what is asked to be forgotten is gone, and nothing else."""

# ruff: noqa: S608  the names of tables and views are this module's own

import dataclasses
import json
import secrets
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from tests.integration.storage.builders import candidate, stored, told
from winnow.contracts.errors import Gone
from winnow.contracts.events import Graded, Observation, RuntimeEvent, Sampled
from winnow.contracts.vocabulary import Reason, RuntimeEventKind
from winnow.storage import dead_letters, erase, fleets, observations, originals, outbox, raw, retention, runtime_events, stages
from winnow.storage.dead_letters import NewDeadLetter
from winnow.storage.keys import Stage
from winnow.storage.originals import Content, Kind, NewHandle

SECRET = "swordfish"


async def _dump(db) -> str:
    """Everything that the database holds, as text, large and compressed values decoded."""
    import zlib

    texts = []
    async with db.transaction() as tx:
        tables = await raw.fetch(
            tx, "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition"
        )
        for table in tables:
            for row in await raw.fetch(tx, f"SELECT * FROM {table['relname']}"):
                for value in row.values():
                    if isinstance(value, bytes):
                        texts.append(value.decode("utf-8", "replace"))
                        try:
                            texts.append(zlib.decompress(value).decode("utf-8", "replace"))
                        except zlib.error:
                            continue
                    else:
                        texts.append(value if isinstance(value, str) else json.dumps(value, default=str))
    return "\n".join(texts)


async def _populate(db, fleet: str, run: str, now, secret: str):
    """A run whose secret is in every kind of row."""
    event = candidate(
        fleet, run=run, texts=[f"- {secret} ordered", f"- will call {secret}"], task=f"find {secret}", previous_summary=f"- {secret} before"
    )
    whole = await told(db, event, now)
    runtime = RuntimeEvent(
        fleet=fleet,
        event_id=uuid.uuid4(),
        run=run,
        kind=RuntimeEventKind.RECOVERED,
        at=now,
        handle=whole.handles[Kind.CANDIDATE],
        because=secret,
    )
    unit = Observation(
        fleet=fleet, event_id=uuid.uuid4(), stream="harm", unit=run, boundary_id=event.boundary_id,
        sampled=Sampled(probability=1, at=now), graded=Graded(loss=0.5, grader="rule", at=now),
    )  # fmt: skip
    letter = NewDeadLetter(
        topic="t", partition=0, offset=secrets.randbits(40), key=b"x", value=secret.encode(), headers=(), reason=Reason.INVALID,
        error="bad", service="judge", fleet=fleet, run=run,
    )  # fmt: skip
    unread = dataclasses.replace(letter, offset=secrets.randbits(40), fleet=None, run=None, key=f"{fleet}/{run}".encode())
    message = outbox.NewMessage(
        fleet=fleet, topic="t", key=f"{fleet}/{run}", body=secret.encode(), event_id=uuid.uuid4(), headers={}, run=run
    )
    claim = Content.of(fleet, f"claimed {secret}")
    loose = originals.new_handle()
    async with db.transaction() as tx:
        await runtime_events.store(tx, [runtime], now=now)
        await observations.store(tx, [unit], now=now)
        await dead_letters.add(tx, [letter, unread], now=now)
        await outbox.add(tx, [message])
        await originals.put(tx, [claim])
        await originals.put_handles(
            tx,
            [
                NewHandle(handle=originals.new_handle(), fleet=fleet, sha256=claim.sha256, kind=Kind.EVENT, boundary_id=event.boundary_id),
                NewHandle(handle=loose, fleet=fleet, sha256=whole.boundary.history_sha256, kind=Kind.HISTORY),
            ],
        )
    return whole, loose


async def test_erasing_a_run(db, fleet, now):
    """Nothing of an erased run is left in the database; its handles are gone; another run keeps everything, shared originals too."""
    secret, other = f"{SECRET}-{uuid.uuid4().hex}", f"herring-{uuid.uuid4().hex}"
    whole, loose = await _populate(db, fleet, f"run of {secret}", now, secret)
    shared = Content.of(fleet, whole.candidate.task.replace(secret, "nothing"))
    twin, _ = await _populate(db, fleet, "another", now, other)
    assert secret in await _dump(db)
    async with db.transaction() as tx:
        await originals.put(tx, [shared])
        erased = await erase.erase_run(tx, fleet, f"run of {secret}", by="ops", now=now)
    dump = await _dump(db)
    assert secret not in dump
    assert other in dump
    assert (erased.boundaries, erased.handles, erased.dead_letters, erased.outbox, erased.runtime_events, erased.observations) == (
        1,
        4,
        2,
        1,
        1,
        1,
    )
    assert erased.originals == 6
    async with db.transaction() as tx:
        for handle in (*whole.handles.values(), loose):
            with pytest.raises(Gone):
                await originals.resolve(tx, fleet, handle, now=now)
        assert (await originals.resolve(tx, fleet, twin.handles[Kind.CANDIDATE], now=now)).data == twin.candidate.candidate.encode()
        assert [(o.loss, o.unit.startswith("erased-")) for o in await observations.units(tx, fleet, "harm")] == [(0.5, True), (0.5, False)]
        assert (await erase.erase_run(tx, fleet, "never seen", by="ops", now=now)).boundaries == 0


async def test_shared_originals_stay(db, fleet, now):
    """An original that another run refers to stays when one of them is erased, and goes with the last."""
    one = await stored(db, candidate(fleet, run="one", task="shared"), now)
    await stored(db, candidate(fleet, run="two", task="shared"), now)
    key = Content.of(fleet, "shared").key
    async with db.transaction() as tx:
        await erase.erase_run(tx, fleet, "one", by="ops", now=now)
        assert await originals.get(tx, [key]) == {key: b"shared"}
        assert not await originals.get(tx, [Content(fleet=fleet, sha256=one.history_sha256, data=b"").key])
        await erase.erase_run(tx, fleet, "two", by="ops", now=now)
        assert await originals.get(tx, [key]) == {}


async def test_erasing_a_fleet(db, fleet, now):
    """An erased fleet leaves its name, its operating points and its audit rows; another fleet keeps everything."""
    secret = f"{SECRET}-{uuid.uuid4().hex}"
    other = f"fleet-{uuid.uuid4().hex[:12]}"
    async with db.transaction() as tx:
        await fleets.ensure(tx, [other], default=fleets.Point(), now=now)
    whole, _ = await _populate(db, fleet, f"run {secret}", now, secret)
    twin, _ = await _populate(db, other, "run", now, "mackerel")
    async with db.transaction() as tx:
        erased = await erase.erase_fleet(tx, fleet, by="ops", now=now)
    assert erased.boundaries == 1
    assert secret not in await _dump(db)
    async with db.transaction() as tx:
        with pytest.raises(Gone):
            await originals.resolve(tx, fleet, whole.handles[Kind.HISTORY], now=now)
        assert (await originals.resolve(tx, other, twin.handles[Kind.CANDIDATE], now=now)).data
        assert fleet in await fleets.load(tx, [fleet])
        assert [r["action"] for r in await raw.fetch(tx, "SELECT action FROM audit_log WHERE fleet = $1", fleet)] == ["erase.fleet"]


async def test_retention(db, fleet, now):
    """Months that are over are dropped with their boundaries, originals and events; what is younger stays; handles answer gone."""
    old_at, new_at = datetime(2026, 1, 15, tzinfo=UTC), datetime(2026, 6, 15, tzinfo=UTC)
    old = await told(db, candidate(fleet, run="old", boundary_at=old_at, texts=["- old fact", "- old plan"]), old_at)
    new = await told(db, candidate(fleet, run="new", index=2, boundary_at=new_at), new_at)
    async with db.transaction() as tx:
        await raw.execute(tx, "UPDATE originals SET touched_at = $1 WHERE fleet = $2", old_at, fleet)
        await raw.execute(
            tx, "UPDATE handles SET created_at = $1 WHERE fleet = $2 AND boundary_id = $3", old_at, fleet, old.boundary.boundary_id
        )
        kept = await retention.apply(tx, retention.Policy(history=timedelta(days=90)), now=datetime(2026, 6, 20, tzinfo=UTC))
    assert "entries_2026_01" in kept.partitions
    assert "stage_outputs_2026_01" in kept.partitions
    assert not any(p.endswith("_2026_06") for p in kept.partitions)
    assert (kept.boundaries, kept.handles) == (1, 2)
    assert kept.originals == 4
    async with db.transaction() as tx:
        with pytest.raises(Gone):
            await originals.resolve(tx, fleet, old.handles[Kind.CANDIDATE], now=now)
        assert (await originals.resolve(tx, fleet, new.handles[Kind.CANDIDATE], now=now)).data == new.candidate.candidate.encode()
        assert set(await stages.load_outputs(tx, [old.boundary.key, new.boundary.key], Stage.COMMITTED)) == {new.boundary.key}
    # A boundary of a dropped month makes it anew.
    again = await told(db, candidate(fleet, run="old", boundary_at=old_at), old_at)
    assert again.boundary.committed_at is not None
