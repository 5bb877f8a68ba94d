"""Whether a bound carries over: to a fresh half, to a domain that was held out, from turns to a run, from one run to a rerun.

Two events have the word coverage and are kept apart here. `covers` is the guarantee, P(true risk <= U). `fresh_half` is P(the rate of a
fresh half <= U), which contains the noise of that half: a tighter valid bound fails it more often, so it is no test of validity.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from winnow.assurance import bounds
from winnow.assurance.samples import InvalidSample, count, probability
from winnow.assurance.special import binomial, hypergeometric

#: A bound of counts: (k, n, delta) -> U.
CountBound = Callable[[int, int, float], float]
#: Probability below which an outcome is left out of an enumeration; 1,000 of them do not reach the ninth decimal.
_NEGLIGIBLE = 1e-13


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """Losses of one repository, customer or kind of task."""

    name: str
    k: int
    n: int

    def __post_init__(self) -> None:
        """Check the counts."""
        if count("k", self.k) > count("n", self.n) or not self.n:
            raise InvalidSample(f"domain {self.name[:80]!r} needs at least one unit and at most as many losses as units")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """One domain against the bound from all others."""

    domain: Domain
    #: Bound from the other domains.
    bound: float
    #: Whether the domain's own rate lies within it.
    held: bool
    #: P(held) for a random block of the same size out of the same units: what to expect without any shift.
    control: float
    #: P(a random block of this size has at least as many losses): small where the domain is worse than chance allows.
    p_shift: float
    #: Smallest rate that would have had p_shift < .05; None where none would.
    detectable: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveOneOut:
    """All domains, each held out once, beside the matched control."""

    rows: tuple[HeldOut, ...]
    #: Domains whose rate lay within the bound from the others.
    held: int
    #: Mean control: the share of domains that would hold without any shift.
    control: float
    #: Sum over domains of n (rate - pooled rate)^2.
    dispersion: float
    #: Share of random partitions into blocks of these sizes that are at least as dispersed.
    p_dispersion: float

    @property
    def coverage(self) -> float:
        """Share of domains that held; to be read against `control`, not against 1 - delta."""
        return self.held / len(self.rows)


def leave_one_out(
    domains: Sequence[Domain], *, delta: float, rng: np.random.Generator, bound: CountBound = bounds.exact, permutations: int = 2_000
) -> LeaveOneOut:
    """Hold out each domain, bound the risk on the others, and check the held-out rate; beside it the same on random blocks of equal sizes.

    A small domain's rate exceeds a valid bound often by chance alone. The control says how often (exactly, by the hypergeometric law), so
    only coverage well below it speaks of shift. `rng` makes the partitions for the dispersion test.

    Raises:
        InvalidSample: fewer than two domains.
    """
    if len(domains) < 2:  # noqa: PLR2004  one to hold out, one to learn from
        raise InvalidSample("at least two domains are needed: one to hold out, one to bound the risk on")
    delta = probability("delta", delta)
    n, k = sum(d.n for d in domains), sum(d.k for d in domains)
    rows = tuple(_held_out(domain, n, k, delta, bound) for domain in domains)
    sizes = np.array([d.n for d in domains])
    seen = _dispersion(np.array([d.k for d in domains]), sizes, k / n)
    blocks = rng.multivariate_hypergeometric(sizes, k, size=permutations)
    p = (1 + int((_dispersion(blocks, sizes, k / n) >= seen - 1e-9).sum())) / (1 + permutations)
    return LeaveOneOut(
        rows=rows,
        held=sum(row.held for row in rows),
        control=math.fsum(row.control for row in rows) / len(rows),
        dispersion=float(seen),
        p_dispersion=p,
    )


def covers(p: float, n: int, delta: float, bound: CountBound = bounds.exact) -> float:
    """P(p <= U) for n independent units of risk p: the guarantee, by enumeration; at least 1 - delta for a valid bound."""
    n, delta = count("n", n), probability("delta", delta)
    mass = binomial(n, p)
    return math.fsum(m for k, m in enumerate(mass) if m > _NEGLIGIBLE and p <= bound(k, n, delta))


def fresh_sample(p: float, n: int, delta: float, bound: CountBound = bounds.exact) -> float:
    """P(rate of n fresh units <= U of n others), both of risk p: another event than `covers`, with the noise of the fresh units in it."""
    n, delta = count("n", n), probability("delta", delta)
    mass = binomial(n, p)
    up_to = np.cumsum(mass)
    return math.fsum(m * up_to[_at_most(bound(k, n, delta), n)] for k, m in enumerate(mass) if m > _NEGLIGIBLE)


def fresh_half(k: int, n: int, delta: float, bound: CountBound = bounds.exact) -> float:
    """P(rate of one random half <= U of the other), over all splits of n units with k losses; exact, by the hypergeometric law.

    What out-of-sample checks by random splits estimate. An odd unit goes to the checked half.
    """
    k, n, delta = count("k", k), count("n", n), probability("delta", delta)
    first = n // 2
    mass = hypergeometric(n, k, first)
    return math.fsum(
        m for j, m in enumerate(mass) if m > _NEGLIGIBLE and (k - j) / (n - first) <= bound(j, first, delta)
    )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Composition:
    """What a bound on turns says about a run of several: little. A run's risk is certified on runs."""

    turns: float
    #: At most turns · alpha, whatever depends on what; above 1 it says nothing.
    union: float
    #: 1 - (1 - alpha)^turns, where flips of turns are independent.
    independent: float

    @property
    def vacuous(self) -> bool:
        """Whether the union bound says nothing."""
        return self.union >= 1.0


