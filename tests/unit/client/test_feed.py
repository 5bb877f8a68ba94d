"""The reader of the committed topic, over a log in memory."""

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest
from aiokafka.partitioner import DefaultPartitioner
from aiokafka.structs import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from tests.harness import eventually
from tests.unit.client.answers import candidate
from winnow.client import feed as feed_module
from winnow.client.backoff import Backoff
from winnow.client.feed import Feed, partition_of
from winnow.client.testing import unpruned
from winnow.contracts import ids
from winnow.contracts.envelope import headers_for
from winnow.contracts.errors import WinnowError
from winnow.contracts.rights import NotAllowed
from winnow.contracts.topics import COMMITTED

QUICK = Backoff(first_s=0.001, most_s=0.01)


class Log:
    """A topic in memory, with the consumers that read it."""

    def __init__(self, partitions: int = 3):
        self.records: dict[int, list] = {p: [] for p in range(partitions)}
        self.consumers: list[LogConsumer] = []
        self.down = False
        self.hidden = False

    async def is_hidden(self):
        return self.hidden

    def consumer(self):
        self.consumers.append(LogConsumer(self))
        return self.consumers[-1]

    def append(self, partition, key, value, headers=()):
        offset = len(self.records[partition])
        self.records[partition].append(SimpleNamespace(offset=offset, key=key, value=value, headers=headers))

    def answer(self, partition, asked, **fields):
        committed = unpruned(asked, asked.request_sha256()).model_copy(update=fields)
        event_id = str(ids.event_id(asked.fleet, asked.boundary_id, COMMITTED.event_type))
        headers = headers_for(COMMITTED, event_id=event_id, source="t", subject=asked.key, time=datetime.now(UTC))
        self.append(partition, asked.key.encode(), committed.model_dump_json().encode(), headers)


class LogConsumer:
    """Reads a `Log`; may be broken or stand still."""

    def __init__(self, log):
        self.log, self.at, self.stalled, self.broken, self.stopped = log, {}, False, False, False

    def _check(self):
        if self.log.down or self.broken:
            raise ConnectionError

    async def start(self):
        self._check()

    async def stop(self):
        self.stopped = True

    def assign(self, partitions):
        self.at = {p.partition: None for p in partitions}

    def seek(self, partition, offset):
        assert partition.partition in self.at
        self.at[partition.partition] = offset

    async def getmany(self, *, timeout_ms):
        self._check()
        await asyncio.sleep(0.001)
        if self.stalled:
            return {}
        batch = {}
        for partition, at in self.at.items():
            assert at is not None, "a partition is read without a position"
            fresh = self.log.records[partition][at:]
            if fresh:
                batch[TopicPartition("t", partition)] = fresh
                self.at[partition] = fresh[-1].offset + 1
        return batch

    async def end_offsets(self, partitions):
        self._check()
        if self.log.hidden:  # as aiokafka's, which waits for a leader
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        return {p: len(self.log.records[p.partition]) for p in partitions}

    async def beginning_offsets(self, partitions):
        return dict.fromkeys(partitions, 0)


@pytest.fixture
async def log_and_feed(monkeypatch):
    monkeypatch.setattr(feed_module, "CHECK_S", 0.01)
    log = Log()
    feed = Feed("t", log.consumer, hidden=log.is_hidden, backoff=QUICK)
    yield log, feed
    await feed.close()


async def _answer(waiting, seconds=5.0):
    async with asyncio.timeout(seconds):
        return await asyncio.shield(waiting.answer)


@given(st.text(min_size=1, max_size=40), st.integers(1, 50))
def test_the_partition_is_the_one_that_the_producer_takes(key, partitions):
    """Reader and writer agree on where the answers to a run appear."""
    numbers = list(range(partitions))
    assert partition_of(key, partitions) == DefaultPartitioner()(key.encode(), numbers, numbers)


async def test_only_what_comes_after_the_position_is_read(log_and_feed):
    """The reader stands at the end before the candidate goes out; older records are not delivered."""
    log, feed = log_and_feed
    asked = candidate()
    log.answer(1, asked, warnings=("old",))
    async with feed.wait_for(asked, asked.request_sha256(), 1) as waiting:
        log.answer(1, asked, warnings=("new",))
        assert (await _answer(waiting)).warnings == ("new",)


async def test_many_wait_at_once_on_one_consumer(log_and_feed):
    """New partitions join without losing what the others wait for."""
    log, feed = log_and_feed
    asked = [candidate(f"- {n}", run=f"r{n}") for n in range(30)]

    async def one(n):
        async with feed.wait_for(asked[n], asked[n].request_sha256(), n % 3) as waiting:
            log.answer(n % 3, asked[n])
            return await _answer(waiting)

    answers = await asyncio.gather(*(one(n) for n in range(30)))
    assert [a.boundary_id for a in answers] == [c.boundary_id for c in asked]
    assert feed.built == 1


async def test_two_who_ask_the_same_both_get_it(log_and_feed):
    """One answer serves every compaction that waits for it."""
    log, feed = log_and_feed
    asked = candidate()
    async with feed.wait_for(asked, asked.request_sha256(), 0) as one, feed.wait_for(asked, asked.request_sha256(), 0) as two:
        log.answer(0, asked)
        assert await _answer(one) == await _answer(two)


async def test_an_answer_to_another_request_is_not_taken(log_and_feed):
    """The same id with another request hash, and records that cannot be read, are passed over."""
    log, feed = log_and_feed
    asked = candidate()
    async with feed.wait_for(asked, asked.request_sha256(), 0) as waiting:
        key = asked.key.encode()
        log.answer(0, asked, request_sha256="0" * 64)
        log.append(0, key, b"{bad")
        log.append(0, key, None)
        log.append(0, None, b"{}")
        log.append(0, key, b"{}", [("ce_type", b"\xff")])
        log.append(0, key, b"{}", [("ce_type", b"winnow.boundary.committed.v2")])
        log.append(0, b"f/other", b"\x00")
        log.answer(0, asked, warnings=("mine",))
        assert (await _answer(waiting)).warnings == ("mine",)


