"""The bounds and tests by name, with the losses that each is for and the guarantee that it gives."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from winnow.assurance import anytime, bounds, paired, pvalues
from winnow.assurance.kinds import LossType
from winnow.assurance.samples import InvalidSample, Sample

#: Version of the formulas; a certificate names it. Raised when a number changes.
METHODS_VERSION: Final = "1"


class Guarantee(StrEnum):
    """What a number promises. It is shown beside every number."""

    FIXED_N = "fixed-n"  # one computation at an n fixed beforehand
    ANYTIME = "anytime"  # every look and every stopping time
    ARL = "arl"  # the mean time to a false alarm alone is bounded
    EXPECTATION = "expectation"  # the mean over calibration sets is bounded; this one may exceed
    NONE = "none"  # an estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A bound and its test."""

    name: str
    guarantee: Guarantee
    #: Declared loss types that it takes.
    types: frozenset[LossType]
    #: Upper bound of the mean loss at confidence 1 - delta.
    upper: Callable[[Sample, float], float]
    #: p-value of H0: mean loss >= alpha.
    p_value: Callable[[Sample, float], float]
    #: How it is called in a statement.
    words: str

    def check(self, sample: Sample) -> None:
        """Refuse a sample of a type that the method is not for.

        Raises:
            InvalidSample: it is; the text names the methods that are.
        """
        if sample.type not in self.types:
            fit = ", ".join(m.name for m in METHODS.values() if sample.type in m.types)
            raise InvalidSample(f"{self.name} is not for {sample.type.value} losses; use one of: {fit}")


def default(type_: LossType) -> str:
    """Exact binomial for binary losses, the order-invariant grid mixture for others."""
    return "exact" if type_ is LossType.BINARY else "grid"


def method(name: str) -> Method:
    """The method of that name.

    Raises:
        InvalidSample: there is none; the text lists them.
    """
    if name not in METHODS:
        raise InvalidSample(f"there is no method {name[:40]!r}; choose one of: {', '.join(METHODS)}")
    return METHODS[name]


def upper(sample: Sample, delta: float, name: str | None = None) -> float:
    """Upper bound of the mean loss at confidence 1 - delta by the named method, or the default of the declared type.

    Raises:
        InvalidSample: the method is not for this sample.
    """
    chosen = method(name or default(sample.type))
    chosen.check(sample)
    return chosen.upper(sample, delta) if sample.n else 1.0


def p_value(sample: Sample, alpha: float, name: str | None = None) -> float:
    """p-value of H0: mean loss >= alpha by the named method, or the default of the declared type; 1 without units.

    Raises:
        InvalidSample: the method is not for this sample.
    """
    chosen = method(name or default(sample.type))
    chosen.check(sample)
    return chosen.p_value(sample, alpha) if sample.n else 1.0


def lower(sample: Sample, delta: float, name: str | None = None) -> float:
    """Lower bound of the mean loss: the upper bound of the mirrored losses.

    Raises:
        InvalidSample: the method is not for this sample.
    """
    chosen = method(name or default(sample.type))
    chosen.check(sample)
    if not sample.n:
        return float(sample.type.lo)
    if sample.type is LossType.PAIRED:
        flipped = Sample.paired([-x for x in sample.values or ()], order=sample.order, registered_n=sample.registered_n)
        return -chosen.upper(flipped, delta)
    return 1.0 - chosen.upper(sample.mirrored(), delta)


def _by_evidence(log_evidence: Callable[[Sample, float], float]) -> Callable[[Sample, float], float]:
    """The p-value of an e-value: its inverse, at most 1 (Markov)."""
    return lambda sample, alpha: min(1.0, math.exp(-max(0.0, log_evidence(sample, alpha))))


def _by_bound(bound: Callable[[Sample, float], float]) -> Callable[[Sample, float], float]:
    """The p-value of a family of bounds: the smallest delta whose bound is at most alpha, by halving its logarithm to 1e-12."""

    def p(sample: Sample, alpha: float) -> float:
        low, high = -700.0, math.log(1 - 1e-12)
        if bound(sample, math.exp(high)) > alpha:
            return 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if bound(sample, math.exp(middle)) <= alpha else (middle, high)
        return math.exp(high)

    return p


