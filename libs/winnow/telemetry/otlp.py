"""Metrics and logs over OTLP/HTTP, beside `/metrics` and standard error, for whoever has a collector and no scraper.

Names are OpenTelemetry's form of the registry's: `winnow_boundary_seconds` is `winnow.boundary` in seconds, `winnow_batches_total` the
counter `winnow.batches`; metrics of a convention have its names, units and attributes. A collector that writes them for Prometheus again
gives the registry's names, so that dashboards and rules fit both ways.
"""

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from opentelemetry._logs import SeverityNumber
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, LogRecordExporter
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    HistogramDataPoint,
    Metric,
    MetricExporter,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from winnow.telemetry.logs import Sampler
from winnow.telemetry.metrics import Metrics
from winnow.telemetry.names import METRICS
from winnow.telemetry.names import Metric as RegisteredMetric
from winnow.telemetry.redaction import describe, mask
from winnow.telemetry.settings import TelemetrySettings
from winnow.telemetry.spans import Attr
from winnow.telemetry.traces import package_version, resource

if TYPE_CHECKING:
    from opentelemetry.util.types import AnyValue
    from prometheus_client.samples import Sample

#: Units by the end of a name, as Prometheus writes it and as OpenTelemetry (UCUM) does.
UNITS = (("_seconds", "s"), ("_bytes", "By"))
#: Attributes of the conventions by the labels that stand for them.
CONVENTIONAL = {attribute.value.replace(".", "_"): attribute.value for attribute in Attr}
#: Loggers of the exporters: what they say of a failed export must not be exported.
OWN_LOGGERS = ("opentelemetry", "urllib3", "requests")

_SEVERITY = (
    (logging.ERROR, SeverityNumber.ERROR), (logging.WARNING, SeverityNumber.WARN), (logging.INFO, SeverityNumber.INFO),
    (0, SeverityNumber.DEBUG),
)  # fmt: skip


def otel_name(name: str) -> tuple[str, str]:
    """Name and unit of a metric of the registry in OpenTelemetry's form."""
    known = next((metric.otel for metric in METRICS.values() if metric.name == name), None)
    if known is not None:
        return known
    bare = name.removesuffix("_total")
    for ending, unit in UNITS:
        if bare.endswith(ending):
            bare = bare.removesuffix(ending)
            return f"winnow.{bare.removeprefix('winnow_')}", unit
    return f"winnow.{bare.removeprefix('winnow_')}", "1"


def otel_attributes(metric: RegisteredMetric, labels: Mapping[str, str]) -> dict[str, str]:
    """The labels of a series as attributes: those of a convention by its names, without what is empty (Prometheus has no absent label)."""
    if metric.otel is None:
        return dict(labels)
    return {CONVENTIONAL.get(name, name): value for name, value in labels.items() if value}


def data_of(metrics: Metrics, *, of: Resource, began_ns: int, now_ns: int) -> MetricsData:
    """All series of a process as OTLP has them: cumulative since `began_ns`."""
    made = [_metric(family.name, family.samples, began_ns, now_ns) for family in metrics.collect()]
    scope = InstrumentationScope("winnow", package_version())
    scoped = ScopeMetrics(scope=scope, metrics=[one for one in made if one is not None], schema_url="")
    return MetricsData(resource_metrics=[ResourceMetrics(resource=of, scope_metrics=[scoped], schema_url="")])


def _metric(family: str, samples: "Sequence[Sample]", began_ns: int, now_ns: int) -> Metric | None:
    """One metric of the registry; None for a family without series."""
    known = next((METRICS[name] for name in METRICS if name in {family, f"{family}_total"}), None)
    if known is None or not samples:
        return None
    name, unit = otel_name(known.name)
    if known.kind == "histogram":
        return Metric(name=name, description=known.doc, unit=unit, data=_histogram(known, samples, began_ns, now_ns))
    points = [
        NumberDataPoint(attributes=otel_attributes(known, s.labels), start_time_unix_nano=began_ns, time_unix_nano=now_ns, value=s.value)
        for s in samples
        if not s.name.endswith("_created")
    ]
    if known.kind == "gauge":
        return Metric(name=name, description=known.doc, unit=unit, data=Gauge(data_points=points))
    data = Sum(data_points=points, aggregation_temporality=AggregationTemporality.CUMULATIVE, is_monotonic=True)
    return Metric(name=name, description=known.doc, unit=unit, data=data)


def _histogram(metric: RegisteredMetric, samples: "Sequence[Sample]", began_ns: int, now_ns: int) -> Histogram:
    """Buckets that count what is in them alone, from those of Prometheus, which count all that is smaller too."""
    cumulative: dict[tuple[tuple[str, str], ...], dict[float, float]] = {}
    sums: dict[tuple[tuple[str, str], ...], float] = {}
    for s in samples:
        key = tuple(sorted((name, value) for name, value in s.labels.items() if name != "le"))
        if s.name.endswith("_bucket"):
            cumulative.setdefault(key, {})[float(s.labels["le"])] = s.value
        elif s.name.endswith("_sum"):
            sums[key] = s.value
    points = []
    for key, below in cumulative.items():
        bounds = sorted(below)
        counts = [int(below[bound] - (below[bounds[n - 1]] if n else 0)) for n, bound in enumerate(bounds)]
        points.append(
            HistogramDataPoint(
                attributes=otel_attributes(metric, dict(key)), start_time_unix_nano=began_ns, time_unix_nano=now_ns,
                count=sum(counts), sum=sums.get(key, 0.0), bucket_counts=counts, explicit_bounds=bounds[:-1],
                min=float("nan"), max=float("nan"),
            )
        )  # fmt: skip
    return Histogram(data_points=points, aggregation_temporality=AggregationTemporality.CUMULATIVE)


