"""What stands beside the monitor: mixtures from counts, segments, detectors, change point, recovery, attribution."""

import json
import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.data import shared_data
from tests.unit.assurance import sequences
from winnow.assurance import anytime, mixture, simulation
from winnow.assurance.attribution import Unit, attribute
from winnow.assurance.blocks import Block, of_losses
from winnow.assurance.changepoint import change_window, profile
from winnow.assurance.config import MonitorConfig
from winnow.assurance.designs import DESIGNS, GRID7
from winnow.assurance.detectors import cusum, shiryaev_roberts
from winnow.assurance.monitor import fold, initial
from winnow.assurance.recovery import recover, recovery_config
from winnow.assurance.refusals import InvalidConfig, InvalidLoss
from winnow.assurance.segments import evidence, joined, segment


@pytest.fixture(scope="module")
def vectors():
    return json.loads(shared_data("assurance_golden.json").read_text())


def test_count_mixtures_as_recorded(vectors):
    """Evidence from counts is the recorded one, up to a million units."""
    for row in vectors["count_eprocesses"]["rows"]:
        n, k, alpha = row["n"], row["S"], row["alpha"]
        tolerance = 1e-5 if n >= 1_000_000 else 1e-7
        assert mixture.log_grid(n, k, alpha) == pytest.approx(row["logK_grid7"], abs=tolerance)
        assert mixture.log_beta(n, k, alpha) == pytest.approx(row["logK_beta_half_trunc"], abs=tolerance)
        assert mixture.log_recovery(n, k, alpha, GRID7) == pytest.approx(row["logK_recert_grid"], abs=tolerance)
    assert mixture.log_recovery(100, 10, 0.1) == pytest.approx(-0.404437227, abs=1e-9)


@given(st.lists(st.integers(0, 1), min_size=1, max_size=60))
def test_counts_say_what_the_sequence_says(losses):
    """The grid's evidence from counts is that of the plain monitor, in whatever order the losses came."""
    config = MonitorConfig(alpha=0.1, delta=1e-12, method="plain")
    state = fold(config, initial(config), [float(x) for x in losses])
    assert mixture.log_grid(len(losses), sum(losses), 0.1) == pytest.approx(state.log_evidence, abs=1e-9)


def test_impossible_counts_are_refused():
    """More losses than units, or fewer than none, are refused."""
    for n, k in ((5, 6), (5, -1), (-1, 0)):
        with pytest.raises(InvalidLoss):
            mixture.log_grid(n, k, 0.1)


def test_anytime_bounds_as_recorded(vectors):
    """The mirror of the Beta mixture gives the recorded anytime upper bounds."""
    for row in vectors["anytime_upper_bound"]:
        assert anytime.beta(row["S"], row["n"], row["delta"]) == pytest.approx(row["beta_half_trunc_upper"], abs=1e-9)


BULK = MonitorConfig(alpha=0.1, delta=1e-12, method="grid7")
CASE = sequences.golden()["bern(.05)x2000 then bern(.2)x800, lcg seed 2024 continued"][2][:60]


def test_segments_as_recorded(vectors):
    """The recorded sixty losses give the recorded growth and stakes, and the evidence of folding them."""
    whole = segment(BULK, 0, CASE)
    assert whole.growth == pytest.approx(vectors["merge_monoid"]["A"], rel=1e-12)
    assert whole.staked == pytest.approx(vectors["merge_monoid"]["C"], rel=1e-12)
    assert math.log(evidence(BULK, whole)) == pytest.approx(vectors["merge_monoid"]["logM"], abs=1e-9)
    assert evidence(BULK, whole) == pytest.approx(fold(BULK, initial(BULK), CASE).evidence, rel=1e-12)


@given(st.lists(st.integers(0, 60), min_size=2, max_size=2).map(sorted))
def test_segments_join_in_any_grouping(cuts):
    """Any two cuts of the sixty give the whole, joined from the left or from the right."""
    first, second = cuts
    a, b, c = segment(BULK, 0, CASE[:first]), segment(BULK, first, CASE[first:second]), segment(BULK, second, CASE[second:])
    left, right, whole = joined(joined(a, b), c), joined(a, joined(b, c)), segment(BULK, 0, CASE)
    for made in (left, right):
        assert (made.start, made.n) == (0, 60)
        assert made.growth == pytest.approx(whole.growth, rel=1e-12)
        assert made.staked == pytest.approx(whole.staked, rel=1e-12)


