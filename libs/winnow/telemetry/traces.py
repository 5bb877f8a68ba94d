"""Traces: exported over OTLP/HTTP only where an endpoint is set; without one, trace parents still pass through every stage."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version

from opentelemetry.context import Context, attach, detach
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
from opentelemetry.trace import NoOpTracer, Span, SpanKind, Status, StatusCode, Tracer, get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from opentelemetry.util.types import AttributeValue

from winnow.telemetry.redaction import mask_text, printable
from winnow.telemetry.settings import TelemetrySettings
from winnow.telemetry.spans import Attr

#: Bytes of a trace header that is read; the specification needs 512, and a longer one is an attack or a mistake.
MAX_HEADER_BYTES = 1024
_HEADERS = ("traceparent", "tracestate")
#: Characters of an attribute: names have 200 at most.
MAX_VALUE_CHARS = 200


def package_version() -> str:
    """Version of the installed distribution, `0` in a bare checkout."""
    try:
        return version("winnow-compaction")
    except PackageNotFoundError:
        return "0"


def resource(service: str) -> Resource:
    """Who sends, in every signal; an empty name stands for the process."""
    name = f"winnow-{service}" if service else "winnow"
    return Resource.create({"service.name": name, "service.namespace": "winnow", "service.version": package_version()})


def annotate(context: Context | None, attributes: Mapping[Attr, AttributeValue | None]) -> None:
    """Set attributes of the span of a context, where it is recorded; None is left out. Content never stands in an attribute."""
    span = get_current_span(context)
    if span.is_recording():
        span.set_attributes(safe(attributes))


def safe(attributes: Mapping[Attr, AttributeValue | None]) -> dict[str, AttributeValue]:
    """Attributes as they may leave: None is left out; names that others choose (a host, a model) are one short line without secrets."""
    return {
        name.value: mask_text(printable(value, MAX_VALUE_CHARS)) if isinstance(value, str) else value
        for name, value in attributes.items()
        if value is not None
    }


@contextmanager
def within(context: Context | None) -> Iterator[None]:
    """Log lines of the block and of all that it calls, libraries too, name the trace of `context`; None leaves what is current.

    Spans do not depend on it: each is given its parent.
    """
    if context is None:
        yield
        return
    token = attach(context)
    try:
        yield
    finally:
        detach(token)


class Traces:
    """The tracer of one service, and W3C trace context as headers. Nothing global is read or set."""

    def __init__(self, tracer: Tracer | None = None, provider: TracerProvider | None = None) -> None:
        self.tracer: Tracer = tracer or NoOpTracer()
        self._provider = provider
        self._propagator = TraceContextTextMapPropagator()

    def __repr__(self) -> str:
        return f"<Traces(exporting={self.recording})>"

    @property
    def recording(self) -> bool:
        """Spans are made; without, only trace parents are passed on."""
        return not isinstance(self.tracer, NoOpTracer)

    @contextmanager
    def current(
        self, name: str, *, context: Context, kind: SpanKind, attributes: Mapping[str, AttributeValue] | None = None
    ) -> Iterator[Span]:
        """A span around a block. Of an error it tells the kind alone: the library would write down its text, which may quote content."""
        made = self.tracer.start_as_current_span(
            name, context=context, kind=kind, attributes=attributes, record_exception=False, set_status_on_exception=False
        )
        with made as span:
            try:
                yield span
            except BaseException as exc:
                span.set_attribute(Attr.ERROR_TYPE, type(exc).__name__)
                span.set_status(Status(StatusCode.ERROR))
                raise

    def extract(self, headers: Iterable[tuple[str, bytes | None]]) -> Context:
        """The remote context of a record; empty where it has none or a broken one (a broken trace never costs an event)."""
        carrier: dict[str, str] = {}
        for name, value in headers:
            if name in _HEADERS and value is not None and len(value) <= MAX_HEADER_BYTES and name not in carrier:
                carrier[name] = value.decode("ascii", "replace")
        return self.from_carrier(carrier)

    def from_carrier(self, carrier: Mapping[str, str]) -> Context:
        """The remote context of text headers, from an empty one: nothing of the caller's own context leaks in."""
        if "traceparent" not in carrier:
            return Context()
        return self._propagator.extract(carrier, context=Context())

    def inject(self, context: Context | None) -> list[tuple[str, bytes]]:
        """Headers that carry `context`; none where it holds no valid span."""
        if context is None:
            return []
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier, context=context)
        return [(name, value.encode()) for name, value in carrier.items()]

    def traceparent(self, context: Context | None) -> str | None:
        """The `traceparent` of a context, for rows that outlive the process."""
        return next((value.decode() for name, value in self.inject(context) if name == "traceparent"), None)

    def close(self) -> None:
        """Flush and stop the exporter; blocks for at most its time-out."""
        if self._provider is not None:
            self._provider.shutdown()


def open_traces(settings: TelemetrySettings, service: str, exporter: SpanExporter | None = None) -> Traces:
    """Traces of a service as set: with an endpoint (or an exporter) spans are sampled and sent, else passed through."""
    if exporter is None:
        if settings.otlp_endpoint is None or "traces" not in settings.signals:
            return Traces()
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415  slow, and most have no collector

        exporter = OTLPSpanExporter(endpoint=settings.otlp_endpoint.rstrip("/") + "/v1/traces", timeout=settings.otlp_timeout_s)
    provider = TracerProvider(
        resource=resource(service),
        sampler=ParentBased(TraceIdRatioBased(settings.otlp_sample_ratio)),
        shutdown_on_exit=False,
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    return Traces(provider.get_tracer("winnow", package_version()), provider)
