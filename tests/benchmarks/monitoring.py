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

import psutil

from services.drift_monitor.handlers import ObservationHandler
from services.drift_monitor.telling import Teller
from tests.benchmarks.figures import Figure, against
from tests.benchmarks.progress import say
from tests.benchmarks.stack import MESH, stack
from winnow.assurance import monitor
from winnow.assurance.config import MonitorConfig
from winnow.contracts.envelope import Envelope
from winnow.contracts.events import Graded, Observation, Sampled
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
    yield against(
        f"monitor, units through the fold with PostgreSQL, {AT_ONCE} of {TOGETHER} streams a transaction (baseline: a transaction each)",
        found["fold"], "units/s", found["singly"], goal="value >= 20000",
    )  # fmt: skip
    yield Figure(
        name=f"monitor, observations stored and folded, {FROM_BUS} streams, batches of {BATCH}", value=found["handler"], unit="units/s"
    )
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
        handler = await _handled(db, units // 5)
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
            "fold": fold, "singly": singly, "handler": handler, "memory_before": before, "memory": after,
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


async def _handled(db: Database, units: int) -> float:
    """Observations a second through the service's handler: stored, numbered, folded."""
    telemetry = Telemetry.plain("bench")
    handler = ObservationHandler(db, default_point=fleets.Point(), policy=Policy(), clock=lambda: datetime.now(UTC), tell=Teller(telemetry))
    rng = random.Random(1)
    batches = [
        [_received(n, f"bus{number % FROM_BUS}", rng) for n in range(number * BATCH, (number + 1) * BATCH)]
        for number in range(units // BATCH)
    ]
    start = time.perf_counter()
    for batch in batches:
        await handler.handle(batch)
    return len(batches) * BATCH / (time.perf_counter() - start)


def _received(number: int, stream: str, rng: random.Random) -> Received[Observation]:
    """One observation as the bus hands it over."""
    now = datetime.now(UTC)
    event = Observation(
        fleet=FLEET, event_id=uuid.UUID(int=rng.getrandbits(128)), stream=stream, unit=f"u{number}",
        sampled=Sampled(probability=1.0, at=now), graded=Graded(loss=float(rng.random() < 0.02), grader="bench", at=now),
    )  # fmt: skip
    record = Record(topic="observation", partition=0, offset=number, key=event.key.encode(), headers=(), value=b"", timestamp=0)
    return Received(event=event, record=record, envelope=Envelope())


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
