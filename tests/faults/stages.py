"""Stages in this process and event loop, on real servers: for faults that need a hand inside."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from uuid import UUID

import asyncpg
from pydantic import SecretStr

from services.__main__ import builder
from tests.benchmarks.boundaries import Sample
from tests.faults.ground import Ground
from tests.faults.wire import Sender, read_all
from tests.harness.waiting import eventually
from winnow.contracts.events import Committed
from winnow.contracts.topics import CANDIDATE, COMMITTED, EVIDENCE, OBSERVATION, RUNTIME, SCORES, Topic
from winnow.messaging.lag import LagReader
from winnow.messaging.runtime import Service
from winnow.storage.settings import DatabaseSettings
from winnow.telemetry import Telemetry

STAGES = ("retriever", "judge", "pruner")
#: What is consumed, and by whom.
CONSUMED = (
    ("retriever", CANDIDATE),
    ("judge", EVIDENCE),
    ("pruner", SCORES),
    ("drift_monitor", RUNTIME),
    ("drift_monitor", OBSERVATION),
)

#: Seconds that a handful of boundaries may take on a machine that is busy with other tests.
PATIENCE_S = 40.0


def database_settings(ground: Ground) -> DatabaseSettings:
    """Return the services' database settings."""
    return DatabaseSettings(database_url=SecretStr(ground.database_url))


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """Services that run in this process."""

    services: list[Service]
    telemetry: dict[str, Telemetry]

    async def says(self, check: str, text: str) -> bool:
        """Tell whether a check whose name begins with `check` answers something with `text` in it."""
        answers = [await one.ask() for service in self.services for one in service.checks() if one.name.startswith(check)]
        return any(answer and text in answer for answer in answers)

    async def joined(self) -> bool:
        """Tell whether every consumer is in its group."""
        answers = [await one.ask() for service in self.services for one in service.checks() if one.name.startswith("joined")]
        return bool(answers) and not any(answers)

    def batches(self, service: str, topic: Topic, result: str) -> float:
        """Return how many batches of a service ended so."""
        return self.telemetry[service].metrics.value("winnow_batches_total", service=service, topic=topic.name, result=result)


@asynccontextmanager
async def running(ground: Ground, *names: str) -> AsyncIterator[Running]:
    """Run services (none named: the three stages) as their composition roots build them."""
    telemetry = {name: Telemetry.plain(name) for name in names or STAGES}
    services = [builder(name)(told, ground.settings, database_settings(ground)) for name, told in telemetry.items()]
    try:
        await asyncio.gather(*(service.start() for service in services))
        yield Running(services=services, telemetry=telemetry)
    finally:
        await asyncio.gather(*(service.stop() for service in services))


async def publish(ground: Ground, *samples: Sample) -> None:
    """Publish candidates in order."""
    async with Sender(ground.settings) as sender:
        await asyncio.gather(*[await sender.send(CANDIDATE, s.body, key=s.key, headers=s.headers) for s in samples])


async def rows(ground: Ground, statement: str, *arguments: object) -> list[asyncpg.Record]:
    """Run one statement on a connection of its own."""
    connection = await asyncpg.connect(ground.asyncpg_url)
    try:
        return list(await connection.fetch(statement, *arguments))
    finally:
        await connection.close()


async def letters(ground: Ground) -> list[asyncpg.Record]:
    """Return the dead letters of this ground's topics."""
    return await rows(
        ground,
        'SELECT topic, partition, "offset", reason, service, attempts FROM dead_letters WHERE starts_with(topic, $1)',
        ground.settings.topic_prefix,
    )


async def committed(ground: Ground) -> dict[UUID, list[bytes]]:
    """Return all committed bodies on the topic by boundary, copies included."""
    bodies: dict[UUID, list[bytes]] = {}
    for record in await read_all(ground.settings, COMMITTED):
        body = bytes(record.value)
        bodies.setdefault(Committed.model_validate_json(body).boundary_id, []).append(body)
    return bodies


async def all_committed(ground: Ground, *samples: Sample, within_s: float = PATIENCE_S) -> None:
    """Wait until the database has each of `samples` committed."""
    wanted = [s.event.boundary_id for s in samples]

    async def done() -> bool:
        found = await rows(ground, "SELECT 1 FROM boundaries WHERE boundary_id = ANY($1) AND committed_at IS NOT NULL", wanted)
        return len(found) == len(wanted)

    await eventually(done, within_s, what=f"{len(wanted)} boundaries committed")


async def acknowledged(ground: Ground, *names: str, within_s: float = PATIENCE_S) -> None:
    """Wait until the groups of the stages (or those named) have nothing before them."""
    async with LagReader(ground.settings) as reader:
        pairs = [pair for pair in CONSUMED if pair[0] in (names or STAGES)]

        async def done() -> bool:
            return not any(lag.records for lag in await reader.read(pairs))

        await eventually(done, within_s, what="every record acknowledged")


def one_body_each(bodies: dict[UUID, list[bytes]], *samples: Sample) -> None:
    """Assert that each of `samples` came out with one distinct body, and nothing else did."""
    assert bodies.keys() == {s.event.boundary_id for s in samples}
    assert [name for name, copies in bodies.items() if len(set(copies)) > 1] == []
