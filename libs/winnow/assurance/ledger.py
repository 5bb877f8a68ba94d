"""The monitor's ledger: which units of a stream are folded, in which order and under which epoch. Pure; the clock came before.

Units are folded strictly in the order in which they were sampled. One that has no grade yet holds up those behind it until its time has
passed; then it is missing. What was decided is written down with each unit, so that a replay reads it and needs no clock.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from winnow.assurance import monitor
from winnow.assurance.config import MonitorConfig
from winnow.assurance.monitor import State
from winnow.contracts.vocabulary import Missing


class Fate(StrEnum):
    """What the monitor did with a unit."""

    FOLDED = "folded"
    MISSING = "missing"  # not graded in time: counted, and folded as a loss of 1 or left out, as its epoch says
    LATE = "late"  # missing, and graded afterwards: counted, never folded again
    REFUSED = "refused"  # of an earlier operating point, compressor or grader, or outside what the stream declared: counted, never folded


class Signature(NamedTuple):
    """What the units of an epoch have in common. None: not known yet, or not asked for; it agrees with everything."""

    operating_point: int | None = None
    compressor: str | None = None
    grader: str | None = None

    def agrees(self, other: "Signature") -> bool:
        """No part that both know differs."""
        return all(a is None or b is None or a == b for a, b in zip(self, other, strict=True))

    def filled(self, other: "Signature") -> "Signature":
        """With what `other` knows and this does not."""
        return Signature(
            operating_point=self.operating_point if self.operating_point is not None else other.operating_point,
            compressor=self.compressor if self.compressor is not None else other.compressor,
            grader=self.grader if self.grader is not None else other.grader,
        )


class Unit(NamedTuple):
    """A unit as the monitor finds it in the ledger."""

    seq: int
    #: None: not graded.
    loss: float | None
    lo: float | None
    probability: float
    signature: Signature
    #: Its time to be graded has passed.
    due: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Epoch:
    """The terms under which units are folded. Any change of them is another epoch with a share of the error budget of its own."""

    number: int
    #: First sequence number that belongs to it.
    from_seq: int
    config: MonitorConfig
    missing: Missing
    signature: Signature


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A stream as the monitor knows it after some units."""

    epoch: Epoch
    state: State
    #: Last sequence number that was decided.
    last_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Folded:
    """What came of a fold."""

    watched: Watched
    #: The units that were decided, in order.
    fates: tuple[tuple[Unit, Fate], ...]
    #: Sequence number of the unit that made the stream alarm; None: it did not, or had before.
    alarm_seq: int | None = None
    #: The unit that does not belong to this epoch: open another for it, or refuse it, and fold on.
    stranger: Unit | None = None
    #: Folded after the alarm: what a re-certification may rest on.
    afterwards: tuple[tuple[float, float], ...] = ()

    @property
    def counts(self) -> dict[Fate, int]:
        """Units by fate."""
        found = dict.fromkeys(Fate, 0)
        for _, fate in self.fates:
            found[fate] += 1
        return found


def fold(watched: Watched, units: Iterable[Unit]) -> Folded:
    """Fold units that come in order of `seq`, the first one right behind `last_seq`, as far as they can be decided.

    Stops at a unit that may still be graded, or that belongs to another epoch (`stranger`). Equal to the bit however often it stops.
    """
    epoch = watched.epoch
    config, signature = epoch.config, epoch.signature
    lo, least, binary, whole = config.lo, config.min_probability, config.binary, {config.lo, 0.0, 1.0}
    # A stream that has alarmed has no horizon any more: what comes behind stays in its epoch until a release.
    limit = None if config.horizon is None or watched.state.alarm_at is not None else config.horizon - watched.state.n
    room = math.inf if limit is None else limit
    fates: list[tuple[Unit, Fate]] = []
    taken: list[tuple[int, float, float]] = []
    stranger: Unit | None = None
    for unit in units:
        if unit.loss is None and not unit.due:
            break
        if signature is not unit.signature and signature != unit.signature:
            if not signature.agrees(unit.signature):
                stranger = unit
                break
            signature = signature.filled(unit.signature)
        loss = unit.loss
        # The common case, without the calls of `_decided`: a service folds tens of thousands of these a second.
        if loss is not None and unit.lo == lo and lo <= loss <= 1.0 and unit.probability >= least and (not binary or loss in whole):
            fate = Fate.FOLDED
        else:
            fate, loss = _decided(epoch, unit)
        if loss is not None:
            if len(taken) >= room:
                if _state(config, watched.state, taken).alarm_at is None:
                    stranger = unit
                    break
                room = math.inf
            taken.append((unit.seq, loss, unit.probability))
        fates.append((unit, fate))
    state = _state(config, watched.state, taken[:limit])
    alarm_seq, afterwards = _alarm(watched.state, state, taken)
    last = fates[-1][0].seq if fates else watched.last_seq
    new = Watched(epoch=replace(epoch, signature=signature) if signature != epoch.signature else epoch, state=state, last_seq=last)
    return Folded(watched=new, fates=tuple(fates), alarm_seq=alarm_seq, stranger=stranger, afterwards=afterwards)


