"""Betting rules of the literature that start once and never anew, for comparison; all valid at every look."""

import math

import numpy as np

from winnow.assurance.config import MonitorConfig
from winnow.assurance.simulation import Floats, Runs


class _Capital(Runs):
    """One capital a run, in linear space; where it falls below the range of a double it stays there."""

    def __init__(self, config: MonitorConfig, runs: int) -> None:
        super().__init__(config, runs)
        self._arrays = {"capital": np.ones((1, runs)), "a": np.zeros((1, runs)), "b": np.zeros((1, runs)), "rise": np.zeros((0, runs))}

    def fold(self, x: Floats) -> Floats:
        capital, a, b, _ = self._arrays.values()
        np.maximum(capital * (1 + self._lam(a, b) * (x - self.config.alpha)), 1e-300, out=capital)
        self._learn(a, b, x)
        self.n += 1
        return capital[0]

    def _lam(self, a: Floats, b: Floats) -> Floats:
        raise NotImplementedError

    def _learn(self, a: Floats, b: Floats, x: Floats) -> None:
        raise NotImplementedError


class Ons(_Capital):
    """Online Newton step (Waudby-Smith and Ramdas 2024, section B.5), upward bets up to half of the largest."""

    def _lam(self, a: Floats, b: Floats) -> Floats:
        return a

    def _learn(self, a: Floats, b: Floats, x: Floats) -> None:
        y = x - self.config.alpha
        z = y / (1 + a * y)
        b += z * z
        np.clip(a + 2 / (2 - math.log(3)) * z / (1 + b), 0, 0.5 / self.config.alpha, out=a)


class Agrapa(_Capital):
    """Approximate growth-rate adaptive bets (the same, section B.3), upward up to half of the largest."""

    def _lam(self, a: Floats, b: Floats) -> Floats:
        drift = (0.5 + a) / (1 + self.n) - self.config.alpha
        variance = (0.25 + b) / (1 + self.n)
        return np.clip(drift / (variance + drift * drift), 0, 0.5 / self.config.alpha)

    def _learn(self, a: Floats, b: Floats, x: Floats) -> None:
        a += x
        b += (x - (0.5 + a) / (2 + self.n)) ** 2
