"""Choosing an operating point while traffic flows: sample levels, certify or drop each by e-processes that hold at every look.

A level's losses d are -1 (gained), 0 or 1 (lost); it is feasible where E[d] < margin. Re-reading a Wald interval after every batch chooses
infeasible levels in 20 to 40 % of runs; these e-processes keep to the error budget at any stopping time. State is counts, so it is small,
merges by addition and does not depend on the order inside a batch.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from winnow.assurance.kinds import LossType
from winnow.assurance.samples import InvalidSample, count, loss, probability

#: Bets, as shares of the largest admissible stake; equal weights.
THETAS: Final = (0.025, 0.05, 0.1, 0.2, 0.4, 0.8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bandit:
    """What is chosen among, and the error budget."""

    #: Names of the levels, from the mildest to the most aggressive.
    arms: tuple[str, ...]
    #: Largest acceptable mean of d.
    margin: float
    #: Chance of ever certifying an infeasible level.
    delta: float = 0.025
    #: Units a level between two looks.
    batch: int = 40
    #: Units altogether; spent without a certificate means keep everything.
    budget: int = 4_000

    def __post_init__(self) -> None:
        """Check the numbers."""
        probability("margin", self.margin)
        probability("delta", self.delta)
        if not self.arms or len(set(self.arms)) < len(self.arms):
            raise InvalidSample("a bandit needs at least one arm, each with a name of its own")
        if not count("batch", self.batch) or not count("budget", self.budget):
            raise InvalidSample("batch and budget must be at least 1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One level's counts and what is settled about it."""

    lost: int = 0
    same: int = 0
    gained: int = 0
    certified: bool = False
    dropped: bool = False

    @property
    def n(self) -> int:
        """Units seen."""
        return self.lost + self.same + self.gained


State = tuple[Arm, ...]


def initial(bandit: Bandit) -> State:
    """Nothing seen yet."""
    return (Arm(),) * len(bandit.arms)


def wanted(bandit: Bandit, state: State) -> tuple[int, ...]:
    """Places of the arms to sample a batch from next, mildest first; empty: finished.

    Those that are neither certified nor dropped and lie above the most aggressive certified arm: a milder one could not be chosen any
    more. Finished also where the budget has no room for another batch.
    """
    best = _best(state)
    above = range(0 if best is None else best + 1, len(state))
    unsettled = [place for place in above if not (state[place].certified or state[place].dropped)]
    room = (bandit.budget - sum(arm.n for arm in state)) // bandit.batch
    return tuple(unsettled[: max(0, room)])


def update(bandit: Bandit, state: State, place: int, losses: Iterable[object]) -> State:
    """Count a batch of one arm's losses and settle it where the evidence is enough; what is settled stays so.

    Raises:
        InvalidSample: a loss other than -1, 0 or 1; the state is then unchanged.
    """
    values = [loss(value, LossType.PAIRED, number) for number, value in enumerate(losses, start=1)]
    if any(value not in {-1.0, 0.0, 1.0} for value in values):
        raise InvalidSample("a bandit's losses are -1 (gained), 0 or 1 (lost)")
    return counted(bandit, state, place, lost=values.count(1.0), same=values.count(0.0), gained=values.count(-1.0))


def counted(bandit: Bandit, state: State, place: int, *, lost: int, same: int, gained: int) -> State:
    """`update` by the counts of a batch.

    Raises:
        InvalidSample: a count is none; the state is then unchanged.
    """
    arm = state[place]
    arm = replace(
        arm,
        lost=count("lost", arm.lost + count("lost", lost)),
        same=count("same", arm.same + count("same", same)),
        gained=count("gained", arm.gained + count("gained", gained)),
    )
    feasible = log_feasible(arm, bandit.margin) >= math.log(len(bandit.arms) / bandit.delta)
    infeasible = log_infeasible(arm, bandit.margin) >= math.log(1 / bandit.delta)
    arm = replace(arm, certified=arm.certified or feasible, dropped=arm.dropped or infeasible)
    return (*state[:place], arm, *state[place + 1 :])


def choice(state: State) -> int | None:
    """Place of the most aggressive certified arm; None: keep everything. Final where `wanted` is empty."""
    return _best(state)


def log_feasible(arm: Arm, margin: float) -> float:
    """Log evidence against H0: E[d] >= margin, the mean over theta of the products of 1 - theta/(1 - margin)·(d - margin)."""
    return _log_mixture(arm, [[1 - theta * (d - margin) / (1 - margin) for d in (1, 0, -1)] for theta in THETAS])


def log_infeasible(arm: Arm, margin: float) -> float:
    """Log evidence against H0: E[d] <= margin, the mean over theta of the products of 1 + theta/(1 + margin)·(d - margin)."""
    return _log_mixture(arm, [[1 + theta * (d - margin) / (1 + margin) for d in (1, 0, -1)] for theta in THETAS])


def _log_mixture(arm: Arm, factors: Sequence[Sequence[float]]) -> float:
    """Logarithm of the mean over bets of lost, same and gained factors to the power of their counts."""
    logs = [sum(n * math.log(f) for n, f in zip((arm.lost, arm.same, arm.gained), row, strict=True)) for row in factors]
    top = max(logs)
    return top + math.log(math.fsum(math.exp(x - top) for x in logs) / len(logs))


def _best(state: State) -> int | None:
    """Place of the most aggressive certified arm."""
    return max((place for place, arm in enumerate(state) if arm.certified), default=None)
