"""All that is measured of one judge on labelled boundaries."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from winnow.contracts.evaluation import Cell, Metric
from winnow.contracts.events import JudgeId
from winnow.judging.evaluation import figures, metrics
from winnow.judging.evaluation.bootstrap import DRAWS, Draws, Estimator, draw
from winnow.judging.evaluation.metrics import Floats, Ranking
from winnow.judging.evaluation.probes import Again, Stressing
from winnow.judging.evaluation.samples import Samples, slices
from winnow.judging.port import JudgeCall

#: Slices for which two judges are compared.
_COMPARED: Final = ("all", "reasoning", "first", "later", "forward")


@dataclass(frozen=True, slots=True, kw_only=True)
class Other:
    """A second judge on the same entries."""

    judge: JudgeId
    samples: Samples
    tau: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """All that was found out about a judge."""

    judge: JudgeId
    tau: float
    samples: Samples
    seed: int
    by_scenario: bool
    #: Draws of the bootstrap.
    draws: int = DRAWS
    folds: str | None = None
    parameters: Mapping[str, Cell] = field(default_factory=dict)
    stress: Sequence[Stressing] | None = None
    repetition: Again | None = None
    order: Again | None = None
    unshuffled: int = 0
    other: Other | None = None
    calls: Sequence[JudgeCall] = ()
    unjudged: int = 0

    def resampled(self) -> Draws:
        """The bootstrap of this study: scenarios where the data names them, else runs."""
        groups = self.samples.scenario if self.by_scenario else self.samples.run
        return draw([str(name) for name in groups], what="scenario" if self.by_scenario else "run", seed=self.seed, draws=self.draws)


def measured(study: Study) -> list[Metric]:
    """All figures of a study."""
    samples, draws = study.samples, study.resampled()
    found: list[Metric] = []
    for name, mask in slices(samples).items():
        if mask.any():
            found += figures.of_slice(samples, name, mask, draws, study.tau)
    return found + _whole(study) + _asked_again(study) + _compared(study, draws) + _spent(study.calls)


def _whole(study: Study) -> list[Metric]:
    """Figures of the whole data that are no figures of a slice."""
    samples = study.samples
    outside, inside = metrics.decided(samples.score[samples.scored])
    found = [
        _plain("decided", outside, len(samples), "share of scores outside [0.2, 0.8]"),
        _plain("undecided", inside, len(samples), "share of scores within (0.3, 0.7)"),
        _plain("unscored", float((~samples.scored).mean()), len(samples), "share of entries without a usable answer; they are kept"),
    ]
    only_user = (samples.user == 1) & (samples.source == 0)
    if only_user.any():
        kept = (samples.kept(study.tau) | samples.user_kept)[only_user]
        found.append(_plain("only_user_kept", float(kept.mean()), int(only_user.sum()), "entries that a user turn alone says, kept"))
    for name, truth, verdict in (("refuted", samples.refuted, "contradicted"), ("done", samples.done, "stale")):
        labelled = truth == 1
        if labelled.any():
            said = np.array([word == verdict for word in samples.verdict])[labelled]
            found.append(
                _plain(f"{name}_found", float(said.mean()), int(labelled.sum()), f"entries labelled {name} with the verdict {verdict}")
            )
    return found


def _asked_again(study: Study) -> list[Metric]:
    """Figures of changed boundaries, of repetition and of another order."""
    found = []
    if study.stress is not None:
        for one in study.stress:
            share = one.kept / one.n if one.n else np.nan
            found.append(_plain("stress_kept", share, one.n, f"still kept though {one.truth.value} is certain", one.kind.value))
            by_p = one.kept_by_p / one.n if one.n else np.nan
            found.append(_plain("stress_kept_by_p", by_p, one.n, "the same by p, before caps", one.kind.value))
    for name, again in (("repeat_changed", study.repetition), ("order_changed", study.order)):
        if again is not None and again.scores.size:
            found.append(
                _plain(name, float(again.changed(study.tau).mean()), again.scores.shape[1], f"{again.what}: answer at tau changes")
            )
            found.append(
                _plain(name.replace("changed", "moved"), again.moved(), again.scores.shape[1], f"{again.what}: largest move of a score")
            )
    return found


def _plain(name: str, value: float, n: int, method: str, of: str = "all", unit: str = "") -> Metric:
    """A figure without an interval."""
    defined = bool(np.isfinite(value))
    note = "" if defined else "no entries that it could be measured on"
    return Metric(name=name, slice=of, value=float(value) if defined else None, n=n, method=method, note=note, unit=unit)


def _compared(study: Study, draws: Draws) -> list[Metric]:
    """Differences to the other judge, paired inside each draw, and how often the two decide differently."""
    other = study.other
    if other is None:
        return []
    mine, theirs = study.samples, other.samples
    differ = (mine.kept(study.tau) != theirs.kept(other.tau)).astype(float)
    against = f"this judge minus {other.judge.name} ({other.judge.version})"
    found = []
    masks = slices(mine)
    for name in _COMPARED:
        mask = masks[name]
        if not mask.any():
            continue
        for metric, figure in (("auroc_difference", _auroc), ("brier_difference", _brier)):
            value, interval = figures.difference(mine, theirs, mask, draws, figure)
            defined = bool(np.isfinite(value))
            note = "" if defined else "not defined on these entries"
            found.append(
                Metric(
                    name=metric,
                    slice=name,
                    value=value if defined else None,
                    interval=interval,
                    n=int(mask.sum()),
                    method=against,
                    note=note,
                )
            )
        found.append(
            _plain("disagreement", float(differ[mask].mean()), int(mask.sum()), f"share decided otherwise than {other.judge.name}", name)
        )
    return found


def _auroc(label: Floats, score: Floats) -> Estimator:
    """AUROC as a function of weights."""
    return Ranking.of(label, score).auroc


def _brier(label: Floats, score: Floats) -> Estimator:
    """Brier score as a function of weights."""

    def of(weights: Floats) -> Floats:
        return metrics.brier(label, score, weights)

    return of


def _spent(calls: Sequence[JudgeCall]) -> list[Metric]:
    """What a remote judge took; unknown is null, never 0."""
    if not calls:
        return []

    def total(read: Callable[[JudgeCall], float | None]) -> float:
        values = [read(call) for call in calls]
        known = [value for value in values if value is not None]
        return float(sum(known)) if len(known) == len(values) else np.nan

    n = len(calls)
    latency = sorted(call.latency_ms for call in calls)
    return [
        _plain("requests", float(sum(call.requests for call in calls)), n, "requests with retries"),
        _plain("input_tokens", total(lambda call: call.input_tokens), n, "tokens sent", unit="tokens"),
        _plain("output_tokens", total(lambda call: call.output_tokens), n, "tokens received", unit="tokens"),
        _plain("cost", total(lambda call: call.cost_usd), n, "as the provider prices it", unit="USD"),
        _plain("latency_p50", latency[len(latency) // 2], len(calls), "median of a call", unit="ms"),
        _plain("failed_calls", float(sum(call.error is not None for call in calls)), len(calls), "calls that ended with an error"),
    ]
