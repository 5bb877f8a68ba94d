"""The monitor on many streams at once, as arrays: for planning, and to check its promises and its speed against published tables.

One column a run. The same recursion as `monitor`, in the same order of bets; equal to it but for the order of a sum. Needs numpy.
"""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from winnow.assurance.config import MonitorConfig
from winnow.assurance.monitor import initial
from winnow.assurance.refusals import InvalidConfig
from winnow.assurance.seed import LEAST, MOST

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Draws the losses of one unit for so many runs.
Draw = Callable[[np.random.Generator, int], Floats]

#: Units between two tidyings: runs that have alarmed are taken out of the arrays.
TIDY_EVERY = 100


def bernoulli(p: float) -> Draw:
    """Losses of 0 and 1 with mean p."""
    return lambda rng, runs: (rng.random(runs) < p).astype(np.float64)


def uniform(mean: float) -> Draw:
    """Losses spread evenly over [0, 2·mean]."""
    return lambda rng, runs: 2.0 * mean * rng.random(runs)


def zero_inflated_beta(mean: float) -> Draw:
    """Losses of 0, or with probability mean/(2/7) from Beta(2, 5)."""

    def draw(rng: np.random.Generator, runs: int) -> Floats:
        return np.where(rng.random(runs) < 3.5 * mean, rng.beta(2.0, 5.0, runs), 0.0)

    return draw


def paired(harm: float, floor: float = 0.15) -> Draw:
    """Paired differences: -1 and 1 each with half the noise floor, and 1 with probability `harm` besides."""

    def draw(rng: np.random.Generator, runs: int) -> Floats:
        u = rng.random(runs)
        return np.where(u < floor / 2, -1.0, np.where(u < floor + harm, 1.0, 0.0))

    return draw


