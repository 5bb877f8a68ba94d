"""Many e-values at once: which to act on, with a bounded share of false ones under any dependence between them."""

from collections.abc import Sequence

from winnow.assurance.refusals import InvalidConfig


def e_bh(e_values: Sequence[float], delta: float) -> tuple[bool, ...]:
    """Which of K e-values are rejected: the k* largest, k* = max{k: M_(k) >= K/(k·delta)}.

    The false discovery rate is at most delta under any dependence (Wang and Ramdas 2022, theorem 1).
    """
    return weighted_e_bh(e_values, (1.0 / len(e_values),) * len(e_values), delta) if e_values else ()


def weighted_e_bh(e_values: Sequence[float], weights: Sequence[float], delta: float) -> tuple[bool, ...]:
    """The same with shares fixed beforehand: reject M_k >= 1/(delta·weight_k·r) for the largest r that as many e-values reach.

    The weights may sum to less than 1: what is left belongs to streams that join later, which so never weaken what was promised.

    Raises:
        InvalidConfig: a weight is not above 0, or they sum to more than 1.
    """
    _check(weights, delta)
    if len(weights) != len(e_values):
        raise InvalidConfig("there must be one weight for each e-value")
    # delta·weight·M >= 1/r. Multiplied in an order that keeps K e-values of exactly K/delta equal to it.
    reach = sorted((_rank(m, w, delta) for m, w in zip(e_values, weights, strict=True)), reverse=True)
    most = max((r for r, value in enumerate(reach, start=1) if value * r >= 1.0), default=0)
    return tuple(most > 0 and _rank(m, w, delta) * most >= 1.0 for m, w in zip(e_values, weights, strict=True))


def e_lond(e_values: Sequence[float], delta: float, weights: Sequence[float]) -> tuple[bool, ...]:
    """Decide once, in order of arrival: reject M_j >= 1/(delta·weight_j·(rejections so far + 1)). FDR <= delta (Xu and Ramdas 2024)."""
    _check(weights, delta)
    decided: list[bool] = []
    rejections = 0
    for m, weight in zip(e_values, weights, strict=True):
        decided.append(m >= 1.0 / (delta * weight * (rejections + 1)))
        rejections += decided[-1]
    return tuple(decided)


def joining_weight(k: int) -> float:
    """Share of the k-th stream to register, from 1: 1/(k·(k + 1)), which sums to 1 over an endless number of streams."""
    if k < 1:
        raise InvalidConfig("streams are numbered from 1 in the order of their registration")
    return 1.0 / (k * (k + 1))


#: Relative slack against rounding in sums of weights and in products that are exactly 1 on paper.
_ROUNDING = 1e-12


def _rank(m: float, weight: float, delta: float) -> float:
    """delta·weight·M, nudged so that what is exactly 1/r on paper reaches it."""
    return delta * weight * m * (1.0 + _ROUNDING)


def _check(weights: Sequence[float], delta: float) -> None:
    """Refuse an error budget or weights that bound nothing."""
    if not 0 < delta < 1:
        raise InvalidConfig("delta must lie in (0, 1)")
    if not all(w > 0 for w in weights) or sum(weights) > 1.0 + _ROUNDING:
        raise InvalidConfig("weights must be above 0 and sum to at most 1")
