"""The monitor's bets: named sets of constants, part of every state's fingerprint, since a state is worth nothing under other ones."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from winnow.assurance.spending import Schedule

#: Name of the published rule that is kept for comparison; it is no mixture of bets (see `seed`).
SEED: Final = "seed"


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

    #: theta of each fixed bet, 0 < theta < 1.
    fixed: tuple[float, ...]
    #: Units after which a following bet has forgotten half.
    half_lives: tuple[float, ...] = ()
    #: theta of each waiting bet.
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

    @property
    def opening(self) -> tuple[float, ...]:
        """Shares of the first stake."""
        return self.opening_weights or self.weights


#: theta of the bulk bets: each twice the one before.
GRID7: Final = tuple(0.0125 * 2**j for j in range(7))

DESIGNS: Final[Mapping[str, Design]] = MappingProxyType(
    {
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
DEFAULT: Final = "spending"
#: Every method that can be named.
METHODS: Final = (*DESIGNS, SEED)
