"""Upper bounds: the golden numbers, the coverage that they promise, and the intervals that do not keep it."""

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tests.unit.assurance.sequences import bernoulli, graded, uniforms
from tests.unit.assurance.vectors import golden, published
from winnow.assurance import anytime, bounds, methods, paired, pvalues
from winnow.assurance.kinds import LossType, Order
from winnow.assurance.methods import Guarantee
from winnow.assurance.paired import Pairs
from winnow.assurance.samples import InvalidSample, Sample

BOUNDS = {
    "exact": bounds.exact,
    "hb": bounds.hoeffding_bentkus,
    "seed": bounds.seed,
    "kl": bounds.kl_hoeffding,
    "hoeffding": bounds.hoeffding,
    "beta": anytime.beta,
    "grid": lambda k, n, delta: anytime.grid(Sample.counts(k, n), delta),
}


def in_order(values) -> Sample:
    return Sample.graded(values, order=Order.SEQ, registered_n=len(values))


def worst_coverage(upper, n: int) -> float:
    """Smallest P(U >= p) over p: coverage falls only just above each U(k)."""
    limits = np.array([upper(k, n) for k in range(n + 1)])
    points = np.unique(np.clip(limits + 1e-9, 1e-9, 1 - 1e-9))
    mass = stats.binom.pmf(np.arange(n + 1)[None, :], n, points[:, None])
    return float((mass * (limits[None, :] >= points[:, None])).sum(axis=1).min())


@pytest.mark.parametrize(
    ("ours", "theirs"), [("exact", "cp_upper"), ("hb", "hb_upper"), ("seed", "hb_seed_upper"), ("hoeffding", "hoeffding_upper")]
)
def test_golden_upper_bounds(ours, theirs):
    """Bounds of counts agree with the golden rows."""
    for row in golden("upper_bounds")["rows"]:
        assert BOUNDS[ours](row["k"], row["n"], row["delta"]) == pytest.approx(row[theirs], abs=1e-9), row


def test_the_published_bounds():
    """72 and 42 of 500 give the published 18.01 and 11.37 %; the exact test 17.24 and 10.73 %."""
    assert bounds.seed(72, 500, 0.05) == pytest.approx(0.1801, abs=5e-5)
    assert bounds.seed(42, 500, 0.05) == pytest.approx(0.1137, abs=5e-5)
    assert bounds.exact(72, 500, 0.05) == pytest.approx(0.172393337, abs=1e-9)
    assert bounds.exact(42, 500, 0.05) == pytest.approx(0.107292522, abs=1e-9)
    for key, bound in published("hb_bound_delta_.05").items():
        k, n = map(int, key.split("/"))
        assert bounds.seed(k, n, 0.05) == pytest.approx(bound, abs=6e-7)


def test_golden_graded_bounds_tell_the_proved_constant_from_the_other():
    """Empirical Bernstein with ln(2/delta) and with ln(1/delta), betting, and the grid mixture, each to its own number."""
    sequences = {
        "unif(0.2) seed 1 n=200": graded(uniforms(1), 0.2, 200),
        "bern(0.1) seed 7 n=300": bernoulli(uniforms(7), 0.1, 300),
    }
    checked = 0
    for row in golden("graded_bounds")["rows"]:
        if row["name"] not in sequences:
            continue
        values = sequences[row["name"]]
        sample = in_order(values)
        checked += 1
        assert bounds.empirical_bernstein(sample, 0.05) == pytest.approx(row["eb_maurer_pontil"], abs=1e-8)
        assert bounds.empirical_bernstein(sample, 0.05, constant=1) == pytest.approx(row["eb_seed_invalid_constant"], abs=1e-8)
        assert row["eb_maurer_pontil"] - row["eb_seed_invalid_constant"] > 0.005
        assert bounds.hoeffding(sample.total, sample.n, 0.05) == pytest.approx(row["hoeffding"], abs=1e-8)
        assert bounds.betting(sample, 0.05) == pytest.approx(row["wsr_fixed_n_runmax"], abs=1e-8)
        assert bounds.seed_betting(sample.array(), 0.05) == pytest.approx(row["seed_betting_runmax"], abs=1e-8)
        assert anytime.grid(sample, 0.05) == pytest.approx(row["grid25_mixture_upper"], abs=1e-8)
    assert checked == 2


