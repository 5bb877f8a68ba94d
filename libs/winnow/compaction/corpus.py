"""A boundary's texts, tokenised once and indexed for the tokens and values of its entries."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from winnow.compaction import text as texts
from winnow.compaction.passages import PASSAGE_CHARS, Output, Span, cuts, outputs
from winnow.compaction.postings import Bools, Ints, Queries, ids_of
from winnow.compaction.roles import Role, role_of
from winnow.compaction.segments import Parsed
from winnow.contracts.events import Message
from winnow.contracts.vocabulary import Rules, SegmentKind

#: Parts of M that are no entries and yet carry information; headings and placeholders do not.
_CARRYING: Final = frozenset({SegmentKind.PINNED, SegmentKind.HOST, SegmentKind.PROSE, SegmentKind.OPAQUE, SegmentKind.TABLE_HEAD})
#: A part of M that is longer is cut like an output, so that "one entry of M" stays a small place.
_UNIT_CHARS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Unit:
    """An entry of M, or another part of it that carries information (`n` None)."""

    n: int | None
    text: str  # normalised, without marker


@dataclass(slots=True)
class Pieces:
    """The texts of one role, joined so that no value spans two of them (passages of one output follow each other without a gap)."""

    joined: str = ""
    begin: list[int] = field(default_factory=list)  # where each piece begins in `joined`
    end: list[int] = field(default_factory=list)
    order: list[int] = field(default_factory=list)  # place of each piece in the order of first mention

    def at(self, position: int) -> int:
        """The piece that holds a position of `joined`."""
        return bisect_right(self.begin, position) - 1


#: Places in the order of first mention: P, the units of M, then the messages by position.
TASK_ORDER: Final = -1


@dataclass(frozen=True, slots=True)
class Corpus:
    """All that the boundary's texts say, by role."""

    messages: Sequence[Message]
    outputs: list[Output]
    passages: list[Span]
    units: list[Unit]
    pieces: dict[Role, Pieces]
    tokens: list[str]  # of all texts: passages first, then units, then the rest
    lengths: list[int]  # tokens of each text
    role: list[Role]  # of each text
    whole: list[int]  # which whole text (output, unit, message) each belongs to: pairs of tokens do not reach beyond it

    @property
    def passage_tokens(self) -> int:
        """How many of `tokens` belong to passages."""
        return sum(self.lengths[: len(self.passages)])


def units_of(previous: Parsed | None) -> list[Unit]:
    """The units of M in order: its entries, and what else carries information."""
    if previous is None:
        return []
    by_number = {entry.n: entry for entry in previous.entries}
    units: list[Unit] = []
    seen: set[int] = set()
    for segment in previous.segments:
        if segment.entry is not None and segment.entry in by_number:
            if segment.entry not in seen:
                seen.add(segment.entry)
                units.append(Unit(segment.entry, texts.normalise(texts.strip_marker(by_number[segment.entry].text))))
        elif segment.kind in _CARRYING or previous.outcome is not None:
            units.extend(
                Unit(None, texts.normalise(texts.strip_marker(segment.text[start:end]))) for start, end in cuts(segment.text, _UNIT_CHARS)
            )
    return [unit for unit in units if unit.text.strip()]


def read(task: str, units: list[Unit], messages: Sequence[Message], rules: Rules) -> Corpus:
    """Tokenise every text once. Linear in their length."""
    corpus = Corpus(messages, outputs(messages, rules), [], units, {role: Pieces() for role in Role}, [], [], [], [])
    whole = _Counter()
    sources: list[str] = []
    for output in corpus.outputs:
        number = whole.next()
        for start, end in cuts(output.text, PASSAGE_CHARS):
            corpus.passages.append(Span(output.message, start, end))
            sources.append(_add(corpus, texts.normalise(output.text[start:end]), Role.SOURCE, number))
    _join_passages(corpus, sources)
    _join(corpus, Role.PREVIOUS, enumerate(_add(corpus, unit.text, Role.PREVIOUS, whole.next()) for unit in units))
    by_role: dict[Role, list[tuple[int, str]]] = {Role.TASK: [(TASK_ORDER, task)], Role.USER: [], Role.AGENT: []}
    for position, message in enumerate(messages):
        role = role_of(message, rules)
        if role is not Role.SOURCE and message.text:
            by_role[role].append((position, message.text))
    for role, spoken in by_role.items():
        _join(corpus, role, ((order, _add(corpus, texts.normalise(text), role, whole.next())) for order, text in spoken))
    return corpus


