"""Monitors die while losses stream in; what they know in the end is what one pass over the losses gives."""

import asyncio
import os
import random
import signal
import sys
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

import asyncpg
import pytest

from tests.faults.ground import Ground
from tests.faults.storm import say, until
from tests.faults.wire import Sender
from tests.harness.processes import Program, Spawner
from winnow.assurance import monitor, state
from winnow.assurance.config import MonitorConfig
from winnow.contracts.events import Graded, Observation, Sampled
from winnow.contracts.topics import OBSERVATION
from winnow.embedded import Capability
from winnow.messaging.lag import LagReader

#: Monitors that share the partitions.
MEMBERS = 2
STREAMS = 12
#: Of these the last drifts half-way: its alarm must come once.
DRIFTING = STREAMS - 1
#: Observations that a copy or a grade may come later than its place.
REORDERED = 150
#: Units on the way at most: a blow must fall amid work.
WINDOW = 400
#: Seconds that a partition may stand still until its group is joined anew; a killed member keeps its partitions for two.
STALL_S = 8.0
GRADER = "rule 1"


@dataclass
class Losses:
    """What is reported, in the order of sending, and what each stream must come to."""

    fleet: str
    records: list[tuple[int, Observation]] = field(default_factory=list)
    losses: dict[str, list[float]] = field(default_factory=dict)
    copies: int = 0


def make(units: int, rng: random.Random) -> Losses:
    """Units of all streams, a third of them graded later than sampled, a tenth of all reports repeated later."""
    made = Losses(fleet=f"faults{uuid.UUID(int=rng.getrandbits(128)).hex[:8]}")
    now = datetime.now(UTC)
    placed: list[tuple[float, int, Observation]] = []
    for number in range(units):
        stream = f"s{number % STREAMS}"
        risk = 0.35 if number % STREAMS == DRIFTING and number > units // 2 else 0.02
        loss = float(rng.random() < risk)
        made.losses.setdefault(stream, []).append(loss)
        sampled, graded = Sampled(probability=1.0, at=now), Graded(loss=loss, grader=GRADER, at=now)
        common = {"fleet": made.fleet, "stream": stream, "unit": f"u{number}"}
        apart = rng.random() < 1 / 3
        first = Observation(event_id=_id(rng), sampled=sampled, graded=None if apart else graded, **common)
        # Samples keep their order: it is the order of sampling. Grades and copies come when they come.
        placed.append((number, number, first))
        if apart:
            placed.append((number + rng.uniform(-REORDERED, REORDERED), number, Observation(event_id=_id(rng), graded=graded, **common)))
        if rng.random() < 0.1:
            made.copies += 1
            again = first if rng.random() < 0.5 else first.model_copy(update={"event_id": _id(rng)})
            placed.append((number + rng.uniform(0, REORDERED), number, again))
    made.records = [(number, event) for _, number, event in sorted(placed, key=lambda p: p[0])]
    return made


def _id(rng: random.Random) -> uuid.UUID:
    return uuid.UUID(int=rng.getrandbits(128))


class Monitors:
    """Some drift monitors in processes of their own, and what they have decided together."""

    def __init__(self, spawn: Spawner, ground: Ground, fleet: str) -> None:
        self._ground, self._fleet = ground, fleet
        env = ground.environment(fold_interval_s="0.2", heartbeat_interval_s="1", stall_s=f"{STALL_S:g}")
        self.programs: list[Program] = [
            spawn.command([sys.executable, "-m", "services", "drift_monitor"], env=env, label=f"monitor{n}") for n in range(MEMBERS)
        ]
        self.decided = 0
        self._one_at_a_time = asyncio.Lock()

    async def strike(self, number: int, sign: signal.Signals) -> None:
        """End one of them and start it again."""
        program = self.programs[number % MEMBERS]
        async with self._one_at_a_time:
            program.send(sign)
            await asyncio.to_thread(program.wait)
            await asyncio.to_thread(program.restart)

    async def supervise(self) -> None:
        """Start again what ended by itself, for ever: whose liveness failed ends its process."""
        while True:
            await asyncio.sleep(0.5)
            for program in self.programs:
                async with self._one_at_a_time:
                    if not program.alive:
                        say(f"{program!r} ended; {await behind(self._ground, self._fleet)}")
                        await asyncio.to_thread(program.restart)

    def healed(self) -> int:
        """Stand-stills that the monitors noticed."""
        return sum(program.output.count('"partitions_stalled"') for program in self.programs)

    async def watch(self) -> None:
        """Count what was decided, for ever."""
        connection = await asyncpg.connect(self._ground.asyncpg_url)
        try:
            while True:
                self.decided = await connection.fetchval(
                    "SELECT coalesce(sum(last_seq), 0)::bigint FROM monitor_states WHERE fleet = $1 AND stream NOT LIKE 'missing:%'",
                    self._fleet,
                )
                await asyncio.sleep(0.1)
        finally:
            connection.terminate()


