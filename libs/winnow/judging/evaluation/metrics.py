"""Figures of a judge on labelled entries: ranking, decisions at a threshold, calibration.

Labels are 1 (the entry has a source) or 0, scores lie in [0, 1] and higher means: more probably sourced. A figure that is not defined on
its data (one class alone, no entry) is NaN, never 0. Every ranking figure also exists for many weightings of the same entries at once,
which is what the bootstrap needs.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: Equal bins of the calibration table and of the expected calibration error.
BINS: Final = 10
#: Recalls at which precision is told; 0.642 is the published judge's recall on reasoning entries.
RECALLS: Final = (0.642, 0.80, 0.90)


def _share(part: Floats, whole: Floats) -> Floats:
    """`part` divided by `whole`, NaN where that is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Floats = np.where(whole > 0, part / whole, np.nan)
    return found


@dataclass(frozen=True, slots=True)
class Ranking:
    """Entries in order of falling score, ready to be weighted. Sorting is stable: equal scores keep the order of the data."""

    order: NDArray[np.intp]
    label: Floats  # in that order
    ends: NDArray[np.intp]  # last place of each run of equal scores

    @classmethod
    def of(cls, label: Floats, score: Floats) -> Self:
        """Rank entries by score."""
        order = np.argsort(-score, kind="stable")
        ranked = score[order]
        ends = np.append((ranked[1:] != ranked[:-1]).nonzero()[0], len(ranked) - 1) if len(ranked) else np.empty(0, np.intp)
        return cls(order, label[order].astype(float), ends)

    def _weighted(self, weights: Floats | None) -> tuple[Floats, Floats]:
        """Running sums of positive and of negative weight down the ranking, one row a weighting."""
        w = np.ones((1, len(self.label))) if weights is None else weights[:, self.order]
        return (w * self.label).cumsum(axis=1), (w * (1.0 - self.label)).cumsum(axis=1)

    def auroc(self, weights: Floats | None = None) -> Floats:
        """Area under the ROC curve: the chance that a sourced entry outranks another, ties counting half (Mann and Whitney's U).

        Weights have one row a weighting and one column an entry, in the order of the data; the answer has one number a row.
        """
        positive, negative = self._weighted(weights)
        if not len(self.label):
            return np.full(len(positive), np.nan)
        p, n = positive[:, self.ends], negative[:, self.ends]
        of_group = np.diff(p, axis=1, prepend=0.0)
        above = n - np.diff(n, axis=1, prepend=0.0)  # negatives that rank higher
        lost = (of_group * (above + n) / 2.0).sum(axis=1)
        return 1.0 - _share(lost, p[:, -1] * n[:, -1])

    def average_precision(self, weights: Floats | None = None) -> Floats:
        """Area under the precision-recall curve as the step sum over thresholds: sum of (R_k - R_(k-1)) · P_k."""
        positive, negative = self._weighted(weights)
        if not len(self.label):
            return np.full(len(positive), np.nan)
        p, n = positive[:, self.ends], negative[:, self.ends]
        precision = np.nan_to_num(_share(p, p + n))
        return _share((np.diff(p, axis=1, prepend=0.0) * precision).sum(axis=1), p[:, -1])

    def precision_at(self, recall: float, weights: Floats | None = None) -> Floats:
        """Precision of the shortest prefix of the ranking that holds at least the share `recall` of all sourced entries."""
        positive, negative = self._weighted(weights)
        if not len(self.label):
            return np.full(len(positive), np.nan)
        # The product of a share and a count is not exact: what misses it by rounding alone has reached it.
        reached = positive >= recall * positive[:, -1:] - 1e-9
        at = reached.argmax(axis=1)[:, None]
        p, n = np.take_along_axis(positive, at, axis=1)[:, 0], np.take_along_axis(negative, at, axis=1)[:, 0]
        return np.where(positive[:, -1] > 0, _share(p, p + n), np.nan)


class AtTau(NamedTuple):
    """Decisions at a threshold, one number a weighting."""

    precision: Floats  # of the kept, the sourced share
    recall: Floats  # of the sourced, the kept share
    pruned: Floats  # share of all that is pruned
    false_prune: Floats  # of the sourced, the pruned share
    false_keep: Floats  # of the unsourced, the kept share


def at_tau(label: Floats, kept: Bools, weights: Floats | None = None) -> AtTau:
    """What keeping exactly the entries `kept` means."""
    w = np.ones((1, len(label))) if weights is None else weights
    every, positive = w.sum(axis=1), w @ label
    held, right = w @ kept.astype(float), w @ (kept * label)
    recall = _share(right, positive)
    return AtTau(_share(right, held), recall, 1.0 - _share(held, every), 1.0 - recall, _share(held - right, every - positive))


def brier(label: Floats, score: Floats, weights: Floats | None = None) -> Floats:
    """Mean squared distance of score and label (Brier 1950)."""
    w = np.ones((1, len(label))) if weights is None else weights
    return _share(w @ np.square(score - label), w.sum(axis=1))


def bins_of(score: Floats) -> NDArray[np.intp]:
    """The bin of each score: `BINS` equal ones, 1.0 in the last."""
    return np.minimum((score * BINS).astype(np.intp), BINS - 1)


def calibration_error(label: Floats, score: Floats, weights: Floats | None = None) -> Floats:
    """Expected calibration error: over equal bins, the weighted mean distance of mean score and sourced share (Guo et al. 2017, sec. 2)."""
    w = np.ones((1, len(label))) if weights is None else weights
    members = np.zeros((len(label), BINS))
    members[np.arange(len(label)), bins_of(score)] = 1.0
    off = w @ ((score - label)[:, None] * members)
    return _share(np.abs(off).sum(axis=1), w.sum(axis=1))


class Bin(NamedTuple):
    """One bin of the calibration table. Mean and share are NaN where it is empty."""

    lo: float
    hi: float
    n: int
    mean_score: float
    sourced: float


def calibration(label: Floats, score: Floats) -> list[Bin]:
    """The calibration table: mean score and sourced share of each bin."""
    place = bins_of(score)
    found = []
    for at in range(BINS):
        inside = place == at
        n = int(inside.sum())
        mean, share = (float(score[inside].mean()), float(label[inside].mean())) if n else (np.nan, np.nan)
        found.append(Bin(at / BINS, (at + 1) / BINS, n, mean, share))
    return found


def decided(score: Floats) -> tuple[float, float]:
    """Shares of scores outside [0.2, 0.8] and within (0.3, 0.7): how often a judge commits itself."""
    if not len(score):
        return np.nan, np.nan
    return float(((score < 0.2) | (score > 0.8)).mean()), float(((score > 0.3) & (score < 0.7)).mean())  # noqa: PLR2004  the docstring's
