"""A remote judge is measured like any other: what it cost, what it does not answer, what changes when it is asked again."""

import numpy as np

from tests.harness.judge_server import JudgeServer, status
from tests.unit.judging.evaluation.lines import data, line
from winnow.cli.evaluating import Plan, Progress, study_of
from winnow.cli.labelled_lines import read_data
from winnow.cli.terminal import Terminal
from winnow.judging.adapters.registry import build
from winnow.judging.adapters.specs import JudgesSettings
from winnow.judging.evaluation.study import measured
from winnow.judging.local import LocalJudge


def remote(url: str):
    spec = {"kind": "jev", "url": url, "allow_insecure_url": True, "api_key": "k", "further_attempts": 0}
    return build(JudgesSettings.model_validate({"judges": {"jev": spec}}))


async def test_a_remote_judge():
    """Requests, tokens and cost are told; a boundary without an answer is unscored and kept; an answer that changes is seen."""
    boundaries = read_data(data(*(line(n) for n in range(1, 5)))).boundaries
    answers = iter([0.9] * 9 + [0.2] * 100)
    async with JudgeServer(judges=lambda _id, _text: next(answers)) as server:
        server.then(status(400))
        judges = remote(server.url)
        judge = judges.by_name["jev"]
        plan = Plan(
            judge=judge.id, remote=True, judge_of=lambda _: judge, other=LocalJudge(), tau=0.5, seed=0, timeout_s=30, repeats=2,
            stress=False,
        )  # fmt: skip
        try:
            study = await study_of(plan, boundaries, Progress(Terminal()), None)
        finally:
            await judges.close()
    assert study.unjudged == 1
    assert int((~study.samples.scored).sum()) == 3
    found = {(metric.name, metric.slice): metric for metric in measured(study)}
    assert found["requests", "all"].value == 4
    assert found["failed_calls", "all"].value == 1
    assert found["cost", "all"].value is None, "one call did not say what it cost"
    assert found["unscored", "all"].value == 0.25
    assert found["repeat_changed", "all"].value == 1.0, "an entry that was kept for want of an answer and is then pruned has changed"
    assert found["disagreement", "all"].n == 12
    assert study.stress is None


async def test_folds_and_fresh_processes_are_the_callers():
    """Repetitions come from where the caller says; scores that are the same to the bit have not moved."""
    boundaries = read_data(data(line(1), line(2))).boundaries
    judge = LocalJudge()
    plan = Plan(judge=judge.id, remote=False, judge_of=lambda _: judge, other=None, tau=0.5, seed=0, timeout_s=30, repeats=3, stress=False)
    first = await study_of(plan, boundaries, Progress(Terminal()), None)
    scores = dict(
        zip(zip(first.samples.boundary.tolist(), first.samples.n.tolist(), strict=True), first.samples.score.tolist(), strict=True)
    )
    asked = []

    def fresh():
        asked.append(1)
        return scores

    again = await study_of(plan, boundaries, Progress(Terminal()), fresh)
    assert len(asked) == 2
    assert again.repetition.what == "fresh processes, other hash seeds"
    assert again.repetition.moved() == 0.0
    assert np.array_equal(again.samples.score, first.samples.score)
