"""Conformal Risk Control (Angelopoulos et al. 2024): the mean risk over calibration sets is at most alpha; this one may exceed it.

Its guarantee class is `expectation`. A certificate at confidence 1 - delta comes from `selection`, not from here.
"""

import itertools
from collections.abc import Iterable, Sequence
from fractions import Fraction

from winnow.assurance.samples import InvalidSample, count


def select(totals: Sequence[float], n: int, alpha: str | float) -> int | None:
    """Last level, mildest first and stopping at the first failure, with (total + 1) <= alpha (n + 1); None where the first fails.

    `totals` are the summed losses of each level over the same n units, and must not fall on the way (see `monotone`). alpha is read
    from its decimal text and everything is compared in integers: the float form refuses exact ties, which certify. None is an answer of its
    own, keep everything, never the first level.

    Raises:
        InvalidSample: losses fall before the walk stops, or alpha is no number strictly between 0 and 1.
    """
    n = count("n", n)
    budget = _decimal(alpha) * (n + 1)
    sums = [_total(total, n) for total in totals]
    chosen = None
    for place, total in enumerate(sums):
        if place and total < sums[place - 1]:
            raise InvalidSample("losses fall along the ladder: take the running maximum of each unit, or select by Learn-Then-Test")
        if total + 1 > budget:
            break
        chosen = place
    return chosen


def monotone(losses: Iterable[Sequence[float]]) -> list[float]:
    """Summed losses of each level, after the running maximum along the ladder of every unit; one row of losses a unit.

    Raises:
        InvalidSample: rows of several lengths.
    """
    sums: list[Fraction] = []
    for row in losses:
        worst = list(itertools.accumulate((Fraction(x) for x in row), max))
        if not sums:
            sums = [Fraction(0)] * len(worst)
        if len(worst) != len(sums):
            raise InvalidSample("every unit needs one loss for each level")
        sums = [a + b for a, b in zip(sums, worst, strict=True)]
    return [float(total) for total in sums]


def smallest_n(alpha: str | float) -> int:
    """Units from which no loss at all certifies: ceil(1/alpha) - 1."""
    return -(-1 // _decimal(alpha)) - 1


def _decimal(alpha: str | float) -> Fraction:
    """The number that was written, not the double next to it."""
    try:
        value = Fraction(alpha if isinstance(alpha, str) else repr(alpha))
    except (ValueError, ZeroDivisionError):
        raise InvalidSample("alpha must be a number strictly between 0 and 1") from None
    if isinstance(alpha, bool) or not 0 < value < 1:
        raise InvalidSample("alpha must be a number strictly between 0 and 1")
    return value


def _total(total: object, n: int) -> Fraction:
    """A summed loss as it is stored, exactly."""
    if isinstance(total, bool) or not isinstance(total, int | float) or not 0 <= total <= n:
        raise InvalidSample(f"a summed loss is no number between 0 and n = {n}")
    return Fraction(total)
