"""Metrics of one process."""

import pytest

from winnow.telemetry import Metrics
from winnow.telemetry.metrics import MAX_LABEL_CHARS, MAX_SERIES, OTHER


def test_labels_may_come_in_any_order():
    """The same labels in another order are the same series."""
    metrics = Metrics()
    metrics.count("winnow_published_total", service="s", topic="t")
    metrics.count("winnow_published_total", 2, topic="t", service="s")
    assert metrics.value("winnow_published_total", service="s", topic="t") == 3


def test_series_are_bounded_whatever_a_label_holds():
    """Beyond the bound all new label values fall into one series, and known ones go on."""
    metrics = Metrics()
    for i in range(MAX_SERIES + 50):
        metrics.count("winnow_alerts_total", kind=f"k{i}")
    metrics.count("winnow_alerts_total", kind="k0")
    assert metrics.value("winnow_alerts_total", kind=OTHER) == 50
    assert metrics.value("winnow_alerts_total", kind="k0") == 2
    assert metrics.value("winnow_alerts_total", kind=f"k{MAX_SERIES + 1}") == 0


def test_label_values_are_cut():
    """A label value of a megabyte becomes a short one."""
    metrics = Metrics()
    metrics.count("winnow_alerts_total", kind="k" * 1_000_000)
    assert metrics.value("winnow_alerts_total", kind="k" * MAX_LABEL_CHARS) == 1
    assert len(metrics.render()) < 200_000


def test_counters_do_not_go_back():
    """A negative amount is refused."""
    with pytest.raises(ValueError, match="non-negative"):
        Metrics().count("winnow_alerts_total", -1, kind="k")


def test_ages_are_asked_for_when_somebody_looks():
    """What is registered before the scrape runs at each rendering."""
    metrics, calls = Metrics(), []
    metrics.before_scrape(lambda: calls.append(metrics.set("winnow_fleets_held", len(calls) + 1)))
    assert b"winnow_fleets_held 1.0" in metrics.render()
    assert b"winnow_fleets_held 2.0" in metrics.render()


def test_two_processes_worth_of_metrics_do_not_share_values():
    """Each Metrics has a registry of its own."""
    one, other = Metrics(), Metrics()
    one.set("winnow_fleets_held", 3)
    assert other.value("winnow_fleets_held") == 0
