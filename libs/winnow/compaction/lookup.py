"""Where a value stands: who says it first, and in which small places of the span or of M it occurs."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from winnow.compaction import text as texts
from winnow.compaction.corpus import TASK_ORDER, Corpus, Pieces, Streams
from winnow.compaction.postings import Postings, Queries
from winnow.compaction.roles import Role
from winnow.compaction.values import Value, is_short_number

#: Characters that may be searched for all values of a boundary together, a second or two. A dev boundary takes 2 million,
#: 40 entries over 400,000 characters 100 million; only a huge summary over a huge span comes here.
MAX_SCANNED: Final = 2_000_000_000
#: Windows that are kept for all values of all entries together; a value that stands in more of them than its share says little.
MAX_WINDOWS: Final = 8_000_000
#: Digits, with the dot before them if there is one: "5" does not stand in "1.5".
_DIGITS: Final = re.compile(r"\.?[0-9]+")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value stands."""

    #: By role: place in the order of first mention (for `previous` the unit), or None.
    first: tuple[int | None, ...]
    #: Windows that hold it: k is passages k and k + 1 of one output, `passages + u` is unit u of M.
    windows: tuple[int, ...]
    #: Who says it first: P, then M, then the messages in order; None where nobody does.
    speaker: Role | None
    #: The same without M: an output counts only where neither P nor the agent said it before.
    span_speaker: Role | None

    @classmethod
    def of(cls, first: tuple[int | None, ...], windows: tuple[int, ...]) -> "Place":
        """A place with its speakers."""
        spoken = [(order, role) for role, order in zip(Role, first, strict=True) if order is not None and role is not Role.PREVIOUS]
        span_speaker = min(spoken)[1] if spoken else None
        task = first[Role.TASK]
        previous = first[Role.PREVIOUS] is not None and (task is None or task > TASK_ORDER)
        return cls(first, windows, Role.PREVIOUS if previous else span_speaker, span_speaker)

    def said_by(self, role: Role) -> bool:
        """Whether the role says the value."""
        return self.first[role] is not None


