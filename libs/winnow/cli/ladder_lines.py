"""Ladders in a file: what each level of pruning cost, by level or by unit."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from winnow.assurance.kinds import LossType
from winnow.assurance.operating import Candidate
from winnow.assurance.paired import Pairs
from winnow.assurance.samples import Sample
from winnow.assurance.selection import Level
from winnow.cli.unit_lines import bad, objects, real, text, whole

#: Most levels of a ladder; a threshold of more steps than that is no finer in effect.
MOST_LEVELS: Final = 1_000
#: Savings are a share; a format may grow the text, but not by more than this.
_SAVINGS: Final = (-10.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """What a file holds: levels, paired candidates, or scored units; the other two are empty."""

    #: Levels with their losses, mildest first.
    levels: tuple[Level, ...] = ()
    #: Each unit's loss at every level; empty where only counts are known.
    rows: tuple[tuple[float, ...], ...] = ()
    candidates: tuple[Candidate, ...] = ()
    #: (score, diverged) of each unit.
    scored: tuple[tuple[float, bool], ...] = ()
    #: Names of the units, where the file has them.
    units: tuple[str, ...] = ()


def read_ladder(name: str, content: bytes, type_: LossType, taus: Sequence[float]) -> Ladder:
    """The ladder of a file. Its form is that of the first line, mildest level first:

    - a level: `level`, `k`, `n`, perhaps `savings`;
    - a level on paired tasks: `level`, `lost`, `gained`, `n`, perhaps `savings`;
    - a unit: `unit` and `losses`, an object of one loss a level, perhaps `savings` likewise; levels are in the order of the first line;
    - a unit with scored entries: `unit`, `scores` and `sourced` (true where the entry has a source). Its loss at tau is the share of its
      sourced entries that pruning at tau removes (declare graded), or whether it removes any (binary); its savings the share of entries;
    - a unit with one score: `unit`, `score`, `diverged`.

    Raises:
        BadLosses: a line is of another form; the text gives its number.
    """  # noqa: D415  a list follows
    lines = list(objects(name, content))
    at, first = lines[0] if lines else (1, None)
    known = first.keys() if isinstance(first, dict) else frozenset()
    found = next(((fields, read) for fields, read in _FORMS if fields <= known), None)
    if found is None:
        bad(name, at, "neither a level nor a unit: `winnow calibrate --help` lists the fields that a line may have")
    fields, read = found
    for number, value in lines:
        if not isinstance(value, dict) or not fields <= value.keys():
            bad(name, number, f"has not the fields of the first line: {', '.join(sorted(fields))}")
    return read(name, lines, type_, taus)


def _levels(name: str, lines: Sequence[tuple[int, Any]], _: LossType, __: Sequence[float]) -> Ladder:
    """Counts by level."""
    levels = [
        Level(name=text(name, number, value, "level"), sample=_counts(name, number, value), savings=_savings(name, number, value))
        for number, value in lines
    ]
    return Ladder(levels=tuple(levels))


def _counts(name: str, number: int, value: dict[str, Any]) -> Sample:
    """K of n."""
    k, n = whole(name, number, value, "k"), whole(name, number, value, "n")
    if k > n:
        bad(name, number, f"{k} losses in {n} units")
    return Sample.counts(k, n)


def _candidates(name: str, lines: Sequence[tuple[int, Any]], _: LossType, __: Sequence[float]) -> Ladder:
    """Paired counts by level."""
    found = []
    for number, value in lines:
        lost, gained, n = (whole(name, number, value, field) for field in ("lost", "gained", "n"))
        if lost + gained > n:
            bad(name, number, f"{lost} lost and {gained} gained are more than {n} pairs")
        pairs = Pairs(lost=lost, gained=gained, n=n)
        found.append(Candidate(name=text(name, number, value, "level"), pairs=pairs, savings=_savings(name, number, value)))
    return Ladder(candidates=tuple(found))


def _units(name: str, lines: Sequence[tuple[int, Any]], type_: LossType, _: Sequence[float]) -> Ladder:
    """Losses by unit and level."""
    names = list(lines[0][1]["losses"]) if isinstance(lines[0][1]["losses"], dict) else []
    if not 1 <= len(names) <= MOST_LEVELS:
        bad(name, lines[0][0], f"`losses` must be an object of one loss for each of 1 to {MOST_LEVELS} levels")
    rows: list[tuple[float, ...]] = []
    savings: list[list[float]] = []
    for number, value in lines:
        at = value["losses"]
        if not isinstance(at, dict) or at.keys() != set(names):
            bad(name, number, "`losses` has other levels than the first line")
        rows.append(tuple(real(name, number, at, level) for level in names))
        saved = value.get("savings")
        if isinstance(saved, dict) and saved.keys() == set(names):
            savings.append([_within(name, number, real(name, number, saved, level)) for level in names])
        elif saved is not None:
            bad(name, number, "`savings` must be an object of one share for each level, as `losses` is")
    means = _means(savings) if len(savings) == len(rows) else [float("nan")] * len(names)
    return _by_level(name, lines, names, rows, means, type_)


def _scores(name: str, lines: Sequence[tuple[int, Any]], type_: LossType, taus: Sequence[float]) -> Ladder:
    """Losses of pruning at each tau, from scored and labelled entries. An entry is removed where its score lies below tau."""
    rows: list[tuple[float, ...]] = []
    savings: list[list[float]] = []
    for number, value in lines:
        scores, sourced = value["scores"], value["sourced"]
        good = isinstance(scores, list) and isinstance(sourced, list) and len(scores) == len(sourced) > 0
        if not good or not all(_probability(s) for s in scores) or not all(isinstance(s, bool) for s in sourced):
            bad(name, number, "`scores` (numbers in [0, 1]) and `sourced` (true or false) must be lists of equal length")
        kept = max(1, sum(sourced))
        lost = [sum(s < tau for s, good in zip(scores, sourced, strict=True) if good) for tau in taus]
        rows.append(tuple(float(k > 0) if type_ is LossType.BINARY else k / kept for k in lost))
        savings.append([sum(s < tau for s in scores) / len(scores) for tau in taus])
    return _by_level(name, lines, [f"{tau:g}" for tau in taus], rows, _means(savings), type_)


def _speculative(name: str, lines: Sequence[tuple[int, Any]], _: LossType, __: Sequence[float]) -> Ladder:
    """One score and one outcome a unit."""
    units = _names(name, lines)
    scored = []
    for number, value in lines:
        if not isinstance(value["diverged"], bool):
            bad(name, number, "`diverged` must be true or false")
        scored.append((real(name, number, value, "score"), value["diverged"]))
    return Ladder(scored=tuple(scored), units=units)


def _by_level(
    name: str,
    lines: Sequence[tuple[int, Any]],
    names: Sequence[str],
    rows: Sequence[tuple[float, ...]],
    savings: Sequence[float],
    type_: LossType,
) -> Ladder:
    """A ladder from each unit's losses."""
    columns = zip(*rows, strict=True)
    levels = [
        Level(name=level, sample=Sample.of(type_, column), savings=saved)
        for level, column, saved in zip(names, columns, savings, strict=True)
    ]
    return Ladder(levels=tuple(levels), rows=tuple(rows), units=_names(name, lines))


