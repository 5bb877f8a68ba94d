"""Parse a summary into segments that join to it byte for byte, and the entries among them."""

from collections.abc import Sequence
from typing import Final

from winnow.compaction.blocks import Block
from winnow.compaction.detect import another, detect, read_signs, strength
from winnow.compaction.entries import assemble, settle, usable_pins
from winnow.compaction.envelope import open_envelope
from winnow.compaction.lines import split_lines
from winnow.compaction.profiles import PROFILES, Profile, profile_for
from winnow.compaction.scan import Scanner
from winnow.compaction.segments import Entry, Parsed, Segment
from winnow.compaction.summary_check import check
from winnow.contracts.vocabulary import Rules, SegmentKind

#: Stored with each boundary. It changes whenever the same text could come out with other entries.
PARSER_VERSION: Final = "1"

_ITEM_ROLES: Final = frozenset({"bullet", "row", "label"})


def parse(
    text: str,
    *,
    host: str | None = None,
    profile: str | None = None,
    rules: Rules = Rules.WINNOW,
    pins: Sequence[str] = (),
) -> Parsed:
    """Parse `text`, the whole summary as the host sends it. Linear in its length; no text makes it fail.

    `profile` names a profile, `host` the runtime whose profile is meant; where neither is known, or the host's format is nowhere in the
    text, the profile is found in the text and a warning says so. `pins` are lines or identifiers that the host audits for: each entry that
    holds one is `pinned_by` "host". Under `rules` = `published` there are no pins, and entries are the bullets under OpenClaw's headings.
    """
    rules = Rules(rules)  # a plain string, as it comes from a command line, means the same
    warnings: list[str] = []
    lines = split_lines(text)
    chosen, detected = _choose(lines, host, profile, warnings)
    envelope = open_envelope(lines, chosen)
    warnings += envelope.warnings
    head, position = _outer(envelope.head, 0)
    body_end = position + sum(map(len, envelope.body))
    scanner = Scanner(text, envelope.body, position, body_end, chosen, trees=rules is Rules.WINNOW)
    scanner.run()
    warnings += scanner.warnings
    tail, _ = _outer(envelope.tail, body_end)
    body = scanner.blocks.done
    headings = items = 0
    for block in body:
        if block.kind is SegmentKind.HEADING:
            headings += 1
        elif block.role in _ITEM_ROLES:
            items += 1
    outcome = check(text[position:body_end], envelope.body, headings=headings, items=items)
    segments: list[Segment]
    entries: list[Entry] = []
    if outcome is None:
        settle(body, text, chosen, rules, headless=not scanner.headings)
        wanted = usable_pins(pins, text, warnings) if pins and rules is Rules.WINNOW else []
        segments, entries = assemble([*head, *body, *tail], text, wanted)
    else:
        segments = [Segment(kind=SegmentKind.PROSE, text=text, entry=None)] if text else []
    return Parsed(
        text=text,
        profile=chosen.name,
        detected=detected,
        rules=rules,
        outcome=outcome,
        segments=tuple(segments),
        entries=tuple(entries),
        warnings=tuple(warnings),
    )


def _outer(parts: list[tuple[SegmentKind, str]], at: int) -> tuple[list[Block], int]:
    """Return blocks for the parts before or after the body, which start at character `at`, and where they end."""
    blocks = []
    for kind, part in parts:
        blocks.append(Block(kind, "", at, at + len(part)))
        at += len(part)
    return blocks, at


def _choose(lines: list[str], host: str | None, profile: str | None, warnings: list[str]) -> tuple[Profile, bool]:
    """Return the profile to use, and whether the text alone decided."""
    if profile:
        if profile in PROFILES:
            return PROFILES[profile], False
        warnings.append("profile_unknown")
    named = profile_for(host)
    if named is None and host:
        warnings.append("host_unknown")
    signs = read_signs(lines)
    if named is not None:
        if strength(named, signs) if named.strict else not another(named, signs):
            return named, False
        warnings.append("host_mismatch")
    return detect(signs), True
