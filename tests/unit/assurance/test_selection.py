"""Selection: the first failure stops, ties certify, nothing certified means keep everything, and errors keep to their budget."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.assurance.vectors import golden, published
from winnow.assurance import bandit, bounds, crc, operating, paired, pvalues, selection, speculative
from winnow.assurance import published as seed
from winnow.assurance.paired import Pairs
from winnow.assurance.samples import InvalidSample, Sample
from winnow.assurance.selection import Level, Rule


def ladder(*counts, savings=None):
    saved = savings or [math.nan] * len(counts)
    return [Level(name=str(i), sample=Sample.counts(k, n), savings=s) for i, ((k, n), s) in enumerate(zip(counts, saved, strict=True))]


def last(found):
    return -1 if found.last is None else found.last


def test_golden_fixed_sequences():
    """The ladder stops at its first failure and ignores what passes later, by the exact test and by Hoeffding–Bentkus."""
    for row in golden("ltt_fixed_sequence")["rows"]:
        for method, p, chosen in (("exact", "p_exact", "selected_exact"), ("hb", "p_hb", "selected_hb")):
            found = selection.select(ladder(*row["levels_k_n"]), alpha=row["alpha"], delta=row["delta"], method=method)
            assert last(found) == row[chosen], row
            assert found.p_values == pytest.approx(row[p], rel=1e-9, abs=1e-300)


def test_the_walk_stops():
    """[(0,100), (5,100), (3,100)] at 10 % gives the first level alone, although the third would pass by itself."""
    found = selection.select(ladder((0, 100), (5, 100), (3, 100)), alpha=0.1, delta=0.05)
    assert found.certified == (True, False, False)
    assert found.p_values[2] <= 0.05
    assert found.chosen == 0


def test_nothing_certified_keeps_everything():
    """An empty ladder, a level without units and a failing first level choose nothing, not the first level."""
    for levels in ((), ((0, 0),), ((30, 100), (0, 100))):
        found = selection.select(ladder(*levels), alpha=0.1, delta=0.05)
        assert (found.chosen, found.level, found.last) == (None, None, None)


def test_the_operating_point_saves_most_inside_the_prefix():
    """Savings need not grow along the ladder: neither the last certified level nor one beyond the prefix is taken for it."""
    found = selection.select(
        ladder((0, 300), (12, 300), (20, 300), (31, 300), (90, 300), savings=[0.0, 0.1, 0.3, 0.2, 0.9]), alpha=0.15, delta=0.05
    )
    assert (found.last, found.chosen) == (3, 2)
    ties = selection.select(ladder((0, 300), (1, 300), savings=[0.2, 0.2]), alpha=0.15, delta=0.05)
    assert ties.chosen == 0


def test_a_ladder_is_of_one_type_and_its_names_are_different():
    """Mixed loss types and repeated names are refused."""
    mixed = [Level(name="a", sample=Sample.counts(0, 30)), Level(name="b", sample=Sample.graded([0.0] * 30))]
    with pytest.raises(InvalidSample, match="one declared type"):
        selection.select(mixed, alpha=0.1, delta=0.05)
    with pytest.raises(InvalidSample, match="same name"):
        selection.select([mixed[0], mixed[0]], alpha=0.1, delta=0.05)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.floats(0.001, 0.5))
def test_holm_gives_at_least_what_bonferroni_gives(p_values, delta):
    """Holm rejects all that Bonferroni does, keeps the order of the p-values, and is equivariant under permutation."""
    coarse, fine = selection.bonferroni(p_values, delta), selection.holm(p_values, delta)
    assert all(f or not c for c, f in zip(coarse, fine, strict=True))
    worst = max((p for p, passed in zip(p_values, fine, strict=True) if passed), default=-1.0)
    assert all(passed for p, passed in zip(p_values, fine, strict=True) if p < worst)
    assert sorted(selection.holm(p_values[::-1], delta)) == sorted(fine)
    assert list(selection.fixed_sequence(p_values, delta)) == [all(p <= delta for p in p_values[: i + 1]) for i in range(len(p_values))]


def test_the_fixed_sequence_keeps_its_budget_where_scanning_does_not():
    """With every level just above alpha, P(any certified) stays within delta; testing all levels at delta does not."""
    rng = np.random.default_rng(0)
    allowed = bounds.largest_count(300, 0.1, 0.05)
    passes = rng.binomial(300, 0.1001, size=(4_000, 6)) <= allowed
    sequence = sum(any(selection.fixed_sequence(np.where(row, 0.0, 1.0), 0.05)) for row in passes) / 4_000
    scan = passes.any(axis=1).mean()
    assert sequence <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 4_000)
    assert scan > 0.15


def test_golden_crc():
    """All eighteen rows, exact ties among them; the float form refuses the ties that the file says it refuses."""
    rows = golden("crc")["rows"]
    assert len(rows) == 18
    for row in rows:
        found = crc.select(row["losses_per_level"], row["n"], row["alpha"])
        assert (-1 if found is None else found) == row["selected"], row
        floats = seed.crc_by_floats(row["losses_per_level"], row["n"], row["alpha"]) if row["n"] else None
        assert (-1 if floats is None else floats) == row["naive_float_formula_selects"], row
    assert crc.select([0, 2, 50], 100, "0.05") == published("crc")["[(0,100),(2,100),(50,100)]@.05"]


def test_ties_certify_and_floats_refuse_some():
    """Up to n = 2,000 floats refuse 7 exact ties at .15, 2 at .2 and 13 at .3, the first at n = 179, k = 26."""
    for alpha, numerator, denominator, refused in (("0.15", 3, 20, 7), ("0.2", 1, 5, 2), ("0.3", 3, 10, 13)):
        ties = [(n, numerator * (n + 1) // denominator - 1) for n in range(1, 2_001) if numerator * (n + 1) % denominator == 0]
        ties = [(n, k) for n, k in ties if 0 <= k <= n]
        assert all(crc.select([k], n, alpha) == 0 for n, k in ties)
        lost = [(n, k) for n, k in ties if seed.crc_by_floats([k], n, float(alpha)) is None]
        assert len(lost) == refused
        if alpha == "0.15":
            assert lost[0] == (179, 26)


def test_crc_sizes_and_refusals():
    """Zero losses certify 5 % from n = 19; falling losses, bad budgets and sums outside [0, n] are refused."""
    assert crc.smallest_n("0.05") == published("crc")["min n for zero loss at .05"] == 19
    assert crc.select([0], 18, "0.05") is None
    assert crc.select([0], 9, 0.1) == 0
    with pytest.raises(InvalidSample, match="running maximum"):
        crc.select([3, 2], 100, "0.1")
    for alpha in ("0", "1", "x", "nan", "1/0", "-0.1", True):
        with pytest.raises(InvalidSample, match="alpha"):
            crc.select([0], 100, alpha)
    for total in (-1, 101, math.nan, "1", True):
        with pytest.raises(InvalidSample, match="summed loss"):
            crc.select([total], 100, "0.1")


@given(st.lists(st.lists(st.floats(0, 1), min_size=3, max_size=3), min_size=1, max_size=30))
def test_the_running_maximum_makes_losses_monotone(rows):
    """After it no level's sum falls, and none is below what was measured."""
    sums = crc.monotone(rows)
    assert all(a <= b for a, b in itertools.pairwise(sums))
    assert all(s >= math.fsum(row[i] for row in rows) - 1e-9 for i, s in enumerate(sums))
    with pytest.raises(InvalidSample, match="one loss for each level"):
        crc.monotone([*rows, [0.0]])


