"""What became of entries with known answers: an observation a run for the drift monitor."""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from winnow.contracts import ids
from winnow.contracts.events import Graded, Observation, Sampled, Scores
from winnow.contracts.vocabulary import LabelFree, Outcome

#: Who graded: a rule, for the answer is certain by construction.
GRADER: Final = "canary"


def observations(event: Scores, *, tau: float, at: datetime) -> Iterator[Observation]:
    """The observations of a boundary.

    On `canary-kept` a loss of 1 where the unsupported one was kept, on `canary-dropped` where the supported one was not.
    Only where the coin says that this boundary counts, and where the judge that should answer did: what a fallback says is no word on it.
    The judge's own probability is compared with `tau`, not the capped score: an output may rightly contradict an older line of itself. All
    runs that have such a boundary are graded, so a unit's probability is 1; of several boundaries of a run the first that is stored stands.
    """
    if event.outcome not in {Outcome.JUDGED, Outcome.JUDGED_PARTIAL} or event.fallback_for is not None:
        return
    for canary in event.canaries:
        if not canary.counts or canary.score.p is None:
            continue
        kept = canary.score.p >= tau
        stream = LabelFree.CANARY_DROPPED if canary.kind.supported else LabelFree.CANARY_KEPT
        wrong = kept is not canary.kind.supported
        yield Observation(
            fleet=event.fleet,
            event_id=ids.canary_id(event.fleet, stream, event.run),
            stream=stream,
            unit=event.run,
            boundary_id=event.boundary_id,
            sampled=Sampled(probability=1.0, at=at),
            graded=Graded(loss=float(wrong), lo=0.0, grader=GRADER, at=at),
        )
