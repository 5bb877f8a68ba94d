"""Transfer: held-out domains beside their control, two events that share a word, and what does not compose."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from winnow.assurance import bounds, transfer
from winnow.assurance.samples import InvalidSample
from winnow.assurance.transfer import Domain


def test_a_shift_shows_against_the_control():
    """A domain with three times the risk fails where random blocks of its size hold; without it all hold as often as the control says."""
    calm = [Domain(name=str(i), k=10, n=100) for i in range(9)]
    found = transfer.leave_one_out([*calm, Domain(name="odd", k=30, n=100)], delta=0.05, rng=np.random.default_rng(0))
    odd = found.rows[-1]
    assert not odd.held
    assert odd.p_shift < 1e-6
    assert odd.control > 0.65
    assert found.p_dispersion < 0.01
    assert found.held == 9
    still = transfer.leave_one_out(calm, delta=0.05, rng=np.random.default_rng(0))
    assert still.p_dispersion > 0.9
    assert still.coverage == 1.0


@given(st.lists(st.tuples(st.integers(1, 30), st.floats(0, 1)), min_size=2, max_size=5), st.integers(0, 5))
@settings(max_examples=10)
def test_the_control_is_what_random_blocks_do(shape, seed):
    """The exact hypergeometric control agrees with partitions drawn at random."""
    domains = [Domain(name=str(i), k=round(n * share), n=n) for i, (n, share) in enumerate(shape)]
    found = transfer.leave_one_out(domains, delta=0.1, rng=np.random.default_rng(seed), permutations=50)
    n, k = sum(d.n for d in domains), sum(d.k for d in domains)
    row = found.rows[0]
    drawn = np.random.default_rng(seed).hypergeometric(k, n - k, row.domain.n, size=400)
    share = np.mean([j / row.domain.n <= bounds.exact(int(k - j), n - row.domain.n, 0.1) for j in drawn])
    assert share == pytest.approx(row.control, abs=0.13)
    assert 0 <= row.p_shift <= 1 + 1e-12


def test_two_events_have_one_word():
    """P(true risk <= U) holds for the exact bound, while P(rate of fresh units <= U) does not reach 95 %: noise, no violation."""
    for p, seed, exact in ((0.144, (0.985, 0.944), (0.961, 0.897)), (0.084, (0.990, 0.948), (0.963, 0.903))):
        for bound, (covers, fresh) in ((bounds.seed, seed), (bounds.exact, exact)):
            assert transfer.covers(p, 250, 0.05, bound) == pytest.approx(covers, abs=1.1e-3)
            assert transfer.fresh_sample(p, 250, 0.05, bound) == pytest.approx(fresh, abs=1.1e-3)
            assert transfer.covers(p, 250, 0.05, bound) >= 0.95


def test_fresh_halves():
    """Over all half splits the published bound keeps 95.14, 96.25 and 93.02 %, the exact one 87.4, 92.7 and 89.4."""
    for k, seed, exact in ((72, 0.9514, 0.874), (42, 0.9625, 0.927), (96, 0.9302, 0.894)):
        assert transfer.fresh_half(k, 500, 0.05, bounds.seed) == pytest.approx(seed, abs=5e-5)
        assert transfer.fresh_half(k, 500, 0.05) == pytest.approx(exact, abs=5e-4)


@given(st.integers(2, 60), st.data())
@settings(max_examples=10)
def test_coverage_by_another_enumeration(n, data):
    """P(p <= U) agrees with scipy's binomial law."""
    p = data.draw(st.floats(0.01, 0.99))
    mass = stats.binom.pmf(np.arange(n + 1), n, p)
    expected = sum(m for k, m in enumerate(mass) if p <= bounds.exact(k, n, 0.05))
    assert transfer.covers(p, n, 0.05) == pytest.approx(expected, abs=1e-9)


def test_turns_do_not_compose():
    """5 % a turn over 27 turns says nothing about a run; a run's own loss does."""
    assert transfer.compose(0.05, 27).vacuous
    assert transfer.compose(0.05, 27).union == pytest.approx(1.35)
    assert transfer.compose(0.08, 27).independent == pytest.approx(0.8947, abs=5e-5)
    assert not transfer.compose(0.01, 27).vacuous
    assert transfer.consequential_turns(0.08, 1 - 0.92**3) == pytest.approx(3)
    assert transfer.any_divergence([[False, False], [False, True], []]) == [False, True, False]


def test_what_cannot_be_held_out_is_refused():
    """One domain, an empty one, more losses than units, a run without turns."""
    for domains in ([], [Domain(name="a", k=0, n=5)]):
        with pytest.raises(InvalidSample, match="two domains"):
            transfer.leave_one_out(domains, delta=0.05, rng=np.random.default_rng(0))
    for k, n in ((0, 0), (6, 5)):
        with pytest.raises(InvalidSample, match="domain"):
            Domain(name="x", k=k, n=n)
    with pytest.raises(InvalidSample):
        transfer.compose(0.1, 0)
