"""The end of a process while the world around it is broken."""

import asyncio
import json

import pytest

from tests.faults.ground import Ground
from tests.harness.processes import Program, Spawner
from tests.harness.waiting import eventually
from winnow.embedded import BrokerHandle, Capability

#: Seconds within which a process must be gone; orchestrators kill after 30.
GONE_S = 15.0


def ready(program: Program) -> bool:
    """Tell whether all services of a process consume."""
    lines = [json.loads(line) for line in program.output.splitlines() if line.startswith("{")]
    return any(line.get("event") == "service_ready" and line.get("part") == "process" for line in lines)


@pytest.mark.needs(Capability.CONTROL)
async def test_broker_dead_at_shutdown(storm_ground: Ground, own_broker: BrokerHandle, spawn: Spawner) -> None:
    """A process whose broker is gone ends within fifteen seconds of the signal, by itself."""
    program = spawn.services("retriever", "judge", "pruner", "drift_monitor", env=storm_ground.environment())
    await eventually(lambda: ready(program) or not program.alive, 60.0, what="the services consume")
    assert program.alive, program.output
    await asyncio.to_thread(own_broker.kill)
    # What it then does is wait and retry: let it notice, or the signal would find it unaware.
    await eventually(lambda: "aiokafka" in program.output, what="the services notice that the broker is gone")
    program.terminate()
    await asyncio.to_thread(program.wait, GONE_S)
