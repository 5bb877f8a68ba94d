"""The drift monitor's fold with PostgreSQL behind it, and the memory of many live streams; in a process of its own, which prints JSON.

`python -m tests.benchmarks.monitoring UNITS STREAMS` measures on the database of WINNOW_DATABASE_URL.
"""

import asyncio
import json
import random
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import asyncpg
import psutil
from aiokafka import AIOKafkaProducer

from services.__main__ import collect_seldom
from services.drift_monitor.handlers import ObservationHandler
from services.drift_monitor.telling import Teller
from tests.benchmarks.figures import Figure, against
from tests.benchmarks.progress import say
from tests.benchmarks.stack import MESH, Ground, Stack, stack
from winnow.assurance import monitor
from winnow.assurance.config import MonitorConfig
from winnow.contracts.envelope import headers_for
from winnow.contracts.events import Graded, Observation, Sampled
from winnow.contracts.limits import KIB
from winnow.contracts.topics import OBSERVATION
from winnow.messaging.intake import Opened, open_record, validate
from winnow.messaging.records import Received, Record
from winnow.storage import fleets, folding, raw, watched
from winnow.storage.database import Database
from winnow.storage.keys import StreamKey
from winnow.storage.policy import Policy
from winnow.storage.settings import DatabaseSettings
from winnow.telemetry import Telemetry

FLEET = "bench"
#: Units of one stream in one transaction, as when a monitor catches up; and observations of one batch, as they come from the bus.
AT_ONCE, BATCH = 500, ObservationHandler.records_at_once
#: Streams of one transaction.
TOGETHER = 100
#: Streams whose losses come from the bus one batch after the other.
FROM_BUS = 8
#: Streams of the backlog that a whole service works off.
BACKLOG_STREAMS = 64
#: Losses of which an update is timed, and values that a detector has seen when its memory is taken.
UPDATES, SEEN = 50_000, 200
NAMES = {"seed": "the published rule", "adwin": "river's ADWIN", "page_hinkley": "river's Page-Hinkley"}
#: Units that the baseline folds: a transaction each.
SINGLY = 300


