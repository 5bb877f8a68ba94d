"""Losses and units: declared types, one number a run, and turns that are refused."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.assurance.vectors import golden
from winnow.assurance import anytime, bounds, losses
from winnow.assurance.kinds import Graders, Loss, LossType, Unit
from winnow.assurance.losses import Outcome
from winnow.assurance.samples import InvalidSample, Sample


def outcome(unit: str, reference: bool, pruned: bool, rerun: bool | None = None) -> Outcome:
    return Outcome(unit=unit, reference=reference, pruned=pruned, rerun=rerun)


TASKS = [
    outcome("a", True, True, True), outcome("b", True, False, True), outcome("c", True, False, False),
    outcome("d", False, True, False), outcome("e", False, False, True),
]  # fmt: skip


def test_marginal_and_conditional_harm_have_the_same_numerator():
    """Harm over all tasks and over the solved ones differ by the denominator alone: 31/500 is 31/196."""
    everything, solved = losses.of_outcomes(Loss.HARM_ALL, TASKS), losses.of_outcomes(Loss.HARM_GIVEN_FULL, TASKS)
    assert (everything.k, everything.n) == (2, 5)
    assert (solved.k, solved.n) == (2, 3)
    assert losses.of_outcomes(Loss.OUTCOME_DIVERGENCE, TASKS).k == 3
    assert losses.of_outcomes(Loss.OUTCOME_HARM_EXCESS, TASKS).values == (0.0, 1.0, 0.0, 0.0, 0.0)
    assert Loss.HARM_GIVEN_FULL.denominator != Loss.HARM_ALL.denominator


def test_excess_needs_a_second_reference_run():
    """Without it harm contains re-run noise, and the excess is refused; decisions do not come from outcomes."""
    with pytest.raises(InvalidSample, match="second reference run"):
        losses.of_outcomes(Loss.OUTCOME_HARM_EXCESS, [outcome("a", True, False)])
    with pytest.raises(InvalidSample, match="not computed from outcomes"):
        losses.of_outcomes(Loss.DECISION_HARM, TASKS)


def test_turns_are_refused():
    """A unit that comes twice is a turn; turns as units are refused, or flagged where the caller insists."""
    with pytest.raises(InvalidSample, match="comes twice"):
        losses.of_outcomes(Loss.HARM_ALL, [TASKS[0], TASKS[0]])
    with pytest.raises(InvalidSample, match="not independent"):
        losses.check_unit(Unit.TURN)
    assert "assumes independent units" in (losses.check_unit(Unit.TURN, turns_are_independent=True) or "")
    assert losses.check_unit(Unit.TRAJECTORY) is losses.check_unit(Unit.SESSION) is None


def test_bounds_over_turns_do_not_cover_and_bounds_over_runs_do():
    """At an intra-run correlation of .2 an exact bound over turns misses far more than 5 %, the grid bound of trajectory means does not."""
    rng = np.random.default_rng(0)
    runs, turns, p, icc, draws = 60, 10, 0.1, 0.2, 120
    a, b = p * (1 - icc) / icc, (1 - p) * (1 - icc) / icc
    over_turns = over_runs = 0
    for _ in range(draws):
        lost = rng.binomial(turns, rng.beta(a, b, runs))
        over_turns += bounds.exact(int(lost.sum()), runs * turns, 0.05) < p
        over_runs += anytime.grid(Sample.graded((lost / turns).tolist()), 0.05) < p
    assert over_turns / draws > 0.1
    assert over_runs / draws <= 0.05


def test_turns_of_a_run_become_one_loss():
    """The mean of its turns, or their sum against alpha over a fixed cap; an empty run and one beyond the cap are refused."""
    assert losses.trajectory_mean([0, 1, 1, 0]) == 0.5
    assert losses.trajectory_mean([-1.0, 1.0]) == 0.0
    assert losses.turn_weighted([1.0, 0.0], alpha=0.1, cap=10) == pytest.approx(0.08)
    for bad in ([], [math.nan], [1.5], ["1"], [True]):
        with pytest.raises(InvalidSample):
            losses.trajectory_mean(bad)
    with pytest.raises(InvalidSample, match="cap"):
        losses.turn_weighted([0.0] * 11, alpha=0.1, cap=10)


def test_graders_are_aggregated():
    """Any is the default, a tie is no majority, and no verdict is missing rather than fine."""
    assert losses.aggregate([False, True])
    assert not losses.aggregate([False, True], Graders.MAJORITY)
    assert losses.aggregate([False, True, True], Graders.MAJORITY)
    assert not losses.aggregate([False, True], Graders.UNANIMOUS)
    with pytest.raises(InvalidSample, match="missing"):
        losses.aggregate([])
    assert losses.below_floor(ab=49, aa=30)
    assert losses.below_floor(ab=50, aa=29)
    assert not losses.below_floor(ab=50, aa=30)


def test_what_must_be_rejected():
    """The golden list of bad losses is refused whatever was declared; booleans are understood where binary was."""
    values = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf, '"1"': "1", "null": None}
    for said in golden("must_reject")["losses"][:-1]:
        value = values.get(said, said) if isinstance(said, str) else said
        for type_ in (LossType.BINARY, LossType.GRADED):
            with pytest.raises(InvalidSample, match="loss 2"):
                Sample.of(type_, [0.0, value])
    assert Sample.binary([True, False, 1, 0.0]).k == 2
    for type_ in (LossType.GRADED, LossType.PAIRED):
        with pytest.raises(InvalidSample, match="booleans"):
            Sample.of(type_, [True])
    with pytest.raises(InvalidSample, match="declare them graded"):
        Sample.binary([0.5])
    with pytest.raises(InvalidSample):
        Sample.graded([10**400])
    with pytest.raises(InvalidSample):
        Sample.paired([-1.0000001])


@given(st.lists(st.floats(0, 1), max_size=40))
def test_a_mirror_mirrors(values):
    """1 - loss twice is the loss; the counts follow."""
    sample = Sample.graded(values)
    assert sample.mirrored().mirrored().total == pytest.approx(sample.total)
    assert sample.mirrored().n == sample.n
    with pytest.raises(InvalidSample):
        Sample.paired(values).mirrored()


def test_counts_stand_for_values():
    """Binary counts give an array of zeros and ones; sums of graded losses do not."""
    assert Sample.counts(2, 5).array().tolist() == [0.0, 0.0, 0.0, 1.0, 1.0]
    assert math.isnan(Sample.counts(0, 0).rate)
    with pytest.raises(InvalidSample, match="one by one"):
        Sample(type=LossType.GRADED, n=3, total=1.0).array()