def test_segments_that_do_not_meet_are_refused():
    """A gap, a segment from the middle, and a design that follows the data are refused."""
    a, c = segment(BULK, 0, CASE[:10]), segment(BULK, 20, CASE[20:])
    with pytest.raises(InvalidConfig, match="without gaps"):
        joined(a, c)
    with pytest.raises(InvalidConfig, match="from the first"):
        evidence(BULK, c)
    for method in ("patient", "spending", "seed"):
        with pytest.raises(InvalidConfig, match="grid7"):
            segment(MonitorConfig(alpha=0.1, method=method), 0, CASE)


def test_detectors_as_recorded(vectors):
    """Shiryaev-Roberts and CUSUM follow the recorded path."""
    row = vectors["e_detectors"]
    found = list(zip(shiryaev_roberts(0.1, row["xs"]), cusum(0.1, row["xs"]), strict=True))
    for pair, expected in zip(found, row["values"], strict=True):
        assert pair == pytest.approx(tuple(expected), abs=1e-9)
    assert found[-1] == pytest.approx((340.584146239, 122.476155784), rel=1e-9)


@given(st.lists(st.floats(0, 1), max_size=50))
def test_shiryaev_roberts_is_never_below_cusum(losses):
    """On every path Shiryaev-Roberts is at least CUSUM: under one theorem, CUSUM is never worth using."""
    assert all(s >= c for s, c in zip(shiryaev_roberts(0.1, losses), cusum(0.1, losses), strict=True))


def test_sampling_weights_as_recorded(vectors):
    """Importance-weighted factors are the recorded ones, above 0, and their mean over the coin is the plain factor's, scaled."""
    for row in vectors["ipw_factors"]["rows"]:
        config = MonitorConfig(alpha=row["alpha"], delta=1e-12, method="plain", min_probability=row["pi_min"])
        state = fold(config, initial(config), [row["x"]], [row["pi"]])
        assert [7 * c for c in state.capital] == pytest.approx(row["factors"], rel=1e-12)
        assert min(row["factors"]) > 0
        for theta, factor in zip(GRID7, row["factors"], strict=True):
            coin = row["pi"] * factor + (1 - row["pi"])
            assert coin == pytest.approx(1 + theta * row["pi_min"] / row["alpha"] * (row["x"] - row["alpha"]), rel=1e-12)


def test_change_point_as_recorded(vectors):
    """The profile over recorded blocks has its top at block 6, and blocks 5 to 7 are likely."""
    row = vectors["changepoint_blocks"]
    blocks = [Block(n, float(k), float(k)) for n, k in row["blocks_n_S"]]
    found = profile(blocks)
    assert found == pytest.approx(row["profile_loglik"], abs=1e-9)
    assert max(range(len(found)), key=found.__getitem__) + 1 == row["first_changed_block_index0"] == 6
    assert [i + 1 for i, v in enumerate(found) if v >= max(found) - 3] == row["set_within_3"]
    window = change_window(blocks)
    assert (window.first, window.best, window.last) == (126, 151, 176)


def test_change_of_graded_and_paired_losses():
    """A rise of the mean is placed near where it was for graded and paired losses too; a fall is not taken for one."""
    source = random.Random(29)
    for before, after in (
        (lambda: source.uniform(0, 0.1), lambda: source.uniform(0, 0.3)),
        (lambda: source.choice((-1, 0, 0, 1)), lambda: source.choice((0, 1, 1))),
    ):
        losses = [float(before()) for _ in range(400)] + [float(after()) for _ in range(100)]
        window = change_window(of_losses(losses, 10_000))
        assert window.first <= 401 <= window.last
        assert window.last - window.first < 40
        falling = change_window(of_losses(losses[::-1], 10_000))
        assert falling.first == 1 or falling.first > 101


def test_change_from_the_first_unit():
    """A stream that was bad from its start has its first unit in the window; no units have no window."""
    assert change_window(of_losses([1.0, 0.0] * 20, 100)).first == 1
    assert change_window(of_losses([1.0], 100)) == change_window([Block(1, 1.0, 1.0)])
    assert change_window([]) is None