def measure(*, quick: bool) -> Iterator[Figure]:
    """Measure on a durable PostgreSQL of this benchmark's own."""
    units, streams = (20_000, 2_000) if quick else (100_000, 10_000)
    say(f"monitor: {units:,} units through the fold, then {streams:,} live streams")
    with stack(MESH) as servers:
        ground = servers.ground()
        program = servers.command(ground, ["-m", "tests.benchmarks.monitoring", str(units), str(streams)], "monitoring")
        program.wait(600)
        found = json.loads(program.output.splitlines()[-1])
        served, alone = asyncio.run(_served(servers, servers.ground(), units // 2))
    yield against(
        f"monitor, units through the fold with PostgreSQL, {AT_ONCE} of {TOGETHER} streams a transaction (baseline: a transaction each)",
        found["fold"], "units/s", found["singly"], goal="value >= 20000",
    )  # fmt: skip
    yield against(
        f"monitor, observations from their bytes to the commit, {FROM_BUS} streams, batches of {BATCH}"
        " (baseline: the same by processor time alone, service and server one after the other)",
        found["handler"], "units/s", found["handler_alone"], goal="value >= 20000",
    )  # fmt: skip
    yield against(
        f"monitor, a backlog of {units // 2:,} observations through the whole service from the embedded broker, one process"
        " (baseline: by processor time of the service and its connections to the server)",
        served, "units/s", alone,
    )  # fmt: skip
    for other, name in NAMES.items():
        goal = "value <= 5" if other == "seed" else None
        yield against(f"monitor, one update in pure Python (baseline: {name})", found["update"], "µs", found[other], goal=goal)
    yield against(
        f"monitor, memory with {streams:,} live streams (baseline: before the first)", found["memory"], "MB", found["memory_before"],
        goal="value <= 300",
    )  # fmt: skip
    yield Figure(name=f"monitor, memory that as many of river's ADWIN add, {SEEN} values each", value=found["adwin_memory"], unit="MB")


async def _measure(units: int, streams: int) -> dict[str, float]:
    """All figures, on one connection."""
    database = DatabaseSettings()
    async with Database(database.database_url.get_secret_value(), pool_size=1) as db:
        now = datetime.now(UTC)
        async with db.transaction() as tx:
            await fleets.ensure(tx, [FLEET], default=fleets.Point(), now=now)
        await _fold(db, [StreamKey(FLEET, f"warm{n}") for n in range(2)], 200, now)
        keys = [StreamKey(FLEET, f"fold{n}") for n in range(TOGETHER)]
        # Streams that live: their epochs are open.
        await _fold(db, keys, TOGETHER, now, limit=1)
        fold = await _fold(db, keys, units, now, begin=2)
        singly = await _singly(db, now)
        handler, alone = await _handled(db, units // 5)
        before = _memory()
        many = [StreamKey(FLEET, f"many{n}") for n in range(streams)]
        await _fold(db, many, streams, now, limit=1)
        # Again, as a monitor that lives: nothing may pile up.
        await _fold(db, many, streams, now, limit=1, begin=2)
        after = _memory()
        from river import drift  # after the memory of a monitor was taken, which does not load it

        with_river = _memory()
        detectors = [drift.ADWIN() for _ in range(streams)]
        for detector in detectors:
            for _ in range(SEEN):
                detector.update(0.0)
        adwin = _memory() - with_river
        return {name: _update(name) for name in ("update", *NAMES)} | {
            "fold": fold, "singly": singly, "handler": handler, "handler_alone": alone, "memory_before": before, "memory": after,
            "adwin_memory": adwin,
        }  # fmt: skip


async def _ledger(db: Database, keys: Sequence[StreamKey], each: int, begin: int, now: datetime) -> None:
    """Put graded units of each stream into the ledger, as the handler would have, were there no monitor."""
    async with db.transaction() as tx:
        names = [key.stream for key in keys]
        await raw.execute(
            tx,
            "INSERT INTO streams (fleet, stream, registered_at, last_seq) SELECT $1, s, $3, $4 FROM unnest($2::text[]) AS s"
            " ON CONFLICT (fleet, stream) DO UPDATE SET last_seq = excluded.last_seq",
            FLEET, names, now, begin + each - 1,
        )  # fmt: skip
        await raw.execute(
            tx,
            "INSERT INTO observations (fleet, stream, seq, observed_at, unit, probability, sampled_at, loss, lo, grader)"
            " SELECT $1, s, i, $3, 'u' || i, 1, $3, (random() < 0.02)::int, 0, 'bench'"
            " FROM unnest($2::text[]) AS s, generate_series($4::bigint, $5::bigint) AS i",
            FLEET, names, now, begin, begin + each - 1,
        )  # fmt: skip


async def _fold(db: Database, keys: Sequence[StreamKey], units: int, now: datetime, *, limit: int = AT_ONCE, begin: int = 1) -> float:
    """Units a second through the service's fold."""
    await _ledger(db, keys, units // len(keys), begin, now)
    policy, done = Policy(limit=limit), 0
    start = time.perf_counter()
    while done < units // len(keys) * len(keys):
        for first in range(0, len(keys), TOGETHER):
            some = keys[first : first + TOGETHER]
            async with db.transaction() as tx:
                await watched.lock(tx, some)
                report = await folding.fold(tx, some, policy, now=now)
            done += sum(report.fates.values())
    return done / (time.perf_counter() - start)


async def _singly(db: Database, now: datetime) -> float:
    """The same fold, a transaction a unit: what one pays who does not fold in batches."""
    key = StreamKey(FLEET, "singly")
    await _ledger(db, [key], SINGLY, 1, now)
    start = time.perf_counter()
    for _ in range(SINGLY):
        async with db.transaction() as tx:
            await watched.lock(tx, [key])
            await folding.fold(tx, [key], Policy(limit=1), now=now)
    return SINGLY / (time.perf_counter() - start)


async def _handled(db: Database, units: int) -> tuple[float, float]:
    """Observations a second from the bytes of their records to the commit: decoded, checked, numbered, folded, stored.

    And by the processor time of this process and of the server together, as on a core that is nobody else's.
    """
    telemetry = Telemetry.plain("bench")
    handler = ObservationHandler(db, default_point=fleets.Point(), policy=Policy(), clock=lambda: datetime.now(UTC), tell=Teller(telemetry))
    rng = random.Random(1)
    batches = [
        [_record(n, f"bus{number % FROM_BUS}", rng) for n in range(number * BATCH, (number + 1) * BATCH)]
        for number in range(units // BATCH + FROM_BUS)
    ]
    collect_seldom()  # as a service does; nor does it hold all that is to come
    for batch in batches[:FROM_BUS]:  # streams that live
        await handler.handle(_received(batch))
    server = await _server(db)
    start, began = time.perf_counter(), _spent(server)
    for batch in batches[FROM_BUS:]:
        await handler.handle(_received(batch))
    done = (len(batches) - FROM_BUS) * BATCH
    return done / (time.perf_counter() - start), done / (_spent(server) - began)


async def _served(servers: Stack, ground: Ground, units: int) -> tuple[float, float]:
    """Observations a second that one monitor process takes from the broker, and folds, once a tenth of the backlog is done."""
    kafka, rng = ground.settings.kafka_bootstrap_servers, random.Random(1)
    async with AIOKafkaProducer(bootstrap_servers=kafka, linger_ms=5, max_batch_size=256 * KIB) as producer:
        for start in range(0, units, BATCH):
            some = [_record(n, f"bus{n % BACKLOG_STREAMS}", rng) for n in range(start, min(start + BATCH, units))]
            sent = [await producer.send(ground.settings.topic_prefix + r.topic, r.value, r.key, headers=list(r.headers)) for r in some]
            await asyncio.gather(*sent)
    monitoring, server = servers.services(ground, "drift_monitor"), psutil.Process(servers.postgres.pid)
    connection = await asyncpg.connect(ground.asyncpg_url)
    own = connection.get_server_pid()

    def spent() -> float:
        processes = [psutil.Process(monitoring.pid), *(p for p in server.children() if p.pid != own)]
        return sum(sum(p.cpu_times()[:2]) for p in processes)

    async def until(count: int) -> tuple[int, float, float]:
        while True:
            folded = await connection.fetchval("SELECT coalesce(sum(folded), 0)::bigint FROM monitor_states WHERE stream LIKE 'bus%'")
            if folded >= count:
                return folded, time.perf_counter(), spent()
            if not monitoring.alive:
                raise RuntimeError(monitoring.output[-2000:])
            await asyncio.sleep(0.05)

    try:
        (first, start, began), (last, end, done) = await until(units // 10), await until(units)
    finally:
        await connection.close()
        monitoring.stop()
    return (last - first) / (end - start), (last - first) / (done - began)


async def _server(db: Database) -> psutil.Process:
    """The process of the server that serves this connection."""
    async with db.reading() as tx:
        row = await raw.fetch_one(tx, "SELECT pg_backend_pid() AS pid")
    assert row is not None
    return psutil.Process(row["pid"])


def _spent(server: psutil.Process) -> float:
    """Seconds of processor time of both."""
    times = server.cpu_times()
    return time.process_time() + times.user + times.system


def _received(records: Sequence[Record]) -> list[Received[Observation]]:
    """What the recipe makes of records: headers read, bodies and keys checked."""
    opened = [open_record(OBSERVATION, record) for record in records]
    valid = [(validate(Observation, one, one.record.value), one.record) for one in opened if isinstance(one, Opened)]
    return [Received(event=event, record=record) for event, record in valid if isinstance(event, Observation)]


def _record(number: int, stream: str, rng: random.Random) -> Record:
    """One observation as it stands on the bus."""
    now = datetime.now(UTC)
    event = Observation(
        fleet=FLEET, event_id=uuid.UUID(int=rng.getrandbits(128)), stream=stream, unit=f"u{number}",
        sampled=Sampled(probability=1.0, at=now), graded=Graded(loss=float(rng.random() < 0.02), grader="bench", at=now),
    )  # fmt: skip
    return Record(
        topic=OBSERVATION.name, partition=0, offset=number, key=event.key.encode(), value=event.model_dump_json().encode(), timestamp=0,
        headers=tuple(headers_for(OBSERVATION, event_id=str(event.event_id), source="bench", subject=event.key, time=now)),
    )  # fmt: skip


def _update(name: str) -> float:
    """Processor microseconds of one update in this very process: ours, the published rule, or a change detector of river."""
    losses = [float(i % 50 == 0) for i in range(UPDATES)]
    start = time.process_time()
    if name in {"update", "seed"}:
        config = MonitorConfig(alpha=0.05, method="seed") if name == "seed" else MonitorConfig(alpha=0.05)
        state = monitor.initial(config)
        for loss in losses:
            state = monitor.update(config, state, loss)
    else:
        from river import drift

        detector = drift.ADWIN() if name == "adwin" else drift.PageHinkley()
        for loss in losses:
            detector.update(loss)
    return (time.process_time() - start) / len(losses) * 1e6


def _memory() -> float:
    """Megabytes that this process has in memory."""
    return psutil.Process().memory_info().rss / 1e6


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_measure(*map(int, sys.argv[1:])))))
