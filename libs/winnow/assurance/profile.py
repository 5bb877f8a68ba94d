"""A fleet's profile: what share of entries its judge finds unsupported, learned once and compared with later. Guarantee class `none`."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

#: Boundaries that a profile is learned from: the standard error of the mean share is then a fourteenth of the spread.
LEARN_FROM: Final = 200
#: Boundaries after which what was seen lately has half the weight.
HALF_LIFE: Final = 50
#: Weight of a new boundary in the recent mean.
_STEP: Final = 1.0 - 2.0 ** (-1.0 / HALF_LIFE)
#: Boundaries that must have come since, so that the recent mean has forgotten where it began.
SETTLED_AFTER: Final = 100
#: Standard errors of the recent mean that count as a departure: under a normal law once in 16,000 looks, and looks depend on each other.
DEPARTED: Final = 4.0
#: Smallest spread that is believed: identical boundaries would make anything a departure.
LEAST_SPREAD: Final = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Mean share and sum of squared differences of the first boundaries; exponentially weighted mean of those since."""

    learned: int = 0
    rate: float = 0.0
    spread: float = 0.0
    recent: int = 0
    recent_rate: float = 0.0

    @property
    def deviation(self) -> float:
        """Standard deviation of a boundary's share."""
        return max(LEAST_SPREAD, math.sqrt(self.spread / (self.learned - 1))) if self.learned > 1 else math.inf

    @property
    def z(self) -> float:
        """Standard errors of the recent mean between it and the learned one; 0 before both are known."""
        if self.learned < LEARN_FROM or self.recent < SETTLED_AFTER:
            return 0.0
        # Variance of an exponentially weighted mean: s^2·w/(2 - w); the learned mean has s^2/n.
        error = self.deviation * math.sqrt(_STEP / (2.0 - _STEP) + 1.0 / self.learned)
        return (self.recent_rate - self.rate) / error

    @property
    def departed(self) -> bool:
        """What is seen lately is another level than what was learned."""
        return abs(self.z) >= DEPARTED


def seen(profile: Profile, shares: Iterable[float]) -> Profile:
    """The profile after further boundaries, each with its share of entries in [0, 1]. Means and squares by Welford's update."""
    learned, rate, spread = profile.learned, profile.rate, profile.spread
    recent, recent_rate = profile.recent, profile.recent_rate
    for share in shares:
        if learned < LEARN_FROM:
            learned += 1
            step = share - rate
            rate += step / learned
            spread += step * (share - rate)
            continue
        if not recent:
            recent_rate = rate
        recent += 1
        recent_rate += _STEP * (share - recent_rate)
    return Profile(learned=learned, rate=rate, spread=spread, recent=recent, recent_rate=recent_rate)
