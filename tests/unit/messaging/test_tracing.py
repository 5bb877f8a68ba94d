"""One trace over many stages, with and without a collector."""

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import format_span_id, format_trace_id

from tests.unit.messaging.support import NOW, candidate, record
from winnow.contracts.topics import EVIDENCE
from winnow.messaging.records import Outgoing
from winnow.messaging.tracing import RecordSpans, batch_span, publish_span
from winnow.telemetry import TelemetrySettings, Traces
from winnow.telemetry.traces import open_traces

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def recording():
    exporter = InMemorySpanExporter()
    traces = open_traces(TelemetrySettings(), "judge", exporter)

    def finished():
        traces._provider.force_flush()
        return exporter.get_finished_spans()

    yield traces, finished
    traces.close()


def sent(context=None, traceparent=None):
    return Outgoing(topic=EVIDENCE, key="f/r", body=b"{}", event_id="1", time=NOW, context=context, traceparent=traceparent)


def test_each_record_of_a_batch_continues_its_own_trace(recording):
    """Two records of two traces, fetched together: two process spans under their own parents, each with a link to the batch."""
    traces, finished = recording
    other = PARENT.replace("0af7", "1bf7")
    with batch_span(traces, "t", "g", 2) as batch:
        spans = RecordSpans(traces, "g", batch)
        for n, parent in enumerate((PARENT, other)):
            context = spans.start(record(candidate(n + 1), offset=n, headers=[("traceparent", parent.encode())]))
            with publish_span(traces, sent(context), "out") as headers:
                assert dict(headers)["traceparent"].decode().split("-")[1] == parent.split("-")[1]
        spans.close()
    by_name = {}
    for span in finished():
        by_name.setdefault(span.name.split()[0], []).append(span)
    [poll] = by_name["poll"]
    for process, send, parent in zip(by_name["process"], by_name["send"], (PARENT, other), strict=True):
        assert format_trace_id(process.context.trace_id) == parent.split("-")[1]
        assert format_span_id(process.parent.span_id) == parent.split("-")[2]
        assert [link.context.span_id for link in process.links] == [poll.context.span_id]
        assert send.parent.span_id == process.context.span_id
    assert poll.parent is None


def test_a_record_without_a_parent_starts_a_trace(recording):
    """It does not hang under the batch, which belongs to many traces."""
    traces, finished = recording
    with batch_span(traces, "t", "g", 1) as batch:
        spans = RecordSpans(traces, "g", batch)
        spans.start(record(candidate(1)))
        spans.close()
    process = next(s for s in finished() if s.name.startswith("process"))
    assert process.parent is None


def test_a_row_continues_the_trace_it_was_stored_with(recording):
    """An outbox row that outlived its process keeps its trace."""
    traces, finished = recording
    with publish_span(traces, sent(traceparent=PARENT), "out"):
        pass
    [send] = finished()
    assert format_span_id(send.parent.span_id) == PARENT.split("-")[2]


def test_a_dead_letter_and_a_failed_send_are_marked(recording):
    """Errors show their reason, never content."""
    traces, finished = recording
    spans = RecordSpans(traces, "g", None)
    one = record(candidate(1))
    spans.start(one)
    spans.fail(one, "invalid")
    spans.fail(record(candidate(2), offset=5), "invalid")
    spans.close()
    with pytest.raises(ConnectionError), publish_span(traces, sent(), "out"):
        raise ConnectionError
    process, send = finished()
    assert process.attributes["error.type"] == "invalid"
    assert send.attributes["error.type"] == "ConnectionError"
    assert not process.status.is_ok
    assert not send.status.is_ok


def test_without_a_collector_the_parent_passes_through():
    """No span is made, and the caller's own trace is unbroken."""
    traces = Traces()
    with batch_span(traces, "t", "g", 1) as batch:
        assert batch is None
        spans = RecordSpans(traces, "g", batch)
        context = spans.start(record(candidate(1), headers=[("traceparent", PARENT.encode())]))
        with publish_span(traces, sent(context), "out") as headers:
            assert dict(headers) == {"traceparent": PARENT.encode()}
        with publish_span(traces, sent(traceparent=PARENT), "out") as headers:
            assert dict(headers) == {"traceparent": PARENT.encode()}
        with publish_span(traces, sent(), "out") as headers:
            assert headers == []
        spans.fail(record(candidate(1)), "invalid")
        spans.close()
