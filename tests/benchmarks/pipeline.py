"""The pipeline under load: boundaries a second, memory, and the time from publishing to committed beside the raw loop."""

import asyncio
import pickle
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import asyncpg

from tests.benchmarks import loop
from tests.benchmarks.boundaries import Factory, Sample
from tests.benchmarks.figures import Figure, against
from tests.benchmarks.progress import say
from tests.benchmarks.stack import KAFKA, Ground, Stack, stack
from tests.benchmarks.traffic import Traffic, percentile
from tests.benchmarks.watch import Watch
from tests.harness.processes import Program

#: Boundaries on the way at full speed: four batches a stage. Deeper queues change the latency, not the rate.
WINDOW = 400
#: Boundaries a second of the latency figures.
RATE = 10.0
SERVICES = ("retriever", "judge", "pruner", "drift_monitor")
#: Seconds that a group may take to form and the first boundaries to pass.
READY_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is sent."""

    warm_up: int
    full_speed: int
    at_rate: int


FULL = Size(warm_up=300, full_speed=5_000, at_rate=200)
QUICK = Size(warm_up=60, full_speed=600, at_rate=60)


def measure(kind: str, size: Size) -> Iterator[Figure]:
    """Measure the pipeline and the raw loop on one broker, each alone on the machine."""
    with stack(kind) as servers:
        ground = servers.ground()
        program = servers.services(ground, *SERVICES)
        roles = {"services": [program.pid], "broker": [servers.broker_pid], "PostgreSQL": [servers.postgres.pid]}
        run = asyncio.run(_pipeline(ground, size, program, roles, kind))
        program.stop()
        say(f"{kind}: raw loop")
        raw_ground = servers.ground()
        raw = asyncio.run(_loop(servers, raw_ground, size, run.bodies))
    yield from _figures(kind, size, run, raw)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What was measured of the pipeline or of the loop."""

    per_second: float
    latencies: list[float]
    bodies: list[list[bytes]]
    watch: Watch


def _figures(kind: str, size: Size, run: Run, raw: Run) -> Iterator[Figure]:
    """Make figures of both."""
    name = "pipeline, " + kind
    yield against(f"{name}: rate", run.per_second, "boundaries/s", raw.per_second, goal="value >= 100")
    median, p99 = percentile(run.latencies, 0.5), percentile(run.latencies, 0.99)
    yield against(f"{name}: median latency at 10/s", median, "ms", percentile(raw.latencies, 0.5), goal="ratio <= 3")
    yield against(f"{name}: p99 latency at 10/s", p99, "ms", percentile(raw.latencies, 0.99), goal="ratio <= 8")
    services = run.watch.last("services")
    # Flat: what the second half of the run adds would take a million boundaries to double the memory.
    goal = f"value <= {services / 1000:.2f}" if size is FULL else None
    yield Figure(name=f"{name}: services' memory growth, second half", value=run.watch.slope("services"), unit="MiB/1,000", goal=goal)
    yield Figure(name=f"{name}: services' memory", value=services, unit="MiB", baseline=raw.watch.last("services"), ratio=None)
    yield Figure(name=f"{name}: broker's memory", value=run.watch.last("broker"), unit="MiB", baseline=raw.watch.last("broker"), ratio=None)
    for role, spent in run.watch.spent.items():
        other = raw.watch.spent[role]
        each, base = spent / size.full_speed * 1000, other / size.full_speed * 1000
        yield Figure(
            name=f"{name}: processor time, {role}", value=each, unit="ms/boundary", baseline=base, ratio=each / base if base else None
        )


async def _pipeline(ground: Ground, size: Size, program: Program, roles: dict[str, list[int]], kind: str) -> Run:
    """Measure the services."""
    factory = Factory.load(fleet="bench")
    total = size.warm_up + size.full_speed + size.at_rate
    samples = [sample for run in factory.runs(total) for sample in run]
    async with Traffic(ground.settings, alive=lambda: program.alive) as traffic:
        per_second, latencies, watch = await _load(traffic, samples, size, roles, f"{kind}: pipeline")
    connection = await asyncpg.connect(ground.asyncpg_url)
    try:
        await _complete(connection, len(samples))
        bodies = [await _bodies(connection, stage) for stage in ("evidence", "scores", "committed")]
    finally:
        await connection.close()
    return Run(per_second=per_second, latencies=latencies, bodies=bodies, watch=watch)


