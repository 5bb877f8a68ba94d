"""A process of all services and its collector: one trace from the caller to the committed event, metrics and logs; no content in any."""

import asyncio
import json
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest

from tests.faults.ground import Ground, topics
from tests.harness import databases
from tests.harness.judge_server import JudgeServer
from tests.harness.otlp import OtlpReceiver, attributes
from tests.harness.processes import Spawner
from tests.harness.waiting import eventually
from winnow.embedded import ports
from winnow.storage import api_keys, fleets
from winnow.storage.database import Database

TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
#: Words of the boundary that must be nowhere.
CONTENT = (b"HAT136", b"aisle seat", b"Book a flight")
BODY = {
    "run": "secret-run", "index": 1, "mode": "enforce", "host": "openclaw", "task": "Book a flight",
    "candidate": "## Decisions\n- Flight HAT136 costs $152\n- Surely the aisle seat is preferred\n",
    "history": [{"i": 0, "kind": "environment", "tool": "search", "text": "HAT136 $152 seat 14C"}],
}  # fmt: skip


@pytest.fixture
def ground(database, broker) -> Ground:
    """This module's database and topics."""
    return databases.blocking(lambda: topics(database.dsn, broker))


@pytest.mark.long
@pytest.mark.timeout(180)
async def test_one_boundary_is_one_trace_and_nothing_of_it_is_told(ground: Ground, spawn: Spawner):
    """HTTP, send, process, judge, decide, send, process, send hang under the caller's span; metrics and logs come too."""
    secret = await _key(ground)
    gateway = ports.pick()
    async with JudgeServer(judges=lambda _id, text: 0.1 if "aisle" in text else 0.95) as server:
        with OtlpReceiver() as receiver:
            judge = {"jev": {"kind": "jev", "url": server.url, "allow_insecure_url": True, "api_key": "k"}}
            env = ground.environment(
                gateway_port=str(gateway),
                judges=json.dumps(judge),
                otlp_endpoint=receiver.url,
                otlp_signals="traces,metrics,logs,evaluations",
            )
            program = spawn.services(env=env)
            headers = {"authorization": f"Bearer {secret}", "traceparent": f"00-{TRACE}-{CALLER}-01"}
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{gateway}", headers=headers, timeout=40) as http:

                async def ready() -> bool:
                    assert program.alive, program.output
                    try:
                        return '"part": "process"' in program.output and (await http.get("/readyz")).status_code == 200
                    except httpx.TransportError:
                        return False

                await eventually(ready, 90.0, what="all services are ready")
                answer = await http.post("/v1/boundaries?wait_ms=30000", json=BODY)
                assert answer.json()["outcome"] == "judged", answer.text
            program.terminate()
            assert await asyncio.to_thread(program.wait) == 0
            spans = [(service, span) for service, span in receiver.spans if span.trace_id.hex() == TRACE]
            metrics, logs, raw = receiver.metrics, receiver.logs, b"".join(receiver.raw)

    by_id = {span.span_id.hex(): (service, span) for service, span in spans}
    last = next(span for _, span in spans if span.name.startswith("send") and span.name.endswith("committed.v1"))
    chain, at = [], last.span_id.hex()
    while at in by_id:
        service, span = by_id[at]
        chain.append((service.removeprefix("winnow-"), span.name.split()[0]))
        at = span.parent_span_id.hex()
    assert at == CALLER, "the trace is the caller's"
    stages = [
        ("pruner", "send"),
        ("pruner", "process"),
        ("judge", "send"),
        ("judge", "process"),
        ("retriever", "send"),
        ("retriever", "process"),
    ]
    assert chain[: len(stages)] == stages
    assert [service for service, _ in chain[len(stages) :]] == ["gateway"] * (len(chain) - len(stages))
    assert len(chain) > len(stages)

    [decide] = [span for _, span in spans if span.name.startswith("decide ")]
    _, asked = by_id[decide.parent_span_id.hex()]
    _, processed = by_id[asked.parent_span_id.hex()]
    assert (asked.name, processed.name.split()[0]) == ("judge jev", "process")
    assert attributes(decide)["gen_ai.usage.input_tokens"] == 1000
    pruned = next(attributes(span) for service, span in spans if service == "winnow-pruner" and span.name.startswith("process"))
    assert (pruned["winnow.outcome"], pruned["messaging.system"], pruned["winnow.entries.pruned"]) == ("judged", "kafka", 1)

    assert _evaluated(logs) == (TRACE, processed.span_id, 0.5)
    outcomes = [(point.as_double, attributes(point)) for point in metrics["winnow.outcomes"].sum.data_points]
    assert (1.0, {"service": "pruner", "outcome": "judged", "reason": ""}) in outcomes
    assert metrics["winnow.boundary"].unit == "s"
    assert {"process_started", "service_ready", "process_stopping"} <= {record.body.string_value for record in logs}
    assert not [word for word in (*CONTENT, secret.encode()) if word in raw]
    told = {attributes(point).get(label) for m in metrics.values() for kind in (m.sum, m.gauge, m.histogram) for point in kind.data_points
            for label in attributes(point)}  # fmt: skip
    assert not {"traced", "secret-run"} & told, "no id, fleet or run on metrics"


async def _key(ground: Ground) -> str:
    """An API key of the fleet `traced`, which asks a remote judge."""
    now = datetime.now(UTC)
    async with Database(ground.database_url) as db, db.transaction() as tx:
        await fleets.ensure(tx, ["traced"], default=fleets.Point(judge="jev"), now=now)
        secret, _ = await api_keys.create(tx, "traced", name="t", by="t", now=now)
    return secret


def _evaluated(logs: list[Any]) -> tuple[str, bytes, float]:
    """Trace, span and score of the one evaluation."""
    [record] = [record for record in logs if record.event_name == "gen_ai.evaluation.result"]
    return record.trace_id.hex(), record.span_id, attributes(record)["gen_ai.evaluation.score.value"]
