"""The outbox: written with its effects, claimed in order by one relay at a time, kept until it is sent."""

import asyncio
import secrets
import uuid
from datetime import timedelta

import pytest

from tests.harness.waiting import eventually
from tests.integration.storage.builders import candidate, stored, told
from winnow.contracts.topics import CANDIDATE
from winnow.storage import outbox, raw
from winnow.storage.adapters import OutboxTable
from winnow.storage.database import OUTBOX_CHANNEL
from winnow.storage.outbox import NewMessage


@pytest.fixture(autouse=True)
async def empty(db):
    async with db.transaction() as tx:
        await raw.execute(tx, "DELETE FROM outbox")


def _message(fleet: str, n: int = 0, **more) -> NewMessage:
    given = {
        "fleet": fleet, "topic": "winnow.runtime.v1", "key": f"{fleet}/run", "body": b"\x00 body %d" % n, "event_id": uuid.uuid4(),
        "headers": {"ce_id": "\x00 x"}, "run": "run", **more,
    }  # fmt: skip
    return NewMessage(**given)


async def test_claims_in_order(db, fleet, now):
    """Records are claimed in the order they were written, with exact bodies; what is marked sent is not claimed again."""
    messages = [_message(fleet, n) for n in range(7)]
    async with db.transaction() as tx:
        await outbox.add(tx, messages)
        await outbox.add(tx, messages[2:4])
    async with db.transaction() as tx:
        claimed = await outbox.claim(tx, 5)
        assert [c.message.body for c in claimed] == [m.body for m in messages[:5]]
        assert claimed[0].message.headers == {"ce_id": "\ufffd x"}
        await outbox.mark_sent(tx, [c.id for c in claimed[:3]], now=now)
        await outbox.mark_failed(tx, [claimed[3].id], "broker is away")
    async with db.transaction() as tx:
        claimed = await outbox.claim(tx)
        assert [(c.message.event_id, c.attempts) for c in claimed] == [(m.event_id, int(i == 0)) for i, m in enumerate(messages[3:])]
        assert (await outbox.depth(tx))[0] == 4


async def test_the_relay_counts_what_was_not_confirmed(db, fleet, now):
    """Rows that the broker did not confirm stay, with one attempt more and the reason; the confirmed ones are done with."""
    async with db.transaction() as tx:
        await outbox.add(tx, [_message(fleet, n) for n in range(3)])

    async def send(items):
        return [items[0].id]

    assert await OutboxTable(db, lambda: now).relay(10, send) == 1
    async with db.transaction() as tx:
        rows = await raw.fetch(tx, "SELECT sent_at IS NOT NULL AS sent, attempts, last_error FROM outbox ORDER BY id")
    told = "not confirmed by the broker"
    assert [tuple(row) for row in rows] == [(True, 0, None), (False, 1, told), (False, 1, told)]


async def test_one_relay_at_a_time(db, fleet):
    """While one relay holds its records, another gets none, so that the records of a key are never interleaved."""
    async with db.transaction() as tx:
        await outbox.add(tx, [_message(fleet, n) for n in range(3)])
    async with db.transaction() as one:
        assert len(await outbox.claim(one, 1)) == 1
        async with db.transaction() as two:
            assert await outbox.claim(two) == []
    async with db.transaction() as two:
        assert len(await outbox.claim(two)) == 3


async def test_a_claim_is_bounded_in_bytes(db, fleet, now):
    """However many large records wait, a relay has few bytes in memory: the one that reaches the limit is the last; all come in order."""
    bodies = [b"%d" % n * 1000 for n in range(10)]  # to a hundredth when compressed, as a candidate of blank lines is
    bodies += [secrets.token_bytes(1000) for _ in range(10)]
    async with db.transaction() as tx:
        await outbox.add(tx, [_message(fleet, body=body) for body in bodies])
    seen: list[bytes] = []
    while len(seen) < len(bodies):
        async with db.transaction() as tx:
            claimed = await outbox.claim(tx, most_bytes=2500)
            assert 1 <= len(claimed) <= 3
            seen += [c.message.body for c in claimed]
            await outbox.mark_sent(tx, [c.id for c in claimed], now=now)
    assert seen == bodies


async def test_a_rolled_back_effect_sends_nothing(db, fleet):
    """A record whose transaction fails is not there."""
    with pytest.raises(RuntimeError):  # noqa: PT012  the failing transaction is the test
        async with db.transaction() as tx:
            await outbox.add(tx, [_message(fleet)])
            raise RuntimeError
    async with db.transaction() as tx:
        assert await outbox.depth(tx) == (0, None)


async def test_writing_notifies(db, fleet):
    """A relay that listens is told of new records when they are committed."""
    heard: list[str] = []
    ready = asyncio.Event()
    task = asyncio.create_task(db.listen(OUTBOX_CHANNEL, heard.append, connected=ready.set))
    try:
        await asyncio.wait_for(ready.wait(), 10)
        async with db.transaction() as tx:
            await outbox.add(tx, [_message(fleet, n) for n in range(3)])
        await eventually(lambda: bool(heard), 10)
    finally:
        task.cancel()
    assert heard == [""]


async def test_resend(db, fleet, now):
    """A candidate's record that was sent is sent again, byte for byte; a boundary without one is left out."""
    with_record, without = await stored(db, candidate(fleet), now), await stored(db, candidate(fleet, index=2), now)
    message = _message(fleet, topic=CANDIDATE.name, boundary_id=with_record.boundary_id)
    async with db.transaction() as tx:
        await outbox.add(tx, [message])
        await outbox.mark_sent(tx, [c.id for c in await outbox.claim(tx)], now=now)
        assert await outbox.resend(tx, [with_record.key, without.key]) == {with_record.key}
        (again,) = await outbox.claim(tx)
    assert again.message.body == message.body


async def test_purge(db, fleet, now):
    """What was sent long ago is deleted, but not what waits, nor the candidate of a boundary that is not committed."""
    open_, done = await stored(db, candidate(fleet), now), (await told(db, candidate(fleet, index=2), now)).boundary
    kept = _message(fleet, topic=CANDIDATE.name, boundary_id=open_.boundary_id)
    waits = _message(fleet)
    async with db.transaction() as tx:
        await outbox.add(tx, [kept, _message(fleet, topic=CANDIDATE.name, boundary_id=done.boundary_id), _message(fleet)])
        await outbox.mark_sent(tx, [c.id for c in await outbox.claim(tx)], now=now - timedelta(days=8))
        await outbox.add(tx, [waits])
        assert await outbox.purge(tx, older_than=timedelta(days=7), now=now) == 2
        left = await raw.fetch(tx, "SELECT event_id FROM outbox")
    assert {r["event_id"] for r in left} == {kept.event_id, waits.event_id}
