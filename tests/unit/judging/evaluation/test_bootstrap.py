"""Draws of whole groups."""

import numpy as np
import pytest

from winnow.judging.evaluation import metrics
from winnow.judging.evaluation.bootstrap import draw
from winnow.judging.evaluation.metrics import Ranking


def example(runs=12, size=20, seed=1):
    rng = np.random.default_rng(seed)
    label = (rng.random(runs * size) < 0.6).astype(float)
    score = np.clip(0.3 * label + 0.7 * rng.random(runs * size), 0, 1)
    return label, score, [f"run-{n // size}" for n in range(runs * size)]


def test_draws_take_whole_groups():
    """Every draw has as many groups as there are, and all entries of a group the same weight."""
    _, _, runs = example()
    draws = draw(runs, what="run", seed=0, draws=50)
    assert draws.counts.sum(axis=1).tolist() == [12.0] * 50
    (weights,) = draws.weights(np.ones(len(runs), bool))
    assert all(len(set(row[:20])) == 1 for row in weights)


def test_the_interval_is_that_of_resampled_data():
    """Weighted figures are those of data that is drawn and written out, draw by draw."""
    label, score, runs = example()
    draws = draw(runs, what="run", seed=3, draws=200)
    every = np.ones(len(label), bool)
    fast = draws.values(every, Ranking.of(label, score).auroc)
    groups = np.array(runs)
    names = sorted(set(runs))
    slow = []
    for row in draws.counts:
        chosen = np.concatenate([np.flatnonzero(groups == name) for name, times in zip(names, row, strict=True) for _ in range(int(times))])
        slow.append(Ranking.of(label[chosen], score[chosen]).auroc()[0])
    assert fast == pytest.approx(slow)
    interval = draws.interval(every, Ranking.of(label, score).auroc)
    assert (interval.lo, interval.hi) == pytest.approx(tuple(np.percentile(slow, [2.5, 97.5])))
    assert interval.lo < Ranking.of(label, score).auroc()[0] < interval.hi


def test_order_of_the_data_and_chunks_change_nothing(monkeypatch):
    """The same seed gives the same interval however the entries lie and however many draws are weighted at once."""
    label, score, runs = example()
    first = draw(runs, what="run", seed=0).interval(np.ones(len(label), bool), Ranking.of(label, score).auroc)
    order = np.random.default_rng(9).permutation(len(label))
    mixed = draw([runs[at] for at in order], what="run", seed=0)
    monkeypatch.setattr("winnow.judging.evaluation.bootstrap._CELLS", 1_000)
    second = mixed.interval(np.ones(len(label), bool), Ranking.of(label[order], score[order]).auroc)
    assert (first.lo, first.hi) == pytest.approx((second.lo, second.hi))


def test_no_interval_where_there_is_nothing_to_draw():
    """One group, or a figure that most draws leave undefined, has no interval."""
    label, score, _ = example()
    every = np.ones(len(label), bool)
    assert draw(["one"] * len(label), what="run", seed=0).interval(every, Ranking.of(label, score).auroc) is None
    rare = np.array([1.0] + [0.0] * 19)
    draws = draw([str(n) for n in range(20)], what="run", seed=0)
    assert draws.interval(np.ones(20, bool), Ranking.of(rare, np.linspace(0, 1, 20)).auroc) is None
    assert draws.interval(np.ones(20, bool), lambda w: metrics.brier(rare, np.linspace(0, 1, 20), w)) is not None
