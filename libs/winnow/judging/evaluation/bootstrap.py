"""Uncertainty by resampling whole groups: entries of one run share a task, a history and a compressor, so they are not independent."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from winnow.contracts.evaluation import Interval
from winnow.judging.evaluation.metrics import Bools, Floats

#: Draws of a bootstrap: percentiles of 1,000 draws move by about a tenth of the interval's width from seed to seed.
DRAWS: Final = 1_000
#: Confidence level of intervals.
LEVEL: Final = 0.95
#: Weights computed at once, draws times entries: 32 MB of numbers.
_CELLS: Final = 4_000_000
#: Share of draws on which a figure must be defined; a slice that most draws leave with one class has no interval.
_DEFINED: Final = 0.9

#: A figure as a function of weights: one number for each row.
Estimator = Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True)
class Draws:
    """Bootstrap draws of groups: how often each draw holds each group."""

    counts: Floats  # draws × groups
    group: np.ndarray[tuple[int], np.dtype[np.intp]]  # of each entry
    what: str  # what the groups are: run, scenario
    seed: int

    @property
    def groups(self) -> int:
        """Number of groups."""
        return int(self.counts.shape[1])

    def weights(self, mask: Bools) -> Iterator[Floats]:
        """Weights of the masked entries, some draws at a time."""
        group = self.group[mask]
        step = max(1, _CELLS // max(1, len(group)))
        for at in range(0, len(self.counts), step):
            yield self.counts[at : at + step][:, group]

    def values(self, mask: Bools, estimator: Estimator) -> Floats:
        """The figure on each draw."""
        return np.concatenate([estimator(weights) for weights in self.weights(mask)])

    def interval(self, mask: Bools, estimator: Estimator) -> Interval | None:
        """Percentile interval of a figure; None where too few draws define it, or there is one group alone."""
        return self.interval_of(self.values(mask, estimator)) if len(np.unique(self.group[mask])) > 1 else None

    def interval_of(self, values: Floats) -> Interval | None:
        """Percentile interval of the figure's values on all draws."""
        defined = values[np.isfinite(values)]
        if len(defined) < _DEFINED * len(values):
            return None
        lo, hi = np.percentile(defined, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
        method = f"bootstrap by {self.what} ({len(values)} draws of {self.groups}, seed {self.seed}, percentiles)"
        return Interval(lo=float(lo), hi=float(hi), level=LEVEL, method=method)


def draw(groups: Sequence[str], *, what: str, seed: int, draws: int = DRAWS) -> Draws:
    """Draw groups with replacement, as many as there are; `groups` names the group of each entry."""
    number = {name: at for at, name in enumerate(sorted(set(groups)))}
    rng = np.random.default_rng(seed)
    chosen = rng.integers(0, max(1, len(number)), size=(draws, len(number)))
    counts = np.zeros((draws, len(number)))
    for row, of_draw in enumerate(chosen):
        counts[row] = np.bincount(of_draw, minlength=len(number))
    return Draws(counts, np.array([number[name] for name in groups], np.intp), what, seed)
