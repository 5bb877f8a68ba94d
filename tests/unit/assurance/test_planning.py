"""Planning: sizes by enumeration, delays by table and simulation, and the limit that nobody beats."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.assurance.vectors import golden
from winnow.assurance import bounds, planning, pvalues
from winnow.assurance.config import MonitorConfig
from winnow.assurance.samples import InvalidSample


@pytest.mark.parametrize(
    ("true", "alpha", "hb", "exact"),
    [
        (0.02, 0.05, (428, 479), (311, 361)),
        (0.05, 0.10, (323, 347), (239, 263)),
        (0.07, 0.10, (999, 1043), (748, 792)),
        (0.102, 0.15, (551, 581), (416, 445)),
        (0.117, 0.15, (1214, 1265), (914, 964)),
        (0.144, 0.20, (527, 549), (392, 414)),
    ],
)
def test_sizes_of_certificates(true, alpha, hb, exact):
    """Smallest n with power .9, and from which it stays; the exact test saves about a quarter."""
    for test, (first, stays) in ((pvalues.hoeffding_bentkus, hb), (pvalues.exact, exact)):
        found = planning.certificate_size(true, alpha, test=test)
        assert (found.first, found.stays) == (first, stays)
        assert planning.certificate_power(true, found.stays, alpha, test=test) >= 0.9
        assert planning.certificate_power(true, found.stays - 1, alpha, test=test) < 0.9
        assert found.allowed == bounds.largest_count(found.stays, alpha, 0.05, test=test)


def test_power_at_a_size():
    """P(certify) at .102 under 12.5 % and at .062 under 10 %, by both tests."""
    for true, alpha, n, hb, exact in (
        (0.102, 0.125, 300, 0.165, 0.283),
        (0.102, 0.125, 500, 0.308, 0.478),
        (0.062, 0.10, 300, 0.598, 0.762),
    ):
        assert planning.certificate_power(true, n, alpha, test=pvalues.hoeffding_bentkus) == pytest.approx(hb, abs=5e-4)
        assert planning.certificate_power(true, n, alpha) == pytest.approx(exact, abs=5e-4)


def test_sizes_without_loss():
    """ceil(ln(delta)/ln(1 - alpha)) is what the exact test needs, and what the plan for a risk of 0 says."""
    for row in golden("zero_failure_min_n"):
        assert planning.zero_loss_size(row["alpha"], row["delta"]) == row["exact"]
    assert planning.certificate_size(0.0, 0.05).stays == 59


def test_impossible_plans_are_refused():
    """A risk at or above the budget, and one so near to it that half a million units would not do."""
    for true in (0.1, 0.2, -0.1, float("nan"), True):
        with pytest.raises(InvalidSample, match="cannot be certified"):
            planning.certificate_size(true, 0.1)


@given(st.floats(0.0, 0.08), st.integers(20, 500))
@settings(max_examples=30)
def test_power_is_the_chance_of_a_certificate(true, n):
    """It falls with the true risk, and at the budget itself is at most delta."""
    assert planning.certificate_power(true, n, 0.1) >= planning.certificate_power(min(0.1, true + 0.02), n, 0.1) - 1e-12
    assert planning.certificate_power(0.1, n, 0.1) <= 0.05 + 1e-12


def test_the_table_ships():
    """The 75 rows of the power table are the golden ones; nothing between them is made up."""
    rows = golden("power_table")["rows"]
    assert len(planning.delay_table()) == len(rows) == 75
    for row in rows:
        found = planning.tabulated(row["alpha"], row["factor"], row["nu"])
        assert found is not None
        assert (found.mean, found.p50, found.p90, found.p95) == (row["mean"], row["p50"], row["p90"], row["p95"])
    assert planning.tabulated(0.1, 2.5, 1_000) is None


def test_the_rule_of_thumb_stays_near_the_table():
    """As near as its text says, too long rather than too short where it is far off, and refused where it does not hold."""
    for row in planning.delay_table():
        if row.nu >= 1_000 and row.factor >= 1.5:
            off = planning.rule_of_thumb(row.alpha, row.factor, row.nu).mean / row.mean - 1
            assert -0.175 <= off <= (0.29 if (row.nu, row.factor) == (10_000, 1.5) else 0.10)
    for alpha, factor, nu in ((0.1, 2, 0), (0.1, 1.25, 5_000), (0.6, 2, 5_000)):
        with pytest.raises(InvalidSample, match="simulate"):
            planning.rule_of_thumb(alpha, factor, nu)
    alone, many = planning.rule_of_thumb(0.1, 2, 1_000), planning.rule_of_thumb(0.1, 2, 1_000, streams=100)
    assert many.mean - alone.mean == pytest.approx(np.log(100) / pvalues.kl(0.2, 0.1))


def test_simulation_agrees_with_the_table():
    """1,000 units at half the budget, then at twice: median and 90 % within a tenth of the table; nobody beats the limit."""
    known = planning.tabulated(0.1, 2.0, 1_000)
    assert known is not None
    config = MonitorConfig(alpha=0.1, method="spending")
    found = planning.simulated(config, healthy=0.05, factor=2.0, nu=1_000, rng=np.random.default_rng(7), runs=1_500)
    assert found.delay.p50 == pytest.approx(known.p50, rel=0.1)
    assert found.delay.p90 == pytest.approx(known.p90, rel=0.1)
    assert found.delay.mean > planning.least_delay(0.1, 2.0)
    assert found.early / found.runs <= 0.05
    assert found.undetected == 0
    assert len(found.delays) == found.runs - found.early
    with pytest.raises(InvalidSample, match="larger one"):
        planning.simulated(config, healthy=0.05, factor=1.001, nu=10, rng=np.random.default_rng(0))
    with pytest.raises(InvalidSample, match="healthy"):
        planning.simulated(config, healthy=0.2, factor=2.0, nu=10, rng=np.random.default_rng(0))


def test_the_seed_rule_is_late():
    """After 1,000 healthy units the published rule needs several times the units: it could not pass for the monitor."""
    found = planning.simulated(
        MonitorConfig(alpha=0.1, method="seed"), healthy=0.05, factor=2.0, nu=1_000, rng=np.random.default_rng(7), runs=100
    )
    assert found.delay.p50 is not None
    assert found.delay.p50 > 1_000
