"""The evidence of a stream over its units, and the mean loss of blocks of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from winnow.assurance import changepoint, monitor
from winnow.assurance.blocks import of_losses
from winnow.assurance.ledger import Epoch, Fate, Unit
from winnow.contracts.vocabulary import Missing

#: Points of a curve: more cannot be told apart on a screen.
POINTS = 240
#: Blocks whose mean loss is drawn.
BLOCKS = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """Evidence after a unit, as log10: 1 stands at 0."""

    #: Units folded so far.
    n: int
    evidence: float
    #: Of the warn level's own monitor; None where there is none.
    warn: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Mean loss of consecutive units; `until` is the last of them, counted from 1."""

    until: int
    mean: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    """What a chart of one epoch shows."""

    points: tuple[Point, ...]
    means: tuple[Stretch, ...]
    #: log10 of the evidence at which the stream alarms by itself.
    level: float
    alpha: float
    #: The unit at which it alarmed.
    alarm_at: int | None
    #: First and last unit between which the change likely lies: an estimate without a guarantee.
    window: tuple[int, int] | None


def curve(epoch: Epoch, decided: Sequence[tuple[Unit, Fate]]) -> Curve:
    """Fold the decided units of an epoch again, from its first, and look at the evidence on the way."""
    config = epoch.config
    taken = [(loss, unit.probability) for unit, fate in decided if (loss := _loss(epoch, unit, fate)) is not None]
    state = monitor.initial(config)
    step = max(1, -(-len(taken) // POINTS))
    points = [_point(state)]
    for at in range(0, len(taken), step):
        some = taken[at : at + step]
        state = monitor.fold(config, state, [loss for loss, _ in some], [p for _, p in some])
        points.append(_point(state))
        if state.alarm_at is not None:
            break
    losses = [loss for loss, _ in taken]
    found = changepoint.change_window(state.history) if state.alarm_at is not None else None
    return Curve(
        points=tuple(points),
        means=_means(losses),
        level=math.log10(config.level),
        alpha=config.alpha,
        alarm_at=state.alarm_at,
        window=None if found is None else (found.first, found.last),
    )


def _loss(epoch: Epoch, unit: Unit, fate: Fate) -> float | None:
    """What was folded for a unit: as `ledger.replayed` reads it."""
    if fate is Fate.FOLDED:
        return unit.loss
    missing = fate in {Fate.MISSING, Fate.LATE} and epoch.missing is Missing.FOLD
    return 1.0 if missing and unit.probability >= epoch.config.min_probability else None


def _point(state: monitor.State) -> Point:
    ten = math.log(10)
    return Point(n=state.n, evidence=state.log_evidence / ten, warn=None if state.warn is None else state.warn.log_evidence / ten)


def _means(losses: Sequence[float]) -> tuple[Stretch, ...]:
    until = 0
    found = []
    for block in of_losses(losses, BLOCKS):
        until += block.n
        found.append(Stretch(until=until, mean=block.total / block.n))
    return tuple(found)
