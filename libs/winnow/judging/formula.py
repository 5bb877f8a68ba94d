"""The training-free formula: a sum of nine features. Fallback where no model fits, and the reference that drift is seen against."""

import math
from collections.abc import Mapping
from typing import Final

from winnow.contracts.deadline import Deadline
from winnow.contracts.events import Evidence, JudgeId, Score
from winnow.judging.calibration import Calibration, shipped
from winnow.judging.port import Capabilities, JudgeAnswer, JudgeRequest
from winnow.judging.scoring import answered, scored

#: Version of the sum below; stated in the calibration that belongs to it.
FORMULA_VERSION: Final = "1"
#: A character-sequence ratio above it is an entry taken over word for word.
CARRIED: Final = 0.85

#: Weights of the sum besides the carried entry's 1.
_WEIGHTS: Final = (
    ("novel_pass", 1.0),  # share of the entry's mass that one passage holds and neither the task nor a user says
    ("val2_env", 1.0),  # share of values that an output or M holds and neither the task nor a user says
    ("bg_prev", 1.0),  # share of word pairs that stand in M
    ("val_cooc", 0.5),  # best share of values inside one window
    ("val2_orph", -0.5),  # share of values that nobody but the agent says
    ("obs", 0.3),
    ("imper", -0.3),
    ("modal", -0.3),
)


def formula(features: Mapping[str, float]) -> float | None:
    """The training-free sum; None where a feature is missing or not finite."""
    total = 0.0
    for name, weight in _WEIGHTS:
        value = features.get(name)
        if value is None:
            return None
        total += weight * value
    carry = features.get("carry")
    if carry is None or not math.isfinite(carry) or not math.isfinite(total):
        return None
    return total + (1.0 if carry > CARRIED else 0.0)


def score(evidence: Evidence, calibration: Calibration | None = None) -> tuple[Score, ...]:
    """Score every entry of a boundary by the formula; pure."""
    fitted = calibration or shipped()

    def probability(features: Mapping[str, float]) -> float | None:
        total = formula(features)
        return None if total is None else fitted.probability(total)

    return scored(evidence, probability, fitted.features_version)


class FormulaJudge:
    """The training-free judge."""

    def __init__(self, calibration: Calibration | None = None) -> None:
        """Judge with `calibration`, or with the one that ships with the package."""
        self._calibration = calibration or shipped()
        self._id = JudgeId(name="formula", version=f"formula-{self._calibration.formula}/features-{self._calibration.features_version}")

    @property
    def id(self) -> JudgeId:
        """`formula`, with the versions of formula and features."""
        return self._id

    @property
    def capabilities(self) -> Capabilities:
        """Local and deterministic; findings of the evidence cap its scores like every judge's."""
        return Capabilities(remote=False, deterministic=True, refutes=True, reads_texts=False)

    async def judge(self, request: JudgeRequest, deadline: Deadline) -> JudgeAnswer:  # noqa: ARG002  it never waits, so it is never late
        """Judge a boundary; see the port for the contract."""
        return answered(self._id, score(request.evidence, self._calibration))
