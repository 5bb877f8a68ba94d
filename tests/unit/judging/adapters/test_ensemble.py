"""Several judges as one."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import settings as settings_of_hypothesis
from hypothesis import strategies as st

from tests.harness.pipeline import ScriptedJudge
from tests.unit.judging.adapters.asking import request, settings
from winnow.contracts.deadline import Deadline
from winnow.contracts.vocabulary import Outcome, Reason, Verdict
from winnow.judging.adapters.ensemble import Combine, EnsembleJudge
from winnow.judging.port import JudgeAnswer


def scripted(name: str, default: float | None, scores: dict[str, float | None] | None = None, *, remote: bool = True) -> ScriptedJudge:
    judge = ScriptedJudge(scores, default=default, remote=remote)
    judge.id = judge.id.model_copy(update={"name": name})
    return judge


def ask(judge: EnsembleJudge) -> JudgeAnswer:
    return asyncio.run(judge.judge(request("one", "two", "three"), Deadline.after(5.0, lambda: 0.0)))


@pytest.mark.parametrize(("combine", "p"), [(Combine.ANY, 0.9), (Combine.MEAN, 0.5), (Combine.MAJORITY, 0.4)])
def test_probabilities_are_combined(combine, p):
    """Any: the highest; mean; majority: the median, with each member's own scores beside it."""
    members = [scripted("a", 0.2), scripted("b", 0.4), scripted("c", 0.9)]
    answer = ask(EnsembleJudge("ensemble", members, combine=combine))
    assert [score.p for score in answer.scores] == pytest.approx([p] * 3)
    assert answer.judge.name == "ensemble"
    assert [(other.judge.name, other.scores[0].p) for other in answer.others] == [("a", 0.2), ("b", 0.4), ("c", 0.9)]
    assert "a 0.20, b 0.40, c 0.90" in answer.scores[0].explanation


@settings_of_hypothesis(max_examples=50)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=9), st.floats(0, 1))
def test_what_a_combination_keeps(values, tau):
    """At every tau: any keeps where one would, majority where at least half would; none leaves the range of what was said."""
    for combine in Combine:
        assert min(values) <= combine.of(values) <= max(values)
    assert (Combine.ANY.of(values) >= tau) == any(v >= tau for v in values)
    assert (Combine.MAJORITY.of(values) >= tau) == (2 * sum(v >= tau for v in values) >= len(values))


def test_a_member_without_an_answer_is_left_out():
    """Entries are combined from the members that have an answer; one that none has is unscored."""
    dead = scripted("dead", 0.9)
    dead.fails = True
    members = [dead, scripted("a", 0.2, {"two": None}), scripted("b", 0.4, {"two": None, "three": None})]
    answer = ask(EnsembleJudge("ensemble", members, combine=Combine.MEAN))
    assert [score.p for score in answer.scores] == [pytest.approx(0.3), None, 0.2]
    assert answer.scores[1].verdict is Verdict.UNSCORED
    assert (answer.outcome, answer.reason) == (Outcome.JUDGED_PARTIAL, Reason.UNSCORED_ENTRIES)


def test_fallbacks_answer_in_their_order():
    """Where no member answers, the fallbacks are asked one after another, and the first that answers does so under its own name."""
    members, first, second = [scripted("a", 0.1)], scripted("first", 0.2), scripted("second", 0.3)
    members[0].fails = first.fails = True
    answer = ask(EnsembleJudge("ensemble", members, combine=Combine.MEAN, fallbacks=[first, second, scripted("third", 0.4)]))
    assert (answer.judge.name, answer.scores[0].p) == ("second", 0.3)
    second.fails = True
    nobody = ask(EnsembleJudge("ensemble", members, combine=Combine.MEAN, fallbacks=[first, second]))
    assert (nobody.outcome, nobody.reason, nobody.scores) == (Outcome.UNJUDGED, Reason.JUDGE_FAILED, ())


def test_the_version_changes_with_rule_and_members():
    """Scores of ensembles of other members, or by another rule, are not compared."""
    a, b = scripted("a", 0.1), scripted("b", 0.2)
    other = scripted("b", 0.2)
    other.id = other.id.model_copy(update={"version": "2"})
    made = [([a, b], Combine.MEAN), ([a, b], Combine.ANY), ([a], Combine.MEAN), ([a, other], Combine.MEAN)]
    assert len({EnsembleJudge("e", members, combine=combine).id.version for members, combine in made}) == 4


def test_an_ensemble_is_remote_where_one_of_it_is():
    """What calls out decides how the whole is treated."""
    local = scripted("local", 0.1, remote=False)
    assert not EnsembleJudge("e", [local], combine=Combine.MEAN).capabilities.remote
    assert EnsembleJudge("e", [local], combine=Combine.MEAN, fallbacks=[scripted("a", 0.1)]).capabilities.remote


@pytest.mark.parametrize(
    "wrong",
    [
        {"members": []}, {"members": ["nobody"]}, {"members": ["local", "local"]}, {"members": ["local"], "fallbacks": ["nobody"]},
        {"members": ["other"]}, {"members": ["local"], "combine": "best"},
    ],
)  # fmt: skip
def test_ensembles_that_cannot_be_are_errors_at_the_start(wrong):
    """Members that are not there, twice there or ensembles themselves are refused when settings are read."""
    with pytest.raises(ValueError, match="judges"):
        settings(e={"kind": "ensemble", **wrong}, other={"kind": "ensemble", "members": ["local"]})


def test_local_cannot_be_replaced():
    """The name of the last resort is taken."""
    with pytest.raises(ValueError, match="local"):
        settings(local={"kind": "ensemble", "members": ["local"]})
