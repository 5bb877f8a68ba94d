"""How the source model is fitted: features, signs, negatives, calibration, thresholds. Whatever changes here is another model."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from winnow.compaction.features import FEATURES_VERSION
from winnow.judging.evaluation.metrics import Bools, Floats
from winnow.judging.model import OVERLAP, Head, SourceModel
from winnow.judging.training.logistic import Fitted, fit, platt
from winnow.judging.training.rows import OF_OUTPUTS, Groups, Rows

#: Features of "an output says it", with the side that each may speak for. None of them looks at M but `out_codes` and `new_agent`: they
#: ask what M leaves to the outputs.
ENV_SIGNS: Final[Mapping[str, int]] = {
    "env_mass": 1,
    "val_near": 1,
    "rec_id": 1,
    "field_share": 1,
    "derived": 1,
    "env_only": 1,
    "bg_env": 1,
    "obs": 1,
    "out_fits": 1,
    "told_pairs": -1,
    "bg_task": -1,
    "new_agent": -1,
    "out_codes": -1,
}
#: Features of "the previous summary says it". `unheld`: an entry that names what neither M nor any output holds is a new statement on a
#: subject that M treats, however many words they share; `val_task`: what P names, M need not have said.
PREV_SIGNS: Final[Mapping[str, int]] = {
    "prev_stretch": 1,
    "prev_strict": 1,
    "prev_dice": 1,
    "prev_covered": 1,
    "val_unit": 1,
    "new_user": -1,
    "lead": -1,
    "unheld": -1,
    "val_task": -1,
}
#: Weight of a log loss beside the penalty: a tenth, because entries of one run are not independent.
STRENGTH: Final = 0.1
#: Weight of an entry whose source was taken away, beside a natural one.
NEGATIVE_WEIGHT: Final = 1.0
#: Parts that runs are dealt to for calibration. Leaving out every run by itself takes three times as long and says the same.
_PARTS: Final = 7
#: Recall on reasoning entries of the published judge (Source-Judged Compaction), at which `published-recall` prunes.
PUBLISHED_RECALL: Final = 0.642
#: Thresholds that `default` is chosen from.
GRID: Final = tuple(round(0.05 * step, 2) for step in range(1, 20))
#: Decimals of what a model file states.
_DECIMALS: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Heads:
    """Both heads, uncalibrated."""

    env: Fitted
    prev: Fitted

    def logits(self, rows: Rows) -> tuple[Floats, Floats]:
        """What each head says of each row."""
        return self.env.logits(rows.columns(list(ENV_SIGNS))), self.prev.logits(rows.columns(list(PREV_SIGNS)))

    def either(self, rows: Rows) -> Floats:
        """Logit of "either says it" for each row."""
        return _either(rows, *self.logits(rows))


def heads(rows: Rows, train: Bools) -> Heads:
    """Fit both heads on the rows of `train`: each on the natural entries and on changed ones that it must not keep.

    An entry that lost its outputs and that M does not say either teaches the head of M, too, what a new statement looks like.
    """
    env = train & (rows.natural | np.isin(rows.change, OF_OUTPUTS))
    # Where no word of the entry stands in M, M says nothing, without a fit.
    prev = train & (rows.column(OVERLAP) > 0.0) & (rows.natural | (rows.prev == 0.0))
    return Heads(env=_head(rows, env, ENV_SIGNS, rows.env), prev=_head(rows, prev, PREV_SIGNS, rows.prev))


def _head(rows: Rows, mask: Bools, signs: Mapping[str, int], truth: Floats) -> Fitted:
    """One head. Without a row to learn from (no boundary has a previous summary) it says one half: what is not known is not pruned."""
    if not mask.any():
        return Fitted(weights=np.zeros(len(signs)), intercept=0.0)
    weights = np.where(rows.natural[mask], 1.0, NEGATIVE_WEIGHT)
    return fit(rows.columns(list(signs))[mask], truth[mask], weights, list(signs.values()), STRENGTH)


def without(groups: Groups, train: Bools) -> Iterator[tuple[Bools, Bools]]:
    """For each group among the rows of `train`: the rest of `train`, and that group of it."""
    for group in sorted(set(groups[train].tolist())):
        held = train & (groups == group)
        yield train & ~held, held


def _either(rows: Rows, env: Floats, prev: Floats) -> Floats:
    """Logit of 1 - (1 - env)(1 - prev), from the logits of both heads."""
    carried = np.where(rows.column(OVERLAP) > 0.0, _sigmoid(prev), 0.0)
    p = np.clip(1.0 - (1.0 - _sigmoid(env)) * (1.0 - carried), 1e-12, 1.0 - 1e-12)
    found: Floats = np.log(p / (1.0 - p))
    return found


def out_of_fold(rows: Rows, train: Bools) -> tuple[Floats, Floats]:
    """Logits of both heads for the natural rows of `train`, each from heads that have not seen its run; NaN elsewhere."""
    env, prev = np.full(len(rows.run), np.nan), np.full(len(rows.run), np.nan)
    part = {run: at % _PARTS for at, run in enumerate(sorted(set(rows.run[train].tolist())))}
    for rest, held in without(np.array([part.get(run) for run in rows.run], object), train):
        natural = held & rows.natural
        if rest.any():
            of_env, of_prev = heads(rows, rest).logits(rows)
            env[natural], prev[natural] = of_env[natural], of_prev[natural]
    return env, prev


def calibrated(rows: Rows, train: Bools) -> tuple[Heads, tuple[float, float], Floats]:
    """Fit on the rows of `train` and calibrate on natural entries, out of fold: the heads, slope and intercept, and those probabilities.

    Entries whose source was taken away are no share of what is natural, so what the heads say together is too low; two numbers for "is
    there a source at all" put it right, and leave the heads as they were fitted.
    """
    logits = _either(rows, *out_of_fold(rows, train))
    known = np.isfinite(logits)
    slope, intercept = _calibration(logits[known], rows.source[known])
    return heads(rows, train), (slope, intercept), _sigmoid(slope * logits + intercept)


def _calibration(logits: Floats, truth: Floats) -> tuple[float, float]:
    """Slope and intercept; where only one answer is known, none is better than another and the logits stay as they are."""
    return platt(logits, truth) if len(set(truth.tolist())) > 1 else (1.0, 0.0)


def predicted(rows: Rows, train: Bools, wanted: Bools) -> Floats:
    """Probabilities of the rows of `wanted` from a model that is fitted and calibrated on `train` alone."""
    fitted, (slope, intercept), _ = calibrated(rows, train)
    found: Floats = _sigmoid(slope * fitted.either(rows)[wanted] + intercept)
    return found


def cross_predicted(rows: Rows, groups: Groups, told: Callable[[int], None] = lambda _: None) -> Floats:
    """Probabilities of all rows, each from a model that has seen nothing of its group: no weight, no calibration."""
    found = np.full(len(rows.run), np.nan)
    for done, (rest, held) in enumerate(without(groups, np.ones(len(rows.run), bool)), 1):
        found[held] = predicted(rows, rest, held)
        told(done)
    return found


def train(rows: Rows, data_sha256: str) -> SourceModel:
    """Fit the model on all rows, with its named thresholds from probabilities out of fold."""
    fitted, (slope, intercept), p = calibrated(rows, np.ones(len(rows.run), bool))
    known = np.isfinite(p)
    return SourceModel(
        env=_as_head(fitted.env, ENV_SIGNS),
        prev=_as_head(fitted.prev, PREV_SIGNS),
        slope=round(slope, _DECIMALS),
        intercept=round(intercept, _DECIMALS),
        features_version=FEATURES_VERSION,
        points={
            "default": cheapest(rows.source[known], p[known]),
            "published-recall": reaching(rows.source[known & rows.reasoning], p[known & rows.reasoning], PUBLISHED_RECALL),
        },
        data_sha256=data_sha256,
    )


def cheapest(source: Floats, p: Floats) -> float:
    """The threshold of `GRID` with the fewest errors, both kinds counting alike; of equals the one nearest 0.5."""
    errors = {tau: int(((p >= tau) != (source > 0.5)).sum()) for tau in GRID}  # noqa: PLR2004  a label
    return min(GRID, key=lambda tau: (errors[tau], abs(tau - 0.5), tau))


def reaching(source: Floats, p: Floats, recall: float) -> float:
    """The highest threshold at which at least that share of the entries with a source is kept."""
    ranked = np.sort(p[source > 0.5])[::-1]  # noqa: PLR2004  a label
    if not len(ranked):
        return 0.5
    at = min(len(ranked) - 1, int(np.ceil(recall * len(ranked) - 1e-9)) - 1)
    return float(np.floor(ranked[at] * 1e4) / 1e4)


def _as_head(fitted: Fitted, signs: Mapping[str, int]) -> Head:
    """Coefficients as a file states them; a feature of weight 0 stays, so that a reader sees that it was tried."""
    weights = {name: round(float(weight), _DECIMALS) + 0.0 for name, weight in zip(signs, fitted.weights, strict=True)}
    return Head(intercept=round(fitted.intercept, _DECIMALS), weights=weights)


def _sigmoid(z: Floats) -> Floats:
    """Logistic function."""
    found: Floats = 1.0 / (1.0 + np.exp(-np.clip(z, -40.0, 40.0)))
    return found
