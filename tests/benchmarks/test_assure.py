"""The simulation of `make assure`, scaled down."""

from dataclasses import replace

import pytest

from tests.benchmarks.assure import sections
from tests.benchmarks.assure.checks import Check, delay, false_alarms
from tests.benchmarks.assure.frontier import points
from tests.benchmarks.assure.kinds import KINDS
from winnow.assurance.streams import divergence


@pytest.mark.parametrize(("section", "scale"), [(sections.recovery, 1.0), (sections.streams, 0.1), (sections.clusters, 0.05)])
def test_tables_come_out_as_specified(section, scale):
    """Recovery in full, families and clusters with a tenth of the runs, are within their tolerances."""
    outside = [c for c in section(scale) if not c.ok]
    assert outside == []


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_every_kind_has_the_mean_that_it_says(kind):
    """The laws of all kinds of loss have the mean that they are made for, within the range of a loss."""
    for mean in (kind.healthy, *kind.changed):
        losses = kind.draw(mean)(sections.rng("means"), 20_000)
        assert kind.lo <= losses.min() <= losses.max() <= 1
        assert losses.mean() == pytest.approx(mean, abs=4 * losses.std() / 141)


def test_a_figure_can_be_outside():
    """A wrong delay, a wrong rate and a rate above delta are found, whatever was expected."""
    assert not delay("t", "r", "c", value=110, runs=2_000, expected=100).ok
    assert delay("t", "r", "c", value=107, runs=2_000, expected=100).ok
    assert not false_alarms("t", "r", "c", alarms=90, runs=2_000, delta=0.05, expected=0.03).ok
    assert not false_alarms("t", "r", "c", alarms=140, runs=2_000, delta=0.05, expected=None).ok
    assert false_alarms("t", "r", "c", alarms=60, runs=2_000, delta=0.05, expected=0.03).ok


def test_the_frontier_compares_with_the_quickest():
    """A design's point is its worst ratio to the quickest method at each age, and to the specified design later."""
    one = Check(table="t", row="spending", column="", value=200.0, runs=10)
    columns = [f"alpha {a:g}, nu {nu:,}, {f:g}x" for a in sections.ALPHAS for nu in (*sections.NUS, 50_000) for f in sections.FACTORS]
    found = {
        "delays": [replace(one, row="seed", column=c, value=100.0) for c in columns if "nu 0," in c]
        + [replace(one, row="arl 1e5, grid7", column=c, value=1.0) for c in columns],
        "frontier": [replace(one, column=c) for c in columns] + [replace(one, row="patient", column=c, value=150.0) for c in columns],
    }
    specified, shipped = points(found)
    assert (specified.by_nu, specified.late_worst) == ((2.0, 1.0, 1.0, 1.0), 1.0)
    assert (shipped.by_nu, shipped.late_worst, shipped.late_mean) == ((1.5, 0.75, 0.75, 0.75), 0.75, pytest.approx(0.75))


def test_no_delay_is_below_the_bound():
    """The least possible delay is ln(1/delta) over the divergence: 67 units for a doubling of .10."""
    assert sections.bound(0.10, 2.0) == pytest.approx(67.5, abs=0.1)
    assert divergence(0.2, 0.1) == pytest.approx(0.04440, abs=1e-5)
