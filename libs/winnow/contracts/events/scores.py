"""One probability, verdict and explanation an entry: `winnow.boundary.scores.v1`."""

from pydantic import Field

from winnow.contracts.events.base import BoundaryRef, JudgeId, Model, Name
from winnow.contracts.vocabulary import CanaryKind, FindingKind, Outcome, ProvenanceClass, Reason, Verdict


class Score(Model):
    """What the judge says of one entry."""

    n: int = Field(ge=1, description="Entry number.")
    p: float | None = Field(default=None, ge=0, le=1, description="Probability that the entry has a source; null where unscored.")
    score: float | None = Field(default=None, ge=0, le=1, description="p after caps (refutation, orphan values); compared with tau.")
    verdict: Verdict = Field(description="What the judge says of the entry.")
    flags: tuple[FindingKind, ...] = Field(
        default=(), description="Kinds of what speaks against it, each once; the verdict names one at most."
    )
    provenance: ProvenanceClass = Field(description="Where its information was first said, as the judge used it.")
    explanation: str = Field(description="One line that a person can check.")
    passages: tuple[int, ...] = Field(default=(), description="Pool numbers of the passages that the explanation rests on.")


class CanaryScore(Model):
    """What the judge says of an entry with a known answer."""

    kind: CanaryKind = Field(description="What it was made of, which says its certain answer.")
    score: Score = Field(description="The judge's word.")
    counts: bool = Field(description="The recorded coin: its outcome may become the run's observation.")


class Scores(BoundaryRef):
    """The judge's answer for a boundary."""

    judge: JudgeId = Field(description="Which judge answered.")
    outcome: Outcome = Field(description="judged, judged_partial, unjudged or not_a_summary.")
    reason: Reason | None = Field(default=None, description="Why the outcome is not plainly judged.")
    fallback_for: Name | None = Field(default=None, description="The judge that should have answered and did not.")
    scores: tuple[Score, ...] = Field(default=(), description="One for each entry; empty where there was nothing to judge.")
    canaries: tuple[CanaryScore, ...] = Field(default=(), description="Entries with known answers that were judged beside them.")
