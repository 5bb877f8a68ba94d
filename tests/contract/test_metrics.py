"""The registries of names: complete, bounded, and written down."""

import re
from typing import get_args

import pytest

from tests.harness import REPOSITORY
from winnow.telemetry import Metrics
from winnow.telemetry.document import render
from winnow.telemetry.events import LOG_EVENTS, LogEvent
from winnow.telemetry.names import METRICS, CounterName, GaugeName, HistogramName
from winnow.telemetry.spans import ATTRIBUTE_DOCS, Attr

#: Words that would make a label as many-valued as the traffic.
UNBOUNDED = {"boundary", "boundary_id", "run", "fleet", "entry", "handle", "offset", "partition", "host", "agent", "key", "id", "stream"}


def test_every_typed_metric_name_is_in_the_registry():
    """Each literal name has an entry of its kind, and no entry lacks a literal name."""
    for literal, kind in ((CounterName, "counter"), (GaugeName, "gauge"), (HistogramName, "histogram")):
        assert {m.name for m in METRICS.values() if m.kind == kind} == set(get_args(literal))


def test_metric_names_follow_the_conventions():
    """Names start with winnow_, or are a convention's; counters end in _total, all is documented, and histograms have buckets."""
    for metric in METRICS.values():
        assert re.fullmatch(r"winnow_[a-z][a-z0-9_]*" if metric.otel is None else r"gen_ai_client_[a-z_]+", metric.name)
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert metric.doc.endswith(".")
        assert bool(metric.buckets) == (metric.kind == "histogram")
        assert list(metric.buckets) == sorted(set(metric.buckets))


def test_no_label_is_as_many_valued_as_the_traffic():
    """No label names an id, a tenant, a run or a host."""
    for metric in METRICS.values():
        assert not UNBOUNDED & set(metric.labels), metric.name


def test_every_log_event_is_documented():
    """The literal names of log events and their documentation agree."""
    assert set(get_args(LogEvent)) == set(LOG_EVENTS)
    assert all(doc.strip() for doc in LOG_EVENTS.values())


def test_every_span_attribute_is_documented():
    """Each attribute has a line, and none is in a namespace of others that Winnow has no right to."""
    assert set(Attr) == set(ATTRIBUTE_DOCS)
    assert all(a.value.startswith(("winnow.", "messaging.", "gen_ai.", "error.", "server.")) for a in Attr)


def test_all_metrics_render_without_a_value():
    """A fresh registry exposes every name, so that a dashboard finds it before the first event."""
    text = Metrics().render().decode()
    for metric in METRICS.values():
        assert f"# HELP {metric.name} " in text or f"# HELP {metric.name.removesuffix('_total')} " in text


def test_the_document_is_what_the_registries_say():
    """docs/telemetry.md is generated and has not drifted."""
    assert (REPOSITORY / "docs" / "telemetry.md").read_text() == render(), "run: python -m winnow.telemetry.document > docs/telemetry.md"


@pytest.mark.parametrize("name", sorted(METRICS))
def test_every_metric_takes_exactly_its_labels(name):
    """A missing or foreign label is an error at the call, not a new series."""
    metrics, metric = Metrics(), METRICS[name]
    call = {"counter": metrics.count, "gauge": metrics.set, "histogram": metrics.observe}[metric.kind]
    call(name, 1, **dict.fromkeys(metric.labels, "x"))
    assert metrics.value(name, **dict.fromkeys(metric.labels, "x")) == 1
    with pytest.raises(ValueError, match="has the labels"):
        call(name, 1, **dict.fromkeys(metric.labels, "x"), other="y")
    if metric.labels:
        with pytest.raises(ValueError, match="has the labels"):
            call(name, 1)