def test_published_bounds_of_sequences():
    """The published betting and empirical Bernstein bounds come out to six digits."""
    sequences = {
        **{f"zeros{n}": [0.0] * n for n in (20, 50, 100, 500)},
        **{f"every10th_one_n{n}": [float(i % 10 == 9) for i in range(n)] for n in (100, 500)},
        **{f"const0.1_n{n}": [0.1] * n for n in (100, 500)},
        "graded_.1.2.3.15.25_x40": [0.1, 0.2, 0.3, 0.15, 0.25] * 40,
    }
    for name, values in sequences.items():
        sample = Sample.graded(values)
        assert bounds.empirical_bernstein(sample, 0.05) == pytest.approx(published("eb_ln2/d")[name], abs=6e-7)
        assert bounds.empirical_bernstein(sample, 0.05, constant=1) == pytest.approx(published("eb_ln1/d")[name], abs=6e-7)
        assert bounds.seed_betting(sample.array(), 0.05) == pytest.approx(published("betting_bound_delta_.05")[name], abs=6e-7)
        assert bounds.seed(sample.k, sample.n, 0.05) == pytest.approx(published("hb_same_mean")[name], abs=6e-7)


def test_golden_anytime_bounds():
    """The truncated Beta mixture's bound, two points of risk above the exact one at n = 500."""
    for row in golden("anytime_upper_bound"):
        assert anytime.beta(row["S"], row["n"], row["delta"]) == pytest.approx(row["beta_half_trunc_upper"], abs=1e-9)


def test_what_certifies():
    """Largest certifiable counts and the sizes that certify without a loss, exact and by the other tests."""
    for row in golden("max_certifiable_k"):
        found = [bounds.largest_count(row["n"], row["alpha"], row["delta"], test=t) for t in (pvalues.exact, pvalues.hoeffding_bentkus)]
        assert found == [row["exact"], row["hb"]], row
    for row in golden("zero_failure_min_n"):
        for name, test in (("exact", pvalues.exact), ("hb_seed", pvalues.seed)):
            assert test(0, row[name], row["alpha"]) <= row["delta"] < test(0, row[name] - 1, row["alpha"]), row


@pytest.mark.parametrize("n", [20, 50, 100, 300])
def test_the_exact_bound_covers(n):
    """By enumeration over all risks, coverage is at least 95 %; so it is for the Hoeffding family and at a fixed n for the anytime ones."""
    for name, bound in BOUNDS.items():
        if name == "exact" or n <= 50:
            assert worst_coverage(lambda k, n, b=bound: b(k, n, 0.05), n) >= 0.95 - 1e-7, name
    assert worst_coverage(lambda k, n: bounds.exact(k, n, 0.05), n) <= 0.9506


@pytest.mark.parametrize("n", [50, 300])
def test_intervals_for_reading_are_no_bounds(n):
    """Wilson, Wald and Jeffreys fail the same enumeration: they are estimates."""
    z = stats.norm.ppf(0.95)

    def wilson(k: int, n: int) -> float:
        r = k / n
        return (r + z * z / (2 * n) + z * math.sqrt(r * (1 - r) / n + z * z / (4 * n * n))) / (1 + z * z / n)

    def wald(k: int, n: int) -> float:
        return k / n + z * math.sqrt(k / n * (1 - k / n) / n)

    assert worst_coverage(wilson, n) < 0.945
    assert worst_coverage(wald, n) < 0.8
    assert worst_coverage(lambda k, n: float(stats.beta.ppf(0.95, k + 0.5, n - k + 0.5)) if k < n else 1.0, n) < 0.92


@given(st.integers(1, 800), st.data(), st.floats(0.001, 0.4))
@settings(max_examples=40)
def test_the_bound_inverts_the_test(n, data, delta):
    """The exact test at its own bound has p = delta; the other bounds are the smallest accepted alpha."""
    k = data.draw(st.integers(0, n - 1))
    assert pvalues.exact(k, n, bounds.exact(k, n, delta)) == pytest.approx(delta, rel=1e-6)
    limit = bounds.hoeffding_bentkus(k, n, delta)
    if limit < 1 - 1e-6:
        assert pvalues.hoeffding_bentkus(k, n, limit) <= delta * (1 + 1e-9)
        assert k / n >= limit - 1e-7 or pvalues.hoeffding_bentkus(k, n, limit - 1e-7) > delta


@given(st.integers(2, 400), st.data(), st.floats(0.001, 0.3))
@settings(max_examples=15)
def test_bounds_are_monotone(n, data, delta):
    """A bound rises with k and falls with n and with delta."""
    k = data.draw(st.integers(1, n - 1))
    for name, bound in BOUNDS.items():
        here = bound(k, n, delta)
        assert bound(k - 1, n, delta) <= here + 1e-9, name
        assert bound(k, n + 1, delta) <= here + 1e-9, name
        assert bound(k, n, delta * 1.5) <= here + 1e-9, name


