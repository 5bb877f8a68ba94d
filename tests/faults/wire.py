"""The topics as a bystander sees them: bytes in at known positions, everything out in order."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from typing import Any, Self

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, ConsumerRecord, TopicPartition
from aiokafka.structs import RecordMetadata

from winnow.contracts.topics import Topic
from winnow.messaging.broker import producer_options
from winnow.messaging.settings import KafkaSettings

Position = tuple[str, int, int]


class Sender:
    """Publishes bytes as they are; idempotent, so that a broker's death makes no copy at a position that nobody knows."""

    def __init__(self, settings: KafkaSettings, *, idempotent: bool = True) -> None:
        """Describe the producer."""
        self._settings, self._idempotent = settings, idempotent
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        """Connect."""
        self._producer = AIOKafkaProducer(**producer_options(self._settings, service="storm", idempotent=self._idempotent))
        await self._producer.start()
        self._stack.push_async_callback(self._producer.stop)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Disconnect."""
        await self._stack.aclose()

    async def send(
        self, topic: Topic, value: bytes | None, *, key: bytes | None, headers: Sequence[tuple[str, bytes]] = ()
    ) -> asyncio.Future[RecordMetadata]:
        """Queue a record; the future has its position."""
        partition = None
        if key is None and value is None:  # Kafka's client wants one of the two
            partition, value = 0, b""
        future: asyncio.Future[RecordMetadata] = await self._producer.send(
            self._settings.topic_name(topic.name), value, key=key, headers=list(headers), partition=partition
        )
        return future

    async def put(self, topic: Topic, value: bytes | None, *, key: bytes | None, headers: Sequence[tuple[str, bytes]] = ()) -> Position:
        """Publish a record and return its position."""
        return position(await (await self.send(topic, value, key=key, headers=headers)))


def position(at: RecordMetadata) -> Position:
    """Return topic, partition and offset."""
    return at.topic, at.partition, at.offset


async def read_all(settings: KafkaSettings, topic: Topic) -> list[ConsumerRecord]:
    """Read a topic from its beginning to its present end; records of a partition are in order."""
    options: dict[str, Any] = settings.client_options()
    # `assign` starts a reset of its own in the background, which would overtake a seek to the beginning.
    options |= {"auto_offset_reset": "earliest", "enable_auto_commit": False, "max_partition_fetch_bytes": topic.max_record_bytes}
    consumer = AIOKafkaConsumer(**options)
    await consumer.start()
    try:
        places = [TopicPartition(settings.topic_name(topic.name), p) for p in range(settings.partitions)]
        consumer.assign(places)
        ends = await consumer.end_offsets(places)
        found: list[ConsumerRecord] = []
        async with asyncio.timeout(60):
            # Positions, not records, tell the end: control records and gaps have offsets, too.
            while any([await consumer.position(place) < ends[place] for place in places]):
                for records in (await consumer.getmany(timeout_ms=200)).values():
                    found += records
        return found
    finally:
        await consumer.stop()
