"""The figures on the development set: published reference figures that rest on labels alone, and the suite as a whole."""

import asyncio
import time
from random import Random

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score

from tests.harness.data import REPOSITORY, shared_data
from winnow.cli.labelled_lines import read_data
from winnow.contracts.deadline import Deadline
from winnow.judging.evaluation import figures
from winnow.judging.evaluation.bootstrap import draw
from winnow.judging.evaluation.metrics import Ranking
from winnow.judging.evaluation.probes import ask
from winnow.judging.evaluation.samples import collect, slices
from winnow.judging.evaluation.study import Study, measured
from winnow.judging.local import LocalJudge


@pytest.fixture(scope="module")
def samples():
    boundaries = read_data(shared_data("sourcebench", "dev.jsonl").read_bytes()).boundaries
    judge = LocalJudge()
    return collect(asyncio.run(ask(lambda _: judge, boundaries, limit=lambda: Deadline.after(60, time.monotonic))).judged)


@pytest.fixture(scope="module")
def told(samples):
    """All figures of the local judge."""
    return measured(Study(judge=LocalJudge().id, tau=0.5, samples=samples, seed=0, by_scenario=False, draws=100))


def prior(samples, keys) -> np.ndarray:
    """Of each entry the sourced share of the entries with its key."""
    names = np.array(keys)
    return np.array([samples.source[names == name].mean() for name in names])


def auroc(samples, score, mask) -> float:
    return round(float(Ranking.of(samples.source[mask], score[mask]).auroc()[0]), 3)


def test_slices_are_those_of_the_data_sheet(samples):
    """Numbers and sourced shares of the slices are those that the data sheet gives."""
    found = {name: (int(mask.sum()), round(float(samples.source[mask].mean()), 3)) for name, mask in slices(samples).items()}
    assert found == found | {
        "all": (1066, 0.708), "reasoning": (549, 0.752), "later": (553, 0.893), "boundary=1": (513, 0.509), "boundary=2": (484, 0.880),
        "boundary=3+": (69, 0.986), "section=Decisions": (357, 0.812), "section=Open TODOs": (192, 0.641),
        "section=Constraints/Rules": (206, 0.510), "section=Pending user asks": (65, 0.462), "section=Exact identifiers": (246, 0.841),
        "domain=airline": (524, 0.767), "domain=coding": (352, 0.622), "domain=ctf-shell": (190, 0.705),
    }  # fmt: skip
    assert int(((samples.user == 1) & (samples.source == 0)).sum()) == 61


def test_reference_figures_that_rest_on_labels_alone(samples):
    """Section prior, section by first or later, and the boundary alone have the reference's AUROC, to the third decimal."""
    cuts = slices(samples)
    section = prior(samples, [str(name) for name in samples.section])
    assert [auroc(samples, section, cuts[name]) for name in ("all", "reasoning", "first", "later")] == [0.681, 0.605, 0.758, 0.625]
    both = prior(samples, [f"{name} {index == 1}" for name, index in zip(samples.section, samples.index, strict=True)])
    assert [auroc(samples, both, cuts[name]) for name in ("all", "reasoning")] == [0.827, 0.708]
    assert auroc(samples, cuts["later"].astype(float), cuts["all"]) == 0.732


def test_every_slice_has_the_oracles_figures(samples, told):
    """What the suite says of a slice is what scikit-learn says of the same entries, and intervals hold the values."""
    found = {(metric.name, metric.slice): metric for metric in told}
    for name, mask in slices(samples).items():
        label, score = samples.source[mask], samples.score[mask]
        assert found["auroc", name].value == pytest.approx(roc_auc_score(label, score))
        assert found["ap_unsourced", name].value == pytest.approx(average_precision_score(1 - label, 1 - score))
        assert found["brier", name].value == pytest.approx(brier_score_loss(label, score))
        interval = found["auroc", name].interval
        assert interval is None or interval.lo <= found["auroc", name].value <= interval.hi
    assert found["auroc", "all"].interval.hi - found["auroc", "all"].interval.lo < 0.09
    assert found["unscored", "all"].value == 0.0


def test_a_useless_judge_is_told_so(samples):
    """With random scores the AUROC is near a half and its interval holds it."""
    chance = Random(0)
    scores = np.array([chance.random() for _ in range(len(samples))])
    draws = draw([str(run) for run in samples.run], what="run", seed=0)
    interval = draws.interval(np.ones(len(samples), bool), Ranking.of(samples.source, scores).auroc)
    assert interval.lo < 0.5 < interval.hi


def test_every_figure_is_documented(told):
    """`docs/evaluation.md` names every figure that the suite gives and every slice of the published format."""
    text = (REPOSITORY / "docs" / "evaluation.md").read_text(encoding="utf-8")
    names = {metric.name for metric in told} | set(figures.MEANINGS)
    assert {name for name in names if f"`{name}`" not in text} == set()