async def play(ground: Ground, losses: Losses, monitors: Monitors, *, kills: int, rng: random.Random, deadline_s: float) -> None:
    """Send everything while monitors are struck down; return when all units are decided."""
    total = sum(map(len, losses.losses.values()))
    start = time.monotonic()

    async def send() -> None:
        async with Sender(ground.settings) as sender:
            for number, event in losses.records:
                if number - monitors.decided > WINDOW:
                    await until(lambda n=number: n - monitors.decided <= WINDOW)
                await sender.send(OBSERVATION, event.model_dump_json().encode(), key=event.key.encode())

    async def strike() -> None:
        for number in range(kills):
            at = (number + 0.5) / kills * total * 0.95
            await until(lambda at=at: monitors.decided >= at)
            sign = rng.choice([signal.SIGKILL, signal.SIGKILL, signal.SIGTERM])
            say(f"{time.monotonic() - start:6.1f} s, {monitors.decided} decided: {sign.name}")
            await monitors.strike(number, sign)

    try:
        async with asyncio.timeout(deadline_s), asyncio.TaskGroup() as group:
            watching, supervising = group.create_task(monitors.watch()), group.create_task(monitors.supervise())
            sending, striking = group.create_task(send()), group.create_task(strike())
            await sending
            await striking
            await until(lambda: monitors.decided >= total)
            watching.cancel()
            supervising.cancel()
    except TimeoutError:
        text = f"after {deadline_s:.0f} s {monitors.decided} of {total} were decided; {await behind(ground, losses.fleet)}"
        raise AssertionError(text) from None
    took = f"{kills} kills in {time.monotonic() - start:.1f} s, {monitors.healed()} stand-stills"
    say(f"{len(losses.records)} observations of {total} units, {losses.copies} copies, {took}")


async def behind(ground: Ground, fleet: str) -> str:
    """Where it stands still: records that nobody took, and streams with units that nobody decided."""
    async with LagReader(ground.settings) as reader:
        lags = [lag.by_partition for lag in await reader.read([("drift_monitor", OBSERVATION)])]
    connection = await asyncpg.connect(ground.asyncpg_url)
    try:
        rows = await connection.fetch(
            "SELECT s.stream, s.last_seq AS given, coalesce(m.last_seq, 0) AS decided, m.status, (SELECT min(o.seq) FROM observations o"
            " WHERE o.fleet = s.fleet AND o.stream = s.stream AND o.loss IS NULL) AS ungraded"
            " FROM streams s LEFT JOIN monitor_states m ON m.fleet = s.fleet AND m.stream = s.stream"
            " WHERE s.fleet = $1 AND s.stream NOT LIKE 'missing:%' ORDER BY s.stream",
            fleet,
        )
    finally:
        await connection.close()
    return f"lag {lags}; streams {[tuple(r) for r in rows]}"


