"""The local judge fitted again for each fold of labelled data, without the fold: figures that do not flatter."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from random import Random

from winnow.cli.eval import Fold
from winnow.contracts.errors import Permanent
from winnow.contracts.events import JudgeId
from winnow.judging.evaluation.labelled import LabelledBoundary
from winnow.judging.evaluation.metrics import Bools
from winnow.judging.evaluation.probes import JudgeOf, Told
from winnow.judging.local import LocalJudge
from winnow.judging.training.recipe import train
from winnow.judging.training.rows import Rows, collect


class CannotFold(Permanent):
    """The data cannot be folded so."""


class Folds:
    """A judge for each fold."""

    def __init__(self, by: Fold, judges: Mapping[str, LocalJudge], judge_id: JudgeId) -> None:
        """`judges` by fold; `judge_id` names all of them together."""
        self._by = by
        self._judges = judges
        self.id = judge_id

    @property
    def judge_of(self) -> JudgeOf:
        """The judge of a boundary: the one that has not seen its fold."""
        return lambda boundary: self._judges[_fold_of(boundary, self._by)]


def folded(boundaries: Sequence[LabelledBoundary], by: Fold, *, seed: int, data_sha256: str, told: Told) -> Folds:
    """Fit a model for each fold, on the others: weights, calibration and negatives. Raise `CannotFold`."""
    names = sorted({_fold_of(boundary, by) for boundary in boundaries})
    if len(names) < 2 or "" in names:  # noqa: PLR2004  one fold leaves nothing to fit on
        msg = f"--folds {by.value}: the lines name {len(names)} {by.value}s, at least 2 are needed and every line needs one"
        raise CannotFold(msg)
    rows = collect(boundaries, lambda: Random(seed), told)  # noqa: S311  a reproducible draw, nothing secret
    groups = rows.run if by is Fold.RUN else rows.domain
    judges = {name: LocalJudge(train(_part(rows, groups != name), data_sha256)) for name in names}
    whole = next(iter(judges.values())).id
    return Folds(by, judges, JudgeId(name=whole.name, version=f"{whole.version}/leave-one-{by.value}-out"))


def _fold_of(boundary: LabelledBoundary, by: Fold) -> str:
    """The fold that a boundary belongs to."""
    return boundary.run if by is Fold.RUN else boundary.domain


def _part(rows: Rows, mask: Bools) -> Rows:
    """Some of the rows."""
    values = {field.name: getattr(rows, field.name) for field in fields(rows)}
    return Rows(**{name: value if name == "names" else value[mask] for name, value in values.items()})
