import itertools
import json
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.data import shared_data
from winnow.assurance.ebh import e_bh, e_lond, joining_weight, weighted_e_bh
from winnow.assurance.refusals import InvalidConfig
from winnow.assurance.streams import Member, divergence, epoch_delta, evaluate, fleet_evidence, price, spent

evidences = st.lists(st.floats(0, 1e6), max_size=12)


@pytest.fixture(scope="module")
def vectors():
    return json.loads(shared_data("assurance_golden.json").read_text())


def test_golden_e_bh(vectors):
    """e-BH rejects what was recorded, ties at the level included."""
    for row in vectors["e_bh"]:
        assert list(e_bh(row["e"], row["delta"])) == row["rejected"]


def test_ties_at_any_size():
    """K e-values of exactly K/(K·delta) are all rejected, whatever K: rounding does not decide."""
    for k in range(1, 200):
        assert all(e_bh([20.0] * k, 0.05))
        assert not any(e_bh([19.999] * k, 0.05))


def test_golden_e_lond(vectors):
    """e-LOND decides as recorded, at the recorded levels."""
    e, row = vectors["e_lond"]["e"], vectors["e_lond"]["gamma_1_over_j_jp1"]
    weights = [joining_weight(j) for j in range(1, len(e) + 1)]
    decided = e_lond(e, 0.05, weights)
    assert list(decided) == row["decisions"]
    before = [sum(decided[:j]) for j in range(len(e))]
    assert [0.05 * w * (r + 1) for w, r in zip(weights, before, strict=True)] == pytest.approx(row["levels"], rel=1e-12)


@given(evidences)
def test_e_bh_agrees_with_an_independent_implementation(values):
    """e-BH rejects what online-fdr's does."""
    oracle = pytest.importorskip("online_fdr.e_values")
    if values:
        assert list(e_bh(values, 0.05)) == oracle.e_bh(values, 0.05)


@given(st.lists(st.floats(0, 1e6), max_size=20))
def test_e_lond_agrees_with_an_independent_implementation(values):
    """e-LOND decides what online-fdr's does, at its own sequence of shares."""
    oracle = pytest.importorskip("online_fdr.e_values").ELond(0.05)
    shares = [oracle.seq.calc_gamma(j, alpha=1.0) if j else 0.0 for j in range(1, len(values) + 1)]
    assert list(e_lond(values, 0.05, shares)) == [oracle.test_one(v) for v in values]


@given(evidences, st.randoms(use_true_random=False))
def test_e_bh_follows_a_permutation(values, random):
    """Which stream alarms does not depend on where it stands."""
    order = list(range(len(values)))
    random.shuffle(order)
    assert list(e_bh([values[i] for i in order], 0.1)) == [e_bh(values, 0.1)[i] for i in order]


@given(st.lists(st.floats(0, 1e4), min_size=1, max_size=8))
def test_e_bh_by_its_definition(values):
    """The rejected are the largest set whose every member reaches K/(k·delta), by exact arithmetic."""
    delta, size = Fraction(1, 20), len(values)
    exact = [Fraction(v) for v in values]
    best = max((k for k in range(size + 1) if sum(v * k * delta >= size for v in exact) >= k), default=0)
    found = e_bh(values, 0.05)
    near = any(abs(v * k * delta / size - 1) < Fraction(1, 10**9) for v in exact for k in range(1, size + 1))
    assert near or sum(found) == sum(v * best * delta >= size for v in exact if best)


@given(st.lists(st.tuples(st.floats(0, 500), st.floats(0, 500)), min_size=1, max_size=8))
def test_frozen_alarms_stay(pairs):
    """A stream that alarmed and froze is never named again, and the others' levels only fall."""
    first = evaluate([Member(stream=str(i), weight=1 / len(pairs), evidence=a) for i, (a, _) in enumerate(pairs)], 0.05)
    later = [
        Member(stream=str(i), weight=1 / len(pairs), evidence=a if str(i) in first.alarms else b, frozen=str(i) in first.alarms)
        for i, (a, b) in enumerate(pairs)
    ]
    second = evaluate(later, 0.05)
    assert not set(first.alarms) & set(second.alarms)
    for member in later:
        if not member.frozen:
            assert second.levels[member.stream] <= first.levels[member.stream] * (1 + 1e-12)


def test_a_stream_that_joins_weakens_nobody():
    """With weights 1/(k(k+1)) a newcomer leaves every running level where it was."""
    old = [Member(stream=str(k), weight=joining_weight(k), evidence=5.0) for k in (1, 2, 3)]
    new = [*old, Member(stream="4", weight=joining_weight(4), evidence=0.0)]
    before, after = evaluate(old, 0.05), evaluate(new, 0.05)
    assert all(after.levels[m.stream] == before.levels[m.stream] for m in old)


def test_the_fleet_evidence_has_mean_one_under_the_budget():
    """The mean over all outcomes of fair members is 1, whatever the weights and however they depend."""
    weights = [joining_weight(k) for k in (1, 2, 3)]
    for joint in ([(0.0, 0.0, 0.0), (2.0, 2.0, 2.0)], list(itertools.product((0.0, 2.0), repeat=3))):
        assert math.fsum(fleet_evidence(zip(weights, m, strict=True)) for m in joint) / len(joint) == pytest.approx(1.0)


def test_epochs_share_one_budget():
    """The epochs' budgets fall, and never add up to more than the whole."""
    assert epoch_delta(0.05, 1) == pytest.approx(0.05 * 6 / math.pi**2)
    assert spent(0.05, 1000) < 0.05 < spent(0.05, 1000) + 0.05 * 6 / math.pi**2 / 1000


def test_weights_above_one_are_refused():
    """Weights that sum to more than 1, or are 0, are refused: they would bound nothing."""
    for weights in ([0.6, 0.6], [0.0, 0.5], [0.5]):
        with pytest.raises(InvalidConfig):
            weighted_e_bh([1.0, 1.0], weights, 0.05)


def test_the_price_of_sharing():
    """A hundred streams cost a stream whose risk doubled from .1 about a hundred units more."""
    assert price(100, 0.2, 0.1) == pytest.approx(math.log(100) / divergence(0.2, 0.1))
    assert 100 < price(100, 0.2, 0.1) < 110
