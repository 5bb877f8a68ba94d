"""Upper bounds of a risk at confidence 1 - delta, for n units that were fixed beforehand. The anytime ones stand in `anytime`.

A bound is chosen by the declared type of the loss, never by the values that were seen. n = 0 gives 1; k = n gives 1.
"""

import math
from collections.abc import Callable

import numpy as np

from winnow.assurance import pvalues, roots
from winnow.assurance.kinds import Order
from winnow.assurance.samples import InvalidSample, Sample, count, probability
from winnow.assurance.special import Z95, Floats, beta_quantile, beta_upper_quantile


def exact(k: int, n: int, delta: float) -> float:
    """Clopper–Pearson: the alpha at which the exact binomial test has p = delta. The default for binary losses."""
    k, n, delta = _counts(k, n, delta)
    return 1.0 if k >= n else beta_upper_quantile(delta, k + 1, n - k)


def exact_lower(k: int, n: int, delta: float) -> float:
    """The mirror image of `exact`: the risk is at least this with confidence 1 - delta."""
    k, n, delta = _counts(k, n, delta)
    return 0.0 if k == 0 else beta_quantile(delta, k, n - k + 1)


def hoeffding_bentkus(k: int, n: int, delta: float) -> float:
    """Smallest alpha that the Hoeffding–Bentkus test of Learn-Then-Test accepts."""
    return _inverted(pvalues.hoeffding_bentkus, k, n, delta)


def seed(k: int, n: int, delta: float) -> float:
    """Smallest alpha that the published system's test accepts; for comparison."""
    return _inverted(pvalues.seed, k, n, delta)


def kl_hoeffding(k: int, n: int, delta: float) -> float:
    """Smallest alpha that the Kullback–Leibler form of Hoeffding's inequality accepts."""
    return _inverted(pvalues.kl_hoeffding, k, n, delta)


def hoeffding(total: float, n: int, delta: float) -> float:
    """R + sqrt(ln(1/delta)/(2n)) with r = total/n, at most 1; for losses in [0, 1]."""
    n, delta = count("n", n), probability("delta", delta)
    return 1.0 if n == 0 else min(1.0, total / n + math.sqrt(math.log(1 / delta) / (2 * n)))


def empirical_bernstein(sample: Sample, delta: float, *, constant: float = 2.0) -> float:
    """Maurer and Pontil 2009, theorem 4: r + sqrt(2 v L/n) + 7 L/(3(n - 1)) with L = ln(constant/delta), v the unbiased variance.

    `constant` 2 is the proved one; the published system uses 1, for which there is no proof. Invariant under permutation. n <= 1 gives 1.
    """
    delta = probability("delta", delta)
    sample = sample.on_unit_interval()
    if sample.n <= 1:
        return 1.0
    if sample.values is None:
        spread = sample.k * (sample.n - sample.k) / sample.n
    else:
        x = sample.array()
        spread = float(np.sort((x - x.mean()) ** 2).sum())
    log_term = math.log(constant / delta)
    variance = spread / (sample.n - 1)
    return min(1.0, sample.rate + math.sqrt(2 * variance * log_term / sample.n) + 7 * log_term / (3 * (sample.n - 1)))


def betting(sample: Sample, delta: float) -> float:
    """Waudby-Smith and Ramdas 2024, section 4: predictable plug-in bets, running maximum of the capital. Tightest where its terms are met.

    The bound moves with the order of the losses, by several points of risk, so an audit could shop orderings: the order has to be the
    registered sampling order and n the registered n.

    Raises:
        InvalidSample: order or n was not registered, or only counts are known.
    """
    delta = probability("delta", delta)
    if sample.order is not Order.SEQ or sample.registered_n != sample.n or sample.values is None:
        raise InvalidSample(
            "the betting bound needs the losses one by one in registered sampling order and n registered beforehand; use grid"
        )
    sample = sample.on_unit_interval()
    if sample.n == 0:
        return 1.0
    x = sample.array()
    stakes = np.minimum(1.0, np.sqrt(2 * math.log(1 / delta) / (sample.n * past_variance(x))))
    return roots.rising(lambda m: running_maximum(x, stakes, m), math.log(1 / delta), 0.0)


def seed_betting(values: Floats, delta: float) -> float:
    """The published system's betting bound: stakes min(1/2, sqrt(2 ln(1/delta)/(s2 i))); for comparison."""
    delta = probability("delta", delta)
    if not len(values):
        return 1.0
    stakes = np.minimum(0.5, np.sqrt(2 * math.log(1 / delta) / (past_variance(values) * np.arange(1, len(values) + 1))))
    return roots.rising(lambda m: running_maximum(values, stakes, m), math.log(1 / delta), 0.0)


def wilson(k: int, n: int) -> tuple[float, float]:
    """Wilson 1927: a 95 % interval for reading. An estimate (guarantee class none), no bound: its coverage falls to 94 % and below."""
    k, n, _ = _counts(k, n, 0.05)
    if not n:
        return 0.0, 1.0
    centre, spread = k + Z95**2 / 2, Z95 * math.sqrt(k * (n - k) / n + Z95**2 / 4)
    return max(0.0, (centre - spread) / (n + Z95**2)), min(1.0, (centre + spread) / (n + Z95**2))


def largest_count(n: int, alpha: float, delta: float, *, test: Callable[[int, int, float], float] = pvalues.exact) -> int:
    """Largest k whose p-value is at most delta, by halving (p rises in k); -1 where even no loss certifies alpha."""
    n, alpha, delta = count("n", n), probability("alpha", alpha), probability("delta", delta)
    low, high = -1, n
    while low < high:
        middle = (low + high + 1) // 2
        if test(middle, n, alpha) <= delta:
            low = middle
        else:
            high = middle - 1
    return low


def running_maximum(x: Floats, stakes: Floats, m: float) -> float:
    """Largest log capital, over time, of bets against a mean of at least m: max over t of the sum to t of ln(1 - stake (x - m))."""
    with np.errstate(divide="ignore"):  # a full stake lost is -inf, and stays it
        return float(np.cumsum(np.log1p(-stakes * (x - m))).max())


def past_variance(x: Floats) -> Floats:
    """s2 before each observation: s2_0 = 1/4, then (1/4 + sum (x_j - mu_j)^2)/(i + 1) with mu_i = (1/2 + sum)/(i + 1)."""
    i = np.arange(1, len(x) + 1)
    mean = (0.5 + np.cumsum(x)) / (i + 1)
    after = (0.25 + np.cumsum((x - mean) ** 2)) / (i + 1)
    return np.concatenate([[0.25], after[:-1]])


def _inverted(test: Callable[[int, int, float], float], k: int, n: int, delta: float) -> float:
    """Smallest alpha in [k/n, 1] with p <= delta."""
    k, n, delta = _counts(k, n, delta)
    if k >= n:
        return 1.0
    return roots.rising(lambda alpha: -test(k, n, alpha) if 0 < alpha < 1 else -1.0, -delta, k / n)


def _counts(k: int, n: int, delta: float) -> tuple[int, int, float]:
    """Counts with 0 <= k <= n and a probability."""
    k, n = count("k", k), count("n", n)
    if k > n:
        raise InvalidSample(f"there are {k} losses in {n} units; k is at most n")
    return k, n, probability("delta", delta)
