"""The training-free formula."""

import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.judging.evidence import NOTHING, SAID, entry, evidence
from winnow.contracts.deadline import Deadline
from winnow.contracts.vocabulary import Outcome, Verdict
from winnow.judging.calibration import Calibration, shipped
from winnow.judging.formula import CARRIED, FormulaJudge, formula, score
from winnow.judging.port import JudgeRequest


def test_formula_is_the_stated_sum():
    """The sum has the stated weights, and a carried entry counts only above the threshold."""
    features = {
        "novel_pass": 0.5, "val2_env": 0.25, "bg_prev": 0.125, "val_cooc": 1.0, "val2_orph": 0.5, "obs": 1.0, "imper": 1.0, "modal": 1.0,
    }  # fmt: skip
    assert formula(features | {"carry": 0.0}) == pytest.approx(0.5 + 0.25 + 0.125 + 0.5 - 0.25 + 0.3 - 0.3 - 0.3)
    assert formula(NOTHING | {"carry": CARRIED}) == 0.0
    assert formula(NOTHING | {"carry": CARRIED + 1e-9}) == 1.0


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_probability_is_one_and_rises(s):
    """Every sum gives a probability, and a larger sum never a smaller one."""
    p = shipped().probability(s)
    assert 0.0 <= p <= 1.0
    assert shipped().probability(s + abs(s) + 1.0) >= p


@pytest.mark.parametrize("broken", [{}, {"carry": math.nan}, {"novel_pass": math.inf}])
def test_entry_without_usable_features_is_unscored(broken):
    """An entry whose features are missing or not finite gets no score; its neighbours get theirs."""
    bad = entry(1).model_copy(update={"features": broken and NOTHING | broken})
    first, second = score(evidence(bad, entry(2, features=SAID)))
    assert (first.verdict, first.p) == (Verdict.UNSCORED, None)
    assert second.verdict is Verdict.SOURCED


def test_calibration_can_be_given():
    """Another calibration of the same features changes the probability and nothing else."""
    flat = Calibration(slope=0.0, intercept=0.0, formula="1", features_version=shipped().features_version, data_sha256="0" * 64)
    (found,) = score(evidence(entry()), flat)
    assert found.p == 0.5


def test_judge_answers_by_the_formula():
    """The judge of that name gives the formula's scores."""
    request = JudgeRequest(evidence=evidence(entry(), entry(2, features=SAID)), task="", previous=None, retained=())
    answer = asyncio.run(FormulaJudge().judge(request, Deadline(1.0, lambda: 0.0)))
    assert (answer.judge.name, answer.outcome) == ("formula", Outcome.JUDGED)
    assert answer.scores == score(request.evidence)
