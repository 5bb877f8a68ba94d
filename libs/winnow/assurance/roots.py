"""Where a rising function reaches a value: bounds are the risks at which a test just gives in."""

import math
from collections.abc import Callable
from typing import Final

#: Most steps; a bracket in [-1, 1] is at the spacing of doubles long before.
_MOST_STEPS: Final = 200
#: Width of the last bracket. Bounds are read to nine digits at most.
_WIDTH: Final = 1e-14


def rising(function: Callable[[float], float], target: float, low: float, high: float = 1.0) -> float:
    """Smallest value seen in (low, high] at which `function` is at least `target`; `high` where it is not reached before.

    Illinois steps (a secant that halves the weight of an end that stays), and a halving where the bracket did not shrink to half within
    three steps: few calls where the function is smooth, about three times those of halving at worst. The answer is on the far side of the
    root, so an upper bound is never too low by rounding. `function` may be infinite at the ends.
    """
    below, above = function(low) - target, math.inf
    if below >= 0:
        return low
    widths = [math.inf] * 3
    side = 0
    for _ in range(_MOST_STEPS):
        width = high - low
        if width <= _WIDTH:
            break
        point = low + width / 2
        if width <= widths[0] / 2 and math.isfinite(below) and math.isfinite(above):
            point = low - below * width / (above - below)
        widths = [*widths[1:], width]
        # Never closer to an end than half the final width, else the other end would not move.
        point = min(max(point, low + _WIDTH / 2), high - _WIDTH / 2)
        if point <= low or point >= high:
            break
        value = function(point) - target
        if value < 0:
            low, below = point, value
            above = above / 2 if side < 0 else above
            side = -1
        else:
            high, above = point, value
            below = below / 2 if side > 0 else below
            side = 1
    return high
