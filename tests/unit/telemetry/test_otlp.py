"""Metrics and logs as OTLP has them, sent to a collector on loopback."""

import logging
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.sdk.metrics.export import AggregationTemporality, Gauge, Histogram, Sum

from tests.harness.otlp import OtlpReceiver, attributes
from winnow.telemetry import Log, Metrics, TelemetrySettings
from winnow.telemetry.names import METRICS
from winnow.telemetry.otlp import Exports, data_of, otel_name, resource


def exported(metrics: Metrics) -> dict[str, object]:
    """Metrics by name."""
    data = data_of(metrics, of=resource("test"), began_ns=1, now_ns=2)
    return {one.name: one for one in data.resource_metrics[0].scope_metrics[0].metrics}


def again_for_prometheus(name: str, unit: str, kind: str) -> str:
    """What a collector makes of an OTLP name when it writes it for Prometheus."""
    ending = {"s": "_seconds", "By": "_bytes"}.get(unit, "")
    total = "_total" if kind == "counter" else ""
    return name.replace(".", "_") + ending + total


@pytest.mark.parametrize("name", sorted(METRICS))
def test_names_go_to_otlp_and_come_back(name):
    """OpenTelemetry's form of each name, with its unit, is Prometheus's again on the other side, and no two are the same."""
    assert again_for_prometheus(*otel_name(name), METRICS[name].kind) == name
    assert otel_name(name)[0].startswith("winnow." if METRICS[name].otel is None else "gen_ai.client.")
    assert len({otel_name(one)[0] for one in METRICS}) == len(METRICS)


def test_metrics_of_the_genai_conventions_have_their_names_units_and_attributes():
    """Over OTLP a call is what any GenAI client says of one: dots in the attributes, none that is empty, the advised buckets."""
    metrics = Metrics()
    who = {
        "gen_ai_operation_name": "decide", "gen_ai_provider_name": "typesafe", "gen_ai_request_model": "m-1", "server_address": "",
    }  # fmt: skip
    metrics.observe("gen_ai_client_operation_duration_seconds", 0.5, error_type="", **who)
    metrics.observe("gen_ai_client_token_usage", 1000, gen_ai_token_type="input", **who)
    duration, tokens = (exported(metrics)[f"gen_ai.client.{name}"] for name in ("operation.duration", "token.usage"))
    assert (duration.unit, tokens.unit) == ("s", "{token}")
    common = {"gen_ai.operation.name": "decide", "gen_ai.provider.name": "typesafe", "gen_ai.request.model": "m-1"}
    assert dict(duration.data.data_points[0].attributes) == common
    [point] = tokens.data.data_points
    assert dict(point.attributes) == common | {"gen_ai.token.type": "input"}
    assert (point.sum, list(point.explicit_bounds)[:4], point.explicit_bounds[-1]) == (1000, [1, 4, 16, 64], 67_108_864)


def test_counters_gauges_and_histograms_keep_their_numbers():
    """A counter is a monotonic sum, a gauge a gauge, a histogram's buckets hold what is in them alone."""
    metrics = Metrics()
    metrics.count("winnow_judge_failures_total", 3, judge="jev", failure="unpaid")
    metrics.set("winnow_fleets_held", 2)
    for seconds in (0.0005, 0.003, 0.003, 7.0, 1e6):
        metrics.observe("winnow_boundary_seconds", seconds, outcome="judged")
    found = exported(metrics)
    failures = found["winnow.judge_failures"].data
    assert isinstance(failures, Sum)
    assert failures.is_monotonic
    assert failures.aggregation_temporality is AggregationTemporality.CUMULATIVE
    assert [(p.value, dict(p.attributes)) for p in failures.data_points] == [(3, {"judge": "jev", "failure": "unpaid"})]
    held = found["winnow.fleets_held"].data
    assert isinstance(held, Gauge)
    assert [p.value for p in held.data_points] == [2]
    boundary = found["winnow.boundary"]
    assert boundary.unit == "s"
    assert isinstance(boundary.data, Histogram)
    [point] = boundary.data.data_points
    assert (point.count, sum(point.bucket_counts), dict(point.attributes)) == (5, 5, {"outcome": "judged"})
    assert len(point.bucket_counts) == len(point.explicit_bounds) + 1
    assert math.inf not in point.explicit_bounds
    assert point.bucket_counts[-1] == 1
    assert point.sum == pytest.approx(1e6 + 7.0065)