@pytest.mark.parametrize(("lo", "good", "bad"), [(0.0, (0, 0, 0, 0), (0, 1, 0, 1)), (-1.0, (-1, 0, 0, 1), (1, 1, 0, 0))])
def test_recovery_accepts_what_is_healthy(lo, good, bad):
    """Fresh healthy losses are accepted in time, bad ones never, in plain and paired streams, and the state is a monitor's."""
    watched = MonitorConfig(alpha=0.1, lo=lo)
    config = recovery_config(watched, delta=0.05)
    outcomes = []
    for losses in (good, bad):
        state = initial(config)
        for x in losses * 200:
            state = recover(config, watched, state, x)
        outcomes.append(state.alarm_at)
    assert outcomes[0] is not None
    assert outcomes[1] is None
    with pytest.raises(InvalidLoss):
        recover(config, watched, initial(config), 1.5)


@given(st.integers(0, 100), st.integers(0, 100))
def test_recovery_is_the_mirror_from_counts(n, k):
    """The recovery's evidence is that of its six bets from counts."""
    k = min(n, k)
    watched = MonitorConfig(alpha=0.1)
    config = recovery_config(watched, delta=1e-12)
    state = initial(config)
    for i in range(n):
        state = recover(config, watched, state, float(i < k))
    assert state.log_evidence == pytest.approx(mixture.log_recovery(n, k, 0.1), abs=1e-9)
    assert DESIGNS["recovery"].fixed == mixture.RECOVERY_GRID


@pytest.mark.parametrize("alpha", [0.05, 0.1])
def test_recovery_accepts_the_budget_itself_no_more_often_than_it_says(alpha):
    """Of 2,000 streams at exactly the budget, no more are accepted within 2,000 units than delta and three standard errors; some are."""
    config = recovery_config(MonitorConfig(alpha=alpha), delta=0.05)
    source = np.random.default_rng(30)
    accepted = simulation.first_alarms(config, simulation.bernoulli(1 - alpha), runs=2_000, units=2_000, rng=source) > 0
    assert 0 < accepted.mean() <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / 2_000)


def test_recovery_as_recorded():
    """Ten losses in a hundred at a budget of .1 speak against acceptance as much as was recorded, with six bets and with seven."""
    assert mixture.log_recovery(100, 10, 0.1) == pytest.approx(-0.404437227, abs=1e-9)
    assert mixture.log_recovery(100, 10, 0.1, GRID7) == pytest.approx(-0.335824552, abs=1e-9)


def test_a_margin_makes_recovery_harder():
    """With a lower budget for release than for alarm the same losses say less: hysteresis."""
    watched = MonitorConfig(alpha=0.1)
    found = []
    for alpha in (None, 0.07):
        config = recovery_config(watched, delta=0.05, alpha=alpha)
        state = initial(config)
        for i in range(200):
            state = recover(config, watched, state, float(i % 30 == 0))
        found.append(state.peak)
    assert found[1] < found[0]


def test_attribution_finds_the_culprit():
    """The tool whose losses rose has nearly all the evidence; the shares of a label add up to the whole."""
    source = random.Random(4)
    units = [
        Unit(loss=float(source.random() < (0.5 if tool == "bash" else 0.05)), labels={"tool": tool, "model": "m"})
        for tool in ("bash", "edit", "web") * 60
    ]
    found = attribute(MonitorConfig(alpha=0.1), units)
    assert found.log_evidence > 9
    tools = [s for s in found.shares if s.label == "tool"]
    assert tools[0].value == "bash"
    assert tools[0].share > 0.9
    assert math.fsum(s.share for s in tools) == pytest.approx(1.0)
    assert math.fsum(s.log_evidence for s in tools) == pytest.approx(found.log_evidence)
    assert next(s for s in found.shares if s.label == "model").n == 180


def test_attribution_without_evidence():
    """Where nothing speaks for a rise the best bet is none and every share is 0."""
    found = attribute(MonitorConfig(alpha=0.1), [Unit(loss=0.0, labels={"tool": "bash"})] * 5)
    assert (found.lam, found.log_evidence, found.shares[0].share) == (0.0, 0.0, 0.0)
    assert attribute(MonitorConfig(alpha=0.1), []).shares == ()
