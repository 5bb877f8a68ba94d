"""How a golden case is written down: the segments in order, the entries' relations, and what pruning leaves."""

from dataclasses import dataclass, field

from winnow.compaction.parse import parse
from winnow.compaction.prune import render
from winnow.compaction.segments import Parsed
from winnow.contracts.vocabulary import Reason, Rules

#: Kinds by their initials, so that a case fits beside its text. E entry, H heading, B blank, N placeholder ("none"), P pinned,
#: S host ("system"), O outside, T prose ("text"), D table head, X opaque.
KINDS = {
    "E": "entry",
    "H": "heading",
    "B": "blank",
    "N": "placeholder",
    "P": "pinned",
    "S": "host",
    "O": "outside",
    "T": "prose",
    "D": "table_head",
    "X": "opaque",
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One trap: its input as segments, each a kind and its text, and what is expected of the entries."""

    trap: str
    segments: list[tuple[str, str]]
    texts: list[str] | None = None  # of the entries; by default their segments without indentation and final terminators
    sections: list[str] | None = None
    parents: dict[int, int] = field(default_factory=dict)
    lead_ins: dict[int, int] = field(default_factory=dict)
    truncated: list[int] = field(default_factory=list)
    pinned: list[int] = field(default_factory=list)
    host: str | None = None
    profile: str | None = None
    rules: Rules = Rules.WINNOW
    pins: tuple[str, ...] = ()
    outcome: Reason | None = None
    warnings: tuple[str, ...] = ()
    kept: list[int] | None = None  # numbers to keep, and what is then left
    left: str | None = None

    @property
    def text(self) -> str:
        """The summary."""
        return "".join(text for _, text in self.segments)

    def parsed(self) -> Parsed:
        """The summary, parsed as the case says."""
        return parse(self.text, host=self.host, profile=self.profile, rules=self.rules, pins=self.pins)


def verify(case: Case) -> None:
    """Compare a parse with what the case says, one property after the other."""
    parsed = case.parsed()
    assert [(str(segment.kind), segment.text) for segment in parsed.segments] == [(KINDS[kind], text) for kind, text in case.segments]
    assert parsed.outcome == case.outcome
    assert parsed.warnings == case.warnings
    entries = parsed.entries
    own = [text for kind, text in case.segments if kind == "E"]
    texts = case.texts if case.texts is not None else [text.lstrip(" \t").rstrip("\r\n") for text in own]
    assert [entry.text for entry in entries] == texts
    if case.sections is not None:
        assert [entry.section for entry in entries] == case.sections
    assert {entry.n: entry.parent for entry in entries if entry.parent} == case.parents
    assert {entry.n: entry.lead_in for entry in entries if entry.lead_in} == case.lead_ins
    assert [entry.n for entry in entries if entry.truncated] == case.truncated
    assert [entry.n for entry in entries if entry.pinned_by] == case.pinned
    if case.kept is not None:
        assert render(parsed, case.kept) == case.left
