"""Bounds that hold at every look and do not depend on the order of the losses: mixtures of bets. For reports, audits and graded losses."""

import math
from typing import Final

import numpy as np

from winnow.assurance import roots
from winnow.assurance.kinds import LossType
from winnow.assurance.samples import InvalidSample, Sample, count, probability
from winnow.assurance.special import Floats, beta_cdf

#: Stakes of the grid mixture, as shares of the largest admissible bet.
GRID: Final = tuple(float(theta) for theta in np.linspace(0.02, 0.98, 25))
#: Factors whose product has one logarithm; 100,000 graded losses are bounded three times as fast.
_TOGETHER: Final = 8
#: Shape of the Beta mixture, both parameters: Jeffreys' prior, cut off at the tested risk.
BETA_SHAPE: Final = 0.5


def grid(sample: Sample, delta: float) -> float:
    """Upper bound of the mean loss: root in m of ln mean_j prod_i (1 - theta_j/(1 - m)·(x_i - m)) = ln(1/delta).

    Each product is a non-negative martingale at mean m whatever the order, so the bound holds at any stopping time and at a fixed n alike.
    Paired losses are mapped to [0, 1] and back. The default for graded losses.
    """
    delta = probability("delta", delta)
    unit = sample.on_unit_interval()
    if unit.n == 0:
        return 1.0
    values, weights = _distinct(unit)
    high = roots.rising(lambda m: _log_grid(values, weights, m) if m < 1 else math.inf, math.log(1 / delta), unit.rate)
    return 2.0 * high - 1.0 if sample.type is LossType.PAIRED else high


def log_grid(sample: Sample, alpha: float) -> float:
    """Log evidence of the grid mixture against a mean of at least alpha; exp(-it), at most 1, is a p-value of H0: risk >= alpha."""
    unit = sample.on_unit_interval()
    against = (alpha + 1) / 2 if sample.type is LossType.PAIRED else alpha
    against = probability("alpha", against)
    return _log_grid(*_distinct(unit), against) if unit.n else 0.0


def beta(k: int, n: int, delta: float) -> float:
    """Anytime upper bound of a binary risk: root in m > k/n of the Beta(1/2, 1/2) mixture over risks below m, ln K(m) = ln(1/delta).

    Howard et al. 2021, section 4 give the mixture; about two points of risk wider than the exact bound at n = 500, and valid at every look.
    """
    k, n, delta = count("k", k), count("n", n), probability("delta", delta)
    if k > n:
        raise InvalidSample(f"there are {k} losses in {n} units; k is at most n")
    if k == n:
        return 1.0
    return roots.rising(lambda m: log_beta(k, n, m) if m > 0 else 0.0, math.log(1 / delta), k / n)


def log_beta(k: int, n: int, m: float) -> float:
    """Ln K(m) of the truncated Beta mixture for k losses in n units, against a risk of at least m; m lies in (0, 1)."""
    a = BETA_SHAPE
    posterior, prior = beta_cdf(m, a + k, a + n - k), beta_cdf(m, a, a)
    if posterior <= 0.0:
        return -math.inf
    taken = _log_beta_function(a + k, a + n - k) - _log_beta_function(a, a)
    return taken + math.log(posterior) - math.log(prior) - k * math.log(m) - (n - k) * math.log1p(-m)


def _log_grid(values: Floats, weights: Floats, m: float) -> float:
    """Logarithm of the mean over the stakes of the product over the losses."""
    scaled = (values - m) / (1.0 - m)
    single = scaled[weights == 1.0]
    often, times = scaled[weights > 1.0], weights[weights > 1.0]
    logs = np.array([_log_product(1.0 - theta * single) + float(times @ np.log1p(-theta * often)) for theta in GRID])
    top = logs.max()
    return float(top + np.log(np.exp(logs - top).mean()))


def _log_product(factors: Floats) -> float:
    """Logarithm of a product. One logarithm for eight factors: each lies in [.02, 1e14], so eight of them stay far inside a double."""
    whole = len(factors) // _TOGETHER * _TOGETHER
    together = np.log(factors[:whole].reshape(-1, _TOGETHER).prod(axis=1)).sum()
    return float(together + np.log(factors[whole:]).sum())


def _distinct(sample: Sample) -> tuple[Floats, Floats]:
    """Distinct losses and how often each occurs: the order is gone, and binary losses cost two terms at any n."""
    if sample.values is None:
        return np.array([0.0, 1.0]), np.array([float(sample.n - sample.k), float(sample.k)])
    values, times = np.unique(sample.array(), return_counts=True)
    return values, times.astype(np.float64)


def _log_beta_function(a: float, b: float) -> float:
    """Ln B(a, b)."""
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
