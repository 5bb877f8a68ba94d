"""Prometheus metrics of one process: every name of the registry, made once, in a collector registry of its own."""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.metrics_core import Metric as PrometheusMetric

from winnow.telemetry.names import METRICS, CounterName, GaugeName, HistogramName, MetricName

#: Content type of `Metrics.render`.
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
#: Series of one metric. Labels are bounded by the code; this bounds them where the code is wrong (40 bytes each, scraped every 15 s).
MAX_SERIES = 500
#: Characters of a label value.
MAX_LABEL_CHARS = 64
#: What stands for labels beyond the bounds.
OTHER = "other"


class Metrics:
    """The metrics of one process. Names and labels are typed; a wrong label raises `ValueError`."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        known = METRICS.values()
        self._counters = _Family({m.name: Counter(m.name, m.doc, m.labels, registry=self.registry) for m in known if m.kind == "counter"})
        self._gauges = _Family({m.name: Gauge(m.name, m.doc, m.labels, registry=self.registry) for m in known if m.kind == "gauge"})
        self._histograms = _Family(
            {m.name: Histogram(m.name, m.doc, m.labels, registry=self.registry, buckets=m.buckets) for m in known if m.kind == "histogram"}
        )
        self._before: list[Callable[[], None]] = []

    def __repr__(self) -> str:
        return f"<Metrics(series={sum(family.series for family in (self._counters, self._gauges, self._histograms))})>"

    def count(self, name: CounterName, amount: float = 1, /, **labels: str) -> None:
        """Add `amount` (0 or more) to a counter."""
        self._counters.child(name, labels).inc(amount)

    def set(self, name: GaugeName, value: float, /, **labels: str) -> None:
        """Set a gauge."""
        self._gauges.child(name, labels).set(value)

    def observe(self, name: HistogramName, value: float, /, **labels: str) -> None:
        """Put a value into a histogram."""
        self._histograms.child(name, labels).observe(value)

    def observe_all(self, name: HistogramName, values: Iterable[float], /, **labels: str) -> None:
        """Put values into one histogram; its series is looked up once."""
        child = self._histograms.child(name, labels)
        for value in values:
            child.observe(value)

    def value(self, name: CounterName | GaugeName | HistogramName, /, **labels: str) -> float:
        """Current value of a counter or gauge, or count of a histogram; 0 where nothing was recorded."""
        sample = f"{name}_count" if METRICS[name].kind == "histogram" else name
        return self.registry.get_sample_value(sample, labels) or 0.0

    def before_scrape(self, refresh: Callable[[], None]) -> None:
        """Call `refresh` before each rendering: for ages, which are only known when somebody looks."""
        self._before.append(refresh)

    def collect(self) -> Iterable[PrometheusMetric]:
        """All metrics with their series, as `prometheus_client` has them."""
        for refresh in self._before:
            refresh()
        return self.registry.collect()

    def render(self) -> bytes:
        """All metrics in the Prometheus text format."""
        for refresh in self._before:
            refresh()
        return generate_latest(self.registry)


C = TypeVar("C", Counter, Gauge, Histogram)


class _Family(Generic[C]):
    """All metrics of one kind, and their series, which the library would look up anew at each call (4 of 6 microseconds)."""

    def __init__(self, metrics: dict[MetricName, C]) -> None:
        self._metrics: dict[MetricName, C] = metrics
        self._series: dict[MetricName, dict[tuple[str, ...], C]] = {name: {} for name in metrics}

    @property
    def series(self) -> int:
        """Series in use."""
        return sum(map(len, self._series.values()))

    def child(self, name: MetricName, labels: dict[str, str]) -> C:
        """The series of `labels`, in any order; bounded in the length of a value and in the number of series."""
        names = METRICS[name].labels
        values = tuple([labels[label] for label in names if label in labels])
        if len(values) != len(names) or len(labels) != len(names):
            msg = f"{name} has the labels {names}, got {tuple(labels)}"
            raise ValueError(msg)
        known: C | None = self._series[name].get(values)
        return known or self._new(name, values)

    def _new(self, name: MetricName, values: tuple[str, ...]) -> C:
        metric: C = self._metrics[name]
        series = self._series[name]
        if not values:
            return metric
        full = len(series) >= MAX_SERIES
        bounded = (OTHER,) * len(values) if full else tuple(str(value)[:MAX_LABEL_CHARS] for value in values)
        child: C = metric.labels(*bounded)
        if not full:
            series[values] = child
        return child
