"""From the probabilities of a judge that reads features to scores and an answer. Pure; one entry's text changes no other entry's score."""

from collections.abc import Callable, Mapping, Sequence

from winnow.contracts.events import Entry, Evidence, JudgeId, Score
from winnow.contracts.vocabulary import Outcome, Reason, Verdict
from winnow.judging.port import JudgeAnswer
from winnow.judging.verdict import concluded

#: Gives the probability of one entry from its features; None where one is missing or not finite.
Probability = Callable[[Mapping[str, float]], float | None]


def scored(evidence: Evidence, probability: Probability, features_version: str) -> tuple[Score, ...]:
    """Score every entry of a boundary from its features.

    Features of another version, or without one that is needed, leave an entry unscored: it is kept, never guessed.
    """
    if evidence.features_version != features_version:
        why = f"features of version {evidence.features_version}, need {features_version}"
        return tuple([_unscored(entry, why) for entry in evidence.entries])
    pool = {passage.id: passage for passage in evidence.passages}
    found: list[Score] = []
    for entry in evidence.entries:
        p = probability(entry.features)
        found.append(_unscored(entry, "features are incomplete") if p is None else concluded(entry, p, evidence, pool))
    return tuple(found)


def _unscored(entry: Entry, why: str) -> Score:
    """No usable answer."""
    return Score(n=entry.n, verdict=Verdict.UNSCORED, provenance=entry.provenance, explanation=f"not scored: {why}")


def answered(judge: JudgeId, scores: Sequence[Score]) -> JudgeAnswer:
    """The answer of a judge in this process."""
    unscored = sum(found.verdict is Verdict.UNSCORED for found in scores)
    if unscored and unscored == len(scores):
        return JudgeAnswer(judge=judge, outcome=Outcome.UNJUDGED, reason=Reason.JUDGE_FAILED, scores=(), calls=())
    outcome, reason = (Outcome.JUDGED_PARTIAL, Reason.UNSCORED_ENTRIES) if unscored else (Outcome.JUDGED, None)
    return JudgeAnswer(judge=judge, outcome=outcome, reason=reason, scores=tuple(scores), calls=())
