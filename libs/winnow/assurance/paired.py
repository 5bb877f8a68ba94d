"""Two arms on the same tasks: the reference context and the pruned one. b = lost (the reference alone solves), c = gained, n pairs.

Delta = (c - b)/n is the change in the share solved. A large McNemar p is absence of evidence, not equality: `Comparison` always carries the
non-inferiority interval beside it.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from winnow.assurance import bounds, roots
from winnow.assurance.samples import InvalidSample, count, probability
from winnow.assurance.special import binomial_tail

#: Pairs from which Tango's asymptotic interval is used; below it exceeds its nominal error (.031 at n = 20 for .025), and two-CP is exact.
TANGO_FROM = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairs:
    """Counts of a paired comparison."""

    lost: int
    gained: int
    n: int

    def __post_init__(self) -> None:
        """Check that the counts fit."""
        if count("lost", self.lost) + count("gained", self.gained) > count("n", self.n):
            raise InvalidSample(f"{self.lost} lost and {self.gained} gained are more than {self.n} pairs")

    @property
    def change(self) -> float:
        """Delta = (gained - lost)/n; NaN without pairs."""
        return (self.gained - self.lost) / self.n if self.n else math.nan

    @classmethod
    def of(cls, outcomes: Iterable[tuple[bool, bool]]) -> "Pairs":
        """From (reference succeeds, pruned succeeds) of each task."""
        lost = gained = n = 0
        for reference, pruned in outcomes:
            n += 1
            lost += reference and not pruned
            gained += pruned and not reference
        return cls(lost=lost, gained=gained, n=n)

    @classmethod
    def of_differences(cls, differences: Iterable[float]) -> "Pairs":
        """From paired losses d of -1 (gained), 0 or 1 (lost).

        Raises:
            InvalidSample: another value.
        """
        values = list(differences)
        if any(d not in {-1.0, 0.0, 1.0} for d in values):
            raise InvalidSample("paired counts need differences of -1, 0 or 1; other paired losses are bounded by the grid mixture")
        return cls(lost=values.count(1.0), gained=values.count(-1.0), n=len(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A paired comparison at a margin, with every number that its verdict needs."""

    pairs: Pairs
    margin: float
    #: One-sided error of the non-inferiority test.
    delta: float
    #: Whether the change is shown to be above -margin.
    non_inferior: bool
    #: How: tango, or two-cp where there are few pairs.
    method: str
    #: Lower and upper bound of the change, each at 1 - delta.
    interval: tuple[float, float]
    #: Exact two-sided McNemar p of "no change".
    mcnemar: float


def compare(pairs: Pairs, *, margin: float, delta: float = 0.025) -> Comparison:
    """Non-inferiority of the pruned arm at `margin`: Tango's score test from 50 pairs on, two Clopper–Pearson bounds below."""
    margin, delta = probability("margin", margin), probability("delta", delta)
    interval = change_interval(pairs, delta)
    return Comparison(
        pairs=pairs,
        margin=margin,
        delta=delta,
        non_inferior=interval[0] > -margin,
        method="tango" if pairs.n >= TANGO_FROM else "two-cp",
        interval=interval,
        mcnemar=mcnemar(pairs),
    )


def change_interval(pairs: Pairs, delta: float = 0.025) -> tuple[float, float]:
    """Lower and upper bound of the change, each at 1 - delta: Tango from 50 pairs on, two Clopper–Pearson bounds below."""
    return tango(pairs, delta) if pairs.n >= TANGO_FROM else two_clopper_pearson(pairs, delta)


def mcnemar(pairs: Pairs) -> float:
    """Exact two-sided p: min(1, 2 P(Bin(b + c, 1/2) <= min(b, c))); 1 where nothing is discordant."""
    discordant = pairs.lost + pairs.gained
    return min(1.0, 2.0 * binomial_tail(min(pairs.lost, pairs.gained), discordant, 0.5)) if discordant else 1.0


