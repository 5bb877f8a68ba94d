"""Dead letters: unchanged bytes, readable reasons, and the way back."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.messaging.support import NOW, FakePublisher, World, candidate, record
from winnow.contracts.limits import MIB
from winnow.contracts.topics import CANDIDATE, DEAD_LETTER
from winnow.messaging.deadletters import (
    NAMES,
    NotReplayable,
    ReplayFailed,
    fleet_and_run,
    headers_of,
    letter_from,
    letter_of,
    original_of,
    split_headers,
)
from winnow.messaging.records import Dead, Record

header_names = st.sampled_from(["x", "traceparent", "content-type", *NAMES])
headers = st.lists(st.tuples(header_names, st.binary(max_size=20)), max_size=20).map(tuple)
texts = st.text(alphabet=st.characters(exclude_categories=[]), max_size=100)
records = st.builds(
    Record,
    topic=st.just("p." + CANDIDATE.name),
    partition=st.integers(0, 11),
    offset=st.integers(0, 2**40),
    key=st.none() | st.binary(max_size=30),
    headers=headers,
    value=st.none() | st.binary(max_size=100),
    timestamp=st.integers(0, 2**41),
)


@given(records, texts)
def test_a_letter_on_the_topic_gives_back_the_record_exactly(source, error):
    """Key, bytes and headers come back unchanged, whatever the producer put into its headers, even our own names."""
    letter = letter_of(Dead(record=source, reason="invalid", error=error), service="judge", attempts=2, at=NOW)
    on_topic = replace(source, topic=DEAD_LETTER.name, headers=headers_of(letter), offset=99)
    read = letter_from(on_topic)
    assert replace(read, timestamp=letter.timestamp) == letter
    if source.key is not None or source.value is not None:
        original = original_of(read)
        assert (original.topic, original.key, original.value, original.headers) == (source.topic, source.key, source.value, source.headers)


@given(headers)
def test_a_record_that_is_no_letter_of_ours_is_told(given_headers):
    """Only eight headers of ours at the end, in order and readable, make a letter."""
    assert split_headers(given_headers) == (given_headers, None)


@given(records, texts)
def test_an_error_text_is_one_printable_line_without_secrets(source, error):
    """Whatever an error says, the row and the header are safe to show."""
    letter = letter_of(Dead(record=source, reason="invalid", error=error + " wnw_hunter2hunter2"), service="judge", attempts=1, at=NOW)
    assert letter.error.isprintable()
    assert "hunter2" not in letter.error


@pytest.mark.parametrize(
    ("key", "fleet", "run"),
    [(b"f/r", "f", "r"), (b"f/a/b", "f", "a/b"), (b"f", None, None), (None, None, None), (b"\xff/r", None, None), (b"/r", None, "r")],
)
def test_tenant_and_run_are_read_from_the_key(key, fleet, run):
    """The row knows whom it belongs to where the key says it, so that erasing a fleet finds it."""
    assert fleet_and_run(key) == (fleet, run)


async def test_rows_come_first_and_the_topic_s_failure_loses_nothing():
    """A broker that refuses the letter leaves the row."""
    world = World()
    world.publisher.error = ConnectionError()
    await world.around.dead_letters.bury([Dead(record=record(candidate()), reason="invalid", error="x")])
    assert len(world.store.rows) == 1
    assert world.telemetry.metrics.value("winnow_dead_letter_topic_failures_total", service="retriever") == 1


async def test_a_store_that_is_away_is_told():
    """Without a row nothing may be acknowledged."""
    world = World()

    async def add(_):
        raise ConnectionError

    world.store.add = add
    with pytest.raises(ConnectionError):
        await world.around.dead_letters.bury([Dead(record=record(candidate()), reason="invalid", error="x")])
    assert world.publisher.raw == []


async def test_a_redelivered_letter_is_one_row_and_counts_once():
    """The identity of a dead letter is topic, partition, offset."""
    world = World()
    dead = Dead(record=record(candidate()), reason="invalid", error="x")
    await world.around.dead_letters.bury([dead])
    await world.around.dead_letters.bury([dead])
    assert len(world.store.rows) == 1
    assert len(world.publisher.raw) == 2
    assert world.metric("winnow_dead_letters_total", reason="invalid") == 1


async def test_a_letter_above_the_topic_s_limit_stands_in_the_table_only():
    """Ten megabytes and the reasons do not fit; the row has them."""
    world = World()
    big = replace(record(candidate()), value=b"x" * (10 * MIB - 100))
    small = replace(record(candidate(2)), offset=7)
    await world.around.dead_letters.bury([Dead(record=big, reason="invalid", error="x"), Dead(record=small, reason="invalid", error="x")])
    assert len(world.store.rows) == 2
    assert [r.value for r in world.publisher.raw] == [small.value]


async def test_a_tombstone_without_a_key_is_announced_with_an_empty_body():
    """Kafka needs a key or a body; the row keeps both as they were."""
    world = World()
    await world.around.dead_letters.bury([Dead(record=replace(record(), value=None), reason="tombstone", error="x")])
    [letter] = world.store.rows.values()
    assert (letter.key, letter.value) == (None, None)
    [announced] = world.publisher.raw
    assert announced.value == b""
    with pytest.raises(NotReplayable):
        await world.around.dead_letters.replay(letter)


async def test_a_replay_publishes_the_original_to_its_topic():
    """Bytes, key and headers as they came; a record without a key goes back to its partition."""
    world = World()
    source = replace(record(candidate()), headers=(("x", b"\xff"), ("x", b"2")), partition=3, topic="p." + CANDIDATE.name)
    for one in (source, replace(source, key=None)):
        letter = letter_of(Dead(record=one, reason="invalid", error="x"), service="s", attempts=1, at=NOW)
        await world.around.dead_letters.replay(letter)
        sent = world.publisher.raw[-1]
        assert (sent.topic, sent.key, sent.value, sent.headers) == (one.topic, one.key, one.value, one.headers)
        assert sent.partition == (3 if one.key is None else None)


async def test_a_replay_that_is_not_confirmed_is_an_error():
    """The caller must not mark the row."""
    world = World()
    letter = letter_of(Dead(record=record(candidate()), reason="invalid", error="x"), service="s", attempts=1, at=NOW)
    world.publisher.error = ConnectionError()
    with pytest.raises(ReplayFailed):
        await world.around.dead_letters.replay(letter)


async def test_nothing_dead_is_nothing_done():
    """An empty list touches neither table nor topic (an empty insert would write a row of defaults)."""
    world = World()

    async def add(_):
        raise AssertionError

    world.store.add = add
    await world.around.dead_letters.bury([])
    assert isinstance(world.publisher, FakePublisher)
    assert world.publisher.raw == []
