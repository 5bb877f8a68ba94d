"""Trace context with and without a collector."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from winnow.telemetry import Attr, TelemetrySettings, Traces
from winnow.telemetry.traces import annotate, open_traces

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_without_a_collector_the_parent_passes_through_unchanged():
    """What comes in goes out, so a caller's trace spans Winnow even where Winnow records nothing."""
    traces = Traces()
    context = traces.extract([("traceparent", PARENT.encode()), ("tracestate", b"a=b")])
    assert traces.inject(context) == [("traceparent", PARENT.encode()), ("tracestate", b"a=b")]
    assert traces.traceparent(context) == PARENT
    assert traces.recording is False


def test_without_a_parent_there_is_nothing_to_inject():
    """No header is made up."""
    traces = Traces()
    assert traces.inject(traces.extract([])) == []
    assert traces.inject(None) == []
    assert traces.traceparent(None) is None


@given(st.binary(max_size=100))
def test_a_broken_header_costs_nothing_but_the_trace(value):
    """Any bytes are read without an error."""
    traces = Traces()
    assert traces.inject(traces.extract([("traceparent", value)])) in ([], [("traceparent", value)])


def test_an_endless_header_is_ignored():
    """A megabyte of trace header is not parsed."""
    traces = Traces()
    assert traces.inject(traces.extract([("traceparent", PARENT.encode() + b" " * 1_000_000)])) == []
    kept = traces.inject(traces.extract([("traceparent", PARENT.encode()), ("tracestate", b"a=" + b"b" * 10_000)]))
    assert kept == [("traceparent", PARENT.encode())]


def test_the_caller_s_own_span_does_not_leak_into_a_record():
    """A record without a parent starts a trace of its own, whatever is current."""
    exporter = InMemorySpanExporter()
    traces = open_traces(TelemetrySettings(), "judge", exporter)
    with traces.tracer.start_as_current_span("outer"):
        context = traces.extract([])
    assert not trace.get_current_span(context).get_span_context().is_valid
    traces.close()


def test_spans_are_exported_with_the_service_s_name():
    """With an exporter, spans are recorded under the service."""
    exporter = InMemorySpanExporter()
    traces = open_traces(TelemetrySettings(), "judge", exporter)
    assert traces.recording
    parent = traces.extract([("traceparent", PARENT.encode())])
    traces.tracer.start_span("work", context=parent).end()
    traces._provider.force_flush()
    [span] = exporter.get_finished_spans()
    traces.close()
    assert span.resource.attributes["service.name"] == "winnow-judge"
    assert trace.format_trace_id(span.context.trace_id) == PARENT.split("-")[1]


@pytest.mark.parametrize(("ratio", "spans"), [(0.0, 0), (1.0, 20)])
def test_roots_are_sampled_and_a_parent_s_choice_is_kept(ratio, spans):
    """The ratio is for traces that start here; a sampled parent is followed."""
    exporter = InMemorySpanExporter()
    traces = open_traces(TelemetrySettings(otlp_sample_ratio=ratio), "judge", exporter)
    for _ in range(20):
        traces.tracer.start_span("root").end()
    traces._provider.force_flush()
    assert len(exporter.get_finished_spans()) == spans
    traces.tracer.start_span("child", context=traces.extract([("traceparent", PARENT.encode())])).end()
    traces._provider.force_flush()
    assert exporter.get_finished_spans()[-1].name == "child"
    traces.close()


def test_a_span_tells_the_kind_of_an_error_alone():
    """What an error says may quote content: no attribute, event or status of the span holds it."""
    exporter = InMemorySpanExporter()
    traces = open_traces(TelemetrySettings(), "judge", exporter)
    with pytest.raises(ValueError, match="private"), traces.current("work", context=Context(), kind=SpanKind.SERVER):
        raise ValueError("very private content")
    traces._provider.force_flush()
    [span] = exporter.get_finished_spans()
    assert span.attributes["error.type"] == "ValueError"
    assert not span.status.is_ok
    assert "private" not in span.to_json()
    traces.close()


def test_names_that_others_choose_are_one_line_without_secrets():
    """A host or a model is a caller's or a provider's word: no key, no line end, no endless text leaves in an attribute."""
    exporter = InMemorySpanExporter()
    traces = open_traces(TelemetrySettings(), "judge", exporter)
    with traces.current("work", context=Context(), kind=SpanKind.INTERNAL) as span:
        said = {Attr.HOST: f"pi sk-{'a1' * 20}\n{'x' * 1000}", Attr.GENAI_RESPONSE_MODEL: "m-1", Attr.OFFSET: 7, Attr.REASON: None}
        annotate(trace.set_span_in_context(span), said)
    traces._provider.force_flush()
    [done] = exporter.get_finished_spans()
    traces.close()
    host = done.attributes["winnow.host"]
    assert host.startswith("pi sk-***\\n")
    assert len(host) < 300
    assert (done.attributes["gen_ai.response.model"], done.attributes["messaging.kafka.offset"]) == ("m-1", 7)
    assert "winnow.reason" not in done.attributes