def _names(name: str, lines: Sequence[tuple[int, Any]]) -> tuple[str, ...]:
    """The units' names, each once: turns of a run are no units."""
    seen: dict[str, int] = {}
    for number, value in lines:
        unit = text(name, number, value, "unit")
        if unit in seen:
            bad(name, number, f"unit {unit[:80]!r} comes twice; one line a trajectory or session")
        seen[unit] = number
    return tuple(seen)


def _savings(name: str, number: int, value: dict[str, Any]) -> float:
    """The share saved; NaN where it is not given."""
    return float("nan") if value.get("savings") is None else _within(name, number, real(name, number, value, "savings"))


def _within(name: str, number: int, share: float) -> float:
    """A share of savings in range."""
    low, high = _SAVINGS
    if not low <= share <= high:
        bad(name, number, f"`savings` is a share of at most 1, not {share:g}")
    return share


def _probability(value: object) -> bool:
    """Whether it is a score."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _means(rows: Sequence[Sequence[float]]) -> list[float]:
    """The mean of each column."""
    return [sum(column) / len(rows) for column in zip(*rows, strict=True)]


_Reader = Callable[[str, Sequence[tuple[int, Any]], LossType, Sequence[float]], Ladder]
_FORMS: Final[tuple[tuple[frozenset[str], _Reader], ...]] = (
    (frozenset({"level", "k", "n"}), _levels),
    (frozenset({"level", "lost", "gained", "n"}), _candidates),
    (frozenset({"unit", "losses"}), _units),
    (frozenset({"unit", "scores", "sourced"}), _scores),
    (frozenset({"unit", "score", "diverged"}), _speculative),
)
