"""Intervals of the standard library alone: those of scipy, to twelve digits."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special

from winnow.assurance import bounds, intervals


@given(st.integers(0, 3_000), st.integers(0, 3_000), st.sampled_from([0.9, 0.95, 0.999]))
def test_exact(a, b, confidence):
    """The exact interval is that of the one-sided exact bounds at half the error each."""
    k, n = min(a, b), max(a, b)
    low, high = intervals.exact(k, n, confidence)
    if n == 0:
        assert (low, high) == (0.0, 1.0)
        return
    assert low == pytest.approx(bounds.exact_lower(k, n, (1 - confidence) / 2), rel=1e-9, abs=1e-12)
    assert high == pytest.approx(bounds.exact(k, n, (1 - confidence) / 2), rel=1e-9, abs=1e-12)
    assert 0 <= low <= k / n <= high <= 1


def test_many_units():
    """A million units neither overflow nor lose digits."""
    low, high = intervals.exact(100_000, 1_000_000, 0.95)
    assert low == pytest.approx(special.betaincinv(100_000, 900_001, 0.025), rel=1e-9)
    assert high == pytest.approx(special.betaincinv(100_001, 900_000, 0.975), rel=1e-9)


@given(st.floats(0.5, 1e4), st.floats(0.5, 1e4), st.floats(0, 1))
def test_incomplete_beta(a, b, x):
    """The function itself agrees with scipy's on its whole domain."""
    assert intervals.incomplete_beta(a, b, x) == pytest.approx(float(special.betainc(a, b, x)), rel=1e-8, abs=1e-12)


def test_graded():
    """Hoeffding's interval covers a graded mean more often than it promises, and stays within the range of the loss."""
    rng, missed = random.Random(3), 0
    for _ in range(400):
        losses = [rng.betavariate(1, 9) for _ in range(60)]
        low, high = intervals.hoeffding(sum(losses), 60, 0.95, 0.0)
        missed += not low <= 0.1 <= high
    assert missed <= 20
    assert intervals.hoeffding(0.0, 0, 0.95, -1.0) == (-1.0, 1.0)
    assert intervals.hoeffding(-3.0, 4, 0.95, -1.0)[0] == -1.0
