"""What is declared of losses before they are looked at: their name, type, unit, order and graders."""

from enum import StrEnum
from typing import Final


class LossType(StrEnum):
    """Range of a loss. It is declared beforehand: a bound chosen by looking at the values has no guarantee."""

    BINARY = "binary"  # 0 or 1; exact counts
    GRADED = "graded"  # anything in [0, 1]
    PAIRED = "paired"  # anything in [-1, 1]: a difference of two losses

    @property
    def lo(self) -> int:
        """Smallest loss of this type."""
        return -1 if self is LossType.PAIRED else 0


class Unit(StrEnum):
    """What one loss belongs to. Turns of one run depend on each other, so bounds over turns do not hold."""

    TRAJECTORY = "trajectory"  # one run of an agent from task to end
    SESSION = "session"  # a stretch of work by one user
    TURN = "turn"  # refused, unless the caller says that turns are independent; then flagged wherever the number appears


class Order(StrEnum):
    """Whether the order of the values was fixed before they were seen. Some bounds move with the order, so it could be shopped for."""

    ANY = "any"
    SEQ = "seq"  # sampling order, registered


class Loss(StrEnum):
    """What is counted as a loss. Marginal and conditional harm differ by the share that the reference solves, and stand side by side."""

    HARM_ALL = "harm_all"  # 1{F1 succeeds, C fails} over ALL tasks: marginal
    HARM_GIVEN_FULL = "harm_given_full"  # the same, over the tasks that F1 solves: conditional
    OUTCOME_DIVERGENCE = "outcome_divergence"  # 1{outcome of C differs from F1's}
    OUTCOME_HARM_EXCESS = "outcome_harm_excess"  # 1{F1 ok, C fails} - 1{F1 ok, F2 fails}: needs a second reference run
    DECISION_DIVERGENCE = "decision_divergence"  # 1{A != B}: contains the grader's noise; report it, do not budget it
    ANY_DIVERGENCE = "any_divergence"  # 1{any decision of the run changed}: the run keeps its outcome iff none did; its own loss and alpha
    DECISION_HARM = "decision_harm"  # 1{A != B} - 1{A != A'}: excess over self-disagreement; may be negative, never clipped
    GRADED = "graded"  # a loss in [0, 1] that the caller defines: the mean of a run's sampled turns, a reward lost

    @property
    def type(self) -> LossType:
        """Its declared type."""
        return _TYPES.get(self, LossType.BINARY)

    @property
    def denominator(self) -> str:
        """Which units are counted."""
        return "units the reference solves" if self is Loss.HARM_GIVEN_FULL else "all units"

    @property
    def words(self) -> str:
        """What a loss is, as a verb phrase for the statement."""
        return _WORDS[self]


class Graders(StrEnum):
    """How the verdicts of several graders become one. The A/A control exists for each grader: `any` adds up every grader's noise."""

    ANY = "any"
    MAJORITY = "majority"
    UNANIMOUS = "unanimous"


_TYPES: Final = {Loss.OUTCOME_HARM_EXCESS: LossType.PAIRED, Loss.DECISION_HARM: LossType.PAIRED, Loss.GRADED: LossType.GRADED}
_WORDS: Final = {
    Loss.HARM_ALL: "succeed with the reference context and fail with the pruned one",
    Loss.HARM_GIVEN_FULL: "succeed with the reference context and fail with the pruned one",
    Loss.OUTCOME_DIVERGENCE: "end differently with the pruned context",
    Loss.OUTCOME_HARM_EXCESS: "fail with the pruned context beyond what a second reference run fails",
    Loss.DECISION_DIVERGENCE: "decide differently with the pruned context",
    Loss.ANY_DIVERGENCE: "change at least one decision with the pruned context",
    Loss.DECISION_HARM: "decide differently with the pruned context beyond their own disagreement",
    Loss.GRADED: "are lost",
}
