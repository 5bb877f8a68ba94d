"""A storm: traffic and rubbish go in while services, database and broker are struck down."""

import asyncio
import contextlib
import random
import signal
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

import asyncpg

from tests.faults.crew import Crew
from tests.faults.plan import Plan, Shot
from tests.faults.stages import CONSUMED
from tests.faults.wire import Position, Sender, position
from winnow.embedded import BrokerHandle, PostgresServer
from winnow.messaging.lag import LagReader
from winnow.messaging.settings import KafkaSettings

#: Valid boundaries on the way: enough that every stage has a batch, few enough that a blow falls amid work.
WINDOW = 200
#: Seconds between looks at the progress.
LOOK_S = 0.2


def say(text: str) -> None:
    """Tell what happens; pytest shows it where the test failed."""
    print(text, flush=True)  # noqa: T201  captured by pytest


async def until(condition: Callable[[], bool]) -> None:
    """Wait for `condition`; the caller's timeout bounds it."""
    while not condition():  # noqa: ASYNC110  what is waited for changes in the database and in processes, which set no event of ours
        await asyncio.sleep(LOOK_S / 4)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blow:
    """Something that goes wrong once a share of the boundaries is committed."""

    at: float
    what: str
    strike: Callable[[], Awaitable[None]]


def blows(crew: Crew, postgres: PostgresServer, broker: BrokerHandle, *, kills: int, rng: random.Random) -> list[Blow]:
    """Plan `kills` signals to random services, one restart of the database and one of the broker, spread over the whole run."""
    planned: list[Blow] = []
    # Each service in turn, in an order of chance: no stage goes without a blow.
    names = [name for _ in range(kills) for name in rng.sample(crew.names, len(crew.names))][:kills]
    for number, name in enumerate(names):
        sign = rng.choice([signal.SIGKILL, signal.SIGTERM])
        planned.append(Blow(at=(number + 0.5) / kills * 0.9, what=f"{sign.name} {name}", strike=partial(crew.strike, name, sign)))
    database, kafka = rng.choice([postgres.restart, _again(postgres)]), rng.choice([broker.restart, _again(broker)])
    planned.append(Blow(at=0.35, what="database restart", strike=partial(asyncio.to_thread, database)))
    planned.append(Blow(at=0.65, what="broker restart", strike=partial(asyncio.to_thread, kafka)))
    return sorted(planned, key=lambda blow: blow.at)


def _again(server: PostgresServer | BrokerHandle) -> Callable[[], None]:
    """Kill a server and start it again."""

    def kill_and_start() -> None:
        server.kill()
        server.start()

    return kill_and_start


@dataclass(slots=True)
class Progress:
    """How far the storm is."""

    sent: int = 0
    committed: int = 0
    #: What is being waited for.
    phase: str = "sending"

    async def reaches(self, committed: float) -> None:
        """Wait until so many are committed."""
        await until(lambda: self.committed >= committed)


async def rage(
    plan: Plan, settings: KafkaSettings, database_url: str, planned: Sequence[Blow], *, deadline_s: float
) -> dict[Position, Shot]:
    """Send the plan, strike the blows, and wait until everything is committed, buried and acknowledged.

    Return where the invalid records were written.

    Raises:
        AssertionError: it was not over within `deadline_s` seconds.
    """
    progress = Progress()
    start = time.monotonic()
    total = len(plan.samples)
    try:
        async with asyncio.timeout(deadline_s), asyncio.TaskGroup() as group:
            watching = group.create_task(_watch(database_url, progress))
            striking = group.create_task(_strike(planned, progress, total, start))
            poison = await _send(plan, settings, progress)
            progress.phase = "the last blow"
            await striking
            progress.phase = "the last boundary"
            await progress.reaches(total)
            await _buried(database_url, len(poison), progress)
            await _acknowledged(settings, progress)
            watching.cancel()
    except TimeoutError:
        text = f"after {deadline_s:.0f} s: {progress.sent} of {total} sent, {progress.committed} committed; waiting for {progress.phase}"
        raise AssertionError(text) from None
    say(f"{total} boundaries, {len(poison)} invalid records, {len(planned)} blows in {time.monotonic() - start:.1f} s")
    return poison


async def _send(plan: Plan, settings: KafkaSettings, progress: Progress) -> dict[Position, Shot]:
    """Publish in order, with a bounded number of boundaries on the way."""
    pending: list[tuple[Shot, asyncio.Future[object]]] = []
    async with Sender(settings) as sender:
        for shot in plan.shots:
            await until(lambda: progress.sent - progress.committed < WINDOW)
            pending.append((shot, await sender.send(shot.topic, shot.value, key=shot.key, headers=shot.headers)))
            if shot.what.startswith("boundary"):
                progress.sent += 1
        return {position(await future): shot for shot, future in pending if shot.reason is not None}


async def _strike(planned: Sequence[Blow], progress: Progress, total: int, start: float) -> None:
    """Strike each blow when its share is committed."""
    for blow in planned:
        await progress.reaches(blow.at * total)
        say(f"{time.monotonic() - start:6.1f} s, {progress.committed} committed: {blow.what}")
        await blow.strike()


async def _watch(database_url: str, progress: Progress) -> None:
    """Count the committed boundaries, whenever the database answers."""
    while True:
        # A server that dies within a handshake or an answer makes the client raise InternalClientError, too.
        with contextlib.suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, TimeoutError):
            connection = await asyncpg.connect(database_url, timeout=5)
            try:
                while True:
                    progress.committed = await connection.fetchval("SELECT count(*) FROM boundaries WHERE committed_at IS NOT NULL")
                    await asyncio.sleep(LOOK_S)
            finally:
                connection.terminate()
        await asyncio.sleep(LOOK_S)


async def _buried(database_url: str, letters: int, progress: Progress) -> None:
    """Wait until there are as many dead letters as must be."""
    connection = await asyncpg.connect(database_url)
    try:
        while (stored := await connection.fetchval("SELECT count(*) FROM dead_letters")) < letters:
            progress.phase = f"dead letters: {stored} of {letters}"
            await asyncio.sleep(LOOK_S)
    finally:
        await connection.close()


async def _acknowledged(settings: KafkaSettings, progress: Progress) -> None:
    """Wait until no group has a record before it: copies and poison at the end of a topic, too."""
    async with LagReader(settings) as reader:
        while behind := [lag for lag in await reader.read(CONSUMED) if lag.records]:
            progress.phase = f"groups behind: {behind}"
            await asyncio.sleep(LOOK_S)