async def findings(connection: asyncpg.Connection, losses: Losses) -> list[str]:
    """What is not as a single pass would have it; each a sentence."""
    found: list[str] = []
    epochs = await connection.fetch(
        "SELECT stream, config::text AS config FROM monitor_epochs WHERE fleet = $1 AND epoch = 1", losses.fleet
    )
    configs = {r["stream"]: r["config"] for r in epochs}
    states = {r["stream"]: r for r in await connection.fetch("SELECT * FROM monitor_states WHERE fleet = $1", losses.fleet)}
    for stream, expected in losses.losses.items():
        rows = await connection.fetch(
            "SELECT seq, loss, fate FROM observations WHERE fleet = $1 AND stream = $2 ORDER BY seq", losses.fleet, stream
        )
        if [r["seq"] for r in rows] != list(range(1, len(expected) + 1)) or [r["loss"] for r in rows] != expected:
            found.append(f"{stream}: the ledger is not the losses in sampling order, each once")
        if {r["fate"] for r in rows} != {"folded"}:
            found.append(f"{stream}: not everything was folded")
        config = MonitorConfig(**_json(configs[stream]))
        passed = state.dump(monitor.fold(config, monitor.initial(config), expected), stream=f"{losses.fleet}/{stream}", epoch=1)
        if states[stream]["state"] != passed:
            found.append(f"{stream}: the state is not that of a single pass")
        quiet = MonitorConfig(**_json(configs[f"missing:{stream}"]))
        beside = monitor.fold(quiet, monitor.initial(quiet), [0.0] * len(expected))
        if states[f"missing:{stream}"]["state"] != state.dump(beside, stream=f"{losses.fleet}/missing:{stream}", epoch=1):
            found.append(f"{stream}: the state of its missing grades is not that of a single pass")
    return found


def _json(text: str) -> dict[str, object]:
    import json

    return json.loads(text)


@pytest.mark.needs(Capability.IDEMPOTENCE)
@pytest.mark.parametrize(
    ("units", "kills", "deadline_s"),
    [
        # A start takes a second of processor time, and fifteen seconds on a machine that is busy with other things.
        pytest.param(3_000, 5, 180.0, id="scaled", marks=pytest.mark.timeout(230)),
        pytest.param(50_000, 50, 840.0, id="full", marks=[pytest.mark.long, pytest.mark.timeout(960)]),
    ],
)
async def test_monitors_die(units: int, kills: int, deadline_s: float, ground: Ground, spawn: Spawner) -> None:
    """Whatever dies, each unit is folded once, in sampling order, into the state of a single pass, and a drift is told of once."""
    seed = int(os.environ.get("WINNOW_STORM_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
    say(f"WINNOW_STORM_SEED={seed}")
    rng = random.Random(seed)
    losses = make(units, rng)
    monitors = Monitors(spawn, ground, losses.fleet)
    await play(ground, losses, monitors, kills=kills, rng=rng, deadline_s=deadline_s)
    connection = await asyncpg.connect(ground.asyncpg_url)
    try:
        assert await findings(connection, losses) == []
        await _told_once(connection, losses, ["raised", "held"])
        # A check that finds nothing must be able to find something.
        await connection.execute(
            "UPDATE monitor_states SET state = replace(state, '0', '1') WHERE fleet = $1 AND stream = 's0'", losses.fleet
        )
        await connection.execute("UPDATE observations SET fate = NULL WHERE fleet = $1 AND stream = 's1' AND seq = 7", losses.fleet)
        assert [f.split(":")[0] for f in await findings(connection, losses)] == ["s0", "s1"]
    finally:
        await connection.close()


async def _told_once(connection: asyncpg.Connection, losses: Losses, kinds: Sequence[str]) -> None:
    """The stream that drifted alarmed, its fleet is held, and each step was told of once."""
    rows = await connection.fetch("SELECT kind, stream FROM alerts WHERE fleet = $1 ORDER BY kind DESC", losses.fleet)
    told = [(r["kind"], r["stream"]) for r in rows]
    assert told == [(kind, f"s{DRIFTING}") for kind in kinds], told
    assert await connection.fetchval("SELECT held_since IS NOT NULL FROM fleets WHERE fleet = $1", losses.fleet)
    queued = await connection.fetchval("SELECT count(*) FROM outbox WHERE fleet = $1", losses.fleet)
    assert queued == len(kinds)
