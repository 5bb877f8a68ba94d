"""The pipeline under load: boundaries a second, memory, and the time from publishing to committed beside the raw loop."""

import asyncio
import pickle
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import asyncpg

from tests.benchmarks import loop
from tests.benchmarks.boundaries import Factory, Sample
from tests.benchmarks.figures import Figure, against
from tests.benchmarks.progress import say
from tests.benchmarks.stack import Ground, Stack, stack
from tests.benchmarks.traffic import Traffic, first_bodies, percentile
from tests.benchmarks.watch import Watch
from tests.harness.processes import Program
from winnow.cli.processes import PROCESSES
from winnow.contracts.topics import COMMITTED, EVIDENCE, SCORES

#: Processes, each with the services that it runs.
Layout = tuple[tuple[str, ...], ...]

#: Boundaries on the way at full speed: four batches a stage. Deeper queues change the latency, not the rate.
WINDOW = 400
#: Boundaries a second of the latency figures.
RATE = 10.0
#: Seconds that a group may take to form and the first boundaries to pass.
READY_S = 120.0
#: Share of the services' memory that a thousand boundaries may add, once warm, and count as flat: below it is the noise of the allocator.
FLAT = 0.005
#: Bodies of each stage that the raw loop passes on.
BODIES = 200

#: As `winnow up` runs them; and a process a service, as production does.
AS_UP: Layout = tuple(PROCESSES.values())
PROCESS_EACH: Layout = (("retriever",), ("judge",), ("pruner",), ("drift_monitor", "gateway"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is sent."""

    warm_up: int
    full_speed: int
    #: Through the second layout.
    second: int
    at_rate: int


FULL = Size(warm_up=400, full_speed=5_000, second=1_500, at_rate=200)
QUICK = Size(warm_up=100, full_speed=600, second=300, at_rate=60)


def measure(kind: str, size: Size) -> Iterator[Figure]:
    """Measure the pipeline in both layouts and the raw loop, each alone on one broker."""
    with stack(kind) as servers:
        up = _pipeline(servers, AS_UP, size, "as winnow up runs it")
        say(f"{kind}: raw loop")
        raw = _loop(servers, size, up.bodies)
        each = _pipeline(servers, PROCESS_EACH, replace(size, full_speed=size.second), "a process a service")
    yield from _figures(kind, size, up, raw)
    name = f"pipeline, {kind}: rate, a process a service"
    yield against(name, each.per_second, "boundaries/s", raw.per_second)
    median, base = percentile(each.latencies, 0.5), percentile(raw.latencies, 0.5)
    yield against(f"pipeline, {kind}: median latency at 10/s, a process a service", median, "ms", base)


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
    goal = f"value <= {services * FLAT:.2f}" if size is FULL else None
    yield Figure(name=f"{name}: services' memory growth, second half", value=run.watch.slope("services"), unit="MiB/1,000", goal=goal)
    yield Figure(name=f"{name}: services' memory", value=services, unit="MiB", baseline=raw.watch.last("services"), ratio=None)
    yield Figure(name=f"{name}: broker's memory", value=run.watch.last("broker"), unit="MiB", baseline=raw.watch.last("broker"), ratio=None)
    for role, spent in run.watch.spent.items():
        other = raw.watch.spent[role]
        each, base = spent / size.full_speed * 1000, other / size.full_speed * 1000
        yield Figure(
            name=f"{name}: processor time, {role}", value=each, unit="ms/boundary", baseline=base, ratio=each / base if base else None
        )


def _pipeline(servers: Stack, layout: Layout, size: Size, label: str) -> Run:
    """Measure the services in one layout."""
    ground = servers.ground()
    programs = [servers.services(ground, *names) for names in layout]
    try:
        return asyncio.run(_through_services(servers, ground, programs, size, f"{servers.kind}, {label}"))
    finally:
        for program in programs:  # once: a second signal ends a service at once, with its work undone
            program.terminate()
        for program in programs:
            program.wait()


async def _through_services(servers: Stack, ground: Ground, programs: Sequence[Program], size: Size, label: str) -> Run:
    """Send boundaries through services that run, and look at what came of them."""
    total = size.warm_up + size.full_speed + size.at_rate
    samples = [sample for run in Factory.load(fleet="bench").runs(total) for sample in run]
    async with Traffic(ground.settings, alive=lambda: all(p.alive for p in programs)) as traffic:
        per_second, latencies, watch = await _load(traffic, samples, size, _roles(servers, programs), label)
    connection = await asyncpg.connect(ground.asyncpg_url)
    try:
        await _complete(connection, len(samples))
    finally:
        await connection.close()
    bodies = [await first_bodies(ground.settings, topic, BODIES) for topic in (EVIDENCE, SCORES, COMMITTED)]
    return Run(per_second=per_second, latencies=latencies, bodies=bodies, watch=watch)


def _roles(servers: Stack, programs: Sequence[Program]) -> dict[str, list[int]]:
    """Who is watched."""
    return {"services": [p.pid for p in programs], "broker": [servers.broker_pid], "PostgreSQL": [servers.postgres.pid]}


async def _complete(connection: asyncpg.Connection, expected: int) -> None:
    """Every boundary is committed and was judged: a pipeline that gives up is fast, too."""
    rows = await connection.fetch("SELECT outcome, count(*) AS n FROM boundaries WHERE committed_at IS NOT NULL GROUP BY outcome")
    outcomes = {row["outcome"]: row["n"] for row in rows}
    letters = await connection.fetchval("SELECT count(*) FROM dead_letters")
    if outcomes != {"judged": expected} or letters:
        text = f"expected {expected} judged boundaries, found {outcomes} and {letters} dead letters"
        raise AssertionError(text)


def _loop(servers: Stack, size: Size, bodies: Sequence[Sequence[bytes]]) -> Run:
    """Measure the raw loop, with the same candidates."""
    ground = servers.ground()
    with tempfile.NamedTemporaryFile(suffix=".pickle") as file:
        pickle.dump(bodies, file)
        file.flush()
        asyncio.run(loop.prepare(ground.settings, ground.asyncpg_url))
        program = servers.command(ground, ["-m", "tests.benchmarks.loop", file.name], "loop")
        try:
            return asyncio.run(_through_loop(servers, ground, program, size))
        finally:
            program.stop()


async def _through_loop(servers: Stack, ground: Ground, program: Program, size: Size) -> Run:
    """Send candidates through the loop that runs."""
    samples = [sample for run in Factory.load(fleet="bench").runs(size.warm_up + size.full_speed + size.at_rate) for sample in run]
    ends = {"source": loop.TOPICS[0], "target": loop.TOPICS[-1]}
    async with Traffic(ground.settings, alive=lambda: program.alive, answer=lambda s: s.candidate_id, **ends) as traffic:
        per_second, latencies, watch = await _load(traffic, samples, size, _roles(servers, [program]), f"{servers.kind}, raw loop")
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
