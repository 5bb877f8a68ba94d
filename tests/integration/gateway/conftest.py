"""A gateway in the test's own event loop, over a real database; the pipeline behind it is played."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from uuid import UUID, uuid4

import httpx
import pytest

from services.gateway.app import GatewayService, build
from services.gateway.settings import GatewaySettings
from winnow.client.testing import unpruned
from winnow.contracts.events import Candidate, Committed, Text
from winnow.contracts.topics import COMMITTED
from winnow.messaging.settings import KafkaSettings
from winnow.storage import api_keys, boundaries, fleets, originals, stages
from winnow.storage.database import Database
from winnow.storage.keys import Key
from winnow.storage.outputs import output_of
from winnow.storage.settings import DatabaseSettings
from winnow.telemetry import Telemetry

#: Nothing listens here: most tests need no broker, and the gateway must not either.
NO_BROKER = KafkaSettings(kafka_bootstrap_servers="127.0.0.1:1", idempotence="off")


class Stage:
    """A running gateway with one fleet of its own, and a hand on what the pipeline would do."""

    def __init__(self, service: GatewayService, db: Database, telemetry: Telemetry, fleet: str, key: str):
        self.service, self.db, self.telemetry, self.fleet, self.key = service, db, telemetry, fleet, key
        self.http = self.client(key)

    def client(self, key: str | None) -> httpx.AsyncClient:
        headers = {"authorization": f"Bearer {key}"} if key else {}
        return httpx.AsyncClient(base_url=self.service.url, headers=headers, timeout=30)

    async def new_key(self, fleet: str | None = None, role: str = "runtime") -> tuple[str, UUID]:
        return await new_key(self.db, fleet or self.fleet, role)

    async def submit(self, **fields) -> dict:
        answer = await self.http.post("/v1/boundaries", json=body(**fields))
        assert answer.status_code == 202, answer.text
        return answer.json()

    async def commit(self, candidate: Candidate, **fields) -> Committed:
        """Store a result as the pruner would, which tells whoever waits."""
        now = datetime.now(UTC)
        async with self.db.transaction() as tx:
            fleet = (await fleets.load(tx, [candidate.fleet]))[candidate.fleet]
            stored = (await boundaries.load(tx, [Key(candidate.fleet, candidate.boundary_id)])).popitem()[1]
            said = {"operating_point": fleet.operating_point.id, "request_sha256": stored.request_sha256}
            event = unpruned(candidate, stored.request_sha256).model_copy(update=said | fields)
            output, overflow = output_of(COMMITTED, event)
            texts = [event.summary.text] if isinstance(event.summary, Text) and event.summary.text is not None else []
            await originals.put(tx, [originals.Content.of(candidate.fleet, t) for t in texts])
            if overflow is not None:
                await originals.put(tx, [overflow.content])
                await originals.put_handles(tx, [overflow.handle])
            assert await stages.store_committed(tx, [stages.CommittedAnswer(event=event, output=output)], now=now)
        return event


def body(**fields) -> dict:
    """A small boundary as JSON."""
    return {"run": "r", "index": 1, "mode": "enforce", "candidate": "## Done\n- parsed a.csv: 12 rows\n- über-plan\n"} | fields


async def new_key(db: Database, fleet: str, role: str = "runtime") -> tuple[str, UUID]:
    now = datetime.now(UTC)
    async with db.transaction() as tx:
        await fleets.ensure(tx, [fleet], default=fleets.Point(), now=now)
        secret, key = await api_keys.create(tx, fleet, name="test", role=role, by="test", now=now)
    return secret, key.key_id


@pytest.fixture
async def db(database) -> AsyncIterator[Database]:
    """The pipeline's own look at the database."""
    async with Database(database.dsn) as made:
        yield made


@pytest.fixture
def gateway_settings() -> dict:
    """Settings of the gateway under test; a test module or parameter may say others."""
    return {}


@pytest.fixture
def kafka() -> KafkaSettings:
    """The broker of the gateway under test: none."""
    return NO_BROKER


@pytest.fixture
async def stage(database, db, gateway_settings, kafka) -> AsyncIterator[Stage]:
    """A gateway, started."""
    telemetry = Telemetry.plain("gateway")
    settings = GatewaySettings(gateway_port=0, **gateway_settings)
    service = build(telemetry, kafka, DatabaseSettings(database_url=database.dsn), settings)
    fleet = f"f{uuid4().hex[:12]}"
    secret, _ = await new_key(db, fleet)
    await service.start()
    made = Stage(service, db, telemetry, fleet, secret)
    try:
        yield made
    finally:
        await made.http.aclose()
        async with asyncio.timeout(30):
            await service.stop()