def test_the_speculative_threshold_is_the_largest_that_holds():
    """The joint loss counts over all units; ties of a score stay together; none trusted is no rate; too few units trust nothing."""
    units = [(i / 100, i >= 60) for i in range(100)]
    found = speculative.select(units, alpha=0.1, delta=0.05)
    allowed = bounds.largest_count(100, 0.1, 0.05)
    assert (found.k, found.trusted, found.n) == (allowed, 60 + allowed, 100)
    assert found.threshold == pytest.approx((60 + allowed) / 100)
    assert found.bound <= 0.1 < bounds.exact(allowed + 1, 100, 0.05)
    assert found.conditional == pytest.approx(allowed / (60 + allowed))
    assert speculative.select([(0.5, True)] * 100, alpha=0.1, delta=0.05).conditional is None
    assert speculative.select([(0.5, False)] * 100, alpha=0.1, delta=0.05).threshold == math.inf
    nothing = speculative.select([(0.5, False)] * 10, alpha=0.1, delta=0.05)
    assert (nothing.threshold, nothing.trusted, nothing.conditional) == (None, 0, None)
    for bad in (math.nan, "x", None, True):
        with pytest.raises(InvalidSample, match="score"):
            speculative.select([(bad, False)], alpha=0.1, delta=0.05)