def test_edges():
    """Without units, or with nothing but losses, the bound is 1; a lower bound without losses is 0."""
    for name, bound in BOUNDS.items():
        assert bound(0, 0, 0.05) == 1.0, name
        assert bound(7, 7, 0.05) == 1.0, name
    assert bounds.exact_lower(0, 50, 0.05) == 0.0
    assert bounds.empirical_bernstein(Sample.graded([0.5]), 0.05) == 1.0
    assert bounds.wilson(0, 0) == (0.0, 1.0)
    assert bounds.empirical_bernstein(Sample.counts(3, 40), 0.05) == pytest.approx(
        bounds.empirical_bernstein(Sample.binary([1] * 3 + [0] * 37), 0.05)
    )


@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-17, 1e-60, 1e-300])
def test_tiny_error_budgets(delta):
    """Bounds stay bounds where 1 - delta rounds to 1: below 1, above the bound at 5 %, and the test at the exact one has p = delta."""
    for name, bound in BOUNDS.items():
        assert bound(42, 500, 0.05) < bound(42, 500, delta) <= 1, name
    assert bounds.exact(42, 500, delta) < 1
    assert pvalues.exact(42, 500, bounds.exact(42, 500, delta)) == pytest.approx(delta, rel=1e-6)
    low, high = paired.tango(Pairs(lost=4, gained=3, n=100), delta)
    assert -1 <= low < high <= 1


def test_a_hundred_thousand_units():
    """Nothing overflows and everything stays in order at n = 100,000, by counts and by values."""
    found = {name: bound(9_800, 100_000, 0.05) for name, bound in BOUNDS.items()}
    assert found["exact"] < found["hb"] < found["hoeffding"] < 0.102
    assert found["exact"] < found["beta"] < 0.102
    values = np.random.default_rng(0).choice(np.linspace(0, 0.2, 50), 100_000).tolist()
    sample = in_order(values)
    assert sample.rate < bounds.betting(sample, 0.05) < anytime.grid(sample, 0.05) < bounds.empirical_bernstein(sample, 0.05) + 0.01


@given(st.lists(st.floats(0, 1), min_size=3, max_size=60), st.randoms())
@settings(max_examples=15)
def test_order_does_not_move_what_claims_not_to_depend_on_it(values, rng):
    """Exact, Hoeffding–Bentkus, empirical Bernstein and the grid mixture are invariant under permutation, to the bit."""
    shuffled = list(values)
    rng.shuffle(shuffled)
    one, two = Sample.graded(values), Sample.graded(shuffled)
    for name in ("hb", "kl", "eb", "grid"):
        assert methods.upper(one, 0.05, name) == pytest.approx(methods.upper(two, 0.05, name), abs=1e-12), name
    assert methods.upper(one, 0.05, "grid") == methods.upper(two, 0.05, "grid")


def test_the_betting_bound_moves_with_the_order_and_so_demands_it():
    """Shopping for an order would move it by points of risk; without a registered order and n it is refused."""
    losses = [1.0] * 72 + [0.0] * 428
    shuffles = []
    for seed in range(20):
        random.Random(seed).shuffle(losses)
        shuffles.append(bounds.betting(in_order(losses), 0.05))
    assert max(shuffles) - min(shuffles) > 0.005
    assert max(shuffles) - min(bounds.betting(in_order(sorted(losses)), 0.05), *shuffles) > 0.01
    for sample in (Sample.graded(losses), Sample.graded(losses, order=Order.SEQ), Sample.graded(losses, order=Order.SEQ, registered_n=499)):
        with pytest.raises(InvalidSample, match="registered"):
            bounds.betting(sample, 0.05)


def test_the_anytime_bound_holds_at_every_look():
    """Over all sequences of 300 looks, P(the Beta bound is ever below the risk) is at most 5 %; the exact one's is not."""
    p, looks = 0.1, 300
    anytime_alarm, exact_alarm = np.zeros(looks + 2), np.zeros(looks + 2)
    for alarm, below in (
        (anytime_alarm, lambda k, n: anytime.log_beta(k, n, p) >= math.log(20)),
        (exact_alarm, lambda k, n: bounds.exact(k, n, 0.05) < p),
    ):
        mass = np.zeros(looks + 2)
        mass[0] = 1.0
        lost = 0.0
        for n in range(1, looks + 1):
            mass = mass * (1 - p) + np.concatenate([[0.0], mass[:-1]]) * p
            for k in range(n + 1):
                if k / n >= p:
                    break
                if mass[k] > 0 and below(k, n):
                    lost += mass[k]
                    mass[k] = 0.0
        alarm[0] = lost
    assert anytime_alarm[0] <= 0.05
    assert exact_alarm[0] > 0.1