class MetricsPush:
    """Sends the metrics of a process every so often, from a thread of its own: a collector that hangs holds up nobody."""

    def __init__(self, metrics: Metrics, exporter: MetricExporter, *, service: str, every_s: float, timeout_s: float) -> None:
        self._metrics = metrics
        self._exporter = exporter
        self._resource = resource(service)
        self._every_s, self._timeout_s = every_s, timeout_s
        self._began_ns = time.time_ns()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="winnow-otlp-metrics", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def push(self) -> None:
        """Send once. What goes wrong is the exporter's to log; the next time sends all of it again, for it is cumulative."""
        data = data_of(self._metrics, of=self._resource, began_ns=self._began_ns, now_ns=time.time_ns())
        self._exporter.export(data, timeout_millis=1000 * self._timeout_s)

    def close(self) -> None:
        """Send a last time and end; blocks for at most a few time-outs."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join(2 * self._timeout_s)
        self._exporter.shutdown(timeout_millis=1000 * self._timeout_s)

    def _run(self) -> None:
        log = logging.getLogger("opentelemetry.winnow")
        while True:
            ended = self._ending.wait(self._every_s)
            try:
                self.push()
            except Exception as exc:  # noqa: BLE001  the thread must outlive whatever an exporter raises
                log.warning("metrics were not exported: %s", describe(exc))
            if ended:
                return


class LogsPush(logging.Handler):
    """A log handler that sends what `logs.install` writes: the same events, masked and sampled the same way."""

    def __init__(self, exporter: LogRecordExporter, *, service: str) -> None:
        super().__init__()
        self._provider = LoggerProvider(resource=resource(service), shutdown_on_exit=False)
        self._provider.add_log_record_processor(BatchLogRecordProcessor(exporter))
        self._logger = self._provider.get_logger("winnow", package_version())
        self.addFilter(Sampler(time.monotonic))
        self.addFilter(lambda record: not record.name.startswith(OWN_LOGGERS))

    def emit(self, record: logging.LogRecord) -> None:
        """Queue one record; sending happens elsewhere. Nothing is raised."""
        try:
            event = str(mask("event", record.getMessage()))
            fields = getattr(record, "winnow_fields", None)
            attributes: dict[str, AnyValue] = {f"winnow.{n}": _value(mask(n, v)) for n, v in (fields or {}).items()}
            attributes["logger"] = record.name
            error = record.exc_info[1] if record.exc_info else None
            if error is not None:
                attributes |= {"exception.type": type(error).__name__, "exception.message": describe(error)}
            self._logger.emit(
                timestamp=int(record.created * 1e9),
                observed_timestamp=time.time_ns(),
                severity_number=next(number for least, number in _SEVERITY if record.levelno >= least),
                severity_text=record.levelname,
                body=event,
                attributes=attributes,
                event_name=f"winnow.{record.msg}" if fields is not None else None,
            )
        except Exception:  # noqa: BLE001  a log line must not end what it tells of
            self.handleError(record)

    def close(self) -> None:
        """Send what is queued and end."""
        self._provider.shutdown()
        super().close()


def _value(value: object) -> "AnyValue":
    """A masked field as an attribute: numbers and flags as they are, all else as text."""
    return value if isinstance(value, str | bool | int | float) else str(value)


class Exports:
    """What a process sends beside its traces."""

    def __init__(self, push: MetricsPush | None, logs: LogsPush | None) -> None:
        self._push, self._logs = push, logs

    @classmethod
    def open(cls, settings: TelemetrySettings, metrics: Metrics, service: str = "") -> "Exports":
        """As set; nothing where there is no endpoint. For composition roots: it adds a handler to the root logger."""
        push = logs = None
        if settings.otlp_endpoint is not None:
            base, timeout = settings.otlp_endpoint.rstrip("/"), settings.otlp_timeout_s
            if "metrics" in settings.signals:
                from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415  slow, and most have none

                exporter = OTLPMetricExporter(endpoint=f"{base}/v1/metrics", timeout=timeout)
                push = MetricsPush(metrics, exporter, service=service, every_s=settings.otlp_metrics_every_s, timeout_s=timeout)
                push.start()
            if "logs" in settings.signals:
                from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter  # noqa: PLC0415  the same

                logs = LogsPush(OTLPLogExporter(endpoint=f"{base}/v1/logs", timeout=timeout), service=service)
                logging.getLogger().addHandler(logs)
        return cls(push, logs)

    def close(self) -> None:
        """Send what is left; blocks for at most a few time-outs."""
        if self._logs is not None:
            logging.getLogger().removeHandler(self._logs)
            self._logs.close()
        if self._push is not None:
            self._push.close()
