"""Thousands of monitors at once, as arrays: for planning and simulation. One stream of it equals `monitor` up to rounding."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from winnow.assurance.config import MonitorConfig
from winnow.assurance.designs import Design
from winnow.assurance.refusals import InvalidConfig
from winnow.assurance.special import Floats

#: Units drawn at once: 1,500 streams of them fill three megabytes.
CHUNK: Final = 256


class Bank:
    """Monitors of one configuration, a stream each, folded unit by unit in step; those that have alarmed are taken out.

    The one mutable object of the package: its arrays are the state of thousands of streams, and copying them for each unit would cost
    more than the arithmetic. It never leaves the function that simulates with it.
    """

    def __init__(self, config: MonitorConfig, streams: int) -> None:
        """Start `streams` monitors. Raise `InvalidConfig` for a mode other than lifetime and for the seed rule."""
        design = config.design
        if design is None or config.mode != "lifetime":
            raise InvalidConfig("simulations are of the lifetime mode and of mixtures of bets; choose another method")
        self._config = config
        self._design: Design = design
        plan = config.plan
        fixed, following, waiting = len(plan.stakes), len(plan.following), len(plan.waiting)
        self._fixed = slice(0, fixed)
        self._following = slice(fixed, fixed + following)
        self._waiting = slice(fixed + following, fixed + following + waiting)
        self._stakes = _column([lam for _, lam in plan.stakes])
        self._forgetting = _column([rho for _, _, rho in plan.following])
        self._waiting_stakes = _column([lam for _, _, lam, _ in plan.waiting])
        self._patience = _column([nats for _, _, _, nats in plan.waiting])
        self._capital = np.zeros((len(design.weights), streams))
        self._drift = np.full((following, streams), design.eager / config.span * design.calm * config.span * (1.0 - config.alpha))
        self._spread = np.zeros((following, streams))
        self._rise = np.full((waiting, streams), float(np.exp(design.head_start)))
        self._streams: NDArray[np.int64] = np.arange(streams)
        self._cash = 1.0
        #: Units folded.
        self.n = 0
        #: The unit, counted from 1, at which each stream alarmed; 0: not yet.
        self.alarm_at: NDArray[np.int64] = np.zeros(streams, dtype=np.int64)

    @property
    def running(self) -> NDArray[np.int64]:
        """Places of the streams that have not alarmed."""
        return self._streams

    def fold(self, losses: Floats) -> None:
        """Fold one loss for each running stream, in the order of `running`."""
        config, design, plan = self._config, self._design, self._config.plan
        if not self.n % plan.block:
            stake, self._cash = design.schedule.stake(self.n // plan.block)
            shares = design.weights if self.n else design.opening
            self._capital += stake * _column(shares)
        y = losses - config.alpha
        self._capital[self._fixed] *= 1.0 + self._stakes * y
        if len(self._drift):
            lam = np.clip(self._drift / (plan.prior + self._spread), 0.0, plan.most)
            self._capital[self._following] *= 1.0 + lam * y
            self._drift = self._forgetting * self._drift + y
            self._spread = self._forgetting * self._spread + y * y
        if len(self._rise):
            factors = 1.0 + self._waiting_stakes * y
            self._capital[self._waiting] *= np.where(self._rise > self._patience, factors, 1.0)
            self._rise = np.maximum(1.0, self._rise * factors)
        self.n += 1
        alarmed = self._cash + self._capital.sum(axis=0) >= config.level
        if alarmed.any():
            self.alarm_at[self._streams[alarmed]] = self.n
            kept = ~alarmed
            self._streams = self._streams[kept]
            self._capital = self._capital[:, kept]
            self._drift, self._spread, self._rise = self._drift[:, kept], self._spread[:, kept], self._rise[:, kept]


def alarms(
    config: MonitorConfig, *, healthy: float, shifted: float, nu: int, cap: int, streams: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """The unit at which each of `streams` monitors alarms on binary losses of risk `healthy` for nu units and `shifted` from then on.

    0: not within nu + cap units.
    """
    bank = Bank(config, streams)
    while bank.n < nu + cap and len(bank.running):
        draws = rng.random((min(CHUNK, nu + cap - bank.n), streams))
        for row in draws:
            risk = healthy if bank.n < nu else shifted
            bank.fold((row[bank.running] < risk).astype(np.float64))
            if not len(bank.running):
                break
    return bank.alarm_at


def _column(values: "list[float] | tuple[float, ...]") -> Floats:
    """Values as a column, for one row a bet."""
    return np.asarray(values, dtype=np.float64).reshape(-1, 1)
