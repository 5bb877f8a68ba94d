"""Figures against scikit-learn as oracle, weighted and not; and what they say where they are not defined."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score

from winnow.judging.evaluation import metrics
from winnow.judging.evaluation.metrics import Ranking

PAIRS = st.lists(st.tuples(st.booleans(), st.integers(0, 10), st.integers(0, 3)), min_size=2, max_size=60)


def columns(rows):
    label, score, weight = (np.array(column, float) for column in zip(*rows, strict=True))
    return label, score / 10, weight


@settings(max_examples=30)
@given(PAIRS)
def test_ranking_figures_are_scikit_learns(rows):
    """AUROC and average precision are the oracle's, for one weighting and for several at once, ties and zero weights included."""
    label, score, weight = columns(rows)
    assume(0 < label.sum() < len(label))
    assume(0 < (weight * label).sum() < weight.sum())
    ranking = Ranking.of(label, score)
    assert ranking.auroc()[0] == pytest.approx(roc_auc_score(label, score))
    assert ranking.average_precision()[0] == pytest.approx(average_precision_score(label, score))
    both = np.array([weight, np.ones_like(weight)])
    assert ranking.auroc(both) == pytest.approx([roc_auc_score(label, score, sample_weight=weight), roc_auc_score(label, score)])
    assert ranking.average_precision(both)[0] == pytest.approx(average_precision_score(label, score, sample_weight=weight))


@settings(max_examples=30)
@given(PAIRS, st.sampled_from(metrics.RECALLS))
def test_precision_at_recall_is_that_of_the_shortest_prefix(rows, recall):
    """By a stable sort of falling scores, the first prefix that reaches the recall; counted by hand."""
    label, score, _ = columns(rows)
    assume(label.sum() > 0)
    ranked = label[np.argsort(-score, kind="stable")]
    hits = 0
    for length, hit in enumerate(ranked, 1):
        hits += hit
        if hits >= recall * label.sum() - 1e-9:
            assert Ranking.of(label, score).precision_at(recall)[0] == pytest.approx(hits / length)
            return
    pytest.fail("no prefix reaches the recall")


@settings(max_examples=30)
@given(PAIRS)
def test_weights_are_repetitions(rows):
    """A figure under whole weights is the figure of the entries written out as often."""
    label, score, weight = columns(rows)
    times = weight.astype(int)
    assume(times.sum() > 0)
    again, scores = np.repeat(label, times), np.repeat(score, times)
    kept = score >= 0.5
    weighted, plain = metrics.at_tau(label, kept, weight[None]), metrics.at_tau(again, np.repeat(kept, times))
    for one, other in zip(weighted, plain, strict=True):
        assert one == pytest.approx(other, nan_ok=True)
    assert metrics.brier(label, score, weight[None])[0] == pytest.approx(brier_score_loss(again, scores, pos_label=1))
    assert metrics.calibration_error(label, score, weight[None]) == pytest.approx(metrics.calibration_error(again, scores))


@settings(max_examples=30)
@given(PAIRS)
def test_calibration_error_is_the_tables(rows):
    """The expected calibration error is the mean gap of the calibration table, weighted by its bins."""
    label, score, _ = columns(rows)
    table = metrics.calibration(label, score)
    assert sum(one.n for one in table) == len(label)
    gap = sum(one.n * abs(one.mean_score - one.sourced) for one in table if one.n) / len(label)
    assert metrics.calibration_error(label, score)[0] == pytest.approx(gap)


def test_figures_by_hand():
    """Four entries whose figures can be counted on one hand."""
    label, score = np.array([1.0, 0.0, 1.0, 0.0]), np.array([0.9, 0.8, 0.6, 0.1])
    ranking = Ranking.of(label, score)
    assert ranking.auroc()[0] == 0.75
    assert ranking.precision_at(0.9)[0] == pytest.approx(2 / 3)
    here = metrics.at_tau(label, score >= 0.5)
    assert [value[0] for value in here] == pytest.approx([2 / 3, 1.0, 0.25, 0.0, 0.5])
    assert metrics.decided(score) == (0.5, 0.25)


@pytest.mark.parametrize("label", [[], [1.0], [1.0, 1.0], [0.0, 0.0]])
def test_what_is_not_defined_is_nan(label):
    """With one class or no entry a ranking figure is NaN, never 0 or 1."""
    ranking = Ranking.of(np.array(label), np.linspace(0, 1, len(label)))
    assert np.isnan(ranking.auroc()[0])
    if not sum(label):
        assert np.isnan(ranking.average_precision()[0])
        assert np.isnan(ranking.precision_at(0.9)[0])
        assert np.isnan(metrics.at_tau(np.array(label), np.zeros(len(label), bool)).precision[0])
