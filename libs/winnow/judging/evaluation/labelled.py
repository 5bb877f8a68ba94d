"""Labelled boundaries: what annotators said, joined to the entries that the parser finds."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from winnow.compaction.segments import Entry
from winnow.contracts.errors import Permanent
from winnow.contracts.vocabulary import Rules, SectionClass
from winnow.judging.offline import request_of
from winnow.judging.port import JudgeRequest
from winnow.judging.stress import Case

#: The one forward-looking section whose entries the published study does not count as reasoning.
_ASKS: Final = "pending user asks"


class Unmatched(Permanent):
    """The labels are not those of this summary; label the entries that `winnow parse` finds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What annotators said of one entry. None: they were not asked."""

    n: int
    source: bool
    env: bool | None = None
    prev: bool | None = None
    user: bool | None = None
    refuted: bool | None = None
    done: bool | None = None
    #: Whether the entry is true, which is another question than whether it has a source.
    correct: bool | None = None
    kind: str | None = None


@dataclass(frozen=True, kw_only=True)
class LabelledBoundary(Case):
    """A boundary to judge, as the stress transformations take it, with all labels. A changed copy keeps what is added here."""

    id: str
    index: int
    labels: tuple[Label, ...]
    #: What the bootstrap draws; the run where the data names none.
    scenario: str
    #: The data names scenarios of its own.
    by_scenario: bool = False
    host: str | None = None
    profile: str | None = None
    rules: Rules = Rules.WINNOW
    pins: tuple[str, ...] = ()
    user_turns_survive: bool | None = None
    #: Section and class of each entry, by number.
    sections: dict[int, tuple[str, SectionClass]] = field(default_factory=dict)

    def request(self) -> JudgeRequest:
        """What a judge is asked."""
        _, request = request_of(
            self.candidate,
            task=self.task,
            previous=self.previous,
            history=self.history,
            retained=self.retained,
            host=self.host,
            profile=self.profile,
            rules=self.rules,
            pins=self.pins,
            user_turns_survive=self.user_turns_survive,
            index=self.index,
        )
        return request


def is_reasoning(section: str, section_class: SectionClass) -> bool:
    """Whether a section holds the compressor's own reasoning.

    In the published five headings: Decisions and Open TODOs. In other formats: sections that look forward or are mixed by their profile;
    what the user asked for is neither. The view `composition_entries` says the same.
    """
    return section_class in {SectionClass.MIXED, SectionClass.FORWARD} and _ASKS not in section.lower()


def matched(labels: Sequence[tuple[str, Label]], entries: Sequence[Entry]) -> tuple[Label, ...]:
    """Join labels, each with the text of its entry, to parsed entries: by number where the text agrees, else by text in order.

    The answer has the labels of the entries that have one, in the order of the summary, with the parser's numbers. Raise `Unmatched` where
    a label has no entry: figures on a part of the data would be silently other figures.
    """
    free: dict[str, list[Entry]] = {}
    by_number = {entry.n: entry for entry in entries}
    taken: dict[int, Label] = {}
    later: list[tuple[str, Label]] = []
    for text, label in labels:
        entry = by_number.get(label.n)
        if entry is not None and entry.n not in taken and _same(entry.text) == _same(text):
            taken[entry.n] = label
        else:
            later.append((_same(text), label))
    for entry in entries:
        if entry.n not in taken:
            free.setdefault(_same(entry.text), []).append(entry)
    for text, label in later:
        if not free.get(text):
            msg = f"entry {label.n} of the labels is not among the {len(entries)} entries that the parser finds; see `winnow parse`"
            raise Unmatched(msg)
        taken[free[text].pop(0).n] = label
    return tuple(_numbered(label, n) for n, label in sorted(taken.items(), key=lambda item: item[0]))


def _numbered(label: Label, n: int) -> Label:
    """The label with the parser's number."""
    values = {name: getattr(label, name) for name in Label.__dataclass_fields__}
    return Label(**{**values, "n": n})


def _same(text: str) -> str:
    """A text up to white space."""
    return " ".join(text.split())
