"""A boundary's texts, tokenised once and indexed for the tokens and values of its entries."""

from collections.abc import Sequence
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
    """All texts as values are matched, joined so that no value spans two of them.

    They stand by role, in the order TASK, USER, AGENT, PREVIOUS, SOURCE. P is cut like an output, and pieces of P or of one output follow
    each other without a gap, so that a value that a cut parts is still found.
    """

    joined: str = ""
    begin: list[int] = field(default_factory=list)  # where each piece begins in `joined`
    end: list[int] = field(default_factory=list)
    role: list[Role] = field(default_factory=list)
    order: list[int] = field(default_factory=list)  # place in the order of first mention
    #: Where to search on behind a hit: the next unit or passage; of the other roles the first mention is enough.
    onward: list[int] = field(default_factory=list)
    #: Pieces of P, which come first.
    of_task: int = 0
    #: Piece number of the first unit and of the first passage, and where the passages begin.
    first_unit: int = 0
    first_passage: int = 0
    sources_at: int = 0


#: Places in the order of first mention: P, the units of M, then the messages by position.
TASK_ORDER: Final = -1


@dataclass(frozen=True, slots=True)
class Corpus:
    """All that the boundary's texts say, by role. Texts are numbered: passages first, then units, then the rest."""

    messages: Sequence[Message]
    outputs: list[Output]
    passages: list[Span]
    units: list[Unit]
    pieces: Pieces
    stream: texts.Stream
    role: list[Role]  # of each text
    order: list[int]  # of each text: P, then the messages by position (for a unit its number)
    whole: list[int]  # which whole text (output, unit, message) each belongs to: pairs of tokens do not reach beyond it


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
    sources = outputs(messages, rules)
    passages = [Span(output.message, start, end) for output in sources for start, end in cuts(output.text, PASSAGE_CHARS)]
    by_message = {output.message: output.text for output in sources}
    spoken: list[tuple[Role, int, str]] = []
    for position, message in enumerate(messages):
        role = role_of(message, rules)
        if role is not Role.SOURCE and message.text:
            spoken.append((role, position, texts.unescaped(message.text) if role is Role.AGENT else message.text))
    spoken.sort(key=lambda said: said[0])  # stable: within a role the order stays
    normal = [texts.normalise(by_message[span.message][span.start : span.end]) for span in passages]
    normal += [unit.text for unit in units]
    normal += [texts.normalise(text) for _, _, text in spoken]
    of_task, first_spoken = texts.prepared(task), len(passages) + len(units)
    lower = [text.lower() for text in normal]
    lower.insert(first_spoken, of_task.lower)
    spoken.insert(0, (Role.TASK, TASK_ORDER, task))
    # Whole texts are numbered so that no two share a number: outputs by position, the rest behind them.
    rest = range(len(messages), len(messages) + len(units) + len(spoken))
    return Corpus(
        messages=messages,
        outputs=sources,
        passages=passages,
        units=units,
        pieces=_joined(lower, passages, len(units), spoken),
        stream=texts.stream(normal).with_text(first_spoken, of_task.tokens),
        role=[Role.SOURCE] * len(passages) + [Role.PREVIOUS] * len(units) + [role for role, _, _ in spoken],
        order=[span.message for span in passages] + list(range(len(units))) + [order for _, order, _ in spoken],
        whole=[span.message for span in passages] + list(rest),
    )


def _joined(lower: list[str], passages: list[Span], units: int, spoken: list[tuple[Role, int, str]]) -> Pieces:
    """Join all texts (in the order of `Corpus`) with NUL between them, except between pieces of P or of one output."""
    first_spoken = len(passages) + units
    task = lower[first_spoken]
    windows = [task[start:end] for start, end in cuts(task, PASSAGE_CHARS)] or [""]
    said = len(windows) + len(spoken) - 1
    pieces = Pieces(
        role=[Role.TASK] * len(windows) + [role for role, _, _ in spoken[1:]] + [Role.PREVIOUS] * units + [Role.SOURCE] * len(passages),
        order=[TASK_ORDER] * len(windows) + [o for _, o, _ in spoken[1:]] + list(range(units)) + [span.message for span in passages],
        of_task=len(windows),
        first_unit=said,
        first_passage=said + units,
    )
    parts: list[str] = []
    at = 0
    for number, text in enumerate(windows + lower[first_spoken + 1 :] + lower[len(passages) : first_spoken] + lower[: len(passages)]):
        cut = number < pieces.of_task or number > pieces.first_passage
        if number and not (cut and pieces.order[number - 1] == pieces.order[number]):
            parts.append("\0")
            at += 1
        parts.append(text)
        pieces.begin.append(at)
        at += len(text)
        pieces.end.append(at)
    pieces.joined = "".join(parts)
    pieces.sources_at = pieces.begin[pieces.first_passage] if passages else at
    beyond = [*pieces.begin[1:], at]
    for number in range(pieces.first_unit - 1, -1, -1):
        last_of_role = number + 1 == pieces.first_unit or pieces.role[number + 1] is not pieces.role[number]
        if not last_of_role:
            beyond[number] = beyond[number + 1]
    pieces.onward = beyond
    return pieces


