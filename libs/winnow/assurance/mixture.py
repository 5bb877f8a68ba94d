"""Evidence from counts alone: mixtures of bets that do not depend on the order of the losses.

For reports, audits and merges, and for epochs that start now. Not for watching long: nothing is kept for a change that comes late.
Binary losses; graded ones have the grid of `anytime`.
"""

import math
from collections.abc import Sequence
from typing import Final

from winnow.assurance import anytime
from winnow.assurance.designs import DESIGNS, GRID7
from winnow.assurance.refusals import InvalidLoss

#: Bets on a risk below the budget, as shares of the largest admissible one; see `recovery`.
RECOVERY_GRID: Final = DESIGNS["recovery"].fixed


def log_grid(n: int, k: int, alpha: float, thetas: Sequence[float] = GRID7) -> float:
    """Evidence for a risk above alpha from k losses of n units: ln mean_j (1 + theta_j·(1 - alpha)/alpha)^k·(1 - theta_j)^(n - k)."""
    _counts(n, k)
    return _log_mean([k * math.log1p(theta * (1.0 - alpha) / alpha) + (n - k) * math.log1p(-theta) for theta in thetas])


def log_beta(n: int, k: int, alpha: float) -> float:
    """Evidence for a risk above alpha: ln of the Beta(1/2, 1/2) mixture over risks above alpha, against alpha itself.

    Howard et al. 2021, section 4. -inf where it is below the smallest double.
    """
    _counts(n, k)
    # A risk above alpha is a success rate below 1 - alpha: the bound's own mixture, seen from the other side.
    return anytime.log_beta(n - k, n, 1.0 - alpha)


def log_recovery(n: int, k: int, alpha: float, thetas: Sequence[float] = RECOVERY_GRID) -> float:
    """Evidence for a risk below alpha: ln mean_j (1 - theta_j)^k·(1 + theta_j·alpha/(1 - alpha))^(n - k)."""
    return log_grid(n, n - k, 1.0 - alpha, thetas) if _counts(n, k) else 0.0


def _counts(n: int, k: int) -> bool:
    """Refuse what are no counts; whether there are any units."""
    if not 0 <= k <= n:
        raise InvalidLoss(f"there cannot be {k} losses in {n} units")
    return n > 0


def _log_mean(logs: Sequence[float]) -> float:
    """Log of the mean of exponentials."""
    top = max(logs)
    return top + math.log(math.fsum(math.exp(v - top) for v in logs) / len(logs))
