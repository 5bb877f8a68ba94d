"""Profiles: learned once, compared with later, and an estimate."""

import random
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.assurance.profile import LEARN_FROM, SETTLED_AFTER, Profile, seen

SHARES = st.floats(0, 1)


@given(st.lists(SHARES, min_size=2, max_size=LEARN_FROM), st.integers(0, 50))
def test_mean_and_spread(shares, cut):
    """The learned mean and spread are those of the shares, however they come."""
    found = seen(seen(Profile(), shares[:cut]), shares[cut:])
    assert found.learned == len(shares)
    assert found.rate == pytest.approx(statistics.fmean(shares), abs=1e-9)
    assert found.spread == pytest.approx(statistics.variance(shares) * (len(shares) - 1), abs=1e-9)


def test_what_is_usual_is_no_departure():
    """Shares of one law depart rarely; another level departs soon, upwards and downwards."""
    departures = 0
    for seed in range(40):
        rng = random.Random(seed)
        learned = seen(Profile(), [min(1, max(0, rng.gauss(0.3, 0.1))) for _ in range(LEARN_FROM)])
        same = seen(learned, [min(1, max(0, rng.gauss(0.3, 0.1))) for _ in range(300)])
        departures += same.departed
        for level in (0.2, 0.4):
            other = seen(learned, [min(1, max(0, rng.gauss(level, 0.1))) for _ in range(300)])
            assert other.departed
            assert (other.z > 0) == (level > 0.3)
    assert departures <= 1


def test_nothing_is_said_too_early():
    """Before a profile is learned, and before something came since, nothing departs."""
    learned = seen(Profile(), [0.3] * LEARN_FROM)
    assert seen(Profile(), [1.0] * (LEARN_FROM - 1)).z == 0
    assert not seen(learned, [1.0] * (SETTLED_AFTER - 1)).departed
    assert seen(learned, [1.0] * SETTLED_AFTER).departed


def test_identical_boundaries_do_not_make_everything_a_departure():
    """A profile without any spread is believed to have some."""
    learned = seen(Profile(), [0.25] * LEARN_FROM)
    assert not seen(learned, [0.252] * SETTLED_AFTER).departed