def compose(alpha: float, turns: float) -> Composition:
    """A per-turn bound over a run of `turns` turns."""
    alpha = probability("alpha", alpha)
    if not turns > 0:
        raise InvalidSample("a run has a positive number of turns")
    return Composition(turns=turns, union=alpha * turns, independent=1.0 - (1.0 - alpha) ** turns)


def consequential_turns(alpha: float, divergence: float) -> float:
    """The k with 1 - (1 - alpha)^k = divergence: so many independent turns of risk alpha explain a run. A description only."""
    return math.log1p(-probability("divergence", divergence)) / math.log1p(-probability("alpha", alpha))


def any_divergence(runs: Iterable[Sequence[bool]]) -> list[bool]:
    """A run's loss from its decisions: it keeps its outcome iff none of them changed. A loss of its own, with an alpha of its own."""
    return [any(changed) for changed in runs]


def _held_out(domain: Domain, n: int, k: int, delta: float, bound: CountBound) -> HeldOut:
    """One row: the domain against the others, and a random block in its place."""
    rest = n - domain.n
    mass = hypergeometric(n, k, domain.n)
    limit = bound(k - domain.k, rest, delta)
    control = math.fsum(m for j, m in enumerate(mass) if m > _NEGLIGIBLE and j / domain.n <= bound(k - j, rest, delta))
    tails = np.cumsum(mass[::-1])[::-1]
    rare = np.flatnonzero((tails < 0.05) & (mass > 0))  # noqa: PLR2004  the usual level, for orientation
    return HeldOut(
        domain=domain,
        bound=limit,
        held=domain.k / domain.n <= limit,
        control=control,
        p_shift=float(tails[domain.k]),
        detectable=float(rare[0]) / domain.n if len(rare) else None,
    )


def _dispersion(k: np.ndarray, n: np.ndarray, pooled: float) -> np.ndarray:
    """Size-weighted squared distance of the rates from the pooled one, over the last axis."""
    spread: np.ndarray = (n * (k / n - pooled) ** 2).sum(axis=-1)
    return spread


def _at_most(rate: float, n: int) -> int:
    """Largest count whose rate over n does not exceed `rate`; compared as rates, since rate·n may round down across it."""
    j = min(n, math.floor(rate * n))
    return j + 1 if j < n and (j + 1) / n <= rate else j
