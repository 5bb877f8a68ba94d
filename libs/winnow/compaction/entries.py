"""From blocks to entries and segments: what counts as an entry, its number, bytes, identity and pins."""

import unicodedata
from collections.abc import Sequence
from hashlib import sha256
from typing import Final

from winnow.compaction.blocks import Block
from winnow.compaction.lines import INVISIBLE, quotes_truncation
from winnow.compaction.placeholders import MAX_PLACEHOLDER, is_placeholder
from winnow.compaction.profiles.openclaw import HEADINGS
from winnow.compaction.profiles.profile import Profile
from winnow.compaction.sections import normal
from winnow.compaction.segments import Entry, Segment
from winnow.contracts.limits import MAX_PINS
from winnow.contracts.vocabulary import Rules, SegmentKind

#: Characters of a paragraph that are compared with phrases.
_PHRASE: Final = 64
_CANONICAL: Final = frozenset(heading.lower() for heading in HEADINGS)
_OPENINGS: Final = ("here is", "here's", "here are", "below is", "sure", "okay", "certainly", "i'll summarize", "this is a summary")
_CLOSINGS: Final = (
    "let me know",
    "please let me know",
    "feel free",
    "if you need",
    "if you'd like",
    "if you would like",
    "would you like",
    "shall i",
    "is there anything",
    "i hope this",
)
_AROUND: Final = frozenset({SegmentKind.BLANK, SegmentKind.HOST})
_HOLDERS: Final = frozenset({"bullet", "paragraph", "label", "bare"})


def settle(blocks: list[Block], text: str, profile: Profile, rules: Rules, *, headless: bool) -> None:
    """Give each block its final kind: placeholders, preamble and trailer are no entries; `published` knows bullets only."""
    for block in blocks:
        if block.role in _HOLDERS and (block.kind is SegmentKind.ENTRY or block.kind is SegmentKind.PROSE):
            at, end = block.body_at, block.core_end
            if end - at <= MAX_PLACEHOLDER and is_placeholder(text[at:end]):
                block.kind = SegmentKind.PLACEHOLDER
    if profile.preamble:
        first = next((block for block in blocks if block.kind not in _AROUND), None)
        last = next((block for block in reversed(blocks) if block.kind not in _AROUND), None)
        if first is not None and last is not None and first is not last:
            if headless:
                _demote(first, text, _OPENINGS)
            _demote(last, text, _CLOSINGS)
    if rules is Rules.PUBLISHED:
        for block in blocks:
            published = block.role == "bullet" and _is_canonical(block.section)
            if block.kind is SegmentKind.PINNED or (block.kind is SegmentKind.ENTRY and not published):
                block.kind = SegmentKind.PROSE


def _demote(block: Block, text: str, phrases: tuple[str, ...]) -> None:
    if block.role == "paragraph" and block.kind is SegmentKind.ENTRY and block.parent is None:
        start = text[block.body_at : block.body_at + _PHRASE].lstrip(INVISIBLE).lower().replace("’", "'")
        if start.startswith(phrases):
            block.kind = SegmentKind.PROSE


def _is_canonical(section: str) -> bool:
    return any(normal(title) in _CANONICAL for title in section.split(" / "))


def _relative(block: Block | None) -> int | None:
    """Return the number of the nearest ancestor that is an entry."""
    while block is not None and not block.n:
        block = block.parent
    return block.n if block is not None else None


