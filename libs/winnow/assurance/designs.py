"""The monitor's bets: named sets of constants, part of every state's fingerprint, since a state is worth nothing under other ones."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from winnow.assurance.spending import Schedule

#: Name of the published rule that is kept for comparison; it is no mixture of bets (see `seed`).
SEED: Final = "seed"


#: Largest relative bet, in units of 1/span: it keeps a tenth of its capital through the worst loss.
MOST: Final = 0.9
#: Variance of a paired difference that relative bets assume: two decisions that differ by chance in 15 to 20 % of units.
PAIRED_VARIANCE: Final = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """A mixture of bets against "the risk is at most alpha".

    A fixed bet multiplies its capital by 1 + (theta/span)·(x - alpha), span = alpha - lo: theta = 1 would lose all of it on a loss of lo.

    A following bet multiplies by 1 + lam·(x - alpha) with lam = min(reach/span, max(0, s1)/(calm·v0 + s2)), where s1 and s2 are the sums of
    (x - alpha) and of its square, forgotten with a half-life, before x is seen; v0 = span·(1 - alpha) is the largest variance at risk
    alpha. So it sleeps, and loses nothing, while recent losses are below the budget.

    A waiting bet is a fixed one, made only while its own CUSUM, max(1, CUSUM times its factor), is above exp(patience): it gives away
    the first nats after a change, and keeps its capital through the years before.
    """

    #: theta of each fixed bet, 0 < theta < 1; or, of a `relative` design, the risk that it is best against, as a multiple of the budget.
    fixed: tuple[float, ...]
    #: Bets are sized for multiples f of the budget: lam = min(most, (f - 1)·alpha/v), v the variance of a loss (see `lam`).
    relative: bool = False
    #: Units after which a following bet has forgotten half.
    half_lives: tuple[float, ...] = ()
    #: theta of each waiting bet, or its multiple of the budget.
    waiting: tuple[float, ...] = ()
    #: Nats that the CUSUM of each waiting bet must pass before it is made.
    patience: tuple[float, ...] = ()
    #: Share of each stake for each bet: fixed, following, waiting; sums to 1.
    weights: tuple[float, ...]
    #: The same for the stake on the first unit; left out: as `weights`.
    opening_weights: tuple[float, ...] = ()
    #: Largest lam of a following bet, in units of 1/span.
    reach: float = 0.5
    #: Prior of a following bet, in units of the variance v0.
    calm: float = 10.0
    #: lam that a following bet begins with, in units of 1/span: above 0 bets on a drift that is there from the start.
    eager: float = 0.0
    #: CUSUM that a waiting bet begins with, in nats, for the same end.
    head_start: float = 0.0
    #: When it stakes.
    schedule: Schedule = field(default_factory=Schedule)

    def lam(self, size: float, alpha: float, lo: float) -> float:
        """What a fixed or waiting bet of this size stakes on x - alpha."""
        span = alpha - lo
        if not self.relative:
            return size / span
        variance = alpha * (1.0 - alpha) if lo == 0 else PAIRED_VARIANCE
        return min(MOST / span, (size - 1.0) * alpha / variance)

    @property
    def opening(self) -> tuple[float, ...]:
        """Shares of the first stake."""
        return self.opening_weights or self.weights


#: theta of the bulk bets: each twice the one before.
GRID7: Final = tuple(0.0125 * 2**j for j in range(7))

DESIGNS: Final[Mapping[str, Design]] = MappingProxyType(
    {
        # Most of the capital is staked on the first unit, a third of that on one small excess; what is kept for later goes to waiting bets
        # and two fixed ones for large excesses. For losses of every kind, whatever their variance: two patiences, for where losses vary
        # little a change shows in a few units. How the shares were found, and which point of the frontier this is: docs/assurance.md.
        "patient": Design(
            relative=True,
            fixed=(1.45, 3.5, 8.0),
            half_lives=(240.0,),
            waiting=(1.2, 1.4, 1.4, 1.8, 1.8, 2.6, 2.6, 5.0),
            patience=(0.75, 0.75, 1.5, 1.0, 2.0, 1.25, 2.5, 1.5),
            weights=(0.01, 0.06, 0.33, 0.01, 0.01, 0.01, 0.01, 0.01, 0.22, 0.01, 0.21, 0.11),
            opening_weights=(0.33, 0.12, 0.04, 0.09, 0.07, 0.12, 0.06, 0.11, 0.01, 0.03, 0.01, 0.01),
            reach=0.9,
            eager=0.03,
            head_start=1.3,
            schedule=Schedule(opening=0.88, steepness=2.0),
        ),
        # Four fixed bets and three that follow, on a spending schedule: the design as it was specified.
        "spending": Design(
            fixed=(0.025, 0.1, 0.3, 0.8),
            half_lives=(30.0, 120.0, 480.0),
            weights=(0.5 / 4,) * 4 + (0.5 / 3,) * 3,
        ),
        # Fixed bets alone: segments can be merged (see `segments`), and a thousand streams fold as one array.
        "grid7": Design(fixed=GRID7, weights=(1 / 7,) * 7),
        # The mirror's bets, for the time after an alarm: see `recovery`.
        "recovery": Design(fixed=(0.025, 0.05, 0.1, 0.2, 0.4, 0.8), weights=(1 / 6,) * 6, schedule=Schedule(opening=1.0)),
        # Everything staked on the first unit, nothing kept for later: for comparison, and for epochs that start now.
        "plain": Design(fixed=GRID7, weights=(1 / 7,) * 7, schedule=Schedule(opening=1.0)),
    }
)

#: What a monitor uses where no method is named.
DEFAULT: Final = "patient"
#: Every method that can be named.
METHODS: Final = (*DESIGNS, SEED)
