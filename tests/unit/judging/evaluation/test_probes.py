"""Questions put again: other orders, changed boundaries, repetitions."""

import asyncio
import time
from random import Random

import numpy as np
import pytest

from tests.harness.data import shared_data
from tests.unit.judging.evaluation.lines import data, line
from winnow.cli.labelled_lines import read_data
from winnow.contracts.deadline import Deadline
from winnow.contracts.events import JudgeId, Score
from winnow.contracts.vocabulary import Outcome, ProvenanceClass, Reason, Verdict
from winnow.judging.evaluation.probes import Again, ask, by_entry, in_other_order, shuffled, stress
from winnow.judging.local import LocalJudge
from winnow.judging.port import Capabilities, JudgeAnswer
from winnow.judging.stress import Stress, Truth


def limit() -> Deadline:
    return Deadline.after(60, time.monotonic)


class ByPlace:
    """A judge that is swayed by where an entry stands, and unsure of every request after the first."""

    id = JudgeId(name="by-place", version="1")
    capabilities = Capabilities(remote=True, deterministic=False, refutes=False, reads_texts=True)

    async def judge(self, request, deadline):
        entries = request.evidence.entries
        scores = tuple(
            Score(n=e.n, p=1 / e.n, score=1 / e.n, verdict=Verdict.SOURCED, provenance=ProvenanceClass.NOWHERE, explanation="place")
            for e in entries
        )
        return JudgeAnswer(judge=self.id, outcome=Outcome.JUDGED, reason=None, scores=scores, calls=())


class Silent(ByPlace):
    """A judge without an answer."""

    async def judge(self, request, deadline):
        return JudgeAnswer(judge=self.id, outcome=Outcome.UNJUDGED, reason=Reason.JUDGE_FAILED, scores=(), calls=())


@pytest.fixture(scope="module")
def dev():
    return read_data(shared_data("sourcebench", "dev.jsonl").read_bytes()).boundaries


def test_shuffling_keeps_every_entry(dev):
    """Each entry stands in the shuffled summary under its new number, in its section, with its text; labels go with it."""
    chance = Random(1)
    moved = 0
    for boundary in dev[:6]:
        again, number = shuffled(boundary, chance)
        assert sorted(number) == sorted(number.values())
        assert len(again.candidate) == len(boundary.candidate)
        before = {entry.n: entry for entry in boundary.request().evidence.entries}
        after = {entry.n: entry for entry in again.request().evidence.entries}
        for n, entry in before.items():
            assert (after[number[n]].text, after[number[n]].section) == (entry.text, entry.section)
            moved += number[n] != n
        truth = {label.n: label.source for label in boundary.labels}
        assert {label.n: label.source for label in again.labels} == {number[n]: source for n, source in truth.items()}
    assert moved > 60


def test_one_entry_cannot_be_shuffled():
    """A summary in which nothing can change places is told apart, not counted as stable."""
    one = line(candidate_summary="## Decisions\n- a b c", entries=[{"n": 1, "text": "- a b c", "source": 0}])
    (boundary,) = read_data(data(one)).boundaries
    assert shuffled(boundary, Random(0)) is None


def test_order_changes_a_judge_that_minds_it_and_not_the_local_one(dev):
    """The local judge's scores are the same in any order; those of a judge that looks at places are not."""
    some = dev[:3]

    async def run(judge):
        natural = by_entry((await ask(lambda _: judge, some, limit=limit)).judged)
        return await in_other_order(lambda _: judge, some, natural, chance=Random(3), limit=limit)

    stable, unshuffled = asyncio.run(run(LocalJudge()))
    assert (stable.changed(0.5).sum(), stable.moved(), unshuffled) == (0, 0.0, 0)
    swayed, _ = asyncio.run(run(ByPlace()))
    assert swayed.changed(0.5).sum() > 0
    assert swayed.moved() > 0


def test_stress_counts_what_is_kept(dev):
    """A judge that keeps all is told so by every change; populations and truths are those of the transformations."""
    first = {domain: next(b for b in dev if b.domain == domain and b.previous) for domain in ("airline", "coding")}
    runs = {boundary.run for boundary in first.values()} | {next(b.run for b in dev if b.domain == "airline" and not b.previous)}
    some = [boundary for boundary in dev if boundary.run in runs][:5]

    async def run(judge):
        natural = by_entry((await ask(lambda _: judge, some, limit=limit)).judged)
        return await stress(lambda _: judge, some, natural, tau=0.0, chance=lambda: Random(0), limit=limit)

    found = asyncio.run(run(LocalJudge()))
    assert [one.kind for one in found] == list(Stress)
    assert {one.kind for one in found if one.truth is Truth.VALUE_WRONG} == {Stress.DIGIT_CHANGED, Stress.NUMBER_SWAPPED}
    assert all(one.kept == one.n == one.before for one in found)
    assert sum(one.n for one in found) > 50
    some = some[:2]
    silent = asyncio.run(run(Silent()))
    assert sum(one.n for one in silent) > 10
    assert all(one.kept == one.n for one in silent), "no answer keeps an entry, and is counted"


def test_a_judge_without_an_answer_leaves_entries_unscored():
    """Its boundaries are counted, its entries have NaN and are kept."""
    boundaries = read_data(data(line(1), line(2))).boundaries
    asked = asyncio.run(ask(lambda _: Silent(), boundaries, limit=limit))
    assert asked.unjudged == 2
    assert all(np.isnan(score) for _, score in by_entry(asked.judged).values())


def test_an_answer_that_ever_changes_counts_once():
    """A score that crosses the threshold in one of the askings has changed; a move on one side of it has not."""
    again = Again(np.array([[0.6, 0.2, np.nan], [0.4, 0.3, np.nan], [0.7, 0.1, 0.2]]), "x")
    assert again.changed(0.5).tolist() == [1.0, 0.0, 1.0]
    assert again.moved() == pytest.approx(0.3)