class Runs:
    """Monitors of one configuration on independent streams. Mutable: `fold` is the only step."""

    def __init__(self, config: MonitorConfig, runs: int) -> None:
        """Start `runs` monitors."""
        first = initial(config)
        self.config = config
        self.n = 0
        self._arrays = {
            name: np.tile(np.array(values)[:, None], (1, runs))
            for name, values in (("capital", first.capital), ("drift", first.drift), ("spread", first.spread), ("rise", first.rise))
        }
        self._cash = first.cash
        plan = config.plan
        self._stakes = np.array([[lam] for _, lam in plan.stakes])
        self._memory = np.array([[rho] for _, _, rho in plan.following])
        self._waiting = np.array([[lam] for _, _, lam, _ in plan.waiting])
        self._patience = np.array([[patience] for _, _, _, patience in plan.waiting])

    def keep(self, which: NDArray[np.bool_]) -> None:
        """Go on with some of the runs only."""
        self._arrays = {name: np.ascontiguousarray(values[:, which]) for name, values in self._arrays.items()}

    def copy(self) -> "Runs":
        """The same runs once more, to go on in another way."""
        return copy.deepcopy(self)

    def fold(self, x: Floats) -> Floats:
        """Fold one loss into each run and return the evidence of each."""
        evidence = self._mixture(x) if self.config.design else self._seed(x)
        self.n += 1
        return evidence

    def _mixture(self, x: Floats) -> Floats:
        """A design's bets."""
        config, plan = self.config, self.config.plan
        capital, drift, spread, rise = self._arrays.values()
        self._stake(capital)
        y = x - config.alpha
        fixed = len(plan.stakes)
        awake = fixed + len(plan.following)
        if fixed:
            capital[:fixed] *= 1.0 + self._stakes * y
        if plan.following:
            lam = np.minimum(np.maximum(drift / (plan.prior + spread), 0.0), plan.most)
            capital[fixed:awake] *= 1.0 + lam * y
            drift *= self._memory
            drift += y
            spread *= self._memory
            spread += y * y
        if plan.waiting:
            factors = 1.0 + self._waiting * y
            np.multiply(capital[awake:], factors, out=capital[awake:], where=rise > self._patience)
            rise *= factors
            np.maximum(rise, 1.0, out=rise)
        evidence: Floats = capital.sum(axis=0) + self._cash
        return evidence

    def _stake(self, capital: Floats) -> None:
        """Move cash into the bets where it is time."""
        config, design = self.config, self.config.design
        if design is None or (config.plan.block and self.n % config.plan.block):
            return
        stake = 1.0
        if config.mode == "lifetime":
            stake, self._cash = design.schedule.stake(self.n // design.schedule.block)
        elif config.horizon is not None:
            stake, self._cash = 1.0 / config.horizon, 1.0 - (self.n + 1) / config.horizon
        capital += stake * np.array(design.weights if self.n else design.opening)[:, None]

    def _seed(self, x: Floats) -> Floats:
        """The published rule; see `seed.step`."""
        capital, total, squares, _ = self._arrays.values()
        alpha = self.config.alpha
        if self.config.lo < 0:
            x, alpha = (1.0 + x) / 2.0, (1.0 + alpha) / 2.0
        n = self.n + 1
        lam = np.minimum(MOST, np.sqrt(2.0 * np.log(self.config.level) / (0.25 + squares)))
        np.maximum(capital * (1.0 + lam * (x - alpha)), LEAST, out=capital)
        total += x
        squares += (x - (0.5 + total) / (1 + n)) ** 2
        evidence: Floats = capital[0]
        return evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """Units from the change to the alarm, of the runs that had not alarmed before; undetected ones count as the cap."""

    units: Ints
    #: Runs that alarmed before the change, of `runs`.
    early: int
    runs: int
    cap: int

    @property
    def mean(self) -> float:
        """Mean delay in units."""
        return float(self.units.mean())

    def quantile(self, q: float) -> float:
        """The delay that a share q of the runs does not exceed."""
        return float(np.quantile(self.units, q))

    @property
    def missed(self) -> float:
        """Share of runs without an alarm within the cap."""
        return float((self.units >= self.cap).mean())


def first_alarms(config: MonitorConfig, draw: Draw, *, runs: int, units: int, rng: np.random.Generator, kind: type[Runs] = Runs) -> Ints:
    """The unit, from 1, at which each run first alarms; 0 where it does not within `units`. `kind`: another rule to fold by."""
    return _first_alarms(kind(config, runs), draw, runs, units, rng)[0]


def delays(
    config: MonitorConfig,
    healthy: Draw,
    changed: Sequence[Draw],
    *,
    nu: int,
    runs: int,
    rng: np.random.Generator,
    cap: int = 15_000,
    kind: type[Runs] = Runs,
) -> list[Delays]:
    """Watch `runs` streams for nu healthy units, then each kind of change from there on. `kind`: another rule to fold by.

    Raises:
        InvalidConfig: every run alarmed before the change.
    """
    start = kind(config, runs)
    before, start = _first_alarms(start, healthy, runs, nu, rng)
    left = int((before == 0).sum())
    if not left:
        raise InvalidConfig("every run alarmed before the change: the healthy risk is not below the budget")
    found = []
    for draw in changed:
        after = _first_alarms(start.copy(), draw, left, cap, rng)[0]
        found.append(Delays(units=np.where(after == 0, cap, after), early=runs - left, runs=runs, cap=cap))
    return found


def _first_alarms(state: Runs, draw: Draw, runs: int, units: int, rng: np.random.Generator) -> tuple[Ints, Runs]:
    """First alarms, counted from here, and the runs that are left."""
    level = state.config.level
    alarms = np.zeros(runs, dtype=np.int64)
    place = np.arange(runs)
    live = np.ones(runs, dtype=np.bool_)
    for t in range(1, units + 1):
        crossed = state.fold(draw(rng, len(place))) >= level
        if crossed.any():
            new = crossed & live
            alarms[place[new]] = t
            live &= ~crossed
        if (t % TIDY_EVERY == 0 or t == units) and not live.all():
            state.keep(live)
            place, live = place[live], live[live]
            if not len(place):
                break
    return alarms, state