async def test_a_claim_check_is_recognised_by_its_event_id(log_and_feed):
    """A body that is a claim check names no boundary; the event id in the header does."""
    log, feed = log_and_feed
    asked, other = candidate(), candidate("- other", index=2)
    event_id = str(ids.event_id("f", asked.boundary_id, COMMITTED.event_type))
    headers = headers_for(COMMITTED, event_id=event_id, source="t", subject=asked.key, time=datetime.now(UTC), claim=True)
    async with feed.wait_for(other, other.request_sha256(), 0) as wrong, feed.wait_for(asked, asked.request_sha256(), 0) as waiting:
        log.append(0, asked.key.encode(), b"claim", headers)
        assert await _answer(waiting) == b"claim"
        assert not wrong.answer.done()


async def test_a_broken_connection_is_built_anew_where_it_stood(log_and_feed):
    """What was published while the connection was down is read afterwards, and who waits is told to publish again."""
    log, feed = log_and_feed
    asked = candidate()
    async with feed.wait_for(asked, asked.request_sha256(), 0) as waiting:
        log.down = True
        await eventually(lambda: not feed.connected)
        log.answer(0, asked)
        log.down = False
        await _answer(waiting)
        assert waiting.doubt.is_set()
    assert feed.built > 1
    assert all(c.stopped for c in log.consumers[:-1])


async def test_a_reader_that_stands_still_is_replaced(log_and_feed):
    """Records that the broker has and the consumer does not deliver lead to a new consumer."""
    log, feed = log_and_feed
    asked = candidate()
    async with feed.wait_for(asked, asked.request_sha256(), 0) as waiting:
        log.consumers[-1].stalled = True
        log.answer(0, asked)
        await _answer(waiting)
    assert feed.built > 1


async def test_a_log_that_began_anew_is_read_from_its_beginning(log_and_feed):
    """A memory broker that restarted has lower offsets; nothing is missed and the candidate goes out again."""
    log, feed = log_and_feed
    asked = candidate()
    for n in range(20):
        log.append(0, b"x", b"%d" % n)
    async with feed.wait_for(asked, asked.request_sha256(), 0) as waiting:
        log.records[0].clear()
        await asyncio.wait_for(waiting.doubt.wait(), 5)
        log.answer(0, asked)
        await _answer(waiting)


async def test_it_waits_for_a_broker_that_is_not_there_yet(log_and_feed):
    """An absent broker is waited for; the caller's own limit ends the wait."""
    log, feed = log_and_feed
    log.down = True
    asked = candidate()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05), feed.wait_for(asked, asked.request_sha256(), 0):
            pass
    log.down = False
    async with feed.wait_for(asked, asked.request_sha256(), 0) as waiting:
        log.answer(0, asked)
        await _answer(waiting)


@pytest.mark.parametrize("assigned", [True, False], ids=["reads already", "has no position yet"])
async def test_whoever_waits_on_a_topic_that_is_hidden_is_told(log_and_feed, monkeypatch, assigned):
    """A consumer says nothing of it: the feed asks once its checks get no answer, and goes on when the topic is seen again."""
    monkeypatch.setattr(feed_module, "CHECK_TIMEOUT_S", 0.02)
    log, feed = log_and_feed
    asked = candidate()
    log.hidden = not assigned
    with pytest.raises(NotAllowed, match="--operation Read --topic t"):  # noqa: PT012  either line may be the one that is refused
        async with feed.wait_for(asked, asked.request_sha256(), 1) as waiting:
            log.hidden = True
            await _answer(waiting)
    log.hidden = False
    async with feed.wait_for(asked, asked.request_sha256(), 1) as waiting:
        log.answer(1, asked)
        await _answer(waiting)


async def test_the_reader_begins_again_should_its_task_die(log_and_feed, monkeypatch):
    """A reader task that ended is noticed with the next compaction, on any partition, and started anew."""
    log, feed = log_and_feed
    asked = candidate()
    async with feed.wait_for(asked, asked.request_sha256(), 0) as waiting:
        log.answer(0, asked)
        await _answer(waiting)
    feed._task.cancel()
    await asyncio.gather(feed._task, return_exceptions=True)
    async with feed.wait_for(asked, asked.request_sha256(), 0) as waiting:
        log.answer(0, asked)
        await _answer(waiting)


async def test_idle_partitions_are_let_go(log_and_feed, monkeypatch):
    """A partition without compactions is no longer fetched, and comes back at its end."""
    monkeypatch.setattr(feed_module, "IDLE_S", 0.0)
    log, feed = log_and_feed
    asked = candidate()
    async with feed.wait_for(asked, asked.request_sha256(), 0) as waiting:
        log.answer(0, asked)
        await _answer(waiting)
    await eventually(lambda: "partitions=[]" in repr(feed))
    log.answer(0, asked, warnings=("missed",))
    async with feed.wait_for(asked, asked.request_sha256(), 0) as waiting:
        log.answer(0, asked, warnings=("new",))
        assert (await _answer(waiting)).warnings == ("new",)


async def test_a_closed_feed_says_so():
    """After close nobody waits for ever."""
    log = Log()
    feed = Feed("t", log.consumer, hidden=log.is_hidden)
    await feed.close()
    asked = candidate()
    with pytest.raises(WinnowError, match="closed"):
        async with feed.wait_for(asked, asked.request_sha256(), 0):
            pass