def test_scanning_conditional_bounds_certifies_falsely():
    """With useless scores and a risk 2 % above 10 %, the scan with the exact test certifies in about 21 %, the joint loss within 5 %."""
    rng = np.random.default_rng(1)
    alpha, n, runs = 0.1, 500, 150
    allowed = [bounds.largest_count(m, alpha, 0.05) for m in range(n + 1)]
    falsely = jointly = 0
    for _ in range(runs):
        units = list(zip(rng.random(n).tolist(), (rng.random(n) < 1.02 * alpha).tolist(), strict=True))
        # 0 where the bound is at most alpha, else 1: the same decision as the bound itself, looked up.
        falsely += seed.conditional_scan(units, alpha=alpha, delta=0.05, bound=lambda k, m, _: float(k > allowed[m])) is not None
        found = speculative.select(units, alpha=alpha, delta=0.05)
        jointly += found.threshold is not None and min(1.0, found.threshold) * 1.02 * alpha > alpha
    assert falsely / runs > 0.1
    assert jointly / runs <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / runs)


def test_the_conditional_scan_is_what_was_published():
    """With the seed bound it returns the score up to which the kept units hold, or nothing."""
    units = [(i / 200, i >= 150) for i in range(200)]
    found = seed.conditional_scan(units, alpha=0.1, delta=0.05)
    kept = sum(score <= found for score, _ in units)
    k = sum(diverged for score, diverged in units if score <= found)
    assert bounds.seed(k, kept, 0.05) <= 0.1 < bounds.seed(k + 1, kept + 1, 0.05)
    assert seed.conditional_scan([(0.5, True)] * 50, alpha=0.1, delta=0.05) is None


def candidates(*rows):
    return [operating.Candidate(name=str(i), pairs=Pairs(lost=b, gained=c, n=n), savings=s) for i, (b, c, n, s) in enumerate(rows)]


def test_operating_points_are_walked_from_the_mild_end():
    """Harm and non-inferiority must both hold, the first failure stops, and the most saving certified candidate is chosen."""
    rows = candidates((1, 1, 200, 0.1), (5, 9, 200, 0.3), (8, 9, 200, 0.2), (70, 8, 200, 0.6), (0, 0, 200, 0.9))
    found = operating.choose(rows, alpha=0.1, margin=0.05)
    assert [t.certified for t in found.tested] == [True, True, True, False, False]
    assert found.candidate is not None
    assert found.candidate.name == "1"
    assert found.tested[0].comparison is not None
    deepseek = operating.choose(candidates((20, 11, 200, 0.3), (70, 8, 200, 0.6)), alpha=0.2, margin=0.05)
    assert deepseek.candidate is None
    assert operating.choose(candidates((20, 11, 200, 0.3)), alpha=0.2).chosen == 0
    assert operating.choose([], alpha=0.2).chosen is None


def test_starting_at_the_aggressive_end_is_wrong():
    """With all five candidates at the margin, the first pass from the aggressive end chooses one in .14; walking does not."""
    rng = np.random.default_rng(2)
    runs, found, walked = 1_000, 0, 0
    for _ in range(runs):
        drawn = rng.multinomial(200, [0.10, 0.05, 0.85], size=5)
        pairs = [Pairs(lost=int(b), gained=int(c), n=200) for b, c, _ in drawn]
        found += seed.aggressive_first(pairs, margin=0.05) is not None
        walked += paired.tango(pairs[0])[0] > -0.05
    assert found / runs == pytest.approx(0.145, abs=0.045)
    assert walked / runs <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / runs)
    assert seed.aggressive_first([Pairs(lost=0, gained=0, n=1)], margin=0.05) == 0


