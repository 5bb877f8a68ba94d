"""A threshold of a score: below it the pruned context is trusted, from it on the full context is used.

The certified loss is the joint one, 1{score < threshold and diverged} over ALL units. It only rises with the threshold, and n is the same
at every threshold, so the largest threshold whose bound keeps alpha needs no correction for having looked at all of them. Scanning the
divergence rate among the trusted units from the risky end certifies falsely (`published.conditional_scan` measures it).
"""

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass

from winnow.assurance import bounds, pvalues
from winnow.assurance.kinds import LossType
from winnow.assurance.samples import InvalidSample, loss, probability


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """The chosen threshold and what it trusts."""

    #: Trust the pruned context where score < threshold; infinity trusts all; None: nothing is certified, use the full context everywhere.
    threshold: float | None
    alpha: float
    delta: float
    #: All units, whatever their score.
    n: int
    #: Trusted units that diverged: the count that the bound is made from.
    k: int
    #: Upper bound of the joint risk at confidence 1 - delta.
    bound: float
    #: Units below the threshold.
    trusted: int
    #: Divergence rate among the trusted units, an estimate; None where none is trusted: that is not a rate of 0.
    conditional: float | None


def select(units: Iterable[tuple[object, object]], *, alpha: float, delta: float) -> Threshold:
    """Largest threshold, among the scores themselves and infinity, such that it and every smaller one has an exact bound of at most alpha.

    `units` are pairs (score, diverged), each a trajectory or session of its own.

    Raises:
        InvalidSample: a score is no number, or a divergence neither true nor false.
    """
    alpha, delta = probability("alpha", alpha), probability("delta", delta)
    scored = sorted((_score(score), loss(diverged, LossType.BINARY, place) == 1) for place, (score, diverged) in enumerate(units, start=1))
    n = len(scored)
    allowed = bounds.largest_count(n, alpha, delta, test=pvalues.exact)
    threshold, k, trusted = (None, 0, 0) if allowed < 0 else (scored[0][0], 0, 0)
    if allowed >= 0:
        below = losses = 0
        for score, group in itertools.groupby(scored, key=lambda unit: unit[0]):
            if losses > allowed:
                break
            threshold, k, trusted = score, losses, below
            together = list(group)
            below += len(together)
            losses += sum(diverged for _, diverged in together)
        else:
            if losses <= allowed:
                threshold, k, trusted = math.inf, losses, below
    return Threshold(
        threshold=threshold,
        alpha=alpha,
        delta=delta,
        n=n,
        k=k,
        bound=bounds.exact(k, n, delta),
        trusted=trusted,
        conditional=k / trusted if trusted else None,
    )


def _score(value: object) -> float:
    """A score that can be ordered."""
    if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
        raise InvalidSample("a score is no number")
    return float(value)
