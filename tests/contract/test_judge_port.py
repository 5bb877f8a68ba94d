"""What every judge keeps to, whatever stands behind it."""

import asyncio

import pytest

from tests.unit.compaction.analysis.boundaries import look, output, summary
from tests.unit.judging.adapters.asking import Honest, judge_at
from tests.unit.judging.evidence import entry, evidence, of
from winnow.contracts.deadline import Deadline
from winnow.contracts.events import JudgeId
from winnow.contracts.vocabulary import Outcome, Reason, Verdict
from winnow.judging.adapters.ensemble import Combine, EnsembleJudge
from winnow.judging.formula import FormulaJudge
from winnow.judging.local import LocalJudge
from winnow.judging.port import Capabilities, Judge, JudgeRequest

REMOTE = "http://127.0.0.1:9/"
JUDGES: list[Judge] = [
    LocalJudge(),
    FormulaJudge(),
    judge_at(REMOTE, "jev", by=Honest()),
    judge_at(REMOTE, "anthropic", by=Honest(), votes=3),
    judge_at(REMOTE, "self", by=Honest("yes")),
    EnsembleJudge("ensemble", [LocalJudge(), judge_at(REMOTE, "jev", by=Honest())], combine=Combine.MEAN),
]


@pytest.fixture(params=JUDGES, ids=[judge.id.name for judge in JUDGES])
def judge(request) -> Judge:
    return request.param


def ask(judge: Judge, found, *, left: float = 5.0):
    request = JudgeRequest(evidence=found, task="task", previous=None, retained=())
    return asyncio.run(judge.judge(request, Deadline(left, lambda: 0.0)))


@pytest.fixture
def boundary():
    return of(look(summary("HAT136 is free", "Ask the zebra", "HAT210 costs 152"), output(4, "HAT136 free\nHAT210 152")))


def test_judge_names_itself(judge):
    """A judge has a name, a version and capabilities that do not change."""
    assert isinstance(judge.id, JudgeId)
    assert isinstance(judge.capabilities, Capabilities)
    assert judge.id == judge.id
    assert judge.id.version


def test_every_entry_is_answered_once_in_order(judge, boundary):
    """There is one score an entry, in the order of the entries, each with verdict and explanation."""
    answer = ask(judge, boundary)
    assert (answer.judge.name, answer.judge.version) == (judge.id.name, judge.id.version)
    assert (answer.outcome, answer.reason) == (Outcome.JUDGED, None)
    assert [score.n for score in answer.scores] == [entry.n for entry in boundary.entries]
    for score in answer.scores:
        assert score.p is not None
        assert score.score is not None
        assert 0.0 <= score.score <= score.p <= 1.0
        assert score.explanation


def test_deterministic_judge_repeats_itself(judge, boundary):
    """A judge that says it is deterministic gives the same request the same answer."""
    if judge.capabilities.deterministic:
        assert ask(judge, boundary) == ask(judge, boundary)


def test_local_judge_costs_no_calls(judge, boundary):
    """A judge that is not remote makes no calls, and answers however little time is left."""
    if not judge.capabilities.remote:
        assert ask(judge, boundary, left=0.0) == ask(judge, boundary)
        assert ask(judge, boundary).calls == ()


def test_unusable_entries_are_unscored_not_raised():
    """An entry that cannot be scored is unscored in an answer that is partial; where none can be, there is no answer."""
    good = entry(1)
    bad = entry(2).model_copy(update={"features": {}})
    answer = ask(LocalJudge(), evidence(good, bad))
    assert (answer.outcome, answer.reason) == (Outcome.JUDGED_PARTIAL, Reason.UNSCORED_ENTRIES)
    assert [score.verdict for score in answer.scores] == [Verdict.UNSOURCED, Verdict.UNSCORED]
    answer = ask(LocalJudge(), evidence(bad))
    assert (answer.outcome, answer.reason, answer.scores) == (Outcome.UNJUDGED, Reason.JUDGE_FAILED, ())


def test_local_judge_says_what_it_is():
    """The local judge is local and deterministic, and what the span says against an entry caps its score."""
    capabilities = LocalJudge().capabilities
    assert (capabilities.remote, capabilities.deterministic, capabilities.refutes) == (False, True, True)
