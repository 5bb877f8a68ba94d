"""A family of streams that share an error budget: the risk streams of one fleet, or its label-free streams.

Each stream acts at once on a level of its own, 1/(delta·weight). Whoever sees the whole family evaluates weighted e-BH and freezes whom it
names, so the set of alarms only grows, and its expected share of false ones is at most delta at every time. The bets of one stream are
never chosen from another's outcomes, or its evidence would be no e-value beside the others.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from winnow.assurance.ebh import weighted_e_bh
from winnow.assurance.refusals import InvalidConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A stream of the family."""

    stream: str
    #: Its share of the family's budget, fixed at registration (see `ebh.joining_weight`).
    weight: float
    #: Its evidence M: now, or at its alarm, where it stays. Never the largest so far, which is no e-value.
    evidence: float
    #: It alarmed, by its own level or the family's.
    frozen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the family says now."""

    #: Streams to alarm and freeze; those that were frozen before are not named again.
    alarms: tuple[str, ...]
    #: The level at which the next stream of each weight would alarm: 1/(delta·weight·rejections), by stream.
    levels: dict[str, float]
    #: Sum of weight·evidence and of what is not given away: an e-value of "no stream is above its budget", under any dependence.
    fleet_evidence: float


def evaluate(members: Sequence[Member], delta: float) -> Verdict:
    """Evaluate a family.

    Raises:
        InvalidConfig: delta or the weights bound nothing, or two members have one name.
    """
    if len({m.stream for m in members}) != len(members):
        raise InvalidConfig("each stream stands once in its family")
    weights = [m.weight for m in members]
    rejected = weighted_e_bh([m.evidence for m in members], weights, delta)
    alarmed = sum(1 for m, r in zip(members, rejected, strict=True) if r or m.frozen)
    return Verdict(
        alarms=tuple(m.stream for m, r in zip(members, rejected, strict=True) if r and not m.frozen),
        levels={m.stream: 1.0 / (delta * m.weight * max(1, alarmed + (not m.frozen))) for m in members},
        fleet_evidence=fleet_evidence((m.weight, m.evidence) for m in members),
    )


def fleet_evidence(shares: Iterable[tuple[float, float]]) -> float:
    """Sum of weight·M over the members, and 1 - (sum of weights) for those still to come.

    With the weights fixed beforehand it is a supermartingale from 1, so 1/delta_fleet is an alarm level for the fleet as a whole: two to
    three times sooner than any stream alone where a tenth of them drift. A plain mean over the streams so far is none.
    """
    pairs = list(shares)
    return math.fsum(w * m for w, m in pairs) + max(0.0, 1.0 - math.fsum(w for w, _ in pairs))


def price(members: int, risk: float, alpha: float) -> float:
    """Units that sharing with `members` streams costs a stream whose risk has become `risk`: ln(K)/KL(risk||alpha)."""
    return math.log(members) / divergence(risk, alpha)


def divergence(p: float, alpha: float) -> float:
    """KL(p||alpha) = p·ln(p/alpha) + (1 - p)·ln((1 - p)/(1 - alpha)), in nats a unit.

    ln(1/delta) over it is the least mean delay there can be.
    """
    if not (0 <= p <= 1 and 0 < alpha < 1):
        raise InvalidConfig("both risks must lie in [0, 1], the budget strictly between")
    one = p * math.log(p / alpha) if p else 0.0
    return one + ((1.0 - p) * math.log((1.0 - p) / (1.0 - alpha)) if p < 1 else 0.0)


def epoch_delta(delta: float, epoch: int) -> float:
    """Error budget of the e-th epoch, from 1: 6·delta/(pi^2·e^2), which sums to delta over an endless number of epochs.

    A stream that starts anew after every alarm or change of configuration keeps its promise for life only if each epoch gets its share;
    without it the promise is "at most delta an epoch", and must be shown as that.
    """
    if epoch < 1:
        raise InvalidConfig("epochs are numbered from 1")
    return 6.0 * delta / (math.pi**2 * epoch**2)


def spent(delta: float, epochs: int) -> float:
    """Error budget that the first `epochs` epochs have used, of `delta`."""
    return math.fsum(epoch_delta(delta, e) for e in range(1, epochs + 1))
