"""Prometheus metrics of one process: every name of the registry, made once, in a collector registry of its own."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from winnow.telemetry.names import METRICS, CounterName, GaugeName, HistogramName

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
        self._counters: dict[str, Counter] = {}
        self._gauges: dict[str, Gauge] = {}
        self._histograms: dict[str, Histogram] = {}
        self._series: dict[str, set[tuple[str, ...]]] = {name: set() for name in METRICS}
        self._before: list[Callable[[], None]] = []
        for metric in METRICS.values():
            if metric.kind == "counter":
                self._counters[metric.name] = Counter(metric.name, metric.doc, metric.labels, registry=self.registry)
            elif metric.kind == "gauge":
                self._gauges[metric.name] = Gauge(metric.name, metric.doc, metric.labels, registry=self.registry)
            else:
                self._histograms[metric.name] = Histogram(
                    metric.name, metric.doc, metric.labels, registry=self.registry, buckets=metric.buckets
                )

    def __repr__(self) -> str:
        return f"<Metrics(series={sum(map(len, self._series.values()))})>"

    def count(self, name: CounterName, amount: float = 1, /, **labels: str) -> None:
        """Add `amount` (0 or more) to a counter."""
        counter = self._counters[name]
        (counter.labels(*self._labels(name, labels)) if METRICS[name].labels else counter).inc(amount)

    def set(self, name: GaugeName, value: float, /, **labels: str) -> None:
        """Set a gauge."""
        gauge = self._gauges[name]
        (gauge.labels(*self._labels(name, labels)) if METRICS[name].labels else gauge).set(value)

    def observe(self, name: HistogramName, value: float, /, **labels: str) -> None:
        """Put a value into a histogram."""
        histogram = self._histograms[name]
        (histogram.labels(*self._labels(name, labels)) if METRICS[name].labels else histogram).observe(value)

    def value(self, name: CounterName | GaugeName | HistogramName, /, **labels: str) -> float:
        """Current value of a counter or gauge, or count of a histogram; 0 where nothing was recorded."""
        sample = f"{name}_count" if METRICS[name].kind == "histogram" else name
        return self.registry.get_sample_value(sample, labels) or 0.0

    def before_scrape(self, refresh: Callable[[], None]) -> None:
        """Call `refresh` before each rendering: for ages, which are only known when somebody looks."""
        self._before.append(refresh)

    def render(self) -> bytes:
        """All metrics in the Prometheus text format."""
        for refresh in self._before:
            refresh()
        return generate_latest(self.registry)

    def _labels(self, name: CounterName | GaugeName | HistogramName, labels: dict[str, str]) -> tuple[str, ...]:
        """Label values in the registry's order, bounded in length and number."""
        names = METRICS[name].labels
        if len(labels) != len(names) or any(label not in labels for label in names):
            msg = f"{name} has the labels {names}, got {tuple(labels)}"
            raise ValueError(msg)
        values = tuple(str(labels[label])[:MAX_LABEL_CHARS] for label in names)
        seen = self._series[name]
        if values not in seen:
            if len(seen) >= MAX_SERIES:
                return (OTHER,) * len(names)
            seen.add(values)
        return values
