"""What the stages say in spans: counts, models, tokens and failures, by the conventions; never a text."""

import logging
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from services.judge.handlers import JudgeHandler
from services.pruner.handlers import PrunerHandler
from tests.harness import judge_server as acts
from tests.harness.judge_server import JudgeServer
from tests.harness.pipeline import Stages, candidate
from tests.unit.judging.adapters.asking import settings, spec, transport
from winnow.contracts.events import Evidence
from winnow.contracts.topics import COMMITTED, EVIDENCE, SCORES
from winnow.judging.adapters import registry
from winnow.messaging.records import Received
from winnow.storage import fleets
from winnow.storage.database import Database
from winnow.storage.fleets import Point
from winnow.telemetry import Telemetry, TelemetrySettings
from winnow.telemetry.evaluations import open_evaluations
from winnow.telemetry.traces import open_traces

TEXT = "## Decisions\n- Flight HAT136 costs $152\n- Surely the aisle seat is preferred\n\n## Open TODOs\nNone.\n"


@dataclass
class Traced:
    """Stages whose records have spans, as the bus gives them, and what was exported."""

    stages: Stages
    exporter: InMemorySpanExporter
    telemetry: Telemetry
    fleet: str
    told: InMemoryLogRecordExporter

    async def run(self, text: str = TEXT) -> list[ReadableSpan]:
        """One boundary through all stages; its spans."""
        asked = candidate(text, fleet=self.fleet, run=uuid.uuid4().hex)
        handled = await self.stages.retriever.handle(
            [self.traced("retriever", self.stages.received("c", type(asked), asked.key, asked.model_dump_json().encode()))]
        )
        for handler, topic in ((self.stages.judging, EVIDENCE), (self.stages.pruner, SCORES)):
            batch = [
                self.traced(topic.name, self.stages.received(o.topic.name, handler.model, o.key, o.body))
                for o in handled.outgoing
                if o.topic is topic
            ]
            handled = await handler.handle(batch)
        assert any(o.topic is COMMITTED for o in handled.outgoing)
        for span in self.open:
            span.end()
        self.telemetry.traces._provider.force_flush()
        found = self.exporter.get_finished_spans()
        self.exporter.clear()
        return list(found)

    def evaluations(self) -> list[Any]:
        """What was told of judged boundaries since the last time."""
        self.telemetry.evaluations._provider.force_flush()
        found = [one.log_record for one in self.told.get_finished_logs()]
        self.told.clear()
        return found

    def traced(self, name: str, received: Received[Any]) -> Received[Any]:
        """A record under a `process` span."""
        span = self.telemetry.traces.tracer.start_span(f"process {name}")
        self.open.append(span)
        return replace(received, context=trace.set_span_in_context(span))

    def __post_init__(self) -> None:
        self.open: list[trace.Span] = []


@pytest.fixture
async def server() -> AsyncIterator[JudgeServer]:
    async with JudgeServer(judges=lambda _id, text: 0.1 if "aisle" in text else 0.95) as made:
        yield made


@pytest.fixture
async def traced(store: Database, server: JudgeServer) -> AsyncIterator[Traced]:
    exporter, told = InMemorySpanExporter(), InMemoryLogRecordExporter()
    telemetry = replace(
        Telemetry.plain("test"),
        traces=open_traces(TelemetrySettings(), "test", exporter),
        evaluations=open_evaluations(TelemetrySettings(), "test", told),
    )
    judges = registry.build(
        settings(
            jev=spec(server, "jev", further_attempts=0, breaker_failures=1000),
            other=spec(server, "anthropic", price_input=3.0, price_output=15.0, further_attempts=0),
            both={"kind": "ensemble", "members": ["jev", "other", "local"], "combine": "any", "fallbacks": []},
        ),
        transport=transport,
    )
    stages = Stages(store)
    stages.judging = JudgeHandler(store, judges.by_name, fallback="local", clock=stages.now, telemetry=telemetry)
    stages.pruner = PrunerHandler(store, clock=stages.now, monitor_stale_after=stages.pruner._stale_after, telemetry=telemetry)
    fleet = f"spans-{uuid.uuid4().hex[:8]}"
    async with store.transaction() as tx:
        await fleets.ensure(tx, [fleet], default=Point(judge="jev"), now=datetime.now(UTC))
    yield Traced(stages, exporter, telemetry, fleet, told)
    await judges.close()
    telemetry.close()


