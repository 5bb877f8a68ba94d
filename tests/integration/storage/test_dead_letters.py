"""Dead letters: one row a record, exact bytes, listed and replayed."""

import uuid
from dataclasses import replace
from datetime import timedelta

import pytest

from winnow.contracts.errors import NotFound
from winnow.contracts.vocabulary import Reason
from winnow.storage import dead_letters
from winnow.storage.dead_letters import NewDeadLetter


def _letter(topic: str, offset: int = 0, **more) -> NewDeadLetter:
    given = {
        "topic": topic, "partition": 3, "offset": offset, "key": b"\xff/key", "value": b"\x00 poison \xff",
        "headers": (("ce_id", b"\xff\x00"), ("ce_id", b""), ("a\x00b", b"twice")), "reason": Reason.INVALID, "error": "body: not JSON",
        "service": "judge", "attempts": 2, "fleet": None, "run": None, **more,
    }  # fmt: skip
    return NewDeadLetter(**given)


@pytest.fixture
def topic() -> str:
    return f"topic-{uuid.uuid4().hex[:8]}"


async def test_a_record_is_one_dead_letter(db, topic, now):
    """A redelivered record is stored once, with its exact bytes and headers; only what is new is returned, in order."""
    first, tombstone = _letter(topic, 5), _letter(topic, 4, value=None, key=None, headers=())
    async with db.transaction() as tx:
        new = await dead_letters.add(tx, [first, tombstone, first], now=now)
        assert [d.letter.offset for d in new] == [5, 4]
        assert await dead_letters.add(tx, [first, tombstone], now=now) == []
        found = await dead_letters.get(tx, new[0].id)
        assert found.letter == _letter(topic, 5, headers=(("ce_id", b"\xff\x00"), ("ce_id", b""), ("a\ufffdb", b"twice")))
        assert (await dead_letters.get(tx, new[1].id)).letter == tombstone


async def test_a_new_log_counts_from_zero_again(db, topic, now):
    """A record with the same position and another time comes from a log that was made anew, and is another dead letter."""
    async with db.transaction() as tx:
        new = await dead_letters.add(tx, [_letter(topic, timestamp=now)], now=now)
        new += await dead_letters.add(tx, [_letter(topic, timestamp=now + timedelta(hours=1))], now=now)
        assert await dead_letters.add(tx, [_letter(topic, timestamp=now)], now=now) == []
    assert len({d.id for d in new}) == 2


async def test_pages(db, topic, now):
    """Dead letters are listed newest first, by topic, reason and fleet, page by page."""
    letters = [_letter(topic, n, reason=Reason.INVALID if n % 2 else Reason.TOO_LARGE, fleet="acme" if n < 3 else None) for n in range(6)]
    async with db.transaction() as tx:
        new = await dead_letters.add(tx, letters, now=now)
        ids = sorted((d.id for d in new), reverse=True)
        page = await dead_letters.page(tx, topic=topic, limit=4)
        rest = await dead_letters.page(tx, topic=topic, limit=4, before_id=page[-1].id)
        assert [d.id for d in page + rest] == ids
        assert {d.letter.offset for d in await dead_letters.page(tx, topic=topic, reason=Reason.INVALID)} == {1, 3, 5}
        assert {d.letter.offset for d in await dead_letters.page(tx, topic=topic, fleet="acme")} == {0, 1, 2}


async def test_pages_without_bodies(db, topic, now):
    """A list can leave the bodies out, and has everything else of each letter."""
    async with db.transaction() as tx:
        await dead_letters.add(tx, [_letter(topic), _letter(topic, 1, value=None)], now=now)
        whole = await dead_letters.page(tx, topic=topic)
        bare = await dead_letters.page(tx, topic=topic, bodies=False)
    assert [d.letter.value for d in whole] == [None, b"\x00 poison \xff"]
    assert bare == [replace(d, letter=replace(d.letter, value=None)) for d in whole]


async def test_replays_are_counted(db, topic, now):
    """A replay is noted on its dead letter."""
    async with db.transaction() as tx:
        (letter,) = await dead_letters.add(tx, [_letter(topic)], now=now)
        await dead_letters.mark_replayed(tx, [letter.id, letter.id], now=now)
        await dead_letters.mark_replayed(tx, [letter.id], now=now)
        found = await dead_letters.get(tx, letter.id)
    assert (found.replays, found.replayed_at) == (2, now)


async def test_unknown_ids(db):
    """A dead letter that is not there is not found."""
    async with db.transaction() as tx:
        with pytest.raises(NotFound, match="999999999"):
            await dead_letters.get(tx, 999_999_999)
