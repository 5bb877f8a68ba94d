"""Two-sided intervals of a mean loss from counts, by the standard library alone: an alert must not wait a second for a numerical package.

Exact for binary losses, by Hoeffding's inequality for graded ones. Valid for an n that was fixed beforehand; of a window that the data
chose, as an alert's is, they say how much was seen, and are no guarantee.
"""

import math
from collections.abc import Callable
from typing import Final

#: Halvings of a bisection: to the last digits of a double.
HALVINGS: Final = 60
#: Terms of a continued fraction at most (it takes some square roots of n), and where it ends.
TERMS: Final = 20_000
CLOSE: Final = 1e-15
#: What stands for a zero in a denominator.
TINY: Final = 1e-300


def exact(k: int, n: int, confidence: float) -> tuple[float, float]:
    """Clopper and Pearson's interval of a binary risk: k losses in n units, (1 - confidence)/2 on either side. n = 0 gives (0, 1)."""
    tail = (1.0 - confidence) / 2.0
    low = 0.0 if k <= 0 else _where(lambda p: incomplete_beta(k, n - k + 1, p) >= tail)
    high = 1.0 if k >= n else _where(lambda p: incomplete_beta(k + 1, n - k, p) >= 1.0 - tail)
    return low, high


def hoeffding(total: float, n: int, confidence: float, lo: float) -> tuple[float, float]:
    """Hoeffding's interval of a mean of n losses in [lo, 1] with sum `total`. n = 0 gives (lo, 1)."""
    if n == 0:
        return lo, 1.0
    half = (1.0 - lo) * math.sqrt(math.log(2.0 / (1.0 - confidence)) / (2.0 * n))
    return max(lo, total / n - half), min(1.0, total / n + half)


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b), for a, b > 0: P(Bin(a + b - 1, x) >= a) for whole numbers.

    By its continued fraction (NIST Digital Library of Mathematical Functions, 8.17.22), evaluated from the front (modified Lentz).
    """
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    # On the other side of the mean the fraction converges slowly, and its mirror image fast.
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - incomplete_beta(b, a, 1.0 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    value, above, below = 1.0, 1.0, 0.0
    for term in range(1, TERMS):
        m = term // 2
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        d = odd if term % 2 else m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        below = 1.0 / ((1.0 + d * below) or TINY)
        above = (1.0 + d / above) or TINY
        value *= above * below
        if abs(above * below - 1.0) < CLOSE:
            break
    return math.exp(log_front) / (a * value)


def _where(reached: Callable[[float], bool]) -> float:
    """The p in [0, 1] from which `reached` holds; it holds from somewhere on."""
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        if reached(middle):
            high = middle
        else:
            low = middle
    return (low + high) / 2.0
