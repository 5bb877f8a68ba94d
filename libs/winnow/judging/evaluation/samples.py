"""Judged entries beside their labels, as columns; and the slices of them that every figure is told for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from winnow.contracts.events import Entry, Evidence, Score
from winnow.contracts.vocabulary import SectionClass, Verdict
from winnow.judging.evaluation.labelled import Label, LabelledBoundary, is_reasoning
from winnow.judging.evaluation.metrics import Bools, Floats

Texts = NDArray[np.object_]


class Judged(NamedTuple):
    """One boundary with a judge's scores; unlabelled entries are left out of figures."""

    boundary: LabelledBoundary
    evidence: Evidence
    scores: tuple[Score, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """One row a labelled entry. An unscored entry has NaN as score and as p: it ranks nowhere and is kept."""

    boundary: Texts
    n: NDArray[np.int64]
    run: Texts
    scenario: Texts
    domain: Texts
    index: NDArray[np.int64]
    section: Texts
    section_class: Texts
    reasoning: Bools
    forward: Bools
    source: Floats
    user: Floats  # NaN where annotators were not asked
    refuted: Floats
    done: Floats
    correct: Floats
    p: Floats
    score: Floats
    verdict: Texts
    flags: Texts  # kinds of what speaks against the entry, a tuple each
    explanation: Texts
    text: Texts
    evidence: Texts  # the best passage that was retrieved, with its place; "" where there is none

    def __len__(self) -> int:
        """Number of entries."""
        return len(self.source)

    @property
    def scored(self) -> Bools:
        """Entries with a usable answer."""
        return np.isfinite(self.score)

    def kept(self, tau: float) -> Bools:
        """Entries whose score reaches the threshold, and those without one."""
        return ~(self.score < tau)

    @property
    def user_kept(self) -> Bools:
        """Entries that are kept because a user turn alone says them."""
        return np.array([verdict is Verdict.USER_SOURCED for verdict in self.verdict], bool)


def collect(judged: Sequence[Judged]) -> Samples:
    """The labelled entries of judged boundaries."""
    rows: list[dict[str, Any]] = []
    for boundary, evidence, scores in judged:
        by_number = {score.n: score for score in scores}
        entries = {entry.n: entry for entry in evidence.entries}
        pool = {passage.id: f"output #{passage.message}: {passage.text}" for passage in evidence.passages}
        rows += [_row(boundary, label, entries[label.n], by_number.get(label.n), pool) for label in boundary.labels]
    return Samples(**{name: _column(name, rows) for name in Samples.__dataclass_fields__})


def _row(boundary: LabelledBoundary, label: Label, entry: Entry, score: Score | None, pool: Mapping[int, str]) -> dict[str, Any]:
    """One entry."""
    cited = (*(() if score is None else score.passages), *(found.passage for found in entry.evidence))
    return {
        "boundary": boundary.id,
        "n": label.n,
        "run": boundary.run,
        "scenario": boundary.scenario,
        "domain": boundary.domain,
        "index": boundary.index,
        "section": entry.section,
        "section_class": entry.section_class,
        "reasoning": is_reasoning(entry.section, entry.section_class),
        "forward": entry.section_class is SectionClass.FORWARD,
        "source": float(label.source),
        "user": _number(label.user),
        "refuted": _number(label.refuted),
        "done": _number(label.done),
        "correct": _number(label.correct),
        "p": np.nan if score is None or score.p is None else score.p,
        "score": np.nan if score is None or score.score is None else score.score,
        "verdict": Verdict.UNSCORED if score is None else score.verdict,
        "flags": () if score is None else score.flags,
        "explanation": "no answer" if score is None else score.explanation,
        "text": entry.text,
        "evidence": next((pool[number] for number in cited if number in pool), ""),
    }


def _number(answer: bool | None) -> float:  # noqa: FBT001  a label
    """A label as a number, NaN where nobody was asked."""
    return np.nan if answer is None else float(answer)


#: Columns that are not texts or other objects.
_TYPES: Final[Mapping[str, type]] = {
    **dict.fromkeys(("n", "index"), int),
    **dict.fromkeys(("reasoning", "forward"), bool),
    **dict.fromkeys(("source", "user", "refuted", "done", "correct", "p", "score"), float),
}


def _column(name: str, rows: Sequence[Mapping[str, Any]]) -> Any:  # noqa: ANN401  an array of the column's type
    """One column."""
    column: NDArray[Any] = np.empty(len(rows), _TYPES.get(name, object))
    for at, row in enumerate(rows):  # one by one: a list of tuples would be taken for a matrix
        column[at] = row[name]
    return column


#: Boundary numbers told apart in slices: 1, 2, and all after.
_TOLD: Final = 2


def slices(samples: Samples) -> dict[str, Bools]:
    """The parts that every figure is told for, by name. A figure pooled over boundaries flatters a judge that knows the boundary."""
    every = np.ones(len(samples), bool)
    first = samples.index == 1
    found: dict[str, Bools] = {
        "all": every,
        "reasoning": samples.reasoning,
        "first": first,
        "later": ~first,
        "later reasoning": ~first & samples.reasoning,
        "forward": samples.forward,
        "other sections": ~samples.forward,
    }
    found |= {f"section={name or '(none)'}": samples.section == name for name in _names(samples.section)}
    for number in sorted({min(int(n), _TOLD + 1) for n in samples.index}):
        name = f"boundary={number}" if number <= _TOLD else f"boundary={number}+"
        found[name] = samples.index == number if number <= _TOLD else samples.index > _TOLD
    found |= {f"domain={name}": samples.domain == name for name in _names(samples.domain) if name}
    return found


def _names(column: Texts) -> list[str]:
    """The different texts of a column, sorted."""
    return sorted(set(column.tolist()))
