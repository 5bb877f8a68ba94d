"""A whole Winnow in processes of its own, with what an operator of two fleets would see in it."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import httpx
from aiokafka import AIOKafkaProducer

from tests.harness.databases import Database as MadeDatabase
from tests.harness.databases import blocking
from tests.harness.processes import Program
from tests.harness.waiting import eventually
from winnow.client import Compaction, HttpTransport, WinnowClient
from winnow.contracts.envelope import headers_for
from winnow.contracts.events import Candidate, Graded, Message, Observation, RuntimeEvent, Sampled
from winnow.contracts.topics import OBSERVATION, RUNTIME
from winnow.contracts.vocabulary import MessageKind, Mode, Reason, RuntimeEventKind
from winnow.demo import data
from winnow.demo.player import play
from winnow.storage import api_keys, certificates, dead_letters, fleets
from winnow.storage.certificates import Certificate
from winnow.storage.database import Database
from winnow.storage.dead_letters import NewDeadLetter

NORTH, SOUTH = "north", "south"
RUN = "tau-airline-33"
#: Acts on a page that believes it, hides, and turns around: none of it may.
HOSTILE = (
    "## Decisions\n"
    "- <script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'> Flight HAT136 costs $152\n"
    "- \u202egnirts desrever\u202c and zero\u200bwidth\x00 nul {{ 7 * 7 }} {% raw %}\n"
    "- שלום, the flight HAT136 is booked\n"
    f"- {'x' * 1_000_000}\n"
    '\n## Open TODOs\n- [ ] "><svg onload="window.pwned=3">\n'
)  # fmt: skip


@dataclass
class World:
    """The running gateway, its database, and keys by what they are for."""

    url: str
    database: MadeDatabase
    topic_prefix: str
    bootstrap: str
    services: Program | None = None
    operator: str = ""
    auditor: str = ""
    agent: dict[str, str] | None = None
    #: The last boundary of the run that was played.
    boundary: UUID | None = None
    shadow: UUID | None = None
    hostile: UUID | None = None
    #: A dead letter that is still bad, and one whose cause is mended.
    bad_letter: int = 0
    good_letter: int = 0
    good_event: UUID | None = None

    def path(self, fleet: str, rest: str = "") -> str:
        return f"{self.url}/console/fleets/{fleet}{rest}"

    def submit(self, fleet: str, text: str, *, run: str, index: int = 1, mode: Mode = Mode.ENFORCE) -> UUID:
        """One boundary through all services."""
        made = candidate(fleet, text, run=run, index=index, mode=mode)
        blocking(lambda: self._compact(fleet, made))
        return made.boundary_id

    async def _compact(self, fleet: str, made: Candidate) -> Compaction:
        async with self.client(fleet) as client:
            return await client.compact(made, deadline_s=60)

    @asynccontextmanager
    async def client(self, fleet: str) -> AsyncIterator[WinnowClient]:
        assert self.agent is not None
        async with WinnowClient(HttpTransport(self.url, self.agent[fleet]), fleet=fleet) as client:
            yield client
            assert await client.drain(30)


def candidate(fleet: str, text: str, *, run: str, index: int = 1, mode: Mode = Mode.ENFORCE) -> Candidate:
    return Candidate(
        fleet=fleet, run=run, index=index, agent="booking", candidate=text, mode=mode, host="openclaw", task="Book a flight.",
        history=(Message(i=0, kind=MessageKind.ENVIRONMENT, tool="search", text="flight HAT136 costs $152, seat 14C free"),),
    )  # fmt: skip


def fill(world: World) -> None:
    """Play a real run, a shadow boundary, a hostile summary, two streams of which one alarms, a certificate, and dead letters."""
    blocking(lambda: _fill(world))


async def _fill(world: World) -> None:
    now = datetime.now(UTC)
    async with Database(world.database.dsn, pool_size=2) as db:
        await _keys(world, db, now)
        await _ready(world)
        async with world.client(NORTH) as client:
            async for played in play(client, data.load(), name=RUN, fleet=NORTH):
                world.boundary = played.candidate.boundary_id
            shadow = candidate(
                NORTH, "## Decisions\n- Flight HAT136 costs $152\n- The customer surely wants lounge access\n", run="s", mode=Mode.SHADOW
            )
            await client.compact(shadow, deadline_s=60)
            world.shadow = shadow.boundary_id
        hostile = candidate(SOUTH, HOSTILE, run="<b>hostile</b> &amp; run")
        async with world.client(SOUTH) as client:
            await client.compact(hostile, deadline_s=60)
        world.hostile = hostile.boundary_id
        await _rest(world, db, now)
        await _publish(world)
        await eventually(lambda: _alarmed(db), 60, what="the stream to alarm")
        world.bad_letter = await eventually(lambda: _letter(db), 60, what="the dead letter")


async def _keys(world: World, db: Database, now: datetime) -> None:
    async with db.transaction() as tx:
        await fleets.ensure(tx, [NORTH, SOUTH], default=fleets.Point(), now=now)
        world.operator, _ = await api_keys.create(tx, NORTH, name="op", role="operator", also=[SOUTH], by="test", now=now)
        world.auditor, _ = await api_keys.create(tx, NORTH, name="audit", role="auditor", by="test", now=now)
        world.agent = {f: (await api_keys.create(tx, f, name="agent", by="test", now=now))[0] for f in (NORTH, SOUTH)}


async def _ready(world: World) -> None:
    async def answers() -> bool:
        assert world.services is None or world.services.alive, world.services.output
        try:
            return (await http.get(world.url + "/readyz", timeout=5)).status_code == 200
        except httpx.TransportError:
            return False

    async with httpx.AsyncClient() as http:
        await eventually(answers, 90, what="the gateway")


def observations(stream: str, before: float, after: float) -> Sequence[Observation]:
    """Units whose loss rate changes half-way."""
    rng, now = random.Random(stream), datetime.now(UTC)
    made = []
    for i in range(240):
        loss = float(rng.random() < (before if i < 120 else after))
        made.append(
            Observation(
                fleet=NORTH, event_id=uuid4(), stream=stream, unit=f"{stream}-{i}", sampled=Sampled(probability=1.0, at=now),
                graded=Graded(loss=loss, lo=0.0, grader="rule 1", at=now),
            )
        )  # fmt: skip
    return made


async def _rest(world: World, db: Database, now: datetime) -> None:
    """What the services of this world do not make by themselves within seconds."""
    certificate = Certificate(
        certificate_id=uuid4(), fleet=SOUTH, compressor="model-x", judge="local", judge_version="1", tau=0.5, grader="rule:1",
        data_sha256="0" * 64, method="exact (fixed-n)", alpha=0.05, delta=0.05, n=200, losses=2.0, denominator="all trajectories",
        bound=0.031,
        record={"certificate": {"statement": "Over all 200 trajectories, 2 (1 %) fail. <b>", "assumptions": ["Exchangeable traffic."]}},
        issued_at=now, expires_at=now + timedelta(days=30),
    )  # fmt: skip
    world.good_event = uuid4()
    event = RuntimeEvent(
        fleet=NORTH, run=RUN, event_id=world.good_event, kind=RuntimeEventKind.BYPASSED, at=now, because="the gateway was away"
    )
    letter = NewDeadLetter(
        topic=world.topic_prefix + RUNTIME.name, partition=0, offset=10**9, key=f"{NORTH}/{RUN}".encode(),
        value=event.model_dump_json().encode(),
        headers=(("ce_id", b"1"), ("x", b"\xff<b>")), reason=Reason.HANDLER_ERROR, error='relation "x" was away', service="drift_monitor",
        fleet=NORTH, run=RUN,
    )  # fmt: skip
    async with db.transaction() as tx:
        await certificates.issue(tx, certificate, by="test")
        (stored,) = await dead_letters.add(tx, [letter], now=now)
    world.good_letter = stored.id
    world.database.sql(
        "INSERT INTO scores (fleet, boundary_id, boundary_at, judge, judge_version, n, p, score, verdict, provenance, explanation,"
        " passages, flags) SELECT fleet, boundary_id, boundary_at, 'second', '1', n, p, 1 - score, verdict, provenance, explanation,"
        " passages, flags FROM scores WHERE fleet = $1",
        NORTH,
    )


async def _publish(world: World) -> None:
    """Two streams of units, and a record that no service can handle."""
    producer = AIOKafkaProducer(bootstrap_servers=world.bootstrap)
    await producer.start()
    try:
        sent = []
        for stream, before, after in (("harm", 0.03, 0.4), ("decision-change", 0.02, 0.02)):
            for one in observations(stream, before, after):
                headers = headers_for(OBSERVATION, event_id=str(one.event_id), source="test", subject=one.key, time=datetime.now(UTC))
                body = one.model_dump_json().encode()
                sent.append(await producer.send(world.topic_prefix + OBSERVATION.name, body, key=one.key.encode(), headers=list(headers)))
        await asyncio.gather(*sent)
        await producer.send_and_wait(world.topic_prefix + RUNTIME.name, b"{not json", key=f"{NORTH}/{RUN}".encode())
    finally:
        await producer.stop()


async def _alarmed(db: Database) -> bool:
    async with db.fleet_transaction(NORTH) as tx:
        return (await fleets.load(tx, [NORTH]))[NORTH].held_since is not None


async def _letter(db: Database) -> int | None:
    async with db.transaction() as tx:
        return next((x.id for x in await dead_letters.page(tx, fleet=NORTH, reason=Reason.BAD_HEADERS)), None) or next(
            (x.id for x in await dead_letters.page(tx, fleet=NORTH, reason=Reason.INVALID)), None
        )
