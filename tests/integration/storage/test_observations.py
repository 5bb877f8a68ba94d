"""Observations: numbered once, in sampling order, without gaps; the ledger the monitor folds from."""

import asyncio
import uuid
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from winnow.assurance.ledger import Fate
from winnow.contracts.events import Graded, Observation, Sampled
from winnow.storage import ledger, observations, streams
from winnow.storage.keys import StreamKey
from winnow.storage.ledger import Decided


def _event(fleet, now, unit, *, sampled=True, loss=None, stream="harm", **more) -> Observation:
    return Observation(
        fleet=fleet,
        event_id=uuid.uuid4(),
        stream=stream,
        unit=unit,
        sampled=Sampled(probability=0.5, at=now) if sampled else None,
        graded=Graded(loss=loss, lo=-1.0, grader="rule", at=now) if loss is not None else None,
        **more,
    )


async def _ledger(db, fleet, stream="harm"):
    async with db.transaction() as tx:
        return await observations.units(tx, fleet, stream)


async def _store(db, events, now):
    async with db.transaction() as tx:
        return await observations.store(tx, events, now=now)


async def test_sampling_order(db, fleet, now):
    """Units are numbered from 1 in the order in which their samples are stored; repetitions change nothing."""
    a, b, c = (_event(fleet, now, u) for u in "cab")
    assert await _store(db, [a, b, a], now) == {a.event_id, b.event_id}
    assert await _store(db, [b, c, _event(fleet, now, "c")], now) == {c.event_id}
    assert [(o.seq, o.unit, o.probability, o.loss) for o in await _ledger(db, fleet)] == [
        (1, "c", 0.5, None),
        (2, "a", 0.5, None),
        (3, "b", 0.5, None),
    ]


async def test_grades(db, fleet, now):
    """A grade joins its sample, whether it comes with it, later or first; the first grade of a unit counts."""
    early, again = _event(fleet, now, "early", sampled=False, loss=-0.5), _event(fleet, now, "early", sampled=False, loss=1.0)
    both, later = _event(fleet, now, "both", loss=0.25), _event(fleet, now, "later")
    assert await _store(db, [early, again, both, later], now) == {early.event_id, both.event_id, later.event_id}
    grade, second = _event(fleet, now, "later", sampled=False, loss=1.0), _event(fleet, now, "later", sampled=False, loss=0.0)
    sample = _event(fleet, now, "early")
    assert await _store(db, [grade, second, sample], now) == {grade.event_id, sample.event_id}
    assert [(o.unit, o.loss, o.lo, o.grader) for o in await _ledger(db, fleet)] == [
        ("both", 0.25, -1.0, "rule"), ("later", 1.0, -1.0, "rule"), ("early", -0.5, -1.0, "rule"),
    ]  # fmt: skip


async def test_streams_count_apart(db, fleet, now):
    """Each stream has its own numbers, and is registered with what was first seen of it."""
    await _store(db, [_event(fleet, now, "u", stream=s) for s in ("b", "a\x00"[:1], "b")], now)
    async with db.transaction() as tx:
        await streams.register(tx, fleet, "a", config={"alpha": 0.1}, weight=0.5, now=now)
        await streams.register(tx, fleet, "a", config={"alpha": 0.2}, weight=0.9, now=now)
        found = await streams.listed(tx, fleet)
    assert [(s.stream, s.last_seq, s.config, s.weight) for s in found] == [("a", 1, {"alpha": 0.2}, 0.5), ("b", 1, {}, None)]


async def test_concurrent_samples(db, fleet, now):
    """Samples that are stored at the same time get consecutive numbers, each its own."""
    units = [[f"{k}-{i}" for i in range(5)] for k in range(4)]
    await asyncio.gather(*(_store(db, [_event(fleet, now, u) for u in some], now) for some in units))
    assert [o.seq for o in await _ledger(db, fleet)] == list(range(1, 21))


async def test_a_rolled_back_number_is_given_again(db, fleet, now):
    """A number whose transaction failed is given to the next unit: there are no gaps."""
    with pytest.raises(RuntimeError):  # noqa: PT012  the failing transaction is the test
        async with db.transaction() as tx:
            await observations.store(tx, [_event(fleet, now, "lost")], now=now)
            raise RuntimeError
    await _store(db, [_event(fleet, now, "kept")], now)
    assert [(o.seq, o.unit) for o in await _ledger(db, fleet)] == [(1, "kept")]


