"""All that the span says against the entries of a boundary: the channels of refutation, staleness and the two flags, joined."""

import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Final

from winnow.compaction.claims.binding import Binding, Entries
from winnow.compaction.claims.conditions import Rewritten, rewritten
from winnow.compaction.claims.deliverables import invented
from winnow.compaction.claims.json_paths import path_at
from winnow.compaction.claims.latest import replaced
from winnow.compaction.claims.properties import Misstated, misstated
from winnow.compaction.claims.quotes import misquoted
from winnow.compaction.claims.records import Records, marked, source_texts
from winnow.compaction.claims.refutation import Refuted, refute
from winnow.compaction.claims.said import Said
from winnow.compaction.claims.staleness import stale
from winnow.compaction.claims.status import disproved
from winnow.compaction.corpus import Corpus
from winnow.compaction.roles import Role
from winnow.compaction.segments import Entry
from winnow.compaction.style import Style
from winnow.compaction.text import one_line
from winnow.contracts.events import Finding
from winnow.contracts.vocabulary import FindingKind, MessageKind, ProvenanceClass

#: Findings of one entry in the event, and characters of each text in it.
MAX_FINDINGS: Final = 8
_CHARS: Final = 80
_DIGIT: Final = re.compile(r"[0-9]")
#: A name in snake_case or camelCase.
_IDENTIFIER: Final = re.compile(r"(?<!\w)(?:\w+_\w+|[a-zA-Z]\w*[a-z]\w*[A-Z]\w*)(?!\w)")
#: Titles of sections that hold rules.
_RULES: Final = re.compile(r"\b(?:constraints?|rules?|polic(?:y|ies)|guidelines?|requirements?)\b")
#: Cells of the table that says which record holds which word of which entries; more entries are read a group at a time. Columns that an
#: entry takes there, and groups that are compared.
_CELLS: Final = 8_000_000
_COLUMNS: Final = 25
_GROUPS: Final = 8
#: Characters before a value in which the name that it stands behind is looked for.
_NAME_CHARS: Final = 40


@dataclass(frozen=True, slots=True)
class Found:
    """What the span says against entries."""

    #: One tuple an entry, in their order.
    findings: list[tuple[Finding, ...]]
    #: Entries and span were too many: some values were not compared.
    capped: bool


def find(entries: Sequence[Entry], normalised: Sequence[str], styles: Sequence[Style], corpus: Corpus) -> Found:
    """Look for what speaks against entries. Pure; linear in the span; one entry's text changes nothing of another's findings.

    Args:
        entries: the candidate's entries.
        normalised: their texts, normalised and without marker.
        styles: their wording.
        corpus: the boundary's texts.
    """
    lowered = [marked(text.lower()) for text in normalised]
    lower = cache(str.lower)  # of outputs, which several findings may rest on
    chosen = [bool(style.imperative) or is_open(entry) for entry, style in zip(entries, styles, strict=True)]
    found: list[list[Finding]] = [[] for _ in entries]
    capped = any(_DIGIT.search(text) for text in lowered) and _of_values(lowered, _identifiers(normalised), chosen, corpus, found, lower)
    outdated = (
        Misstated(old.entry, old.key, old.claim, old.said, old.output, _place(lower(corpus.messages[old.output].text), old.said, old.key))
        for old in replaced(lowered, corpus)
    )
    for wrong in chain(misstated(lowered, chosen, corpus, lower), outdated):
        if all(finding.kind is not FindingKind.CONTRADICTED for finding in found[wrong.entry]):
            found[wrong.entry].append(_property(wrong, corpus))
    for false in disproved(entries, [(output.message, output.text) for output in corpus.outputs]):
        found[false.entry].append(_by_message(FindingKind.CONTRADICTED, false.claim, false.said, false.output, corpus, key="its outcome"))
    _of_quotations(lowered, chosen, corpus, found)
    _told_only(entries, lowered, corpus, found)
    return Found([tuple(of_entry[:MAX_FINDINGS]) for of_entry in found], capped)


def _identifiers(normalised: Sequence[str]) -> frozenset[str]:
    """Words of entries that are written in snake_case or camelCase, in lower case; of those that tell a line."""
    return frozenset(match.group().lower() for text in normalised if "line" in text for match in _IDENTIFIER.finditer(text))