def _state(config: MonitorConfig, before: State, taken: Sequence[tuple[int, float, float]]) -> State:
    """The state after the losses of some units."""
    return monitor.fold(config, before, [loss for _, loss, _ in taken], [p for _, _, p in taken])


def silent(watched: Watched, units: int, last_seq: int) -> Watched:
    """A stream of missing grades after `units` that were all graded in time: as folding a 0 for each, in a fraction of the time."""
    state = monitor.fold(watched.epoch.config, watched.state, [0.0] * units)
    return replace(watched, state=state, last_seq=last_seq)


def refuse(watched: Watched, unit: Unit) -> Folded:
    """Pass a unit over that belongs to no epoch any more."""
    return Folded(watched=replace(watched, last_seq=unit.seq), fates=((unit, Fate.REFUSED),))


def _decided(epoch: Epoch, unit: Unit) -> tuple[Fate, float | None]:
    """A unit's fate, and what is folded for it."""
    fits = unit.probability >= epoch.config.min_probability
    if unit.loss is None:
        return Fate.MISSING, 1.0 if epoch.missing is Missing.FOLD and fits else None
    if not fits or unit.lo != epoch.config.lo or not _declared(epoch.config, unit.loss):
        return Fate.REFUSED, None
    return Fate.FOLDED, unit.loss


def _declared(config: MonitorConfig, loss: float) -> bool:
    """The loss is of the kind that the stream declared."""
    return config.lo <= loss <= 1 and (not config.binary or loss in {config.lo, 0, 1})


def _alarm(before: State, after: State, taken: Sequence[tuple[int, float, float]]) -> tuple[int | None, tuple[tuple[float, float], ...]]:
    """Which unit made the stream alarm, and what came behind it."""
    if after.alarm_at is None:
        return None, ()
    if before.alarm_at is not None:
        return None, tuple((loss, p) for _, loss, p in taken)
    used = after.alarm_at - before.n
    return taken[used - 1][0], tuple((loss, p) for _, loss, p in taken[used:])


def as_missing(fates: Iterable[tuple[Unit, Fate]]) -> list[Unit]:
    """The units of a stream as its stream of missing grades sees them: 1 where the grade did not come in time, else 0."""
    return [Unit(unit.seq, 0.0 if fate is Fate.FOLDED else 1.0, 0.0, 1.0, Signature()) for unit, fate in fates if fate is not Fate.REFUSED]


def folded_loss(epoch: Epoch, unit: Unit, fate: Fate) -> float | None:
    """What a decided unit brought into the evidence of its epoch; None: nothing."""
    if fate is Fate.FOLDED:
        return unit.loss
    fills = fate is not Fate.REFUSED and epoch.missing is Missing.FOLD and unit.probability >= epoch.config.min_probability
    return 1.0 if fills else None


def replayed(epochs: Sequence[Epoch], units: Iterable[tuple[Unit, Fate]], frozen: dict[int, int]) -> Watched:
    """The stream as the ledger says it must be, from its first unit on: no clock, no decision is made anew.

    `epochs` in order; `frozen`: epoch numbers and the sequence number after which a shared level froze them.
    """
    at = 0
    watched = Watched(epoch=epochs[0], state=monitor.initial(epochs[0].config), last_seq=epochs[0].from_seq - 1)
    for unit, fate in units:
        while at + 1 < len(epochs) and unit.seq >= epochs[at + 1].from_seq:
            at += 1
            watched = Watched(epoch=epochs[at], state=monitor.initial(epochs[at].config), last_seq=epochs[at].from_seq - 1)
        epoch, state = watched.epoch, watched.state
        loss = folded_loss(epoch, unit, fate)
        if loss is not None:
            state = monitor.update(epoch.config, state, loss, unit.probability)
        if frozen.get(epoch.number) == unit.seq:
            state = monitor.freeze(state)
        watched = Watched(epoch=epoch, state=state, last_seq=unit.seq)
    if at + 1 < len(epochs):  # opened since, by a release or a change of the configuration, and still without units
        last = epochs[-1]
        watched = Watched(epoch=last, state=monitor.initial(last.config), last_seq=watched.last_seq)
    return watched