async def _complete(connection: asyncpg.Connection, expected: int) -> None:
    """Every boundary is committed and was judged: a pipeline that gives up is fast, too."""
    rows = await connection.fetch("SELECT outcome, count(*) AS n FROM boundaries WHERE committed_at IS NOT NULL GROUP BY outcome")
    outcomes = {row["outcome"]: row["n"] for row in rows}
    letters = await connection.fetchval("SELECT count(*) FROM dead_letters")
    if outcomes != {"judged": expected} or letters:
        text = f"expected {expected} judged boundaries, found {outcomes} and {letters} dead letters"
        raise AssertionError(text)


async def _bodies(connection: asyncpg.Connection, stage: str) -> list[bytes]:
    """Return stored outputs of a stage."""
    rows = await connection.fetch("SELECT body FROM stage_outputs WHERE stage = $1 ORDER BY created_at, boundary_id LIMIT 200", stage)
    return [bytes(row["body"]) for row in rows]


async def _loop(servers: Stack, ground: Ground, size: Size, bodies: Sequence[Sequence[bytes]]) -> Run:
    """Measure the raw loop, with the same candidates."""
    await loop.prepare(ground.settings, ground.asyncpg_url)
    factory = Factory.load(fleet="bench")
    samples = [sample for run in factory.runs(size.warm_up + size.full_speed + size.at_rate) for sample in run]
    with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
        pickle.dump(bodies, file)
        file.flush()
        program = servers.command(ground, ["-m", "tests.benchmarks.loop", file.name], "loop")
        roles = {"services": [program.pid], "broker": [servers.broker_pid], "PostgreSQL": [servers.postgres.pid]}
        ends = {"source": loop.TOPICS[0], "target": loop.TOPICS[-1]}
        async with Traffic(ground.settings, alive=lambda: program.alive, answer=lambda s: s.candidate_id, **ends) as traffic:
            per_second, latencies, watch = await _load(traffic, samples, size, roles, f"{servers.kind}: raw loop")
        await asyncio.to_thread(program.stop)
    return Run(per_second=per_second, latencies=latencies, bodies=[], watch=watch)


async def _load(
    traffic: Traffic, samples: Sequence[Sample], size: Size, roles: dict[str, list[int]], label: str
) -> tuple[float, list[float], Watch]:
    """Warm up, then full speed, then the fixed rate: memory is measured over what has run before, latency on warm processes."""
    warm, rest = samples[: size.warm_up], samples[size.warm_up :]
    full, paced = rest[: size.full_speed], rest[size.full_speed :]
    say(f"{label}: warm-up, {len(warm)} boundaries")
    await asyncio.wait_for(traffic.at_full_speed(warm, window=WINDOW), READY_S)
    say(f"{label}: {len(full):,} boundaries at full speed")
    before = len(traffic.seen)
    start = time.monotonic()
    with Watch(roles=roles, done=lambda: len(traffic.seen) - before) as watch:
        ticker = asyncio.create_task(_tick(traffic, before, len(full), label))
        await traffic.at_full_speed(full, window=WINDOW)
        ticker.cancel()
    per_second = len(full) / (traffic.last(full) - start)
    say(f"{label}: {len(paced)} boundaries at {RATE:.0f}/s")
    await traffic.at_rate(paced, per_second=RATE)
    return per_second, traffic.latencies(paced), watch


async def _tick(traffic: Traffic, before: int, total: int, label: str) -> None:
    """Tell every five seconds how far it is."""
    while True:
        await asyncio.sleep(5)
        say(f"{label}: {len(traffic.seen) - before:,} of {total:,}")


def kafka_is_missing() -> str | None:
    """Return why Apache Kafka cannot run here."""
    from winnow.embedded import distribution

    return distribution.why_missing()


__all__ = ["FULL", "KAFKA", "QUICK", "Size", "kafka_is_missing", "measure"]
