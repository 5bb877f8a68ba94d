"""The figures of one judge on one slice, each with its bootstrap interval."""

from collections.abc import Callable
from typing import Final

import numpy as np

from winnow.contracts.evaluation import Interval, Metric
from winnow.judging.evaluation import metrics
from winnow.judging.evaluation.bootstrap import Draws, Estimator
from winnow.judging.evaluation.metrics import Bools, Floats, Ranking
from winnow.judging.evaluation.samples import Samples

#: Name and meaning of every figure of a slice; the documentation and the reports take them from here.
MEANINGS: Final = {
    "auroc": "chance that a sourced entry outranks another (score after caps); 0.5 is a coin",
    "auroc_p": "the same by p, before caps; told where the two differ",
    "auroc_correct": "area under the ROC curve against the label `correct`: a source is no truth",
    "ap_sourced": "average precision, sourced entries as positive",
    "ap_unsourced": "average precision of 1 - score, unsourced entries as positive",
    **{f"precision_at_r{round(1000 * r)}": f"precision of the shortest ranked prefix with recall {r:g}" for r in metrics.RECALLS},
    "precision": "of the entries with score >= tau, the sourced share",
    "recall": "of the sourced entries, the share with score >= tau",
    "pruned": "share of entries with score < tau",
    "false_prune": "of the sourced entries, the share with score < tau",
    "false_keep": "of the unsourced entries, the share with score >= tau",
    "brier": "mean squared distance of score and label",
    "ece": "expected calibration error over ten equal bins",
}


def of_slice(samples: Samples, name: str, mask: Bools, draws: Draws, tau: float) -> list[Metric]:
    """All figures of one slice, in the order of `MEANINGS`."""
    ranked = mask & samples.scored
    label, score = samples.source[ranked], samples.score[ranked]
    up, down = Ranking.of(label, score), Ranking.of(1.0 - label, 1.0 - score)
    found = [_metric("auroc", name, samples, ranked, draws, up.auroc)]
    p = samples.p[ranked]
    if np.any(p != score):
        found.append(_metric("auroc_p", name, samples, ranked, draws, Ranking.of(label, p).auroc))
    answered = ranked & np.isfinite(samples.correct)
    if answered.any():
        against = Ranking.of(samples.correct[answered], samples.score[answered])
        found.append(_metric("auroc_correct", name, samples, answered, draws, against.auroc, positive=samples.correct))
    found += [
        _metric("ap_sourced", name, samples, ranked, draws, up.average_precision),
        _metric("ap_unsourced", name, samples, ranked, draws, down.average_precision, positive=1.0 - samples.source),
    ]
    for recall in metrics.RECALLS:
        found.append(_metric(f"precision_at_r{round(1000 * recall)}", name, samples, ranked, draws, _at(up, recall)))
    found += _decisions(samples, name, mask, draws, tau)
    found += [
        _metric("brier", name, samples, ranked, draws, lambda w: metrics.brier(label, score, w)),
        _metric("ece", name, samples, ranked, draws, lambda w: metrics.calibration_error(label, score, w)),
    ]
    return found


def _at(ranking: Ranking, recall: float) -> Estimator:
    """Precision at a recall, as a function of weights."""
    return lambda weights: ranking.precision_at(recall, weights)


def _decisions(samples: Samples, name: str, mask: Bools, draws: Draws, tau: float) -> list[Metric]:
    """Figures at the threshold; an unscored entry is kept."""
    label, kept = samples.source[mask], samples.kept(tau)[mask]
    rows = [metrics.at_tau(label, kept, weights) for weights in draws.weights(mask)]
    here = metrics.at_tau(label, kept)
    several = len(np.unique(draws.group[mask])) > 1
    found = []
    for field in metrics.AtTau._fields:
        values = np.concatenate([getattr(row, field) for row in rows]) if rows else np.empty(0)
        interval = draws.interval_of(values) if several else None
        found.append(_told(field, name, float(getattr(here, field)[0]), samples.source[mask], f"tau {tau:g}", interval))
    return found


def _metric(
    metric: str, name: str, samples: Samples, mask: Bools, draws: Draws, estimator: Estimator, positive: Floats | None = None
) -> Metric:
    """One figure with its interval."""
    truth = (samples.source if positive is None else positive)[mask]
    value = float(estimator(np.ones((1, len(truth))))[0]) if len(truth) else np.nan
    interval = draws.interval(mask, estimator) if np.isfinite(value) else None
    return _told(metric, name, value, truth, "", interval)


def _told(metric: str, name: str, value: float, truth: Floats, method: str, interval: Interval | None) -> Metric:
    """A figure as the record holds it; one that is not defined says why."""
    defined = bool(np.isfinite(value))
    why = "" if defined else "no entries" if not len(truth) else "not defined: these entries are all of one class"
    return Metric(
        name=metric,
        slice=name,
        value=value if defined else None,
        interval=interval if defined else None,
        n=len(truth),
        positives=int(np.nansum(truth)),
        method=method,
        note=why,
    )


def difference(
    mine: Samples, other: Samples, mask: Bools, draws: Draws, figure: Callable[[Floats, Floats], Estimator]
) -> tuple[float, Interval | None]:
    """A figure of `mine` minus that of `other` on the same entries, taken inside each draw; and its interval."""
    both = mask & mine.scored & other.scored
    label = mine.source[both]
    first, second = figure(label, mine.score[both]), figure(label, other.score[both])

    def gap(weights: Floats) -> Floats:
        """The difference under weights."""
        return first(weights) - second(weights)

    value = float(gap(np.ones((1, len(label))))[0]) if len(label) else np.nan
    return value, draws.interval(both, gap) if np.isfinite(value) else None