class Lookup:
    """Looks values up in a corpus. One object a boundary; every distinct value is searched once."""

    def __init__(self, corpus: Corpus, streams: Streams, queries: Queries, values: Sequence[Sequence[Value]]) -> None:
        """Look up the values of all entries."""
        self._corpus = corpus
        self._streams = streams
        self._queries = queries
        distinct = {value.needle: value for of_entry in values for value in of_entry}
        characters = sum(len(pieces.joined) for pieces in corpus.pieces.values()) + 1
        self._cap = max(16, MAX_WINDOWS // max(1, sum(map(len, values))))
        scanned = MAX_SCANNED // characters
        #: True where some values were looked up by their tokens, because texts and values together are too many.
        self.capped = len(distinct) > scanned
        searched = list(distinct.values())[:scanned]
        self._short = self._short_numbers(searched)
        self.places: dict[str, Place] = {value.needle: self._place(value) for value in searched}
        if self.capped:
            everywhere = Postings.of(streams.ids, streams.text, len(corpus.lengths), len(queries.vocabulary))
            for value in list(distinct.values())[scanned:]:
                self.places[value.needle] = self._place_by_tokens(value, everywhere)

    def _short_numbers(self, values: Iterable[Value]) -> dict[str, dict[Role, list[int]]]:
        """Pieces that hold the numbers of at most three digits, at digit boundaries; one pass over the texts."""
        wanted = frozenset(needle for value in values for way in value.ways for needle in way if is_short_number(needle))
        found: dict[str, dict[Role, list[int]]] = {needle: {} for needle in wanted}
        if not wanted:
            return found
        for role, pieces in self._corpus.pieces.items():
            missing = wanted.intersection(_DIGITS.findall(pieces.joined))
            everywhere = role in {Role.SOURCE, Role.PREVIOUS}  # of the others the first place is enough
            for piece, (begin, end) in enumerate(zip(pieces.begin, pieces.end, strict=True)):
                if not missing:
                    break
                here = missing.intersection(_DIGITS.findall(pieces.joined, begin, end))
                for needle in here:
                    found[needle].setdefault(role, []).append(piece)
                if not everywhere:
                    missing -= here
        return found

    def _place(self, value: Value) -> Place:
        """Search a value in its ways."""
        ways = [self._way(way) for way in value.ways]
        if len(ways) == 1:
            return ways[0]
        first = tuple(min((order for way in ways if (order := way.first[role]) is not None), default=None) for role in Role)
        return Place.of(first, tuple(sorted({window for way in ways for window in way.windows})))

    def _way(self, needles: tuple[str, ...]) -> Place:
        """Where all of `needles` stand."""
        places = [self._needle(needle) for needle in needles]
        if len(places) == 1:
            return places[0]
        first = tuple(
            None if any(place.first[role] is None for place in places) else max(place.first[role] or 0 for place in places) for role in Role
        )
        return Place.of(first, tuple(sorted(set[int].intersection(*(set(place.windows) for place in places)))))

    def _needle(self, needle: str) -> Place:
        """Where one needle stands."""
        corpus = self._corpus
        first: list[int | None] = [None] * len(Role)
        passages = len(corpus.passages)
        if needle in self._short:
            held = self._short[needle]
            for role, found in held.items():
                first[role] = corpus.pieces[role].order[found[0]]
            whole = [(piece, False) for piece in held.get(Role.SOURCE, ())[: self._cap]]
            units = held.get(Role.PREVIOUS, [])[: self._cap]
        else:
            for role in (Role.TASK, Role.USER, Role.AGENT):
                pieces = corpus.pieces[role]
                position = pieces.joined.find(needle)
                if position >= 0:
                    first[role] = pieces.order[pieces.at(position)]
            whole = _occurrences(needle, corpus.pieces[Role.SOURCE], self._cap)
            units = [piece for piece, _ in _occurrences(needle, corpus.pieces[Role.PREVIOUS], self._cap)]
            if whole:
                first[Role.SOURCE] = corpus.pieces[Role.SOURCE].order[whole[0][0]]
            if units:
                first[Role.PREVIOUS] = units[0]
        return Place.of(tuple(first), (*self._windows(whole), *(passages + unit for unit in units)))

    def _windows(self, occurrences: Sequence[tuple[int, bool]]) -> list[int]:
        """Windows that hold the passages; one that reaches into the next passage stands in that window alone."""
        passages = self._corpus.passages
        found: list[int] = []
        for passage, reaches in occurrences:
            follows = passage > 0 and passages[passage - 1].message == passages[passage].message
            if follows and not reaches and (not found or found[-1] < passage - 1):
                found.append(passage - 1)
            if not found or found[-1] < passage:
                found.append(passage)
        return found

    def _place_by_tokens(self, value: Value, everywhere: Postings) -> Place:
        """Where all tokens of a value stand in one text: what is left where searching every value would take too long."""
        ids = {self._queries.vocabulary.get(token, 0) for token in texts.tokens(value.needle)}
        first: list[int | None] = [None] * len(Role)
        if not ids or 0 in ids:
            return Place.of(tuple(first), ())
        lists = sorted((everywhere.document[everywhere.start[at] : everywhere.start[at + 1]] for at in ids), key=len)
        held = lists[0]
        for other in lists[1:]:
            held = np.intersect1d(held, other, assume_unique=True)
        passages, units = len(self._corpus.passages), len(self._corpus.units)
        found = held.tolist()
        whole = [(text, False) for text in found if text < passages][: self._cap]
        in_units = [text - passages for text in found if passages <= text < passages + units][: self._cap]
        offset = passages + units
        for role in (Role.TASK, Role.USER, Role.AGENT):
            count = len(self._corpus.pieces[role].order)
            at = next((text - offset for text in found if offset <= text < offset + count), None)
            first[role] = None if at is None else self._corpus.pieces[role].order[at]
            offset += count
        if whole:
            first[Role.SOURCE] = self._corpus.pieces[Role.SOURCE].order[whole[0][0]]
        if in_units:
            first[Role.PREVIOUS] = in_units[0]
        return Place.of(tuple(first), (*self._windows(whole), *(passages + unit for unit in in_units)))


def _occurrences(needle: str, pieces: Pieces, limit: int) -> list[tuple[int, bool]]:
    """Pieces in which the needle begins, and whether it reaches beyond the piece; the first occurrence of each piece decides."""
    joined, begin, end = pieces.joined, pieces.begin, pieces.end
    find, size = joined.find, len(needle)
    found: list[tuple[int, bool]] = []
    position = find(needle)
    while position >= 0:
        piece = pieces.at(position)
        found.append((piece, position + size > end[piece]))
        if piece + 1 == len(begin) or len(found) == limit:
            break
        position = find(needle, begin[piece + 1])
    return found
