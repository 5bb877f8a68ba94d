"""The pipeline on a real broker: from a candidate on the bus to a committed summary on the bus, one trace, bad input beside it."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from services.drift_monitor import app as drift_monitor
from services.judge import app as judge
from services.pruner import app as pruner
from services.retriever import app as retriever
from tests.harness.databases import Database as MadeDatabase
from tests.harness.pipeline import candidate
from tests.harness.waiting import eventually
from winnow.contracts.envelope import decode, headers_for
from winnow.contracts.events import Committed, Observation, RuntimeEvent, Sampled
from winnow.contracts.topics import CANDIDATE, COMMITTED, OBSERVATION, RUNTIME, Topic
from winnow.contracts.vocabulary import Adopted, Outcome, Reason, RuntimeEventKind
from winnow.embedded import BrokerHandle
from winnow.messaging.settings import KafkaSettings
from winnow.messaging.topics import ensure_topics
from winnow.storage.settings import DatabaseSettings
from winnow.telemetry import Telemetry, Traces

TEXT = "## Decisions\n- Flight HAT136 costs $152\n- Surely the customer likes the aisle and wants lounge access\n"


@dataclass
class Bus:
    """A running pipeline, seen from outside."""

    prefix: str
    database: MadeDatabase
    producer: AIOKafkaProducer
    spans: InMemorySpanExporter
    committed: list[Committed] = field(default_factory=list)

    async def send(self, topic: Topic, key: str, body: bytes | None, headers: Sequence[tuple[str, bytes]] | None = None) -> tuple[int, int]:
        """Publish one record; return its partition and offset."""
        if headers is None:
            headers = headers_for(topic, event_id=str(uuid.uuid4()), source="test", subject=key, time=datetime.now(UTC))
        sent = await self.producer.send_and_wait(self.prefix + topic.name, body, key=key.encode(), headers=list(headers))
        return sent.partition, sent.offset

    def result(self, boundary_id: uuid.UUID) -> Committed | None:
        """What was published for a boundary, if anything was."""
        return next((c for c in self.committed if c.boundary_id == boundary_id), None)


@pytest.fixture
async def bus(broker: BrokerHandle, topic_prefix: str, database: MadeDatabase) -> AsyncIterator[Bus]:
    """The four consuming services in this event loop, and a reader of the committed topic."""
    kafka = KafkaSettings(
        kafka_bootstrap_servers=broker.bootstrap,
        topic_prefix=topic_prefix,
        partitions=2,
        session_timeout_ms=6000,
        heartbeat_interval_ms=500,
    )
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    traces = Traces(provider.get_tracer("winnow"))
    await ensure_topics(kafka, Telemetry.plain())
    settings = DatabaseSettings(database_url=database.dsn)  # type: ignore[arg-type]
    services = [
        module.build(Telemetry.plain(name, traces), kafka, settings)
        for name, module in (("retriever", retriever), ("judge", judge), ("pruner", pruner), ("drift_monitor", drift_monitor))
    ]
    await asyncio.gather(*(s.start() for s in services))
    producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, max_request_size=CANDIDATE.max_record_bytes)
    consumer = AIOKafkaConsumer(topic_prefix + COMMITTED.name, bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest")
    await producer.start()
    await consumer.start()
    found = Bus(prefix=topic_prefix, database=database, producer=producer, spans=exporter)

    async def read() -> None:
        async for record in consumer:
            found.committed.append(decode(Committed, record.value))

    reader = asyncio.create_task(read())
    try:
        yield found
    finally:
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        await consumer.stop()
        await producer.stop()
        await asyncio.gather(*(s.stop() for s in services))
        provider.shutdown()


async def test_a_candidate_becomes_a_committed_summary_in_one_trace(bus: Bus) -> None:
    """The guess goes, the fact stays, and one trace leads from the candidate through three services to the committed record."""
    asked = candidate(TEXT, run="traced")
    trace_id = "4bf92f3577b34da6a3ce929d0e0e4736"
    headers = [*headers_for(CANDIDATE, event_id="x", source="test", subject=asked.key, time=datetime.now(UTC)),
               ("traceparent", f"00-{trace_id}-00f067aa0ba902b7-01".encode())]  # fmt: skip
    await bus.send(CANDIDATE, asked.key, asked.model_dump_json().encode(), headers)
    committed = await eventually(lambda: bus.result(asked.boundary_id), 30)
    assert committed.outcome is Outcome.JUDGED
    assert committed.summary is not None
    assert committed.summary.text == "## Decisions\n- Flight HAT136 costs $152\n"
    spans = [s for s in bus.spans.get_finished_spans() if s.context.trace_id == int(trace_id, 16)]
    chain = ["process", "send"] * 3
    by_id = {s.context.span_id: s for s in spans}
    last = next(s for s in spans if s.name == f"send {bus.prefix}{COMMITTED.name}")
    names, at = [], last
    while at is not None:
        names.append(at.name.split()[0])
        at = by_id.get(at.parent.span_id) if at.parent else None
    assert names[::-1] == chain


async def test_bad_input_costs_only_itself(bus: Bus) -> None:
    """Poison, a tombstone, a wrong key and a wrong type each become one dead letter, and the valid records around them are judged."""
    good = [candidate(TEXT, run="among-poison", index=i) for i in (1, 2)]
    key = good[0].key
    unbound = good[1].model_copy(update={"candidate_sha256": "0" * 64}).model_dump_json().encode()
    await bus.send(CANDIDATE, key, good[0].model_dump_json().encode())
    bad = [
        (await bus.send(CANDIDATE, key, b"{not json"), Reason.INVALID),
        (await bus.send(CANDIDATE, key, None), Reason.TOMBSTONE),
        (await bus.send(CANDIDATE, "acme/other", good[1].model_dump_json().encode()), Reason.KEY_MISMATCH),
        (await bus.send(CANDIDATE, key, good[1].model_dump_json().encode(), [("ce_type", b"winnow.alert.v1")]), Reason.BAD_HEADERS),
        (await bus.send(CANDIDATE, key, good[1].model_dump_json().encode(), [("ce_type", b"\xff")]), Reason.BAD_HEADERS),
        (
            await bus.send(CANDIDATE, key, unbound),
            Reason.HASH_MISMATCH,
        ),
    ]
    await bus.send(CANDIDATE, key, good[1].model_dump_json().encode(), [("baggage", b"\xff\xfe")])
    for boundary in good:
        assert (await eventually(lambda b=boundary: bus.result(b.boundary_id), 30)).outcome is Outcome.JUDGED

    def letters() -> list[tuple[int, int, str]]:
        rows = bus.database.sql('SELECT partition, "offset", reason FROM dead_letters WHERE topic = $1', bus.prefix + CANDIDATE.name)
        return sorted((r[0], r[1], r[2]) for r in rows)

    expected = sorted((p, o, r.value) for (p, o), r in bad)
    await eventually(lambda: len(letters()) >= len(expected), 20, what="all dead letters")
    assert letters() == expected


async def test_runtime_events_and_observations_are_stored_once(bus: Bus) -> None:
    """What a runtime reports twice is a row once; an observation gets its place in sampling order."""
    asked = candidate(TEXT, run="reported")
    await bus.send(CANDIDATE, asked.key, asked.model_dump_json().encode())
    await eventually(lambda: bus.result(asked.boundary_id), 30)
    now = datetime.now(UTC)
    event = RuntimeEvent(
        fleet="acme", event_id=uuid.uuid4(), run="reported", kind=RuntimeEventKind.ADOPTED, at=now,
        boundary_id=asked.boundary_id, adopted=Adopted.COMMITTED,
    )  # fmt: skip
    seen = Observation(fleet="acme", event_id=uuid.uuid4(), stream="harm", unit="reported", sampled=Sampled(probability=1.0, at=now))
    for _ in range(2):
        await bus.send(RUNTIME, event.key, event.model_dump_json().encode())
        await bus.send(OBSERVATION, seen.key, seen.model_dump_json().encode())
    counts = (
        "SELECT (SELECT count(*) FROM runtime_events WHERE run = 'reported'), (SELECT count(*) FROM observations WHERE unit = 'reported')"
    )
    await eventually(lambda: min(bus.database.sql(counts)[0]) >= 1, 20, what="both are stored")
    assert tuple(bus.database.sql(counts)[0]) == (1, 1)
