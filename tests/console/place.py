"""A gateway with a console, without broker or browser: what people of several roles and fleets get from it."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID, uuid4

import httpx

from services.gateway.app import GatewayService, build
from services.gateway.console.settings import ConsoleSettings
from services.gateway.settings import GatewaySettings
from tests.harness.pipeline import Stages, candidate
from winnow.contracts.vocabulary import Reason
from winnow.messaging.settings import KafkaSettings
from winnow.storage import api_keys, dead_letters, fleets, originals, raw, streams
from winnow.storage.database import Database
from winnow.storage.dead_letters import NewDeadLetter
from winnow.storage.originals import Kind
from winnow.storage.settings import DatabaseSettings
from winnow.telemetry import Telemetry

#: Nothing listens here: pages need no broker.
NO_BROKER = KafkaSettings(kafka_bootstrap_servers="127.0.0.1:1", idempotence="off")
SECRET = "s" * 40
TEXT = "## Decisions\n- Flight HAT136 costs $152\n- Surely the customer likes the aisle\n"


@dataclass
class Place:
    """A gateway with a boundary and a dead letter of one fleet, and people of several."""

    service: GatewayService
    db: Database
    fleet: str
    boundary: UUID
    letter: int

    async def key(self, role: str = "operator", *, fleet: str | None = None) -> str:
        now = datetime.now(UTC)
        async with self.db.transaction() as tx:
            await fleets.ensure(tx, [fleet or self.fleet], default=fleets.Point(), now=now)
            secret, _ = await api_keys.create(tx, fleet or self.fleet, name=role, role=role, by="test", now=now)
        return secret

    def stranger(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.service.url, timeout=30)

    @asynccontextmanager
    async def person(self, role: str = "operator", *, fleet: str | None = None) -> AsyncIterator[httpx.AsyncClient]:
        """Somebody who has signed in through the form."""
        async with self.stranger() as http:
            answer = await http.post("/console/sign-in", data={"key": await self.key(role, fleet=fleet)})
            assert answer.status_code == 303, answer.text
            yield http

    @property
    def pages(self) -> list[str]:
        """Every page of the fleet."""
        root = f"/console/fleets/{self.fleet}"
        rest = ("runs", "boundaries", f"boundaries/{self.boundary}", "streams", "stream?name=harm", "certificates", "alerts", "judges",
                "dead-letters", f"dead-letters/{self.letter}", "audit")  # fmt: skip
        return [root, *(f"{root}/{one}" for one in rest)]

    async def token(self, http: httpx.AsyncClient) -> str:
        found = re.search(r'name="token" value="([0-9a-f]{64})"', (await http.get("/console")).text)
        assert found
        return found[1]

    @property
    def forms(self) -> list[str]:
        """Where every form of the fleet goes."""
        return [f"/console/fleets/{self.fleet}/{one}" for one in (f"dead-letters/{self.letter}/replay", "hold", "release")]

    def send(self, http: httpx.AsyncClient, form: str, **fields: str):
        return http.post(form, data={"because": "mended", "confirmed": "yes"} | fields, headers=self.headers)

    def replay(self, http: httpx.AsyncClient, **fields: str):
        return self.send(http, self.forms[0], **fields)

    headers = {"sec-fetch-site": "same-origin"}  # noqa: RUF012  a test's constant

    async def replays(self) -> int:
        async with self.db.transaction() as tx:
            return (await dead_letters.get(tx, self.letter)).replays

    async def held_because(self) -> str | None:
        async with self.db.transaction() as tx:
            return (await fleets.load(tx, [self.fleet]))[self.fleet].held_because

    async def held_since(self) -> str:
        """The hold, as its page names it."""
        async with self.db.transaction() as tx:
            since = (await fleets.load(tx, [self.fleet]))[self.fleet].held_since
        return since.isoformat() if since else ""

    async def audited(self, kind: str) -> list[tuple[str, str, str, str]]:
        """Action, role of the actor, reason and outcome of the fleet's audit rows of one kind, oldest first."""
        query = "SELECT action, actor, because, outcome FROM audit_log WHERE fleet = $1 AND action LIKE $2 || '.%' ORDER BY id"
        async with self.db.transaction() as tx:
            rows = await raw.fetch(tx, query, self.fleet, kind)
        return [(r["action"], r["actor"].partition(":")[0], r["because"], r["outcome"]) for r in rows]

    async def handles(self) -> dict[Kind, str]:
        async with self.db.transaction() as tx:
            return await originals.handles_of(tx, self.fleet, self.boundary)

    async def looks(self) -> list[tuple[str, str | None]]:
        async with self.db.transaction() as tx:
            rows = await raw.fetch(
                tx, "SELECT kind, part FROM recoveries WHERE fleet = $1 AND event_id IS NULL AND via = 'gateway' ORDER BY id", self.fleet
            )
        return [(r["kind"], r["part"]) for r in rows]


@asynccontextmanager
async def standing(dsn: str) -> AsyncIterator[Place]:
    """A gateway with its console over the database at `dsn`, for as long as the block lasts."""
    fleet = f"f{uuid4().hex[:12]}"
    async with Database(dsn) as db:
        committed = await Stages(db).one(candidate(TEXT, fleet=fleet))
        letter = NewDeadLetter(
            topic="winnow.runtime.v1", partition=0, offset=uuid4().int % 10**9, key=f"{fleet}/r".encode(), value=b'{"a": 1}', headers=(),
            reason=Reason.INVALID, error="no", service="drift_monitor", fleet=fleet, run="r",
        )  # fmt: skip
        async with db.transaction() as tx:
            await streams.register(tx, fleet, "harm", config={}, weight=None, now=datetime.now(UTC))
            (stored,) = await dead_letters.add(tx, [letter], now=datetime.now(UTC))
        service = build(
            Telemetry.plain("gateway"), NO_BROKER, DatabaseSettings(database_url=dsn),
            GatewaySettings(gateway_port=0, gateway_key_cache_s=0), ConsoleSettings(console_secret=SECRET, console_max_streams=3),
        )  # fmt: skip
        await service.start()
        try:
            yield Place(service=service, db=db, fleet=fleet, boundary=committed.boundary_id, letter=stored.id)
        finally:
            async with asyncio.timeout(30):
                await service.stop()
