"""Paired comparisons: golden numbers, the error that Wald makes, and the losses that pairs become."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.unit.assurance.vectors import golden
from winnow.assurance import paired
from winnow.assurance.paired import Pairs
from winnow.assurance.samples import InvalidSample


@st.composite
def pairs(draw):
    n = draw(st.integers(1, 400))
    lost = draw(st.integers(0, n))
    return Pairs(lost=lost, gained=draw(st.integers(0, n - lost)), n=n)


def test_golden_pairs():
    """McNemar, mid-p, Wald, Tango to eight digits and two Clopper–Pearson bounds agree with the golden rows."""
    for row in golden("paired")["rows"]:
        counts = Pairs(lost=row["losses_b"], gained=row["gains_c"], n=row["n"])
        assert paired.mcnemar(counts) == pytest.approx(row["mcnemar_exact_p"], rel=1e-9)
        assert paired.mcnemar_mid(counts) == pytest.approx(row["mcnemar_midp"], rel=1e-9)
        assert counts.change == pytest.approx(row["delta"], abs=1e-12)
        assert paired.wald(counts) == pytest.approx(row["wald95"], abs=1e-9)
        assert paired.tango(counts)[0] == pytest.approx(row["tango_lower_97_5"], abs=1e-8)
        assert paired.two_clopper_pearson(counts)[0] == pytest.approx(row["two_cp_lower_97_5"], abs=1e-9)


def test_no_discordance_shows_nothing():
    """b = c = 0 at n = 1 is not non-inferior, although Wald certifies it; McNemar says 1 where b = c."""
    one = Pairs(lost=0, gained=0, n=1)
    assert not paired.compare(one, margin=0.1).non_inferior
    assert paired.wald(one)[0] > -0.1
    assert paired.mcnemar(one) == paired.mcnemar(Pairs(lost=10, gained=10, n=100)) == 1.0
    assert paired.mcnemar(Pairs(lost=42, gained=30, n=500)) == pytest.approx(0.194505, abs=5e-7)
    assert paired.tango(Pairs(lost=0, gained=0, n=0)) == (-1.0, 1.0)


def test_small_samples_are_compared_exactly():
    """Below fifty pairs two Clopper–Pearson bounds are used, from fifty on the score test."""
    assert paired.compare(Pairs(lost=0, gained=0, n=49), margin=0.1).method == "two-cp"
    assert paired.compare(Pairs(lost=0, gained=0, n=50), margin=0.1).method == "tango"


@pytest.mark.parametrize(
    ("n", "lost", "gained", "wald", "tango"),
    [
        (20, 0.08, 0.03, 0.189, 0.005), (50, 0.06, 0.01, 0.059, 0.005), (50, 0.08, 0.03, 0.051, 0.013), (100, 0.05, 0.0, 0.118, 0.006),
        (100, 0.12, 0.07, 0.029, 0.022),
    ],
)  # fmt: skip
def test_type_one_errors_by_enumeration(n, lost, gained, wald, tango):
    """At the margin of 5 points Wald errs up to .19 for a nominal .025, Tango at most .025 here."""
    found = {"wald": 0.0, "tango": 0.0}
    for b in range(n + 1):
        for c in range(n + 1 - b):
            chance = stats.multinomial.pmf([b, c, n - b - c], n, [lost, gained, 1 - lost - gained]) if (gained or not c) else 0.0
            if chance < 1e-12:
                continue
            counts = Pairs(lost=b, gained=c, n=n)
            found["wald"] += chance * (paired.wald(counts)[0] > -0.05)
            found["tango"] += chance * (paired.tango_score(counts, -0.05) > stats.norm.ppf(0.975))
    assert found["wald"] == pytest.approx(wald, abs=6e-4)
    assert found["tango"] == pytest.approx(tango, abs=6e-4)


@given(pairs())
@settings(max_examples=40)
def test_intervals_hold_the_estimate_and_mirror(counts):
    """Every interval holds the change, and swapping the arms mirrors it."""
    swapped = Pairs(lost=counts.gained, gained=counts.lost, n=counts.n)
    for interval in (paired.tango, paired.two_clopper_pearson, paired.wald):
        low, high = interval(counts)
        assert low <= counts.change + 1e-9 <= high + 2e-9
        assert interval is paired.wald or -1 - 1e-9 <= low <= high <= 1 + 1e-9  # Wald leaves the scale
        other = interval(swapped)
        assert (low, high) == pytest.approx((-other[1], -other[0]), abs=1e-9)
    assert paired.mcnemar(counts) == pytest.approx(paired.mcnemar(swapped))
    assert paired.mcnemar(counts) == pytest.approx(
        stats.binomtest(counts.lost, counts.lost + counts.gained).pvalue if counts.lost + counts.gained else 1.0
    )


@given(pairs(), st.floats(0.01, 0.3))
@settings(max_examples=40)
def test_the_interval_inverts_the_score(counts, delta):
    """The score at Tango's lower end is the normal quantile."""
    low, _ = paired.tango(counts, delta)
    if -1 + 1e-6 < low < 1 - 1e-6:
        assert paired.tango_score(counts, low) == pytest.approx(stats.norm.ppf(1 - delta), abs=1e-4)


def test_counts_come_from_outcomes():
    """(reference, pruned) of each task; counts that do not fit are refused."""
    found = Pairs.of([(True, True), (True, False), (False, True), (False, False), (True, False)])
    assert found == Pairs(lost=2, gained=1, n=5)
    for bad in ((3, 3, 5), (-1, 0, 5), (0.5, 0, 5), (True, 0, 5)):
        with pytest.raises(InvalidSample):
            Pairs(lost=bad[0], gained=bad[1], n=bad[2])


def test_paired_harm_is_never_clipped():
    """d is -1, 0 or 1; clipping it would count self-noise as harm."""
    decisions = [("a", "a", "b"), ("a", "b", "a"), ("a", "b", "c"), ("a", "a", "a")]
    assert paired.decision_harm(decisions) == [1.0, -1.0, 0.0, 0.0]
    assert paired.rerun_excess([(True, True, False), (True, False, True), (True, False, False), (False, True, False)]) == [
        1.0,
        -1.0,
        0.0,
        0.0,
    ]
    assert paired.from_agreement([0.5, -1.0]) == [-0.5, 1.0]


def test_self_noise_is_not_harm():
    """A pruned arm that is as noisy as the reference has a mean paired harm near 0, while plain divergence reads the noise."""
    rng = np.random.default_rng(0)
    a, again, b = (rng.choice(list("abc"), size=4_000, p=[0.8, 0.1, 0.1]) for _ in range(3))
    harm = paired.decision_harm(zip(a.tolist(), again.tolist(), b.tolist(), strict=True))
    assert abs(math.fsum(harm) / 4_000) < 0.03
    assert (a != b).mean() > 0.3
