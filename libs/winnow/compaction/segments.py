"""What a parse gives: segments whose texts join to the summary, and the entries among them."""

from dataclasses import dataclass

from winnow.contracts.vocabulary import Reason, Rules, SectionClass, SegmentKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A stretch of the summary, verbatim, line terminators included."""

    kind: SegmentKind
    text: str
    entry: int | None  # number of the entry; only where `kind` is `entry`


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A part of the summary that is judged, and kept or removed, as a whole."""

    n: int  # 1-based, in the order of the summary
    section: str  # heading text, nested headings joined by " / "; "" before the first heading
    section_class: SectionClass
    text: str  # the entry's own bytes, marker included, without indentation, final terminator and owned blank lines
    span: tuple[int, int]  # UTF-8 byte offsets [start, end) of the entry's segment in the summary
    parent: int | None  # the bullet that this one is nested under; scaffold while this one is kept
    lead_in: int | None  # the line that introduces the list ("Remaining:"); scaffold while this one is kept
    pinned_by: str | None  # "host": one of the host's pins occurs in it; never removed
    truncated: bool  # cut at its start or end: judge it, do not read it as complete
    occurrence: int  # 1 for the first entry with this section and text, 2 for the next
    key: str  # identity across summaries: hash of section, normalised text and occurrence


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A parsed summary. Joined, the texts of `segments` are `text`, whatever `outcome` says."""

    text: str
    profile: str  # name of the profile that was used
    detected: bool  # True where the profile was found in the text rather than named by the caller
    rules: Rules
    outcome: Reason | None  # None: a summary; otherwise why it is none, and `entries` is empty
    segments: tuple[Segment, ...]
    entries: tuple[Entry, ...]
    warnings: tuple[str, ...]