def named(spans: list[ReadableSpan], start: str) -> list[ReadableSpan]:
    return [span for span in spans if span.name.startswith(start)]


async def test_a_remote_call_is_a_client_span_by_the_genai_conventions(traced: Traced):
    """`decide <model>` under the judge's span under the record's: provider, models, tokens and host; no text of the boundary anywhere."""
    spans = await traced.run()
    [call] = named(spans, "decide ")
    assert (call.name, call.kind) == ("decide jev-1.13.0", SpanKind.CLIENT)
    assert {name: call.attributes[name] for name in call.attributes if name.startswith(("gen_ai", "server"))} == {
        "gen_ai.operation.name": "decide", "gen_ai.provider.name": "typesafe", "gen_ai.request.model": "jev-1.13.0",
        "gen_ai.response.model": "jev-1.13.0", "gen_ai.usage.input_tokens": 1000, "gen_ai.usage.output_tokens": 8,
        "server.address": "127.0.0.1",
    }  # fmt: skip
    [own] = named(spans, "judge ")
    [record] = [
        span for span in named(spans, "process ") if span.attributes.get("winnow.judge.name") and "winnow.threshold" not in span.attributes
    ]
    assert call.parent.span_id == own.context.span_id
    assert own.parent.span_id == record.context.span_id
    assert own.start_time <= call.start_time <= call.end_time <= own.end_time
    said = " ".join(f"{span.name} {dict(span.attributes)}" for span in spans)
    assert not {"HAT136", "aisle", "$152", "Decisions"} & set(said.replace("'", " ").split())


async def test_the_record_s_spans_say_what_became_of_the_boundary(traced: Traced):
    """Counts before and after, threshold, mode and outcome stand on the spans of the stages."""
    spans = named(await traced.run(), "process ")
    first, _, last = (dict(span.attributes) for span in spans)
    assert (first["winnow.entries.total"], first["winnow.summary.chars.before"], first["winnow.host"]) == (2, len(TEXT), "openclaw")
    assert first["winnow.evidence.passages"] > 0
    assert last["winnow.outcome"] == "judged"
    assert (last["winnow.entries.kept"], last["winnow.entries.pruned"], last["winnow.entries.unscored"]) == (1, 1, 0)
    assert (last["winnow.threshold"], last["winnow.mode"], last["winnow.judge.name"]) == (0.5, "enforce", "jev")
    assert last["winnow.summary.chars.after"] < first["winnow.summary.chars.before"]
    assert len({one["winnow.boundary.id"] for one in (first, last)}) == 1


async def test_lines_of_boundaries_that_are_judged_together_name_their_own_traces(traced: Traced, server: JudgeServer):
    """Two boundaries of one batch, both refused at the same time: each line stands in its record's trace."""
    seen: list[int] = []

    class Watch(logging.Filter):
        def filter(self, record: logging.LogRecord) -> bool:
            if record.getMessage() == "judge_failed":
                seen.append(trace.get_current_span().get_span_context().trace_id)
            return True

    asked = [candidate(TEXT, fleet=traced.fleet, run=uuid.uuid4().hex) for _ in range(2)]
    handled = await traced.stages.retrieve(*asked)
    batch = [traced.traced("evidence", traced.stages.received(o.topic.name, Evidence, o.key, o.body)) for o in handled.outgoing]
    server.then(acts.status(401), acts.status(401))
    logger, watch = traced.telemetry.log.stdlib, Watch()
    logger.addFilter(watch)
    try:
        await traced.stages.judging.handle(batch)
    finally:
        logger.removeFilter(watch)
    assert sorted(seen) == sorted(trace.get_current_span(r.context).get_span_context().trace_id for r in batch)
    assert len(set(seen)) == 2


async def test_members_of_an_ensemble_have_spans_of_their_own(traced: Traced, store: Database):
    """Each remote member's call is a span with its own provider; the local member makes none."""
    async with store.transaction() as tx:
        await fleets.set_point(tx, traced.fleet, Point(judge="both"), by="t", because=None, now=datetime.now(UTC))
    spans = await traced.run()
    assert {span.attributes["gen_ai.provider.name"] for span in named(spans, "decide ")} == {"typesafe", "anthropic"}
    assert [span.name for span in named(spans, "judge ")] == ["judge both"]


