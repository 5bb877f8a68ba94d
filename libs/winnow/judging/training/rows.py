"""Rows to train and to measure on: the labelled entries as they are, and those whose source was taken away."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from winnow.compaction.boundary import examine
from winnow.judging.evaluation.labelled import LabelledBoundary, is_reasoning
from winnow.judging.evaluation.metrics import Bools, Floats
from winnow.judging.stress import Chance, Stress, Stressed, stressed
from winnow.judging.verdict import CAPPING, CONTRADICTED_CAP

#: A column that tells which run, or domain, each row belongs to.
Groups = NDArray[np.object_]
#: Changes that take away what outputs say, and the one that takes away what M says.
OF_OUTPUTS: Final = (Stress.OTHER_DOMAIN, Stress.SAME_DOMAIN, Stress.INTO_TASK)
OF_PREVIOUS: Final = (Stress.PREVIOUS_SWAPPED,)
#: Changes that are told in reports by their population of `judging.stress`.
SOURCE_CHANGES: Final = (*OF_OUTPUTS, *OF_PREVIOUS)
#: Changes that make a value of an entry wrong and leave its sources: no head learns from them, they are measured on.
VALUE_CHANGES: Final = (Stress.DIGIT_CHANGED, Stress.NUMBER_SWAPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """One row an entry, as columns; natural ones first."""

    x: Floats  # [row, feature], in the order of `names`
    names: tuple[str, ...]
    natural: Bools  # the entry as it is, nothing taken away
    change: NDArray[np.object_]  # None for a natural entry, else the `Stress`
    counted: Bools  # natural, or in the population that the change is measured on
    bare: Bools  # counted, and the source that the change leaves in place holds no part of it
    run: Groups
    domain: Groups
    index: NDArray[np.int64]
    section: NDArray[np.object_]
    reasoning: Bools
    env: Floats  # of a changed entry: what is true after the change
    prev: Floats
    source: Floats
    #: The span says something against it that caps its score; False throughout where findings were not asked for.
    capped: Bools

    def score(self, p: Floats) -> Floats:
        """What is kept or pruned by: p under the cap, as `winnow.judging.verdict` joins them."""
        found: Floats = np.where(self.capped, np.minimum(p, CONTRADICTED_CAP), p)
        return found

    def column(self, name: str) -> Floats:
        """One feature."""
        found: Floats = self.x[:, self.names.index(name)]
        return found

    def columns(self, names: Sequence[str]) -> Floats:
        """Some features, in that order."""
        found: Floats = self.x[:, [self.names.index(name) for name in names]]
        return found


def collect(
    boundaries: Sequence[LabelledBoundary],
    chance: Callable[[], Chance],
    told: Callable[[int], None] = lambda _: None,
    *,
    findings: bool = False,
    values: Sequence[Callable[[], Chance]] = (),
) -> Rows:
    """Compute the features of all labelled entries, natural and changed.

    A change of outputs makes `env` false of every entry that outputs support and of which the donor holds no value, not only of those that
    nothing else supports: the env head learns from all of them. Figures count the population of `judging.stress` alone.

    Args:
        boundaries: labelled with env and prev; donors of one another.
        chance: makes a freshly seeded generator for each change.
        told: told after each boundary how many are done.
        findings: also look for what the spans say against the entries. No fit needs it; figures of what is kept do.
        values: for each draw of wrong values what makes a freshly seeded generator; see `VALUE_CHANGES`.
    """
    rows: list[dict[str, Any]] = []
    done = 0
    for boundary in boundaries:
        rows += _rows(boundary, None, {label.n: (label.env, label.prev) for label in boundary.entries}, set(), findings=findings)
        done += 1
        told(done)
    for kind in SOURCE_CHANGES:
        for changed in stressed(kind, boundaries, chance()):
            rows += _changed(changed, findings=findings)
            done += 1
            told(done)
    for drawn in values:
        for kind in VALUE_CHANGES:
            for changed in stressed(kind, boundaries, drawn()):
                rows += _misvalued(changed, findings=findings)
                done += 1
                told(done)
    names = tuple(rows[0]["features"]) if rows else ()
    return Rows(
        x=np.array([[row["features"][name] for name in names] for row in rows], float).reshape(len(rows), len(names)),
        names=names,
        **{name: np.array([row[name] for row in rows], kind) for name, kind in _COLUMNS.items()},
    )


_COLUMNS: Final[Mapping[str, type]] = {
    **dict.fromkeys(("change", "run", "domain", "section"), object),
    **dict.fromkeys(("natural", "counted", "bare", "reasoning", "capped"), bool),
    **dict.fromkeys(("env", "prev", "source"), float),
    "index": np.int64,
}


def _changed(changed: Stressed, *, findings: bool) -> Iterator[dict[str, Any]]:
    """Rows of a changed boundary: the entries whose source the change takes away for certain."""
    boundary = changed.case
    if not isinstance(boundary, LabelledBoundary):  # pragma: no cover  changes copy the case that they are given
        return
    of_outputs = changed.kind in OF_OUTPUTS
    free = {label.n for label in boundary.entries if not boundary.may_say(boundary.text_of(label.n), previous=not of_outputs)}
    truth = {
        label.n: (False, label.prev) if of_outputs else (label.env, False)
        for label in boundary.entries
        if label.n in free and (label.env if of_outputs else label.prev)
    }
    for row in _rows(boundary, changed.kind, truth, set(changed.entries), findings=findings):
        yield row | {"bare": row["n"] in changed.bare}


def _misvalued(changed: Stressed, *, findings: bool) -> Iterator[dict[str, Any]]:
    """Rows of the entries that say a wrong value: their sources say the rest as before."""
    if isinstance(changed.case, LabelledBoundary):
        yield from _rows(changed.case, changed.kind, dict.fromkeys(changed.entries, (True, True)), set(changed.entries), findings=findings)


def _rows(
    boundary: LabelledBoundary, change: Stress | None, truth: Mapping[int, tuple[bool, bool]], counted: set[int], *, findings: bool
) -> Iterator[dict[str, Any]]:
    """Rows of the entries of `truth`, and of `counted` among the changed ones."""
    if not truth:
        return
    examined = examine(
        boundary.candidate,
        task=boundary.task,
        previous=boundary.previous,
        history=boundary.history,
        retained=boundary.retained,
        host=boundary.host,
        profile=boundary.profile,
        rules=boundary.rules,
        pins=boundary.pins,
        user_turns_survive=boundary.user_turns_survive,
        findings=findings,
    )
    for entry in examined.analysis.entries:
        if entry.n not in truth:
            continue
        env, prev = truth[entry.n]
        yield {
            "n": entry.n,
            "features": entry.features,
            "natural": change is None,
            "change": change,
            "counted": change is None or entry.n in counted,
            "bare": change is None,
            "run": boundary.run,
            "domain": boundary.domain,
            "index": boundary.index,
            "section": entry.section,
            "reasoning": is_reasoning(entry.section, entry.section_class),
            "env": env,
            "prev": prev,
            "source": env or prev,
            "capped": any(found.kind in CAPPING for found in entry.findings),
        }