def _counted(bound: Callable[[int, int, float], float]) -> Callable[[Sample, float], float]:
    """A function of counts as one of samples; graded losses count as their sum rounded up."""
    return lambda sample, level: bound(sample.k, sample.n, level)


def _mapped(bound: Callable[[Sample, float], float]) -> Callable[[Sample, float], float]:
    """A bound of losses on [0, 1] for paired ones too: u = (d + 1)/2, then 2U - 1."""
    return lambda sample, delta: 2 * bound(sample, delta) - 1 if sample.type is LossType.PAIRED else bound(sample, delta)


def _score(sample: Sample, delta: float) -> float:
    """Upper bound of a mean paired difference in {-1, 0, 1}: the change in the share solved with its sign turned."""
    return -paired.change_interval(paired.Pairs.of_differences(sample.values or ()), delta)[0]


_BINARY: Final = frozenset({LossType.BINARY})
_UNIT: Final = frozenset({LossType.BINARY, LossType.GRADED})
_ALL: Final = frozenset(LossType)

_EB: Final = _mapped(bounds.empirical_bernstein)
_WSR: Final = _mapped(bounds.betting)

#: All of them, the default of each type first.
METHODS: Final = {
    m.name: m
    for m in (
        Method(
            name="exact",
            guarantee=Guarantee.FIXED_N,
            types=_BINARY,
            upper=_counted(bounds.exact),
            p_value=_counted(pvalues.exact),
            words="exact binomial",
        ),
        Method(
            name="grid",
            guarantee=Guarantee.ANYTIME,
            types=_ALL,
            upper=anytime.grid,
            p_value=_by_evidence(anytime.log_grid),
            words="order-invariant grid mixture",
        ),
        Method(
            name="hb",
            guarantee=Guarantee.FIXED_N,
            types=_UNIT,
            upper=_counted(bounds.hoeffding_bentkus),
            p_value=_counted(pvalues.hoeffding_bentkus),
            words="Hoeffding–Bentkus",
        ),
        Method(
            name="hb-seed",
            guarantee=Guarantee.FIXED_N,
            types=_UNIT,
            upper=_counted(bounds.seed),
            p_value=_counted(pvalues.seed),
            words="Hoeffding–Bentkus with plain Hoeffding, as the published system has it",
        ),
        Method(
            name="kl",
            guarantee=Guarantee.FIXED_N,
            types=_UNIT,
            upper=_counted(bounds.kl_hoeffding),
            p_value=_counted(pvalues.kl_hoeffding),
            words="Kullback–Leibler form of Hoeffding's inequality",
        ),
        Method(
            name="hoeffding",
            guarantee=Guarantee.FIXED_N,
            types=_UNIT,
            upper=lambda s, delta: bounds.hoeffding(s.total, s.n, delta),
            p_value=lambda s, alpha: pvalues.hoeffding(s.total, s.n, alpha),
            words="Hoeffding's inequality",
        ),
        Method(
            name="eb", guarantee=Guarantee.FIXED_N, types=_ALL, upper=_EB, p_value=_by_bound(_EB), words="empirical Bernstein, ln(2/delta)"
        ),
        Method(
            name="wsr",
            guarantee=Guarantee.FIXED_N,
            types=_ALL,
            upper=_WSR,
            p_value=_by_bound(_WSR),
            words="betting bound in registered sampling order",
        ),
        Method(
            name="tango",
            guarantee=Guarantee.FIXED_N,
            types=frozenset({LossType.PAIRED}),
            upper=_score,
            p_value=_by_bound(_score),
            words="score interval of paired differences, asymptotic (two Clopper–Pearson bounds below 50 units)",
        ),
        Method(
            name="beta",
            guarantee=Guarantee.ANYTIME,
            types=_BINARY,
            upper=_counted(anytime.beta),
            p_value=_by_evidence(lambda s, alpha: anytime.log_beta(s.k, s.n, alpha)),
            words="anytime Beta mixture",
        ),
    )
}
