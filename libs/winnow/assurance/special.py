"""Binomial and beta functions, from scipy. It is imported when first called: the streaming path never needs it, and it costs a second."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Standard normal quantile of a two-sided 95 % interval.
Z95: Final = 1.959963984540054


def binomial_tail(k: int, n: int, p: float) -> float:
    """P(Bin(n, p) <= k). By the regularised incomplete beta function: no factorials, so nothing overflows at any n."""
    if k < 0:
        return 0.0
    if k >= n:
        return 1.0
    return float(_special().bdtr(k, n, p))


def beta_quantile(q: float, a: float, b: float) -> float:
    """The value that a Beta(a, b) variable does not exceed with probability q."""
    return float(_special().betaincinv(a, b, q))


def beta_upper_quantile(q: float, a: float, b: float) -> float:
    """The value that a Beta(a, b) variable exceeds with probability q; exact also where 1 - q would round to 1."""
    return float(_special().betainccinv(a, b, q))


def beta_cdf(x: float, a: float, b: float) -> float:
    """P(Beta(a, b) <= x)."""
    return float(_special().betainc(a, b, x))


def hypergeometric(total: int, marked: int, drawn: int) -> Floats:
    """P(j marked among `drawn` of `total` units without replacement) for j = 0 .. drawn; by log gamma, normalised."""
    log_choose = _log_choose
    j = np.arange(drawn + 1, dtype=np.float64)
    possible = (j <= marked) & (drawn - j <= total - marked)
    logs = np.full(drawn + 1, -np.inf)
    inside = j[possible]
    logs[possible] = log_choose(marked, inside) + log_choose(total - marked, drawn - inside)
    weights = np.exp(logs - logs.max())
    masses: Floats = weights / weights.sum()
    return masses


def binomial(n: int, p: float) -> Floats:
    """P(Bin(n, p) = j) for j = 0 .. n."""
    if p <= 0 or p >= 1:
        mass = np.zeros(n + 1)
        mass[n if p >= 1 else 0] = 1.0
        return mass
    j = np.arange(n + 1, dtype=np.float64)
    masses: Floats = np.exp(_log_choose(n, j) + j * np.log(p) + (n - j) * np.log1p(-p))
    return masses


def _log_choose(n: float, j: Floats) -> Floats:
    """Logarithm of the binomial coefficient."""
    gammaln = _special().gammaln
    logs: Floats = gammaln(n + 1.0) - gammaln(j + 1.0) - gammaln(n - j + 1.0)
    return logs


def _special() -> Any:  # noqa: ANN401  scipy ships no annotations; the functions above give its results a type
    """The scipy module of special functions."""
    from scipy import special  # type: ignore[import-untyped]  # noqa: PLC0415  scipy ships no annotations, and is needed for certificates only

    return special
