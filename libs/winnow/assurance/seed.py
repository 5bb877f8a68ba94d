"""The published monitor of Distil (dshakes/distil), kept for comparison: one adaptive bet that never starts anew."""

import math
from typing import Final

#: Largest bet, although 1/alpha would be admissible.
MOST: Final = 0.5
#: Capital never falls below it: late in a healthy stream it would leave the range of a double.
LEAST: Final = 1e-300


def step(alpha: float, delta: float, lo: float, n: int, state: tuple[float, float, float], x: float) -> tuple[float, float, float]:
    """Fold the loss of unit n + 1 into capital (1 at the start), sum of losses and sum of squared deviations (0), and return them.

    lam_n = min(.5, sqrt(2 ln(1/delta)/(s2_{n-1}·n))), K_n = max(0, K_{n-1}·(1 + lam_n·(x_n - alpha))), with s2 = (1/4 + Q)/(1 + n).
    Paired losses are mapped to (1 + x)/2 against (1 + alpha)/2.
    """
    capital, total, squares = state
    if lo < 0:
        x, alpha = (1.0 + x) / 2.0, (1.0 + alpha) / 2.0
    variance = (0.25 + squares) / (1 + n)
    n += 1
    lam = min(MOST, math.sqrt(2.0 * math.log(1.0 / delta) / (variance * n)))
    capital = max(LEAST, capital * (1.0 + lam * (x - alpha)))
    total += x
    mean = (0.5 + total) / (1 + n)
    return capital, total, squares + (x - mean) ** 2