async def test_a_sample_in_another_month(db, fleet, now):
    """A grade finds its sample in the month in which that was stored."""
    await _store(db, [_event(fleet, now, "u")], now - timedelta(days=70))
    await _store(db, [_event(fleet, now, "u", loss=1.0)], now)
    (found,) = await _ledger(db, fleet)
    assert (found.loss, found.observed_at, found.grade_stored_at) == (1.0, now - timedelta(days=70), now)


def _decided(o, fate) -> Decided:
    return Decided(StreamKey(o.fleet, o.stream), o.seq, o.seq, o.observed_at, o.observed_at, fate, 1)


async def test_fates(db, fleet, now):
    """A unit's fate is written once, with the state of its stream, in one transaction."""
    await _store(db, [_event(fleet, now, u, loss=0.0) for u in "ab"], now)
    first, second = await _ledger(db, fleet)
    state = streams.State(
        fleet=fleet, stream="harm", epoch=1, state='{"M": 1.0000000000000002}', last_seq=1, log_evidence=0.5, status="ok", updated_at=now
    )
    async with db.transaction() as tx:
        assert await streams.lock_state(tx, fleet, "harm") is None
        assert await ledger.decide(tx, [_decided(first, Fate.FOLDED)], now=now) == 1
        await streams.save_state(tx, state)
        assert await ledger.decide(tx, [_decided(first, Fate.LATE), _decided(second, Fate.MISSING)], now=now) == 1
        assert await streams.lock_state(tx, fleet, "harm") == state
    assert [o.fate for o in await _ledger(db, fleet)] == [Fate.FOLDED, Fate.MISSING]
    async with db.transaction() as tx:
        assert [o.seq for o in await observations.units(tx, fleet, "harm", after_seq=1)] == [2]


#: Names that mean something to PostgreSQL's arrays, to JSON or to neither; what no text column can hold is stored as U+FFFD.
HOSTILE = [
    "null",
    "NULL",
    '"',
    "\\",
    'a"b\\"c',
    "{a,b}",
    "[1]",
    ",",
    " ",
    "\n\t\r",
    "\x1b[0m",
    "\\u0041",
    "ü€𝄞",
    "x" * 10_000,
    "\x00",
    "\ud800",
]


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
async def test_names_are_stored_as_they_are(db, fleet, now, name):
    """Whatever a unit and its grader are called, they are stored so, and known again; what no text column can hold is replaced."""
    stored = "\ufffd" if name in {"\x00", "\ud800"} else name
    plain = _event(fleet, now, "unit", loss=1.0)
    odd = plain.model_copy(update={"event_id": uuid.uuid4(), "unit": name, "graded": plain.graded.model_copy(update={"grader": name})})
    assert await _store(db, [plain, odd], now) == {plain.event_id, odd.event_id}
    assert await _store(db, [odd], now) == set()
    assert [(o.unit, o.grader) for o in await _ledger(db, fleet)] == [("unit", "rule"), (stored, stored)]


async def test_numbers_and_moments_are_stored_to_the_bit(db, fleet, now):
    """Losses, probabilities and moments come back as they were, with any offset, boundary or none."""
    losses = [0.1, 1 / 3, 5e-324, 1.0, -1.0, -0.0, 1e-17]
    moments = [
        now, now.astimezone(ZoneInfo("Asia/Kolkata")), datetime(1850, 1, 1, 12, 0, 0, 1, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime(1, 1, 1, tzinfo=timezone(-timedelta(hours=5))), datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
        datetime(2020, 1, 1, tzinfo=timezone(timedelta(hours=3, seconds=7))), datetime(2020, 1, 1, tzinfo=timezone(-timedelta(minutes=1))),
    ]  # fmt: skip
    boundaries = [uuid.uuid4() if i % 2 else None for i in range(len(losses))]
    events = [
        Observation(
            fleet=fleet, event_id=uuid.uuid4(), stream="harm", unit=f"u{i}", boundary_id=boundary,
            sampled=Sampled(probability=max(abs(loss), 5e-324), at=at), graded=Graded(loss=loss, lo=-1.0, grader="rule", at=at),
        )
        for i, (loss, at, boundary) in enumerate(zip(losses, moments, boundaries, strict=True))
    ]  # fmt: skip
    await _store(db, events, now)
    found = await _ledger(db, fleet)
    assert [(o.loss.hex(), o.probability.hex()) for o in found] == [(x.hex(), max(abs(x), 5e-324).hex()) for x in losses]
    assert [(o.sampled_at, o.graded_at, o.boundary_id) for o in found] == [(m, m, b) for m, b in zip(moments, boundaries, strict=True)]