def test_graded_bounds_miss_no_more_often_than_they_say():
    """On zero-inflated losses, 150 draws of 60 units, every graded bound misses in at most 5 % and three standard errors."""
    rng = np.random.default_rng(5)
    missed = dict.fromkeys(("hb", "eb", "grid", "wsr"), 0)
    mean = 0.2 * 2 / 7
    for _ in range(150):
        values = np.where(rng.random(60) < 0.2, rng.beta(2, 5, 60), 0.0).tolist()
        for name in missed:
            missed[name] += methods.upper(in_order(values), 0.05, name) < mean
    assert all(count <= 150 * (0.05 + 3 * math.sqrt(0.05 * 0.95 / 150)) for count in missed.values()), missed


def test_the_betting_machinery_agrees_with_confseq():
    """Predictable means and variances give confseq's frozen log capitals, aKelly and predictable plug-in."""
    oracle = golden("confseq_oracle")
    x = np.array(bernoulli(uniforms(7), 0.1, 300))
    t = np.arange(1, 301)
    variance = bounds.past_variance(x)
    mean = np.concatenate([[0.5], (0.5 + np.cumsum(x)) / (t + 1)])[:-1]
    m = 0.05
    kelly = np.clip((mean - m) / (variance + (mean - m) ** 2), 0, 0.5 / m)
    plug_in = np.minimum(0.5 / m, np.sqrt(2 * math.log(20) / (variance * t * np.log1p(t))))
    for stakes, key in ((kelly, "aKelly_nonneg_logcapital"), (plug_in, "predmix_eb_logcapital")):
        capital = np.cumsum(np.log1p(stakes * (x - m)))
        for n, log_capital in oracle[key].items():
            assert capital[int(n) - 1] == pytest.approx(log_capital, abs=1e-9), (key, n)


def test_methods_say_what_they_are_for():
    """A method refuses losses of another type and names those that fit; every method carries its guarantee class."""
    with pytest.raises(InvalidSample, match="grid"):
        methods.upper(Sample.graded([0.5] * 30), 0.05, "exact")
    with pytest.raises(InvalidSample, match="-1, 0 or 1"):
        methods.upper(Sample.paired([0.5] * 60), 0.05, "tango")
    with pytest.raises(InvalidSample, match="no method"):
        methods.upper(Sample.counts(1, 30), 0.05, "wald")
    assert methods.default(LossType.BINARY) == "exact"
    assert methods.default(LossType.PAIRED) == methods.default(LossType.GRADED) == "grid"
    assert {m.guarantee for m in methods.METHODS.values()} == {Guarantee.FIXED_N, Guarantee.ANYTIME}


@pytest.mark.parametrize("name", methods.METHODS)
def test_the_p_value_and_the_bound_say_the_same(name):
    """p <= delta just where the bound is at most alpha, for every method."""
    sample = Sample.binary([1.0] * 9 + [0.0] * 191, order=Order.SEQ, registered_n=200)
    if name == "tango":
        sample = Sample.paired([1.0] * 9 + [-1.0] * 3 + [0.0] * 188)
    limit = methods.upper(sample, 0.05, name)
    assert methods.p_value(sample, limit + 1e-4, name) <= 0.05 + 1e-9
    assert methods.p_value(sample, limit - 1e-4, name) >= 0.05 - 1e-6


@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=5, max_size=80))
@settings(max_examples=12)
def test_paired_losses_are_mapped_and_mapped_back(values):
    """The bound of d is 2U - 1 of (d + 1)/2, the lower bound is that of -d, and the mean lies between."""
    sample = Sample.paired(values)
    u = Sample.graded([(x + 1) / 2 for x in values])
    for name in ("grid", "eb"):
        assert methods.upper(sample, 0.05, name) == pytest.approx(2 * methods.upper(u, 0.05, name) - 1, abs=1e-9)
    lost, gained = values.count(1.0), values.count(-1.0)
    low, high = paired.change_interval(Pairs(lost=lost, gained=gained, n=len(values)), 0.05)
    assert (methods.lower(sample, 0.05, "tango"), methods.upper(sample, 0.05, "tango")) == pytest.approx((-high, -low), abs=1e-9)
    assert methods.lower(sample, 0.05) <= sample.rate <= methods.upper(sample, 0.05)


@given(st.lists(st.floats(0, 1), min_size=2, max_size=50))
@settings(max_examples=12)
def test_lower_bounds_mirror_upper_ones(values):
    """Lower bounds lie below the mean; of counts, it is Clopper–Pearson's."""
    sample = Sample.graded(values)
    assert methods.lower(sample, 0.05) <= sample.rate + 1e-12
    k = sum(v > 0.5 for v in values)
    assert methods.lower(Sample.counts(k, len(values)), 0.05) == pytest.approx(bounds.exact_lower(k, len(values), 0.05), abs=1e-9)
