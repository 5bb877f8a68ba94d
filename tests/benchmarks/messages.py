"""What the batch recipe costs: records a second through a handler that does nothing, beside a bare client that only reads and commits."""

import asyncio
import time
import uuid
from collections.abc import Hashable, Iterator, Sequence
from datetime import UTC, datetime

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from tests.benchmarks.figures import Figure, against
from tests.benchmarks.progress import say
from tests.benchmarks.stack import HEARTBEAT_MS, MESH, SESSION_TIMEOUT_MS, Stack, stack
from winnow.contracts import ids
from winnow.contracts.envelope import headers_for
from winnow.contracts.events import RuntimeEvent
from winnow.contracts.topics import RUNTIME
from winnow.contracts.vocabulary import RuntimeEventKind
from winnow.messaging.broker import consumer_options, producer_options
from winnow.messaging.bus import Bus
from winnow.messaging.fakes import MemoryDeadLetters
from winnow.messaging.records import Handled, Received
from winnow.messaging.settings import KafkaSettings
from winnow.messaging.topics import ensure_topics
from winnow.telemetry import Telemetry

#: Seconds without a record after which a reader counts as stopped.
STALLED_S = 30.0


class NoOp:
    """A handler that counts."""

    topic = RUNTIME
    model = RuntimeEvent

    def __init__(self, records: int) -> None:
        """Expect `records`."""
        self.handled = 0
        self._records = records
        self.first, self.all = asyncio.Event(), asyncio.Event()

    def identity(self, event: RuntimeEvent) -> Hashable:
        """Return the event's own id."""
        return event.fleet, event.event_id

    async def handle(self, batch: Sequence[Received[RuntimeEvent]]) -> Handled:
        """Count."""
        self.handled += len(batch)
        self.first.set()
        if self.handled >= self._records:
            self.all.set()
        return Handled()


def measure(*, quick: bool) -> Iterator[Figure]:
    """Measure both on the embedded broker, over records that stand there already."""
    records = 3_000 if quick else 30_000
    say(f"messaging: {records:,} records through a handler that does nothing")
    with stack(MESH, database=False) as servers:
        recipe, bare = asyncio.run(_measure(servers, records))
    yield against("messaging, records through the batch recipe (baseline: bare client)", recipe, "records/s", bare)


async def _measure(servers: Stack, records: int) -> tuple[float, float]:
    settings = KafkaSettings(
        kafka_bootstrap_servers=servers.broker.bootstrap,
        topic_prefix="messages.",
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
    )
    telemetry = Telemetry.plain("bench")
    await ensure_topics(settings, telemetry)
    await _publish(settings, records)
    return await _recipe(settings, telemetry, records), await _bare(settings, records)


async def _publish(settings: KafkaSettings, records: int) -> None:
    """Put the records there."""
    producer = AIOKafkaProducer(**producer_options(settings, service="load", idempotent=False))
    await producer.start()
    now = datetime.now(UTC)
    try:
        sends = []
        for number in range(records):
            name = uuid.uuid5(ids.NAMESPACE, str(number))
            event = RuntimeEvent(fleet="bench", run=f"run-{number % 100}", event_id=name, kind=RuntimeEventKind.RUN_ENDED, at=now)
            headers = headers_for(RUNTIME, event_id=str(event.event_id), source="bench", subject=event.key, time=now)
            body = event.model_dump_json().encode()
            sends.append(await producer.send(settings.topic_name(RUNTIME.name), body, key=event.key.encode(), headers=headers))
        await asyncio.gather(*sends)
    finally:
        await producer.stop()


async def _recipe(settings: KafkaSettings, telemetry: Telemetry, records: int) -> float:
    """Read them as a service does; the clock starts with the first batch, since joining a group is no throughput."""
    handler = NoOp(records)
    bus = await Bus.open(settings, telemetry=telemetry, dead_letters=MemoryDeadLetters())
    bus.subscribe(handler)
    await bus.start()
    try:
        await asyncio.wait_for(handler.first.wait(), STALLED_S)
        start, already = time.monotonic(), handler.handled
        await asyncio.wait_for(handler.all.wait(), STALLED_S * 4)
        return (records - already) / (time.monotonic() - start)
    finally:
        await bus.stop()


async def _bare(settings: KafkaSettings, records: int) -> float:
    """Read them with the client alone: same options, same batch size, a commit a batch."""
    consumer = AIOKafkaConsumer(
        settings.topic_name(RUNTIME.name),
        group_id=f"{settings.topic_prefix}bare",
        enable_auto_commit=False,
        **settings.client_options(),
        **consumer_options(settings, max_record_bytes=RUNTIME.max_record_bytes),
    )
    await consumer.start()
    try:
        seen, start, already = 0, 0.0, 0
        async with asyncio.timeout(STALLED_S * 4):
            while seen < records:
                batch = await consumer.getmany(timeout_ms=settings.batch_timeout_ms, max_records=settings.batch_max_records)
                if not batch:
                    continue
                seen += sum(map(len, batch.values()))
                await consumer.commit()
                if not start:
                    start, already = time.monotonic(), seen
        return (records - already) / (time.monotonic() - start)
    finally:
        await consumer.stop()
