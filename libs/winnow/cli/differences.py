"""What two pipelines made of the same boundary, and how far they are apart. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from winnow.storage.reruns import End, EntryEnd

#: Scores that are no further apart are the same: another machine's floating point may differ in the last places.
SAME_SCORE = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """An entry that ended otherwise, or has another score."""

    n: int
    section_class: str
    #: kept, pruned; None: the entry is not there on this side.
    was: str | None
    now: str | None
    was_reason: str | None
    now_reason: str | None
    was_score: float | None
    now_score: float | None

    @property
    def decided_otherwise(self) -> bool:
        """The decision differs, not only the score."""
        return self.was != self.now


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One boundary, compared."""

    fleet: str
    run: str
    boundary_id: str
    #: outcome, or `outcome: reason`.
    was: str
    now: str
    was_judge: str
    now_judge: str
    #: The committed bytes are the same.
    same_bytes: bool
    entries: int
    changes: tuple[Change, ...]
    #: Why it could not be run again; then nothing else is said.
    left_out: str | None = None

    @property
    def same(self) -> bool:
        """Nothing that an agent or an operator would see differs."""
        return self.left_out is None and self.was == self.now and self.same_bytes and not any(c.decided_otherwise for c in self.changes)

    @property
    def value(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self) | {"same": self.same}

    @classmethod
    def read(cls, value: Mapping[str, Any]) -> "Difference":
        """From its JSON. Raise `TypeError` or `KeyError` where it is none."""
        fields = {name: value[name] for name in cls.__dataclass_fields__}
        return cls(**(fields | {"changes": tuple(Change(**change) for change in value["changes"])}))


def left_out(fleet: str, run: str, boundary_id: str, why: str) -> Difference:
    """A boundary that could not be run again."""
    return Difference(
        fleet=fleet, run=run, boundary_id=boundary_id, was="", now="", was_judge="", now_judge="", same_bytes=False, entries=0, changes=(),
        left_out=why,
    )  # fmt: skip


def compare(fleet: str, run: str, boundary_id: str, was: End, now: End) -> Difference:
    """Two ends of one boundary. Entries are the same by their text and its occurrence, whatever number they have."""
    return Difference(
        fleet=fleet,
        run=run,
        boundary_id=boundary_id,
        was=_said(was),
        now=_said(now),
        was_judge=f"{was.judge or ''} {was.judge_version or ''}".strip(),
        now_judge=f"{now.judge or ''} {now.judge_version or ''}".strip(),
        same_bytes=was.committed_sha256 == now.committed_sha256,
        entries=len(was.entries),
        changes=tuple(_changes(was.entries, now.entries)),
    )


def _said(end: End) -> str:
    return (end.outcome or "") + (f": {end.reason}" if end.reason else "")


def _changes(was: Sequence[EntryEnd], now: Sequence[EntryEnd]) -> Iterator[Change]:
    """Entries that ended otherwise, in the order of the old side; those that only the new side has, last."""
    there = dict(_keyed(now))
    for key, old in _keyed(was):
        new = there.pop(key, None)
        if new is None or old.decision != new.decision or not _close(old.score, new.score):
            yield _change(old, new)
    for new in there.values():
        yield _change(None, new)


def _change(old: EntryEnd | None, new: EntryEnd | None) -> Change:
    one = old or new
    return Change(
        n=one.n if one else 0,
        section_class=one.section_class if one else "",
        was=old.decision if old else None,
        now=new.decision if new else None,
        was_reason=old.reason if old else None,
        now_reason=new.reason if new else None,
        was_score=old.score if old else None,
        now_score=new.score if new else None,
    )


def _keyed(entries: Sequence[EntryEnd]) -> Iterator[tuple[tuple[str, int], EntryEnd]]:
    """Entries by text and occurrence."""
    seen: Counter[str] = Counter()
    for entry in entries:
        yield (entry.text_key, seen[entry.text_key]), entry
        seen[entry.text_key] += 1


def _close(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is other
    return abs(one - other) <= SAME_SCORE


@dataclass(slots=True)
class Summary:
    """All comparisons of a rerun, summed up."""

    boundaries: int = 0
    same: int = 0
    entries: int = 0
    #: Boundaries by outcome before and after, where they differ.
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: Entries by decision before and after, where they differ; `absent`: not there on that side.
    decisions: Counter[tuple[str, str]] = field(default_factory=Counter)
    #: Of them, by section class.
    sections: Counter[str] = field(default_factory=Counter)
    #: Entries of the same decision and another score.
    rescored: int = 0
    largest_shift: float = 0.0
    judges: Counter[tuple[str, str]] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, found: Iterable[Difference]) -> "Summary":
        """Sum up."""
        made = cls()
        for one in found:
            made.add(one)
        return made

    def add(self, one: Difference) -> None:
        """One more boundary."""
        self.boundaries += 1
        if one.left_out is not None:
            self.left_out[one.left_out] += 1
            return
        self.same += one.same
        self.entries += one.entries
        self.judges[one.was_judge, one.now_judge] += 1
        if one.was != one.now:
            self.outcomes[one.was, one.now] += 1
        for change in one.changes:
            if change.was_score is not None and change.now_score is not None:
                self.largest_shift = max(self.largest_shift, abs(change.was_score - change.now_score))
            if change.decided_otherwise:
                self.decisions[change.was or "absent", change.now or "absent"] += 1
                self.sections[change.section_class] += 1
            else:
                self.rescored += 1

    @property
    def value(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "boundaries": self.boundaries,
            "same": self.same,
            "differ": self.boundaries - self.same - sum(self.left_out.values()),
            "left_out": dict(sorted(self.left_out.items())),
            "entries": self.entries,
            "outcomes": _pairs(self.outcomes),
            "decisions": _pairs(self.decisions),
            "sections": dict(sorted(self.sections.items())),
            "rescored": self.rescored,
            "largest_score_shift": self.largest_shift,
            "judges": _pairs(self.judges),
        }


def _pairs(counted: Counter[tuple[str, str]]) -> list[dict[str, Any]]:
    return [{"was": was, "now": now, "count": number} for (was, now), number in counted.most_common()]
