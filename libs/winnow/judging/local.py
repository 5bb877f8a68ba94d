"""The local judge: a sum of nine features that needs no training, and a logistic calibration. No network, no memory, no chance."""

import math
from collections.abc import Mapping
from typing import Final

from winnow.contracts.deadline import Deadline
from winnow.contracts.events import Entry, Evidence, JudgeId, Passage, Score
from winnow.contracts.vocabulary import Outcome, Reason, Verdict
from winnow.judging.calibration import Calibration, shipped
from winnow.judging.port import Capabilities, JudgeAnswer, JudgeRequest
from winnow.judging.verdict import concluded

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
    """Score every entry of a boundary from its features; pure. One entry's text changes no other entry's score.

    Features of another version than the calibration's, or without one of the nine, leave an entry unscored: it is kept, never guessed.
    """
    fitted = calibration or shipped()
    usable = evidence.features_version == fitted.features_version and fitted.formula == FORMULA_VERSION
    pool = {passage.id: passage for passage in evidence.passages}
    return tuple([_score(entry, evidence, pool, fitted, usable=usable) for entry in evidence.entries])


def _score(entry: Entry, evidence: Evidence, pool: Mapping[int, Passage], fitted: Calibration, *, usable: bool) -> Score:
    """Score one entry."""
    s = formula(entry.features) if usable else None
    if s is None:
        why = "features are incomplete" if usable else f"features of version {evidence.features_version}, need {fitted.features_version}"
        return Score(n=entry.n, verdict=Verdict.UNSCORED, provenance=entry.provenance, explanation=f"not scored: {why}")
    p = fitted.probability(s)
    return concluded(entry, p, evidence, pool)


class LocalJudge:
    """The default judge and every other judge's fallback."""

    def __init__(self, calibration: Calibration | None = None) -> None:
        """Judge with `calibration`, or with the one that ships with the package."""
        self._calibration = calibration or shipped()
        self._id = JudgeId(name="local", version=f"formula-{self._calibration.formula}/features-{self._calibration.features_version}")

    @property
    def id(self) -> JudgeId:
        """`local`, with the versions of formula and features."""
        return self._id

    @property
    def capabilities(self) -> Capabilities:
        """Local, deterministic, blind to wrong values: the formula sees a source, not a contradiction."""
        return Capabilities(remote=False, deterministic=True, refutes=False, reads_texts=False)

    async def judge(self, request: JudgeRequest, deadline: Deadline) -> JudgeAnswer:  # noqa: ARG002  it never waits, so it is never late
        """Judge a boundary; see the port for the contract."""
        scores = score(request.evidence, self._calibration)
        unscored = sum(found.verdict is Verdict.UNSCORED for found in scores)
        if not unscored:
            outcome, reason = Outcome.JUDGED, None
        elif unscored < len(scores):
            outcome, reason = Outcome.JUDGED_PARTIAL, Reason.UNSCORED_ENTRIES
        else:
            return JudgeAnswer(judge=self._id, outcome=Outcome.UNJUDGED, reason=Reason.JUDGE_FAILED, scores=(), calls=())
        return JudgeAnswer(judge=self._id, outcome=outcome, reason=reason, scores=scores, calls=())
