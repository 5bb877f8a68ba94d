"""A process that is asked to stop while agents wait for it."""

import asyncio
import json
import urllib.error
import urllib.request
from datetime import UTC, datetime

import httpx
import pytest

from tests.faults.ground import Ground
from tests.faults.stages import acknowledged, rows
from tests.harness.processes import Spawner
from tests.harness.waiting import eventually
from winnow.embedded import ports
from winnow.storage import api_keys, fleets
from winnow.storage.database import Database

#: Boundaries that are under way when the signal comes, of as many runs.
BOUNDARIES = 30
#: Seconds from the signal to the end of intake.
DELAY_S = 3.0


def body(number: int) -> dict[str, object]:
    """A boundary of a run of its own."""
    history = [{"i": 0, "kind": "environment", "tool": "shell", "text": f"wrote part-{number}.csv with {number} rows"}]
    return {"run": f"r{number}", "index": 1, "candidate": f"## Done\n- wrote part-{number}.csv\n- probably fine\n", "history": history}


async def key_of(ground: Ground, fleet: str) -> str:
    """A new API key."""
    now = datetime.now(UTC)
    async with Database(ground.database_url) as db, db.transaction() as tx:
        await fleets.ensure(tx, [fleet], default=fleets.Point(), now=now)
        secret, _ = await api_keys.create(tx, fleet, name="drain", by="test", now=now)
    return secret


async def readiness(port: int) -> tuple[int, str]:
    """Status and body of /readyz; 0 where nobody listens."""

    def ask() -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError:
            return 0, ""

    return await asyncio.to_thread(ask)


@pytest.mark.long
async def test_a_drained_process_is_unready_first_takes_what_comes_and_loses_nothing(ground: Ground, spawn: Spawner) -> None:
    """After SIGTERM readiness is red while requests are still taken; then it ends with 0, and all that was taken is committed."""
    status, gateway = ports.pick(), ports.pick()
    env = ground.environment(status_port=str(status), gateway_port=str(gateway), drain_delay_s=str(DELAY_S))
    secret = await key_of(ground, "drained")
    program = spawn.services(env=env)

    async def ready() -> bool:
        assert program.alive, program.output
        return (await readiness(status))[0] == 200

    await eventually(ready, 90.0, what="all services are ready")
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{gateway}", headers={"authorization": f"Bearer {secret}"}, timeout=30) as http:
        answers = await asyncio.gather(*(http.post("/v1/boundaries", json=body(n)) for n in range(BOUNDARIES)))
        assert {a.status_code for a in answers} <= {200, 202}
        program.terminate()

        async def red() -> bool:
            own, (code, said) = await http.get("/readyz"), await readiness(status)
            return own.status_code == 503 and code == 503 and "draining" in said

        await eventually(red, DELAY_S * 0.8, what="both readiness pages are red")
        last = await http.post("/v1/boundaries", json=body(BOUNDARIES))
        assert last.status_code in {200, 202}, "intake goes on until the balancer has noticed"
    assert await asyncio.to_thread(program.wait, 30.0) == 0
    events = [json.loads(line)["event"] for line in program.output.splitlines() if line.startswith("{")]
    assert events.index("process_stopping") < events.index("service_stopped") < events.index("process_stopped")
    assert "process_forced_exit" not in events
    taken = await rows(ground, "SELECT count(*) AS n FROM boundaries WHERE fleet = 'drained'")
    assert taken[0]["n"] == BOUNDARIES + 1
    # What was not at its end yet is in the outbox or on the bus: the next process takes it up.
    spawn.services(env=env | {"WINNOW_STATUS_PORT": "0", "WINNOW_DRAIN_DELAY_S": "0"})

    async def all_committed() -> bool:
        found = await rows(ground, "SELECT count(*) AS n FROM boundaries WHERE fleet = 'drained' AND committed_at IS NOT NULL")
        return bool(found[0]["n"] == BOUNDARIES + 1)

    await eventually(all_committed, 90.0, what="everything that was taken is committed")
    await acknowledged(ground)
    assert await rows(ground, "SELECT FROM dead_letters WHERE starts_with(topic, $1)", ground.settings.topic_prefix) == []
