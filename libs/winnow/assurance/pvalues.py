"""p-values of H0: risk > alpha. A small one says that the risk is at most alpha.

From integer counts; valid for one look at an n that was fixed beforehand.
"""

import math

from winnow.assurance.samples import InvalidSample, count, probability
from winnow.assurance.special import binomial_tail


def exact(k: int, n: int, alpha: float) -> float:
    """P(Bin(n, alpha) <= k), the exact binomial test; 1 without units.

    Valid for independent binary losses, also of unequal risks (Hoeffding 1956), and for sampling without replacement; not for turns.
    """
    k, n, alpha = _checked(k, n, alpha)
    return binomial_tail(k, n, alpha) if n else 1.0


def kl_hoeffding(k: float, n: int, alpha: float) -> float:
    """exp(-n KL(min(r, alpha), alpha)) with r = k/n (Hoeffding 1963, theorem 1); for any losses in [0, 1] with sum k."""
    n, alpha = count("n", n), probability("alpha", alpha)
    if not n:
        return 1.0
    return math.exp(-n * kl(min(_rate(k, n), alpha), alpha))


def hoeffding(k: float, n: int, alpha: float) -> float:
    """exp(-2n(alpha - r)^2) where r < alpha, else 1; weaker than `kl_hoeffding` everywhere."""
    n, alpha = count("n", n), probability("alpha", alpha)
    if not n or _rate(k, n) >= alpha:
        return 1.0
    return math.exp(-2.0 * n * (alpha - k / n) ** 2)


def bentkus(k: int, n: int, alpha: float) -> float:
    """The exact tail times Euler's number, at most 1 (Bentkus 2004); for losses in [0, 1] with k their sum rounded up."""
    k, n, alpha = _checked(k, n, alpha)
    return min(1.0, math.e * binomial_tail(k, n, alpha)) if n else 1.0


def hoeffding_bentkus(k: int, n: int, alpha: float) -> float:
    """The smaller of `kl_hoeffding` and `bentkus`: the published test of Learn-Then-Test (Angelopoulos et al. 2021, section 3)."""
    return min(kl_hoeffding(k, n, alpha), bentkus(k, n, alpha))


def seed(k: int, n: int, alpha: float) -> float:
    """Hoeffding–Bentkus as the published system ships it: plain Hoeffding in place of KL, and 1 where k/n >= alpha. For comparison."""
    k, n, alpha = _checked(k, n, alpha)
    if not n or k / n >= alpha:
        return 1.0
    return min(hoeffding(k, n, alpha), bentkus(k, n, alpha))


def kl(p: float, a: float) -> float:
    """Kullback–Leibler divergence of a coin p from a coin a, in nats; 0 <= p <= 1, 0 < a < 1."""
    left = p * math.log(p / a) if p > 0 else 0.0
    right = (1 - p) * math.log((1 - p) / (1 - a)) if p < 1 else 0.0
    return left + right


def _checked(k: int, n: int, alpha: float) -> tuple[int, int, float]:
    """Counts with 0 <= k <= n and a probability."""
    k, n, alpha = count("k", k), count("n", n), probability("alpha", alpha)
    if k > n:
        raise InvalidSample(f"there are {k} losses in {n} units; k is at most n")
    return k, n, alpha


def _rate(k: float, n: int) -> float:
    """Mean loss, in [0, 1]."""
    if not 0 <= k <= n:
        raise InvalidSample(f"the sum of losses must lie between 0 and n = {n}")
    return k / n