def mcnemar_mid(pairs: Pairs) -> float:
    """McNemar's mid-p: the exact p less the probability of the observed split; less conservative and not exact. For comparison."""
    discordant, smaller = pairs.lost + pairs.gained, min(pairs.lost, pairs.gained)
    if not discordant:
        return 1.0
    at = binomial_tail(smaller, discordant, 0.5) - binomial_tail(smaller - 1, discordant, 0.5)
    return min(1.0, 2.0 * binomial_tail(smaller, discordant, 0.5) - at)


def tango_score(pairs: Pairs, change: float) -> float:
    """Tango 1998, Statistics in Medicine 17, formula 6: the score statistic of H0: p_gained - p_lost = change, -1 < change < 1.

    Infinite where H0 leaves no variance and the data contradict it; 0 where it leaves none and they agree.
    """
    b, c, n = pairs.lost, pairs.gained, pairs.n
    linear = -(b + c) + (2 * n - (c - b)) * change
    constant = -b * change * (1 - change)
    q = (math.sqrt(max(0.0, linear * linear - 8 * n * constant)) - linear) / (4 * n)
    variance = n * (2 * q + change * (1 - change))
    distance = c - b - n * change
    if variance <= 0:
        return math.copysign(math.inf, distance) if distance else 0.0
    return distance / math.sqrt(variance)


def tango(pairs: Pairs, delta: float = 0.025) -> tuple[float, float]:
    """The changes that the score test does not reject, one-sided error delta at each end. Asymptotic: for 50 pairs and more."""
    z = -NormalDist().inv_cdf(probability("delta", delta))
    if not pairs.n:
        return -1.0, 1.0
    return _tango_lower(pairs, z), -_tango_lower(Pairs(lost=pairs.gained, gained=pairs.lost, n=pairs.n), z)


def two_clopper_pearson(pairs: Pairs, delta: float = 0.025) -> tuple[float, float]:
    """Exact bounds of gained and of lost, delta/2 each, subtracted: conservative at any n."""
    delta = probability("delta", delta) / 2
    low = bounds.exact_lower(pairs.gained, pairs.n, delta) - bounds.exact(pairs.lost, pairs.n, delta)
    high = bounds.exact(pairs.gained, pairs.n, delta) - bounds.exact_lower(pairs.lost, pairs.n, delta)
    return low, high


def wald(pairs: Pairs, delta: float = 0.025) -> tuple[float, float]:
    """The published interval, for comparison alone: without discordant pairs it has no width, and certifies at n = 1."""
    z = -NormalDist().inv_cdf(probability("delta", delta))
    if not pairs.n:
        return -1.0, 1.0
    b, c, n = pairs.lost, pairs.gained, pairs.n
    spread = z * math.sqrt(max(0.0, b + c - (b - c) ** 2 / n)) / n
    return pairs.change - spread, pairs.change + spread


def decision_harm(decisions: Iterable[tuple[str, str, str]]) -> list[float]:
    """Differences d = 1{A != B} - 1{A != A'}, unclipped, from the decisions (A, A', B): reference, reference again, pruned."""
    return [float(a != b) - float(a != again) for a, again, b in decisions]


def rerun_excess(outcomes: Iterable[tuple[bool, bool, bool]]) -> list[float]:
    """Differences d = 1{F1 succeeds, C fails} - 1{F1 succeeds, F2 fails} of each task, from (F1, F2, C): reference twice, and pruned.

    The mean is the harm beyond what running the reference again does by itself. Without F2 harm contains that noise.
    """
    return [float(f1 and not c) - float(f1 and not f2) for f1, f2, c in outcomes]


def from_agreement(differences: Sequence[float]) -> list[float]:
    """Published shadow data give 1{A == B} - 1{A == A'}, which is -d; convert at the border."""
    return [-x for x in differences]


def _tango_lower(pairs: Pairs, z: float) -> float:
    """Smallest change in (-1, change] whose score does not exceed z; the score falls as the tested change rises."""
    if pairs.lost == pairs.n:
        return -1.0
    start = -1.0 + 1e-12
    if tango_score(pairs, start) <= z:
        return start
    return roots.rising(lambda change: -tango_score(pairs, change), -z, start, pairs.change)
