"""The load: candidates go in, committed events come out, and both ends are timed by one clock."""

import asyncio
import contextlib
import math
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from tests.benchmarks.boundaries import Sample
from winnow.contracts.topics import CANDIDATE, COMMITTED, Topic
from winnow.messaging.broker import consumer_options, producer_options
from winnow.messaging.settings import KafkaSettings

#: Seconds without any committed event after which the pipeline counts as stopped.
STALLED_S = 60.0


class StalledError(Exception):
    """Nothing came out of the pipeline any more."""


class Traffic:
    """A runtime without logic: publishes candidates and hears of committed events, by `ce_id`."""

    def __init__(
        self,
        settings: KafkaSettings,
        *,
        alive: Callable[[], bool],
        source: str = CANDIDATE.name,
        target: str = COMMITTED.name,
        answer: Callable[[Sample], str] = lambda sample: sample.committed_id,
    ) -> None:
        """Publish to `source`, listen on `target` (names without prefix), for as long as the other side is `alive`.

        `answer` is the `ce_id` of the event that ends a sample's way.
        """
        self._settings, self._alive, self._answer = settings, alive, answer
        self._source, self._target = settings.topic_name(source), settings.topic_name(target)
        self._stack = AsyncExitStack()
        self._news = asyncio.Event()
        #: When each committed event was first seen, by the monotonic clock.
        self.seen: dict[str, float] = {}
        #: When each candidate was handed to the producer.
        self.sent: dict[str, float] = {}

    async def __aenter__(self) -> Self:
        """Connect; the listener stands at the end of the topic before anything is published."""
        # Idempotence costs nothing in time and the embedded broker has none.
        self._producer = AIOKafkaProducer(**producer_options(self._settings, service="load", idempotent=False))
        options = consumer_options(self._settings, max_record_bytes=COMMITTED.max_record_bytes)
        for name in ("group_instance_id", "auto_offset_reset"):
            options.pop(name, None)
        # The load shares the machine with what it measures: checksums of a loopback connection tell nothing.
        self._consumer = AIOKafkaConsumer(**self._settings.client_options(), **options, enable_auto_commit=False, check_crcs=False)
        await self._producer.start()
        self._stack.push_async_callback(self._producer.stop)
        await self._consumer.start()
        self._stack.push_async_callback(self._consumer.stop)
        partitions = [TopicPartition(self._target, p) for p in range(self._settings.partitions)]
        self._consumer.assign(partitions)
        await self._consumer.seek_to_end(*partitions)
        listening = asyncio.create_task(self._listen(), name="listen")
        self._stack.callback(listening.cancel)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Disconnect."""
        await self._stack.aclose()

    async def _listen(self) -> None:
        while True:
            batch = await self._consumer.getmany(timeout_ms=200)
            now = time.monotonic()
            for records in batch.values():
                for record in records:
                    name = next((value.decode() for key, value in record.headers if key == "ce_id"), "")
                    self.seen.setdefault(name, now)
            if batch:
                self._news.set()

    async def send(self, sample: Sample) -> asyncio.Future[object]:
        """Publish one candidate; the future is done when the broker has confirmed it."""
        self.sent[self._answer(sample)] = time.monotonic()
        future: asyncio.Future[object] = await self._producer.send(self._source, value=sample.body, key=sample.key, headers=sample.headers)
        return future

    async def at_full_speed(self, samples: Sequence[Sample], *, window: int) -> None:
        """Publish all with at most `window` on the way, and wait until all are committed.

        Raises:
            StalledError: nothing was committed for a minute.
        """
        before = len(self.seen)
        pending: list[asyncio.Future[object]] = []
        for number, sample in enumerate(samples):
            while number - (len(self.seen) - before) >= window:
                await self._hear()
            pending.append(await self.send(sample))
        await asyncio.gather(*pending)
        await self.all_seen(samples)

    async def at_rate(self, samples: Sequence[Sample], *, per_second: float) -> None:
        """Publish on a fixed timetable, whether or not anything has come back, and wait until all are committed."""
        start = time.monotonic()
        pending: list[asyncio.Future[object]] = []
        for number, sample in enumerate(samples):
            await asyncio.sleep(max(0.0, start + number / per_second - time.monotonic()))
            pending.append(await self.send(sample))
        await asyncio.gather(*pending)
        await self.all_seen(samples)

    async def all_seen(self, samples: Sequence[Sample]) -> None:
        """Wait until each has been committed."""
        wanted = {self._answer(s) for s in samples}
        while not wanted <= self.seen.keys():
            await self._hear()

    async def _hear(self) -> None:
        """Wait for something committed.

        Raises:
            StalledError: nothing comes any more.
        """
        self._news.clear()
        since = time.monotonic()
        while not self._news.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), 1.0)
            waited = time.monotonic() - since
            if not self._news.is_set() and (waited > STALLED_S or not self._alive()):
                text = f"{len(self.sent)} published, {len(self.seen)} committed, then nothing for {waited:.0f} s"
                raise StalledError(text)

    def latencies(self, samples: Sequence[Sample]) -> list[float]:
        """Return milliseconds from publishing to committed, ascending."""
        return sorted((self.seen[name] - self.sent[name]) * 1000 for name in map(self._answer, samples))

    def last(self, samples: Sequence[Sample]) -> float:
        """Return when the last of `samples` was committed."""
        return max(self.seen[self._answer(s)] for s in samples)


def percentile(ascending: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` of all do not exceed."""
    return ascending[max(0, math.ceil(share * len(ascending)) - 1)]


async def first_bodies(settings: KafkaSettings, topic: Topic, most: int) -> list[bytes]:
    """Return some of the bodies that stand on a topic, as they travelled."""
    consumer = AIOKafkaConsumer(
        **settings.client_options(),
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=topic.max_record_bytes,
    )
    await consumer.start()
    try:
        consumer.assign([TopicPartition(settings.topic_name(topic.name), p) for p in range(settings.partitions)])
        found: list[bytes] = []
        while len(found) < most:
            batch = await consumer.getmany(timeout_ms=5_000)
            if not batch:
                break
            found += [bytes(record.value) for records in batch.values() for record in records]
        return found[:most]
    finally:
        await consumer.stop()