def _of_values(
    lowered: Sequence[str],
    identifiers: AbstractSet[str],
    chosen: Sequence[bool],
    corpus: Corpus,
    found: Sequence[list[Finding]],
    lower: Callable[[str], str],
) -> bool:
    """Add what is said against the values of entries; True where some were not compared."""
    records = Records.of(corpus)
    said = Said(corpus, records)
    size = max(1, _CELLS // (_COLUMNS * max(1, len(records.starts))))
    capped = False
    for group, first in enumerate(range(0, len(lowered), size)):
        some = lowered[first : first + size]
        read = Entries.of(some, identifiers)
        binding = Binding(records, read, idle=group >= _GROUPS)
        for refuted in refute(some, read, records, binding, said, chosen[first : first + size]):
            found[first + refuted.entry].append(_told(refuted, records, corpus, lower))
        capped = capped or binding.capped
    return capped


def _of_quotations(lowered: Sequence[str], chosen: Sequence[bool], corpus: Corpus, found: Sequence[list[Finding]]) -> None:
    """Add what is said against quotations."""
    pieces = corpus.pieces
    begin = pieces.begin[pieces.first_unit] if pieces.first_unit < len(pieces.begin) else len(pieces.joined)
    for wrong in misquoted(lowered, chosen, pieces.joined, begin):
        if any(finding.kind in {FindingKind.CONTRADICTED, FindingKind.ORPHAN} for finding in found[wrong.entry]):
            continue
        piece = bisect_right(pieces.begin, wrong.at) - 1
        claim, said, order = one_line(wrong.claim, _CHARS), one_line(wrong.said, _CHARS), pieces.order[piece]
        if pieces.role[piece] is Role.PREVIOUS:
            found[wrong.entry].append(
                Finding(
                    kind=FindingKind.CONTRADICTED, claim=claim, key="the quotation", said=said, by=ProvenanceClass.PREVIOUS,
                    message=corpus.units[order].n,
                )
            )  # fmt: skip
        else:
            found[wrong.entry].append(_by_message(FindingKind.CONTRADICTED, claim, said, order, corpus, key="the quotation"))


def _told_only(entries: Sequence[Entry], lowered: Sequence[str], corpus: Corpus, found: Sequence[list[Finding]]) -> None:
    """Add what caps nothing: open work that was done, conditions restated otherwise, work that nobody asked for."""
    for done in stale(entries, corpus.messages, {output.message for output in corpus.outputs}):
        found[done.entry].append(_by_message(FindingKind.STALE, done.claim, corpus.messages[done.output].text, done.output, corpus))
    of_rules = {section: _RULES.search(section.lower()) is not None for section in {entry.section for entry in entries}}
    ruled = [of_rules[entry.section] for entry in entries]
    task, users = "\n".join(source_texts(corpus, Role.TASK)), source_texts(corpus, Role.USER)
    for other in rewritten(lowered, ruled, task, users, corpus.pieces.joined):
        found[other.entry].append(_condition(other, corpus))
    for made in invented(entries, corpus):
        found[made.entry].append(Finding(kind=FindingKind.INVENTED_DELIVERABLE, claim=one_line(made.claim, _CHARS)))


def is_open(entry: Entry) -> bool:
    """Whether an entry is an open check box."""
    return entry.text.lstrip(" \t-*+").startswith("[ ]")


def _told(refuted: Refuted, records: Records, corpus: Corpus, lower: Callable[[str], str]) -> Finding:
    """A refuted value as the event tells it."""
    kind = FindingKind.ORPHAN if refuted.orphan else FindingKind.CONTRADICTED
    claim = one_line(refuted.claim, _CHARS)
    if refuted.said is None:
        return Finding(kind=kind, claim=claim)
    key, said = one_line(refuted.key, _CHARS) if refuted.key else None, one_line(refuted.said, _CHARS)
    if refuted.text < 0:
        return Finding(kind=kind, claim=claim, key=key, said=said, by=ProvenanceClass.DERIVED)
    if refuted.text < records.units:
        number = corpus.units[refuted.text].n
        return Finding(kind=kind, claim=claim, key=key, said=said, by=ProvenanceClass.PREVIOUS, message=number)
    output = [output for output in corpus.outputs if output.text][refuted.text - records.units]
    at = _place(lower(output.text), refuted.said, refuted.key)
    return Finding(
        kind=kind, claim=claim, key=_path(output.text, at) or key, said=said, by=ProvenanceClass.ENVIRONMENT,
        message=corpus.messages[output.message].i, tool=output.tool, at=at,
    )  # fmt: skip


def _property(wrong: Misstated, corpus: Corpus) -> Finding:
    """A property with another value as the event tells it."""
    message = corpus.messages[wrong.output]
    return Finding(
        kind=FindingKind.CONTRADICTED,
        claim=one_line(wrong.claim, _CHARS),
        key=_path(message.text, wrong.at) or one_line(wrong.key, _CHARS),
        said=one_line(wrong.said, _CHARS),
        by=ProvenanceClass.ENVIRONMENT,
        message=message.i,
        tool=message.tool,
        at=wrong.at,
    )


def _by_message(kind: FindingKind, claim: str, said: str, position: int, corpus: Corpus, *, key: str | None = None) -> Finding:
    """A finding that rests on a message of H or R."""
    message = corpus.messages[position]
    by = ProvenanceClass.ENVIRONMENT if message.kind is MessageKind.ENVIRONMENT else ProvenanceClass.USER
    return Finding(
        kind=kind,
        claim=one_line(claim, _CHARS),
        key=key,
        said=one_line(said.strip()[: 2 * _CHARS], _CHARS),
        by=by,
        message=message.i,
        tool=message.tool,
    )


def _condition(other: Rewritten, corpus: Corpus) -> Finding:
    """A condition that was rewritten, with the task's or the user's own words."""
    kind = FindingKind.REWRITTEN_CONSTRAINT
    if other.source:
        turns = [at for at, message in enumerate(corpus.messages) if message.kind is MessageKind.USER and message.text]
        return _by_message(kind, other.claim, other.said, turns[other.source - 1], corpus)
    return Finding(kind=kind, claim=one_line(other.claim, _CHARS), said=one_line(other.said, _CHARS), by=ProvenanceClass.TASK)


def _path(text: str, at: int) -> str | None:
    """The path to what stands at an offset of a JSON output, its last characters; None where the output is none."""
    path = path_at(text, at)
    return None if path is None else one_line(path[-_CHARS:], _CHARS)


def _place(lower: str, said: str, key: str | None) -> int:
    """Where an output, in lower case, says a value: where its name stands before it, else its first standing, else the beginning."""
    at = first = lower.find(said)
    while key is not None and at >= 0:
        if key in lower[max(0, at - _NAME_CHARS) : at]:
            return at
        at = lower.find(said, at + 1)
    return max(0, first)
