"""Whose losses raised the alarm: the log evidence since the change, shared out among tools, models, modes, customers. Only estimates."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from winnow.assurance.config import MonitorConfig
from winnow.assurance.monitor import checked

#: Largest bet, as a share of the largest admissible one; the monitor's own.
_REACH: Final = 0.8
#: Halvings of the interval of the best bet: to a double's last digits.
_HALVINGS: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One unit since the change: its loss, and what is known of it, such as {"tool": "bash", "model": "m-2"}; never its content."""

    loss: float
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A group's part in the evidence."""

    label: str
    value: str
    n: int
    mean_loss: float
    #: Sum of ln(1 + lam·(x - alpha)) over the group; the sums of all values of a label add up to the whole.
    log_evidence: float
    #: The same as a share of the whole; below 0: the group speaks against the alarm. 0 where the whole is.
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """The evidence since the change, and who it came from, most first."""

    log_evidence: float
    #: The single bet that would have gained most since the change; log evidence is additive for one bet, not for a mixture.
    lam: float
    shares: tuple[Share, ...]


def attribute(config: MonitorConfig, units: Sequence[Unit]) -> Attribution:
    """Share out the evidence of the units since the likely change.

    Raises:
        InvalidLoss: a loss is no number in [lo, 1].
    """
    gains = [checked(config, unit.loss) - config.alpha for unit in units]
    lam = _best_bet(gains, _REACH / config.span)
    logs = [math.log1p(lam * y) for y in gains]
    whole = math.fsum(logs)
    groups: dict[tuple[str, str], list[int]] = {}
    for i, unit in enumerate(units):
        for label, value in unit.labels.items():
            groups.setdefault((label, value), []).append(i)
    shares = []
    for (label, value), places in groups.items():
        part = math.fsum(logs[i] for i in places)
        mean = math.fsum(gains[i] for i in places) / len(places) + config.alpha
        share = part / whole if whole > 0 else 0.0
        shares.append(Share(label=label, value=value, n=len(places), mean_loss=mean, log_evidence=part, share=share))
    shares.sort(key=lambda s: (-s.log_evidence, s.label, s.value))
    return Attribution(log_evidence=whole, lam=lam, shares=tuple(shares))


def _best_bet(gains: Sequence[float], most: float) -> float:
    """The lam of [0, most] with the largest sum of ln(1 + lam·y): a concave function, so its slope has one root."""

    def slope(lam: float) -> float:
        return math.fsum(y / (1.0 + lam * y) for y in gains)

    if slope(0.0) <= 0:
        return 0.0
    if slope(most) >= 0:
        return most
    low, high = 0.0, most
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if slope(middle) > 0 else (low, middle)
    return 0.5 * (low + high)
