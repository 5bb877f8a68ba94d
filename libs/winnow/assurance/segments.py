"""Segments of a stream, folded apart and joined in order: what a segment does to the capital of a fixed bet is an affine map."""

from collections.abc import Iterable
from dataclasses import dataclass

from winnow.assurance.config import MonitorConfig
from winnow.assurance.monitor import checked
from winnow.assurance.refusals import InvalidConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """Units `start` to `start + n - 1`, counted from 0: each bet's capital R becomes growth·R + staked."""

    start: int
    n: int
    #: Product of each bet's factors.
    growth: tuple[float, ...]
    #: Stakes made inside the segment, each times the factors after it.
    staked: tuple[float, ...]


def segment(config: MonitorConfig, start: int, losses: Iterable[float]) -> Segment:
    """Summarise losses whose first is unit `start` of the stream.

    Raises:
        InvalidConfig: the design has bets that follow the data, or another mode than lifetime: they need every unit in order.
        InvalidLoss: a loss is no number in [lo, 1].
    """
    design = config.design
    if design is None or design.half_lives or design.waiting or config.mode != "lifetime":
        raise InvalidConfig(
            "segments are merged for fixed bets in lifetime mode only; choose the method grid7, or replay the losses in order"
        )
    growth, staked = [1.0] * len(design.fixed), [0.0] * len(design.fixed)
    n = start
    for loss in losses:
        y = checked(config, loss) - config.alpha
        stake = 0.0 if n % design.schedule.block else design.schedule.stake(n // design.schedule.block)[0]
        shares = design.weights if n else design.opening
        for place, lam in config.plan.stakes:
            factor = 1.0 + lam * y
            growth[place] *= factor
            staked[place] = (staked[place] + stake * shares[place]) * factor
        n += 1
    return Segment(start=start, n=n - start, growth=tuple(growth), staked=tuple(staked))


def joined(first: Segment, then: Segment) -> Segment:
    """Two neighbouring segments as one; associative.

    Raises:
        InvalidConfig: the second does not begin where the first ends.
    """
    if then.start != first.start + first.n:
        raise InvalidConfig(f"the second segment starts at unit {then.start}, not at {first.start + first.n}: segments join without gaps")
    return Segment(
        start=first.start,
        n=first.n + then.n,
        growth=tuple(a * b for a, b in zip(first.growth, then.growth, strict=True)),
        staked=tuple(b * c + d for b, c, d in zip(then.growth, first.staked, then.staked, strict=True)),
    )


def evidence(config: MonitorConfig, whole: Segment) -> float:
    """M after a segment that starts at the first unit: what folding its losses one by one gives, without the freeze.

    Raises:
        InvalidConfig: the segment starts later.
    """
    if whole.start or config.design is None:
        raise InvalidConfig("evidence needs all units from the first: join the earlier segments before")
    blocks = -(-whole.n // config.design.schedule.block)
    return config.design.schedule.cash(blocks) + sum(whole.staked)
