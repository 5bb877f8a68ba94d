"""Settings and clients for the broker at hand."""

import contextlib
import uuid

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

from tests.unit.messaging.support import HASTE, NOW
from winnow.contracts.envelope import headers_for
from winnow.contracts.events import Candidate
from winnow.contracts.limits import MIB
from winnow.contracts.topics import CANDIDATE, EVIDENCE
from winnow.messaging import Bus, Handled, KafkaSettings, Outgoing
from winnow.messaging.fakes import MemoryClaims, MemoryDeadLetters
from winnow.messaging.topics import ensure_topics
from winnow.telemetry import Telemetry


@pytest.fixture
def kafka(broker):
    """Settings for a prefix of this test's own."""
    return settings_for(broker)


def settings_for(broker, **changes):
    return KafkaSettings(
        **{
            "kafka_bootstrap_servers": broker.bootstrap,
            "topic_prefix": f"t{uuid.uuid4().hex[:10]}.",
            "partitions": 3,
            "session_timeout_ms": 1000,
            "heartbeat_interval_ms": 200,
            "graceful_timeout_s": 5.0,
            "hard_exit_s": 8.0,
            "request_timeout_ms": 5000,
        }
        | changes
    )


class Stage:
    """A handler that stores nothing, remembers all, and answers each candidate with an evidence record."""

    topic = CANDIDATE
    target = EVIDENCE
    model = Candidate

    def __init__(self):
        self.batches = []
        self.fail = lambda batch: None
        self.body = lambda event: b"{}"

    @property
    def seen(self):
        return [(event.run, event.index) for batch in self.batches for event in batch]

    def identity(self, event):
        return event.fleet, event.boundary_id

    async def handle(self, batch):
        error = self.fail(batch)
        if error is not None:
            raise error
        self.batches.append([one.event for one in batch])
        return Handled(
            outgoing=[
                Outgoing(
                    topic=self.target,
                    key=one.event.key,
                    body=self.body(one.event),
                    event_id=str(one.event.boundary_id),
                    time=NOW,
                    context=one.context,
                )
                for one in batch
            ]
        )


class Running:
    """A bus with one stage, and clients at both of its ends."""

    def __init__(self, settings, bus, stage, store, claims, telemetry, producer):
        self.settings, self.bus, self.stage, self.store, self.claims = settings, bus, stage, store, claims
        self.telemetry, self.producer = telemetry, producer

    async def send(self, *events, **kwargs):
        for event in events:
            headers = headers_for(CANDIDATE, event_id=str(event.boundary_id), source="test", subject=event.key, time=NOW)
            await self.raw(event.model_dump_json().encode(), key=event.key.encode(), headers=headers, **kwargs)

    async def raw(self, value, *, key=b"f/r", headers=(), topic=CANDIDATE, **kwargs):
        return await self.producer.send_and_wait(self.settings.topic_name(topic.name), value, key=key, headers=list(headers), **kwargs)

    async def read(self, topic, *, at_least=0, timeout_s=15):
        return await read_all(self.settings, topic, at_least=at_least, timeout_s=timeout_s)

    def metric(self, name, **labels):
        return self.telemetry.metrics.value(name, service="retriever", topic=CANDIDATE.name, **labels)

    @property
    def reasons(self):
        return sorted(row.reason for row in self.store.rows.values())


async def read_all(settings, topic, *, at_least=0, timeout_s=15):
    """Everything on a topic now, in the order of each partition; waits until `at_least` records are there."""
    import asyncio

    consumer = AIOKafkaConsumer(
        **settings.client_options(), auto_offset_reset="earliest", max_partition_fetch_bytes=12 * MIB, isolation_level="read_committed"
    )
    await consumer.start()
    try:
        name = settings.topic_name(topic.name)
        consumer.assign([TopicPartition(name, n) for n in range(settings.partitions)])
        records = []
        async with asyncio.timeout(timeout_s):
            while True:
                got = await consumer.getmany(timeout_ms=300)
                records += [record for part in got.values() for record in part]
                if not got and len(records) >= at_least:
                    return records
    finally:
        await consumer.stop()


@contextlib.asynccontextmanager
async def producer_for(settings):
    producer = AIOKafkaProducer(**settings.client_options(), max_request_size=20 * MIB, acks="all")
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


@contextlib.asynccontextmanager
async def running(settings, *, stage=None, telemetry=None, patience=HASTE, store=None, topics=True, **kwargs):
    """A started bus; stopped at the end."""
    telemetry = telemetry or Telemetry.plain("retriever")
    stage, store, claims = stage or Stage(), store or MemoryDeadLetters(), MemoryClaims()
    if topics:
        await ensure_topics(settings, telemetry)
    bus = await Bus.open(settings, telemetry=telemetry, dead_letters=store, claims=claims, patience=patience, **kwargs)
    bus.subscribe(stage)
    async with producer_for(settings) as producer:
        try:
            await bus.start()
            yield Running(settings, bus, stage, store, claims, telemetry, producer)
        finally:
            await bus.stop()
