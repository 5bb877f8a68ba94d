"""From what happened in a run to its loss: one number a trajectory or session, with its name, declared type and denominator.

A and A' are two independent decisions under the reference context, B the one under the pruned context. F1 and F2 are two runs under the
reference context, C one under the pruned context.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from winnow.assurance.kinds import Graders, Loss, LossType, Unit
from winnow.assurance.samples import InvalidSample, Sample, loss

#: Pairs A/B and A/A' below which a mode's numbers are not reported: their intervals span most of the scale.
FLOOR_AB: Final = 50
FLOOR_AA: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One task: whether it was solved under the reference context, under the pruned one and, where it was run, by the reference again."""

    unit: str
    reference: bool
    pruned: bool
    rerun: bool | None = None
    #: Repository, domain or customer, for transfer checks.
    domain: str | None = None


def of_outcomes(kind: Loss, outcomes: Iterable[Outcome]) -> Sample:
    """The sample of an outcome loss.

    Raises:
        InvalidSample: a task occurs twice, a second reference run is missing, or the loss is none of outcomes.
    """
    tasks = list(outcomes)
    distinct(task.unit for task in tasks)
    if kind is Loss.HARM_ALL:
        return Sample.counts(sum(t.reference and not t.pruned for t in tasks), len(tasks))
    if kind is Loss.HARM_GIVEN_FULL:
        solved = [t for t in tasks if t.reference]
        return Sample.counts(sum(not t.pruned for t in solved), len(solved))
    if kind is Loss.OUTCOME_DIVERGENCE:
        return Sample.counts(sum(t.reference != t.pruned for t in tasks), len(tasks))
    if kind is Loss.OUTCOME_HARM_EXCESS:
        without = next((t.unit for t in tasks if t.rerun is None), None)
        if without is not None:
            raise InvalidSample(f"{without[:80]!r} has no second reference run; without it harm contains re-run noise: use harm_all")
        return Sample.paired([float(t.reference and not t.pruned) - float(t.reference and not t.rerun) for t in tasks])
    raise InvalidSample(f"{kind.value} is not computed from outcomes; give the losses themselves")


def distinct(units: Iterable[str]) -> None:
    """Refuse a unit that comes twice: turns of one run are not independent, and bounds over them do not hold.

    Raises:
        InvalidSample: it does; the text names it.
    """
    seen: set[str] = set()
    for unit in units:
        if unit in seen:
            raise InvalidSample(
                f"unit {unit[:80]!r} comes twice. One loss a trajectory or session: average the turns of a run before (a list of losses "
                "on its line does so)"
            )
        seen.add(unit)


def check_unit(unit: Unit, *, turns_are_independent: bool = False) -> str | None:
    """Refuse turns as units, or return the warning that goes with them where the caller says they are independent.

    At an intra-run correlation of .2, an exact bound over turns covers 85 % instead of 95 %, and a monitor alarms in .93 to .99 of healthy
    streams.

    Raises:
        InvalidSample: turns, without that word.
    """
    if unit is not Unit.TURN:
        return None
    if not turns_are_independent:
        raise InvalidSample("turns of a run are not independent: give one loss a trajectory or session (a run's mean over its turns)")
    return "assumes independent units: turns were counted as units, and where turns of a run resemble each other the bound does not hold"


def trajectory_mean(turns: Sequence[object]) -> float:
    """A run's loss as the mean over its sampled turns; the target is the trajectory-weighted risk.

    Raises:
        InvalidSample: no turns, or a loss outside [-1, 1].
    """
    if not turns:
        raise InvalidSample("a run without sampled turns has no loss; leave it out before its losses are seen, or count it as missing")
    return math.fsum(loss(turn, LossType.PAIRED, place) for place, turn in enumerate(turns, start=1)) / len(turns)


def turn_weighted(turns: Sequence[float], *, alpha: float, cap: int) -> float:
    """A run's sum of (x - alpha) over its sampled turns, divided by the fixed cap on them; the target is the turn-weighted risk.

    Raises:
        InvalidSample: more turns than the cap, which has to be fixed beforehand.
    """
    if len(turns) > cap:
        raise InvalidSample(
            f"a run has {len(turns)} sampled turns, more than the cap of {cap}; sample fewer, or fix a larger cap beforehand"
        )
    return math.fsum(x - alpha for x in turns) / cap


def aggregate(verdicts: Sequence[bool], rule: Graders = Graders.ANY) -> bool:
    """One verdict of several graders on a unit; True is a loss. A majority is more than half.

    Raises:
        InvalidSample: no verdict.
    """
    if not verdicts:
        raise InvalidSample("a unit without a verdict is missing, not a success")
    if rule is Graders.ANY:
        return any(verdicts)
    if rule is Graders.UNANIMOUS:
        return all(verdicts)
    return 2 * sum(verdicts) > len(verdicts)


def below_floor(*, ab: int, aa: int) -> bool:
    """Whether a mode has too few A/B or A/A' rows to be reported. Modes and levels are never pooled into one headline."""
    return ab < FLOOR_AB or aa < FLOOR_AA