@dataclass(slots=True)
class _Counter:
    """Numbers whole texts."""

    value: int = -1

    def next(self) -> int:
        """The next number."""
        self.value += 1
        return self.value


def _add(corpus: Corpus, normalised: str, role: Role, whole: int) -> str:
    """Take the tokens of a text; return it as values are matched, in lower case."""
    before = len(corpus.tokens)
    corpus.tokens.extend(texts.tokens(normalised))
    corpus.lengths.append(len(corpus.tokens) - before)
    corpus.role.append(role)
    corpus.whole.append(whole)
    return normalised.lower()


def _join(corpus: Corpus, role: Role, spoken: Iterable[tuple[int, str]]) -> None:
    """Join the texts of a role with NUL between them."""
    pieces = corpus.pieces[role]
    found: list[str] = []
    at = 0
    for order, text in spoken:
        found.append(text)
        pieces.begin.append(at)
        pieces.end.append(at + len(text))
        pieces.order.append(order)
        at += len(text) + 1
    pieces.joined = "\0".join(found)


def _join_passages(corpus: Corpus, found: list[str]) -> None:
    """Join passages: without a gap within an output, so that a value that a cut parts is still found."""
    pieces = corpus.pieces[Role.SOURCE]
    parts: list[str] = []
    at, last = 0, -1
    for span, text in zip(corpus.passages, found, strict=True):
        if last >= 0 and span.message != last:
            parts.append("\0")
            at += 1
        last = span.message
        parts.append(text)
        pieces.begin.append(at)
        pieces.end.append(at + len(text))
        pieces.order.append(span.message)
        at += len(text)
    pieces.joined = "".join(parts)


@dataclass(frozen=True, slots=True)
class Streams:
    """The corpus as numbers: ids of the entries' tokens (0 for all other tokens), the text each stands in, and who says what."""

    ids: Ints
    text: Ints
    said: Bools  # [role, token id]: the role says the token
    pairs: Ints  # distinct adjacent token pairs of the entries, as first · (vocabulary + 1) + second
    paired: Bools  # [role, pair]: the role says the pair, at distance 1 or 2


def streams(corpus: Corpus, queries: Queries) -> Streams:
    """Look up the entries' tokens and token pairs in every text."""
    ids = ids_of(corpus.tokens, queries.vocabulary)
    text = np.repeat(np.arange(len(corpus.lengths)), corpus.lengths)
    role = np.array(corpus.role, np.int64)[text]
    base = len(queries.vocabulary) + 1
    said = np.zeros((len(Role), base), np.bool_)
    said[role, ids] = True
    said[:, 0] = False
    pairs = np.unique(entry_pairs(queries)[1])
    paired = np.zeros((len(Role), len(pairs)), np.bool_)
    if len(pairs):
        whole = np.array(corpus.whole, np.int64)[text]
        for distance in (1, 2):
            left, right = ids[:-distance], ids[distance:]
            held = (left > 0) & (right > 0) & (whole[:-distance] == whole[distance:])
            codes = left[held] * base + right[held]
            at = np.searchsorted(pairs, codes)
            at[at == len(pairs)] = 0
            known = pairs[at] == codes
            paired[role[:-distance][held][known], at[known]] = True
    return Streams(ids, text, said, pairs, paired)


def entry_pairs(queries: Queries) -> tuple[Ints, Ints]:
    """Adjacent token pairs of the entries: which entry, and the pair as one number."""
    within = queries.query[:-1] == queries.query[1:]
    base = len(queries.vocabulary) + 1
    return queries.query[:-1][within], (queries.ids[:-1] * base + queries.ids[1:])[within]