@dataclass(frozen=True, slots=True)
class Streams:
    """The corpus as numbers: the entries' tokens in order of the texts, the text each stands in, and who says what."""

    ids: Ints  # without the tokens of no entry
    text: Ints
    said: Bools  # [role, token id]: the role says the token
    first: Ints  # [token id]: the role that says it first, in the order P, then the messages (M aside); -1 where nobody does
    texts: Ints  # [token id]: number of texts that hold it, of all roles
    pairs: Ints  # distinct adjacent token pairs of the entries, as first · (vocabulary + 1) + second
    paired: Bools  # [role, pair]: the role says the pair, at distance 1 or 2


def streams(corpus: Corpus, queries: Queries) -> Streams:
    """Look up the entries' tokens and token pairs in every text."""
    ids = ids_of(corpus.stream.tokens, queries.vocabulary)
    text = np.arange(len(corpus.role)).repeat(np.array(corpus.stream.lengths(), np.int64) + 1)  # and the mark behind each
    base = len(queries.vocabulary) + 1
    said = np.zeros((len(Role), base), np.bool_)
    # Only tokens of the entries count from here on: about a third of the span.
    (place,) = ids.nonzero()
    known, text_of = ids[place], text[place]
    role = np.array(corpus.role, np.int64)[text_of]
    said[role, known] = True
    first, held = _first(known, role, np.array(corpus.order, np.int64)[text_of], base), _texts(known, text_of, base)
    pairs = np.array(sorted(set(entry_pairs(queries)[1].tolist())), np.int64)  # np.unique is three times as slow on hundreds
    paired = np.zeros((len(Role), len(pairs)), np.bool_)
    if len(pairs) and len(place):
        whole = np.array(corpus.whole, np.int64)[text_of]
        place = place - text_of  # without the marks: passages of one output follow each other
        # Two known tokens at distance 1 or 2 are neighbours among the known ones, or have one known token between them.
        number = np.arange(len(place))
        left = np.concatenate((number[:-1], number[:-2]))
        right = np.concatenate((number[1:], number[2:]))
        near = (place[right] - place[left] <= 2) & (whole[right] == whole[left])  # noqa: PLR2004  distance 1 or 2
        left, right = left[near], right[near]
        codes = known[left] * base + known[right]
        at = np.minimum(pairs.searchsorted(codes), len(pairs) - 1)
        hit = pairs[at] == codes
        paired[role[left[hit]], at[hit]] = True
    return Streams(known, text_of, said, first, held, pairs, paired)


def _first(known: Ints, role: Ints, order: Ints, base: int) -> Ints:
    """The role that says each token first, M aside."""
    never = np.iinfo(np.int64).max
    earliest = np.full(base, never)
    span = role != Role.PREVIOUS
    # Of one message there is one role, so that the order decides; P and no message has the order -1.
    np.minimum.at(earliest, known[span], (order[span] - TASK_ORDER) * len(Role) + role[span])
    return np.where(earliest == never, -1, earliest % len(Role))


def _texts(known: Ints, text_of: Ints, base: int) -> Ints:
    """Number of texts that hold each token."""
    codes = text_of * base + known
    codes.sort()
    new = np.ones(len(codes), np.bool_)
    new[1:] = codes[1:] != codes[:-1]
    return np.bincount(codes[new] % base, minlength=base)


def entry_pairs(queries: Queries) -> tuple[Ints, Ints]:
    """Adjacent token pairs of the entries: which entry, and the pair as one number."""
    within = queries.query[:-1] == queries.query[1:]
    base = len(queries.vocabulary) + 1
    return queries.query[:-1][within], (queries.ids[:-1] * base + queries.ids[1:])[within]
