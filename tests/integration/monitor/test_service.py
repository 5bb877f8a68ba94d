"""The service as it is wired: from losses on the bus to an alert on the bus, a hold, and a signed request at the webhook."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from services.drift_monitor import app
from services.drift_monitor.handlers import ObservationHandler
from services.drift_monitor.settings import DriftMonitorSettings
from services.drift_monitor.telling import Teller
from tests.harness.databases import Database as MadeDatabase
from tests.harness.waiting import eventually
from winnow.contracts.envelope import decode, headers_for
from winnow.contracts.events import Alert, Graded, Observation, Sampled
from winnow.contracts.topics import ALERT, OBSERVATION
from winnow.contracts.vocabulary import AlertKind, Reason
from winnow.embedded import BrokerHandle
from winnow.messaging.records import Received, Record
from winnow.messaging.settings import KafkaSettings
from winnow.messaging.topics import ensure_topics
from winnow.messaging.webhook import signature
from winnow.storage import fleets
from winnow.storage.database import Database
from winnow.storage.policy import Policy
from winnow.storage.settings import DatabaseSettings
from winnow.telemetry import Telemetry

SECRET = "0123456789abcdef" * 2
FLEET = "wired"


@dataclass
class World:
    """A running monitor, seen from outside."""

    prefix: str
    database: MadeDatabase
    producer: AIOKafkaProducer
    telemetry: Telemetry
    alerts: list[Alert] = field(default_factory=list)
    hooked: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    async def send(self, *events: Observation) -> None:
        for event in events:
            headers = headers_for(OBSERVATION, event_id=str(event.event_id), source="test", subject=event.key, time=datetime.now(UTC))
            await self.producer.send_and_wait(
                self.prefix + OBSERVATION.name, event.model_dump_json().encode(), key=event.key.encode(), headers=list(headers)
            )

    async def hook(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """A server that takes whatever comes, one request a connection."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        parted = [line.partition(":") for line in head.splitlines()[1:]]
        headers = {name.lower(): value.strip() for name, _, value in parted}
        self.hooked.append((headers, await reader.readexactly(int(headers["content-length"]))))
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()


@pytest.fixture
async def world(broker: BrokerHandle, topic_prefix: str, database: MadeDatabase) -> AsyncIterator[World]:
    kafka = KafkaSettings(
        kafka_bootstrap_servers=broker.bootstrap, topic_prefix=topic_prefix, partitions=2,
        session_timeout_ms=6000, heartbeat_interval_ms=500,
    )  # fmt: skip
    await ensure_topics(kafka, Telemetry.plain())
    telemetry = Telemetry.plain("drift_monitor")
    producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap)
    made = World(prefix=topic_prefix, database=database, producer=producer, telemetry=telemetry)
    server = await asyncio.start_server(made.hook, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    settings = DriftMonitorSettings(
        webhook_url=url, webhook_secret=SECRET, fold_interval_s=0.1, look_interval_s=0.1, watermark_s=0.5, heartbeat_interval_s=0.2
    )
    service = app.build(telemetry, kafka, DatabaseSettings(database_url=database.dsn), settings)
    consumer = AIOKafkaConsumer(topic_prefix + ALERT.name, bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest")
    await asyncio.gather(service.start(), producer.start(), consumer.start())

    async def read() -> None:
        async for record in consumer:
            made.alerts.append(decode(Alert, record.value))

    reader = asyncio.create_task(read())
    try:
        yield made
    finally:
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)
        await asyncio.gather(service.stop(), consumer.stop(), producer.stop())
        server.close()
        await server.wait_closed()


def _unit(number: int, loss: float | None, *, stream: str = "harm") -> Observation:
    now = datetime.now(UTC)
    return Observation(
        fleet=FLEET, event_id=uuid.uuid4(), stream=stream, unit=f"u{number}", sampled=Sampled(probability=1.0, at=now),
        graded=None if loss is None else Graded(loss=loss, grader="rule 1", at=now),
    )  # fmt: skip


async def test_from_a_loss_to_a_hold(world):
    """Losses on the bus raise an alarm: the fleet is held, and the same alert is on the alert topic and, signed, at the webhook."""
    await world.send(*(_unit(n, 1.0) for n in range(40)))
    raised = await eventually(lambda: next((a for a in world.alerts if a.kind is AlertKind.RAISED), None), 30)
    assert (raised.fleet, raised.stream) == (FLEET, "harm")
    rows = world.database.sql("SELECT held_by, hold_alert FROM fleets WHERE fleet = $1", FLEET)
    assert [(r["held_by"], str(r["hold_alert"])) for r in rows] == [("drift_monitor", str(raised.alert_id))]
    await eventually(lambda: len(world.hooked) >= 2, 30, what="both alerts at the webhook")
    for headers, body in world.hooked:
        assert headers["winnow-signature"] == signature(SECRET, int(headers["winnow-timestamp"]), body)
    assert raised.alert_id in {Alert.model_validate_json(body).alert_id for _, body in world.hooked}
    await eventually(lambda: world.telemetry.metrics.value("winnow_fleets_held") >= 1, 20)
    # The alarm may come before the last of the forty is fetched.
    await eventually(lambda: world.telemetry.metrics.value("winnow_units_total", fate="folded") == 40, 20, what="all units")
    assert world.telemetry.metrics.value("winnow_alerts_total", kind="raised") == 1
    # A unit that nobody grades is given up by the timer, without anything else arriving.
    await world.send(_unit(1, None, stream="silent"))
    await eventually(lambda: world.telemetry.metrics.value("winnow_units_total", fate="missing") == 1, 30, what="the timer")
    assert world.database.sql("SELECT fate FROM observations WHERE stream = 'silent'")[0]["fate"] == "missing"


async def test_the_monitors_own_names(database):
    """An observation for a stream of missing grades is a dead letter; those beside it are folded."""
    telemetry = Telemetry.plain("drift_monitor")
    async with Database(database.dsn, pool_size=1) as db:
        handler = ObservationHandler(
            db, default_point=fleets.Point(), policy=Policy(), clock=lambda: datetime.now(UTC), tell=Teller(telemetry)
        )
        batch = []
        for offset, event in enumerate((_unit(1, 0.0, stream="missing:other"), _unit(1, 0.0, stream="other"))):
            record = Record(topic="o", partition=0, offset=offset, key=event.key.encode(), headers=(), value=b"", timestamp=0)
            batch.append(Received(event=event, record=record))
        handled = await handler.handle(batch)
        assert [(d.record.offset, d.reason) for d in handled.dead] == [(0, Reason.INVALID)]
        assert (await handler.handle(batch[:1])).dead
        await handler.handle(batch[1:])
    assert telemetry.metrics.value("winnow_units_total", fate="folded") == 1
    assert telemetry.metrics.value("winnow_units_total", fate="duplicate") == 1
