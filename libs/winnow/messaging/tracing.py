"""One trace from candidate to committed.

FastStream's middleware flattens it: every later span hangs under the first one, and a batch links to its first hop only (faststream#2100,
#2773). Here each record of a batch has a span of its own, under its producer's span and linked to the batch's, and what it publishes hangs
under that. Without a collector no span is made, and the trace parent of the caller passes through unchanged.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Link, Span, SpanKind, Status, StatusCode
from opentelemetry.util.types import AnyValue

from winnow.messaging.records import Outgoing, Record
from winnow.telemetry import Attr, Traces


@contextmanager
def batch_span(traces: Traces, topic: str, group: str, records: int) -> Iterator[Span | None]:
    """The span of one fetch: a root of its own, for the records of a batch belong to many traces."""
    if not traces.recording:
        yield None
        return
    attributes: dict[str, AnyValue] = {
        Attr.MESSAGING_SYSTEM: "kafka",
        Attr.OPERATION_NAME: "poll",
        Attr.OPERATION_TYPE: "receive",
        Attr.DESTINATION: topic,
        Attr.CONSUMER_GROUP: group,
        Attr.BATCH_COUNT: records,
    }
    with traces.current(f"poll {topic}", context=Context(), kind=SpanKind.CLIENT, attributes=attributes) as span:
        yield span


class RecordSpans:
    """The `process` spans of a batch: opened one by one, closed together when the batch is done."""

    def __init__(self, traces: Traces, group: str, batch: Span | None) -> None:
        self._traces = traces
        self._group = group
        self._links = [Link(batch.get_span_context())] if batch is not None else None
        self._open: dict[tuple[str, int, int], Span] = {}

    def start(self, record: Record) -> Context:
        """Open the span of a record; return the context that its work and its outgoing events belong to."""
        parent = self._traces.extract(record.headers)
        if not self._traces.recording:
            return parent
        span = self._traces.tracer.start_span(
            f"process {record.topic}",
            context=parent,
            kind=SpanKind.CONSUMER,
            links=self._links,
            attributes={
                Attr.MESSAGING_SYSTEM: "kafka",
                Attr.OPERATION_NAME: "process",
                Attr.OPERATION_TYPE: "process",
                Attr.DESTINATION: record.topic,
                Attr.PARTITION: str(record.partition),
                Attr.OFFSET: record.offset,
                Attr.CONSUMER_GROUP: self._group,
                Attr.TOMBSTONE: record.value is None,
            },
        )
        self._open[record.position] = span
        return trace.set_span_in_context(span, parent)

    def of(self, record: Record) -> Context:
        """The context of a record: its span's where it has one, else its producer's."""
        span = self._open.get(record.position)
        parent = self._traces.extract(record.headers)
        return parent if span is None else trace.set_span_in_context(span, parent)

    def fail(self, record: Record, reason: str) -> None:
        """The record became a dead letter."""
        span = self._open.get(record.position)
        if span is not None:
            span.set_attribute(Attr.ERROR_TYPE, reason)
            span.set_status(Status(StatusCode.ERROR, reason))

    def close(self) -> None:
        """End all spans."""
        for span in self._open.values():
            span.end()
        self._open.clear()


def context_of(traces: Traces, outgoing: Outgoing) -> Context:
    """The trace that an event continues."""
    if outgoing.context is not None:
        return outgoing.context
    return traces.from_carrier({"traceparent": outgoing.traceparent} if outgoing.traceparent else {})


@contextmanager
def publish_span(traces: Traces, outgoing: Outgoing, topic: str) -> Iterator[list[tuple[str, bytes]]]:
    """The `send` span of an event; yields the headers that carry it on."""
    parent = context_of(traces, outgoing)
    if not traces.recording:
        yield traces.inject(parent)
        return
    attributes: dict[str, AnyValue] = {
        Attr.MESSAGING_SYSTEM: "kafka",
        Attr.OPERATION_NAME: "send",
        Attr.OPERATION_TYPE: "send",
        Attr.DESTINATION: topic,
    }
    span = traces.tracer.start_span(f"send {topic}", context=parent, kind=SpanKind.PRODUCER, attributes=attributes)
    try:
        yield traces.inject(trace.set_span_in_context(span, parent))
    except BaseException as exc:
        span.set_attribute(Attr.ERROR_TYPE, type(exc).__name__)
        span.set_status(Status(StatusCode.ERROR))
        raise
    finally:
        span.end()
