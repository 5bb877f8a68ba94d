"""Selection rules of the published system (Distil), kept so that its figures can be computed again and its errors measured. Never defaults.

The fixed sequence with its p-value is `selection.select(..., method="hb-seed")`; its monitor is the method `seed` of `monitor`.
"""

from collections.abc import Callable, Sequence

from winnow.assurance import bounds
from winnow.assurance.paired import Pairs, wald


def crc_by_floats(totals: Sequence[float], n: int, alpha: float) -> int | None:
    """Conformal Risk Control decided in floats, (n·r + 1)/(n + 1) <= alpha: refuses exact ties, first at n = 179, k = 26, alpha .15."""
    chosen = None
    for place, total in enumerate(totals):
        if (n * (total / n) + 1) / (n + 1) > alpha:
            break
        chosen = place
    return chosen


def aggressive_first(candidates: Sequence[Pairs], *, margin: float) -> int | None:
    """From the most aggressive candidate on, the first whose Wald interval lies above -margin; candidates are given mildest first."""
    for place in reversed(range(len(candidates))):
        if wald(candidates[place])[0] > -margin:
            return place
    return None


def conditional_scan(
    units: Sequence[tuple[float, bool]], *, alpha: float, delta: float, bound: Callable[[int, int, float], float] = bounds.seed
) -> float | None:
    """Threshold by scanning from the risky end: the first whose divergence rate among the trusted units has a bound of at most alpha."""
    scored = sorted(units)
    k = sum(diverged for _, diverged in scored)
    for trusted in range(len(scored), 0, -1):
        at_edge = trusted == len(scored) or scored[trusted][0] > scored[trusted - 1][0]
        if at_edge and bound(k, trusted, delta) <= alpha:
            return scored[trusted - 1][0]
        k -= scored[trusted - 1][1]
    return None