class Identities:
    """Identities of entries across summaries (T24): occurrences are counted by section and normalised text."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str], int] = {}

    def of(self, section: str, text: str) -> tuple[int, str]:
        """Return occurrence and key of the next entry with this section and text."""
        folded = text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()
        if "  " in folded or "\n" in folded or not folded.isprintable():
            folded = " ".join(folded.split())
        occurrence = self._seen.get((section, folded), 0) + 1
        self._seen[section, folded] = occurrence
        return occurrence, sha256(f"{section}\0{occurrence}\0{folded}".encode("utf-8", "surrogatepass")).hexdigest()[:32]


def assemble(blocks: list[Block], text: str, pins: Sequence[str]) -> tuple[list[Segment], list[Entry]]:
    """Build segments and entries of `blocks`, which cover `text` without gaps, and number the entries from 1.

    Parents and lead-ins stand before what hangs on them, so their numbers are known in time.
    """
    segments: list[Segment] = []
    entries: list[Entry] = []
    identify = Identities().of
    ascii_only = text.isascii()
    marks = "truncated" in text
    last = next((block for block in reversed(blocks) if block.kind is not SegmentKind.BLANK), None)
    at = n = 0  # bytes so far, entries so far
    for block in blocks:
        start, end = block.start, block.end
        segment = text[start:end]
        size = end - start if ascii_only else len(segment.encode("utf-8", "surrogatepass"))
        if block.kind is SegmentKind.ENTRY:
            own = (segment if block.core_end == end else text[start : block.core_end]).lstrip(INVISIBLE).rstrip("\r\n")
            section, parent, lead = block.section, block.parent, block.lead
            occurrence, key = identify(section, own)
            n += 1
            block.n = n
            segments.append(Segment(kind=SegmentKind.ENTRY, text=segment, entry=n))
            entries.append(
                Entry(
                    n=n,
                    section=section,
                    section_class=block.section_class,
                    text=own,
                    span=(at, at + size),
                    parent=_relative(parent) if parent is not None else None,
                    lead_in=lead.n or None if lead is not None else None,
                    pinned_by="host" if pins and any(holds(own, pin) for pin in pins) else None,
                    truncated=block.truncated or (block is last and is_cut(segment)) or (marks and quotes_truncation(own)),
                    occurrence=occurrence,
                    key=key,
                )
            )
        elif block.core_end == end:
            segments.append(Segment(kind=block.kind, text=segment, entry=None))
        else:  # a bullet that turned out to be none leaves the blank lines to nobody
            segments.append(Segment(kind=block.kind, text=text[start : block.core_end], entry=None))
            segments.append(Segment(kind=SegmentKind.BLANK, text=text[block.core_end : end], entry=None))
        at += size
    return segments, entries


def usable_pins(pins: Sequence[str], text: str, warnings: list[str]) -> list[str]:
    """Return the pins that occur in `text`, at most as many as a boundary may have."""
    folded = text.upper()
    found: list[str] = []
    for pin in dict.fromkeys(pin.strip() for pin in pins):
        if pin and (pin in text or (_is_hex(pin) and pin.upper() in folded)):
            if len(found) == MAX_PINS:
                warnings.append("pins_capped")
                break
            found.append(pin)
    return found


def holds(text: str, pin: str) -> bool:
    """Tell whether `pin` stands anywhere in `text`, as hosts audit it: hashes without case, no word boundaries."""
    return pin in text or (_is_hex(pin) and pin.upper() in text.upper())


def _is_hex(pin: str) -> bool:
    return len(pin) >= 8 and not pin.strip("0123456789abcdefABCDEF")  # noqa: PLR2004 # the host's shortest hash


def is_cut(segment: str) -> bool:
    """Tell whether the last entry ends in the middle of something (T32): a token limit cuts anywhere, a writer does not."""
    if segment.endswith(("\n", "\r")):
        return False
    tail = segment[-4096:].rstrip(INVISIBLE)  # characters; a bracket that was opened further back says nothing about the end
    if tail.count("`") % 2 or tail.count("**") % 2:
        return True
    if tail.endswith((",", ";", ":", "(", "[", "{", "/", "\\", "=", "+", " -", "–", "—", "&", "…", "...")):
        return True
    word = tail[-12:].rsplit(" ", 1)[-1].lower()
    return word in {
        "a",
        "an",
        "and",
        "as",
        "at",
        "because",
        "but",
        "by",
        "for",
        "from",
        "in",
        "is",
        "of",
        "or",
        "that",
        "the",
        "to",
        "was",
        "with",
    }