@given(st.lists(st.floats(0, 1e9, allow_nan=False), max_size=50))
def test_no_bucket_is_negative_and_none_is_lost(values):
    """Whatever is observed, the buckets add up to the count."""
    metrics = Metrics()
    for value in values:
        metrics.observe("winnow_fold_seconds", value)
    point = exported(metrics)["winnow.fold"].data.data_points[0]
    assert min(point.bucket_counts) >= 0
    assert sum(point.bucket_counts) == point.count == len(values)


def test_nothing_is_sent_without_an_endpoint_and_only_what_is_asked_for():
    """Without an endpoint, or with traces alone, no thread and no handler is made."""
    before = list(logging.getLogger().handlers)
    Exports.open(TelemetrySettings(), Metrics()).close()
    Exports.open(TelemetrySettings(otlp_endpoint="http://127.0.0.1:9"), Metrics()).close()
    assert logging.getLogger().handlers == before


def test_metrics_and_logs_reach_a_collector_masked_and_with_their_service():
    """What is left is sent at the end: series with labels, masked events, errors without values, never the exporter's own lines."""
    metrics, log = Metrics(), Log(logging.getLogger("winnow.test"), {"service": "test"})
    metrics.count("winnow_outcomes_total", 4, service="pruner", outcome="judged", reason="")
    with OtlpReceiver() as receiver:
        settings = TelemetrySettings(otlp_endpoint=receiver.url, otlp_signals="metrics,logs", otlp_metrics_every_s=3600)
        exports = Exports.open(settings, metrics, "test")
        try:
            log.warning("judge_failed", judge="jev", error="unpaid", api_key="wnw_secretsecret", text="x" * 10_000)
            try:
                raise ValueError("postgresql://u:hunter2hunter2@h/d")  # noqa: TRY301  an error with a secret in it
            except ValueError as exc:
                log.error("handler_error", exc=exc, topic="t")  # noqa: TRY400  our own logger takes the error as it is
            logging.getLogger("opentelemetry.exporter").warning("an export failed")
        finally:
            exports.close()
    outcome = receiver.metrics["winnow.outcomes"].sum.data_points
    assert [(point.as_double, attributes(point)) for point in outcome] == [(4, {"service": "pruner", "outcome": "judged", "reason": ""})]
    first, second = receiver.logs
    assert (first.body.string_value, first.severity_text, first.event_name) == ("judge_failed", "WARNING", "winnow.judge_failed")
    said = attributes(first)
    assert (said["winnow.judge"], said["winnow.api_key"], said["winnow.service"]) == ("jev", "***", "test")
    assert len(said["winnow.text"]) < 1000
    assert attributes(second)["exception.type"] == "ValueError"
    everything = b"".join(receiver.raw)
    assert b"hunter2" not in everything
    assert b"wnw_secretsecret" not in everything
    assert b"winnow-test" in everything


def test_a_collector_that_is_away_holds_up_nobody():
    """The process ends within its time-outs and nothing is raised."""
    settings = TelemetrySettings(
        otlp_endpoint="http://127.0.0.1:9", otlp_signals="metrics,logs", otlp_metrics_every_s=3600, otlp_timeout_s=0.2
    )
    exports = Exports.open(settings, Metrics(), "test")
    logging.getLogger("winnow.test").warning("hello")
    exports.close()


@pytest.mark.parametrize("text", ["", "trace", "traces,", "traces;logs", "traces,metrics,logs,profiles"])
def test_signals_that_are_none_are_refused(text):
    """A misspelt signal ends the start."""
    with pytest.raises(ValueError, match="otlp_signals"):
        TelemetrySettings(otlp_signals=text)