async def test_a_failed_call_says_its_failure(traced: Traced, server: JudgeServer):
    """error.type is the class of failure, the status is an error, and unknown tokens are left out."""
    server.then(acts.status(402))
    spans = await traced.run()
    [call] = named(spans, "decide ")
    assert call.attributes["error.type"] == "unpaid"
    assert call.status.status_code is StatusCode.ERROR
    assert "gen_ai.usage.input_tokens" not in call.attributes
    assert "gen_ai.response.model" not in call.attributes
    [own] = named(spans, "judge ")
    assert own.status.status_code is StatusCode.ERROR


async def test_the_local_judge_makes_no_client_span(traced: Traced, store: Database):
    """What does not leave the process is no call."""
    async with store.transaction() as tx:
        await fleets.set_point(tx, traced.fleet, Point(judge="local"), by="t", because=None, now=datetime.now(UTC))
    assert not named(await traced.run(), "decide ")


async def test_a_judged_boundary_is_told_as_an_evaluation(traced: Traced, server: JudgeServer):
    """One event a boundary under the span of its record: share above the threshold, judge and counts; where none answers, why; no text."""
    spans = await traced.run()
    [event] = traced.evaluations()
    [record] = [
        span for span in named(spans, "process ") if span.attributes.get("winnow.judge.name") and "winnow.mode" not in span.attributes
    ]
    assert (event.trace_id, event.span_id) == (record.context.trace_id, record.context.span_id)
    told = dict(event.attributes)
    assert told.pop("winnow.boundary.id") == record.attributes["winnow.boundary.id"]
    assert told == {
        "gen_ai.evaluation.name": "source_support", "gen_ai.evaluation.score.value": 0.5, "gen_ai.evaluation.score.label": "mixed",
        "winnow.judge.name": "jev", "winnow.threshold": 0.5, "winnow.outcome": "judged", "winnow.entries.total": 2,
        "winnow.entries.unscored": 0,
    }  # fmt: skip
    await traced.run("## Open TODOs\nNone.\n")
    assert traced.evaluations() == [], "nothing was there to judge"


async def test_calls_of_models_are_measured_by_the_genai_conventions(traced: Traced, server: JudgeServer, store: Database):
    """Duration and tokens of each remote call, by provider, model and host; a failed one has its error and no tokens."""
    who = {
        "gen_ai_operation_name": "decide", "gen_ai_provider_name": "typesafe", "gen_ai_request_model": "jev-1.13.0",
        "server_address": "127.0.0.1",
    }  # fmt: skip

    def counted(error: str) -> tuple[float, float, float]:
        value = traced.telemetry.metrics.value
        return (
            value("gen_ai_client_operation_duration_seconds", error_type=error, **who),
            value("gen_ai_client_token_usage", gen_ai_token_type="input", **who),
            value("gen_ai_client_token_usage", gen_ai_token_type="output", **who),
        )

    await traced.run()
    assert counted("") == (1, 1, 1)
    server.then(acts.status(402))
    await traced.run()
    assert counted("unpaid") == (1, 1, 1)
    assert counted("") == (1, 1, 1)
    async with store.transaction() as tx:
        await fleets.set_point(tx, traced.fleet, Point(judge="local"), by="t", because=None, now=datetime.now(UTC))
    await traced.run()
    text = traced.telemetry.metrics.render().decode()
    assert len([line for line in text.splitlines() if line.startswith("gen_ai_client_operation_duration_seconds_count")]) == 2


def test_providers_are_told_by_their_hosts():
    """Known hosts by their names, a gateway of one's own by the protocol that it speaks; a host that merely ends alike is not known."""
    from winnow.judging.adapters.specs import JudgesSettings

    urls = {
        "a": ("jev", "https://api.typesafe.ai/v1", "typesafe"),
        "b": ("jev", "https://openrouter.ai/api", "openrouter"),
        "c": ("anthropic", "https://eviltypesafe.ai/x", "anthropic"),
        "d": ("jev", "https://gateway.example/x", "typesafe"),
    }
    judges = {n: {"kind": k, "url": u, "api_key": "k"} | ({"model": "m-1"} if k == "anthropic" else {}) for n, (k, u, _) in urls.items()}
    specs = JudgesSettings.model_validate({"judges": judges}).judges
    assert {name: registry.provider_of(one) for name, one in specs.items()} == {name: p for name, (_, _, p) in urls.items()}