def play(plan, draw, rng):
    """Run a bandit to its end."""
    state = bandit.initial(plan)
    while places := bandit.wanted(plan, state):
        for place in places:
            lost, gained = draw[place]
            b, c, same = rng.multinomial(plan.batch, [lost, gained, 1 - lost - gained])
            state = bandit.update(plan, state, place, [1] * b + [-1] * c + [0] * same)
    return state


def test_the_bandit_chooses_an_infeasible_level_no_more_often_than_it_says():
    """At the margin, one arm (.08, .03) is chosen in about 1 %, while re-reading a Wald interval after each batch chooses it in 20 %."""
    plan = bandit.Bandit(arms=("only",), margin=0.05, batch=200)
    rng = np.random.default_rng(3)
    runs = 80
    ours = sum(bandit.choice(play(plan, [(0.08, 0.03)], rng)) is not None for _ in range(runs))
    peeking = 0
    for _ in range(runs):
        counts = np.cumsum(rng.multinomial(40, [0.08, 0.03, 0.89], size=100), axis=0)
        peeking += any(paired.wald(Pairs(lost=int(b), gained=int(c), n=int(b + c + s)))[0] > -0.05 for b, c, s in counts)
    assert ours / runs <= 0.025 + 3 * math.sqrt(0.025 * 0.975 / runs)
    assert peeking / runs > 0.1


def test_the_bandit_finds_the_most_aggressive_feasible_level():
    """Clear arms are settled, infeasible ones dropped, and the budget is not exceeded; without evidence nothing is chosen."""
    plan = bandit.Bandit(arms=("mild", "good", "bad"), margin=0.1, budget=4_000)
    state = play(plan, [(0.0, 0.0), (0.01, 0.01), (0.4, 0.0)], np.random.default_rng(4))
    assert bandit.choice(state) == 1
    assert state[2].dropped
    assert sum(arm.n for arm in state) <= 4_000
    poor = bandit.Bandit(arms=("one",), margin=0.05, budget=80)
    assert bandit.choice(play(poor, [(0.04, 0.02)], np.random.default_rng(5))) is None


@given(st.floats(0.01, 0.5), st.floats(0, 0.4))
@settings(max_examples=50)
def test_the_bandits_evidence_is_a_martingale_at_the_margin(margin, gained):
    """Over all outcomes of three units whose mean loss is the margin, the mean of both kinds of evidence is 1."""
    lost = margin + gained
    if lost + gained > 1:
        return
    chances = {1: lost, -1: gained, 0: 1 - lost - gained}
    for evidence in (bandit.log_feasible, bandit.log_infeasible):
        total = 0.0
        for d in itertools.product((1, 0, -1), repeat=3):
            arm = bandit.Arm(lost=d.count(1), same=d.count(0), gained=d.count(-1))
            total += math.prod(chances[x] for x in d) * math.exp(evidence(arm, margin))
        assert total == pytest.approx(1.0, abs=1e-10)


def test_the_bandit_refuses_what_it_cannot_count():
    """Losses other than -1, 0 and 1 are refused and the state stays; so are plans without arms, margin or budget."""
    plan = bandit.Bandit(arms=("a", "b"), margin=0.05)
    state = bandit.initial(plan)
    for bad in (0.5, math.nan, "1", True, 2):
        with pytest.raises(InvalidSample):
            bandit.update(plan, state, 0, [bad])
    assert state == bandit.initial(plan)
    for broken in ({"arms": ()}, {"arms": ("a", "a")}, {"margin": 0.0}, {"budget": 0}, {"batch": 0}, {"delta": 1.0}):
        with pytest.raises(InvalidSample):
            bandit.Bandit(**({"arms": ("a",), "margin": 0.05} | broken))


def test_rules_are_named():
    """Every rule of the enumeration selects; the guarantee class comes with the method."""
    levels = ladder((0, 300), (1, 300))
    for rule in Rule:
        found = selection.select(levels, alpha=0.1, delta=0.05, rule=rule)
        assert (found.rule, found.guarantee.value, found.last) == (rule, "fixed-n", 1)
    assert pvalues.exact(1, 300, 0.1) <= 0.025
