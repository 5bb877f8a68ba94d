"""Evaluation events: what they say, where they hang, and that nothing is made where nobody listens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter

from tests.harness.otlp import OtlpReceiver, attributes
from winnow.telemetry import Attr, Telemetry, TelemetrySettings, Traces
from winnow.telemetry.evaluations import EVENT, Evaluations, label, open_evaluations

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CONTEXT = Traces().from_carrier({"traceparent": f"00-{TRACE}-{SPAN}-01"})


def told(context: Context | None, **said):
    """The log records of one event."""
    exporter = InMemoryLogRecordExporter()
    evaluations = open_evaluations(TelemetrySettings(), "judge", exporter)
    evaluations.tell(context, **({"supported": 3, "scored": 4, "more": {}} | said))
    evaluations.close()
    return [one.log_record for one in exporter.get_finished_logs()]


def test_an_evaluation_is_the_conventions_event_under_the_span_of_its_context():
    """Name, share and label by the GenAI conventions, in the trace that it is about; what is None is left out."""
    [record] = told(CONTEXT, more={Attr.JUDGE: "local", Attr.ERROR_TYPE: None})
    assert record.event_name == EVENT == "gen_ai.evaluation.result"
    assert dict(record.attributes) == {
        "gen_ai.evaluation.name": "source_support",
        "gen_ai.evaluation.score.value": 0.75,
        "gen_ai.evaluation.score.label": "mixed",
        "winnow.judge.name": "local",
    }
    assert trace.format_trace_id(record.trace_id) == TRACE
    assert trace.format_span_id(record.span_id) == SPAN
    assert record.body is None


def test_without_a_score_there_is_neither_value_nor_label():
    """A boundary that no judge answered has only its failure; a share of nothing would be a made-up number."""
    [record] = told(None, supported=0, scored=0, more={Attr.ERROR_TYPE: "deadline"})
    assert dict(record.attributes) == {"gen_ai.evaluation.name": "source_support", "error.type": "deadline"}
    assert record.trace_id == 0


@given(st.integers(0, 50), st.integers(1, 50))
def test_the_label_says_all_none_or_some(supported, scored):
    """Three words, by the share alone."""
    supported = min(supported, scored)
    share = supported / scored
    assert label(supported, scored) == {0.0: "unsupported", 1.0: "supported"}.get(share, "mixed")


@pytest.mark.parametrize("signals", ["traces", "traces,metrics,logs"])
def test_nothing_is_made_where_it_is_not_asked_for(signals):
    """Without an endpoint, or without the signal, telling costs one look."""
    assert not open_evaluations(TelemetrySettings(otlp_signals="evaluations"), "judge").recording
    quiet = open_evaluations(TelemetrySettings(otlp_endpoint="http://127.0.0.1:9", otlp_signals=signals), "judge")
    assert not quiet.recording
    assert "exporting=False" in repr(quiet)
    quiet.tell(None, supported=1, scored=1, more={})
    quiet.close()
    assert not Evaluations().recording


def test_a_service_that_is_told_to_sends_them_to_the_collector():
    """With the signal set, closing a service's telemetry delivers the event under its service name."""
    with OtlpReceiver() as receiver:
        telemetry = Telemetry.open("judge", TelemetrySettings(otlp_endpoint=receiver.url, otlp_signals="evaluations"))
        telemetry.evaluations.tell(CONTEXT, supported=1, scored=1, more={})
        telemetry.close()
        [record] = receiver.logs
    assert record.event_name == EVENT
    assert attributes(record)["gen_ai.evaluation.score.label"] == "supported"
    assert record.trace_id.hex() == TRACE
