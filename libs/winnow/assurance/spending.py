"""When a monitor stakes its capital: cash kept for changes that come late."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """Cash of the lifetime mode, f(0) = 1 and f(k) = (1 - opening) / (1 + ln(1 + (k - 1)/steepness)) for k >= 1.

    Block k of `block` units begins with a stake of f(k) - f(k + 1), shared among the bets. f falls strictly, to 0, so that the stakes sum
    to 1 over an endless life; it falls slower than any power, so that a change after 50,000 units still finds money.
    """

    #: Units between two stakes; 1 to 25 differ by less than 5 % in delay, and 25 costs a twenty-fifth.
    block: int = 25
    #: Share of the capital staked on the first unit.
    opening: float = 0.25
    #: Blocks after which the cash begins to fall slower.
    steepness: float = 4.0

    def cash(self, k: int) -> float:
        """Cash before block k starts, 0 < f <= 1."""
        if k == 0:
            return 1.0
        return (1.0 - self.opening) / (1.0 + math.log(1.0 + (k - 1) / self.steepness))

    def stake(self, k: int) -> tuple[float, float]:
        """What block k stakes, and the cash that is left then."""
        left = self.cash(k + 1)
        return self.cash(k) - left, left
