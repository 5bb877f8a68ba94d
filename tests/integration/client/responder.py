"""A pipeline in one task: reads candidates, publishes committed events, as retriever, judge and pruner would together."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Self

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.structs import TopicPartition

from winnow.client.testing import unpruned
from winnow.contracts import ids, limits
from winnow.contracts.envelope import headers_for
from winnow.contracts.events import Candidate, Committed
from winnow.contracts.topics import CANDIDATE, COMMITTED, OBSERVATION, RUNTIME

PARTITIONS = 4


async def create_topics(bootstrap: str, prefix: str) -> None:
    """Create the client's topics where they are missing."""
    admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await admin.start()
    try:
        there = set(await admin.list_topics())
        wanted = [
            NewTopic(prefix + t.name, PARTITIONS, 1, topic_configs={"max.message.bytes": str(t.max_record_bytes)})
            for t in (CANDIDATE, COMMITTED, RUNTIME, OBSERVATION)
            if prefix + t.name not in there
        ]
        if wanted:
            await admin.create_topics(wanted)
    finally:
        await admin.close()


class Responder:
    """Answers every candidate with `answer(candidate, request hash)`; None leaves it unanswered."""

    def __init__(self, bootstrap: str, prefix: str, answer: Callable[[Candidate, str], Committed | None] = unpruned) -> None:
        self.bootstrap, self.prefix, self.answer = bootstrap, prefix, answer
        self.candidates: list[Candidate] = []
        self.headers: list[dict[str, bytes]] = []
        self.before_answer: Callable[[Candidate], Awaitable[None]] | None = None
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        await create_topics(self.bootstrap, self.prefix)
        self.consumer = AIOKafkaConsumer(
            bootstrap_servers=self.bootstrap,
            auto_offset_reset="latest",
            fetch_max_wait_ms=20,
            max_partition_fetch_bytes=2 * limits.CANDIDATE_RECORD_BYTES,
        )
        self.producer = AIOKafkaProducer(bootstrap_servers=self.bootstrap, acks="all", max_request_size=limits.CANDIDATE_RECORD_BYTES)
        await self.consumer.start()
        await self.producer.start()
        partitions = [TopicPartition(self.prefix + CANDIDATE.name, p) for p in range(PARTITIONS)]
        self.consumer.assign(partitions)
        for where in partitions:
            await self.consumer.position(where)
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self.consumer.stop()
        await self.producer.stop()

    async def publish(self, committed: Committed) -> None:
        key = committed.key
        event_id = str(ids.event_id(committed.fleet, committed.boundary_id, COMMITTED.event_type))
        headers = headers_for(COMMITTED, event_id=event_id, source="test", subject=key, time=datetime.now(UTC))
        await self.raw(key.encode(), committed.model_dump_json().encode(), headers)

    async def raw(self, key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes]]) -> None:
        await self.producer.send_and_wait(self.prefix + COMMITTED.name, value, key=key, headers=headers)

    async def _run(self) -> None:
        async for record in self.consumer:
            candidate = Candidate.model_validate_json(record.value)
            self.candidates.append(candidate)
            self.headers.append(dict(record.headers))
            if self.before_answer is not None:
                await self.before_answer(candidate)
            committed = self.answer(candidate, candidate.request_sha256())
            if committed is not None:
                await self.publish(committed)
