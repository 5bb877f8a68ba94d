"""Where a value stands: who says it first, and in which small places of the span or of M it occurs."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

import numpy as np

from winnow.compaction import text as texts
from winnow.compaction.corpus import TASK_ORDER, Corpus, Streams
from winnow.compaction.postings import Postings, Queries
from winnow.compaction.roles import Role
from winnow.compaction.values import Value, is_short_number

#: Characters that may be searched for all values of a boundary together, a second or two. A dev boundary takes 2 million,
#: 40 entries over 400,000 characters 100 million; only a huge summary over a huge span comes here.
MAX_SCANNED: Final = 2_000_000_000
#: Windows that are kept for all values of all entries together; a value that stands in more of them than its share says little.
MAX_WINDOWS: Final = 8_000_000
#: An output that begins so is a record or a list of them.
_RECORDS: Final = ("{", "[")
#: What stands around a field's whole value there.
_BEFORE_FIELD: Final = frozenset('": [')
_AFTER_FIELD: Final = frozenset('",}]')
#: Digits and dots stay, everything else is a blank: what is left are the numbers, whatever the text.
_ONLY_DIGITS: Final = bytes(code if code in b"0123456789." else 32 for code in range(256))


class Place(NamedTuple):
    """Where a value stands. A named tuple: dozens are made a boundary, at a third of a dataclass's price."""

    #: By role: place in the order of first mention (for `previous` the unit), or None.
    first: tuple[int | None, ...]
    #: Windows that hold it: k is passages k and k + 1 of one output, `passages + u` is unit u of M.
    windows: AbstractSet[int]
    #: Who says it first: P, then M, then the messages in order; None where nobody does.
    speaker: Role | None
    #: The same without M: an output counts only where neither P nor the agent said it before.
    span_speaker: Role | None
    #: Pieces that hold the first mention by P or the host, and by a user; -1 where there is none.
    told: tuple[int, int] = (-1, -1)
    #: An output gives it back as the whole value of a field of a record.
    is_field: bool = False

    @classmethod
    def of(
        cls, first: Sequence[int | None], windows: AbstractSet[int], told: tuple[int, int] = (-1, -1), *, is_field: bool = False
    ) -> "Place":
        """A place with its speakers."""
        task, user, agent, previous, source = first
        speaker: Role | None = None
        earliest = 0
        for role, order in ((Role.TASK, task), (Role.USER, user), (Role.AGENT, agent), (Role.SOURCE, source)):
            if order is not None and (speaker is None or order < earliest):
                speaker, earliest = role, order
        carried = previous is not None and (task is None or task > TASK_ORDER)
        return cls(tuple(first), windows, Role.PREVIOUS if carried else speaker, speaker, told, is_field)


class Lookup:
    """Looks values up in a corpus. One object a boundary; every distinct value is searched once."""

    def __init__(self, corpus: Corpus, streams: Streams, queries: Queries, values: Sequence[Sequence[Value]]) -> None:
        """Look up the values of all entries."""
        self._corpus = corpus
        self._pieces = corpus.pieces
        distinct = {value.needle: value for of_entry in values for value in of_entry}
        self._cap = max(16, MAX_WINDOWS // max(1, sum(map(len, values))))
        self._numbers = _numbers(corpus, {way for value in distinct.values() for needles in value.ways for way in needles}, self._cap)
        self._facts = _facts(corpus)
        recorded = {output.message for output in corpus.outputs if output.text.lstrip()[:1] in _RECORDS}
        #: Number of passages: windows from it on are units of M.
        self.passages = len(corpus.passages)
        #: There is an M that says something.
        self.has_previous = bool(corpus.units)
        #: Pieces of P.
        self.of_task = corpus.pieces.of_task
        #: Windows of outputs that are records (JSON), by number.
        self.recorded = frozenset(at for at, span in enumerate(corpus.passages) if span.message in recorded)
        scanned = MAX_SCANNED // (len(self._pieces.joined) + 1)
        #: True where some values were looked up by their tokens, because texts and values together are too many.
        self.capped = len(distinct) > scanned
        searched = list(distinct.values())
        self.places: dict[str, Place] = {value.needle: self._place(value) for value in searched[:scanned]}
        if self.capped:
            everywhere = Postings.of(streams.ids, streams.text, len(corpus.role), len(queries.vocabulary))
            for value in searched[scanned:]:
                self.places[value.needle] = self._place_by_tokens(value, queries, everywhere)

    def _place(self, value: Value) -> Place:
        """Search a value in its ways; of a path or address, who says its last part first, says it."""
        if len(value.ways) == 1:
            place = self._needle(value.needle)
            if not value.name:
                return place
            named = self._needle(value.name)
            return named._replace(windows=place.windows, is_field=place.is_field)
        ways = [self._way(way) for way in value.ways]
        first = [min((order for way in ways if (order := way.first[role]) is not None), default=None) for role in Role]
        told = next((way.told for way in ways if way.told != (-1, -1)), (-1, -1))
        return Place.of(first, set[int]().union(*(way.windows for way in ways)), told, is_field=any(way.is_field for way in ways))

    def _way(self, needles: tuple[str, ...]) -> Place:
        """Where all of `needles` stand."""
        places = [self._needle(needle) for needle in needles]
        orders = ([place.first[role] for place in places] for role in Role)
        first = [None if None in of_role else max(order for order in of_role if order is not None) for of_role in orders]
        windows = set(places[0].windows).intersection(*(place.windows for place in places))
        return Place.of(first, windows, places[0].told)

    def _needle(self, needle: str) -> Place:
        """Where one needle stands: the first mention by each role, and every unit and passage."""
        if needle in self._numbers:
            return self._gather(self._numbers[needle])
        pieces, facts = self._pieces, self._facts
        begin, end, onward = pieces.begin, pieces.end, pieces.onward
        joined, recorded = pieces.joined, self.recorded
        find, size, room = joined.find, len(needle), self._cap
        first: list[int | None] = [None, None, None, None, None]
        told = [-1, -1]
        windows: set[int] = set()
        is_field = False
        position = find(needle)
        while position >= 0:
            piece = bisect_right(begin, position) - 1
            role, order, held = facts[piece]
            if first[role] is None:
                first[role] = order
                if role <= Role.USER:
                    told[role] = piece
            if not is_field and held and held[0] in recorded:
                around = joined[position - 1], joined[position + size : position + size + 1]
                is_field = around[0] in _BEFORE_FIELD and around[1] in _AFTER_FIELD
            if position + size <= end[piece]:
                windows.update(held)
            elif held:
                windows.add(held[0])  # it reaches into the next passage
            room -= 1
            if room > 0:
                position = find(needle, onward[piece])
            elif piece < pieces.first_passage:
                # M alone filled the room: the outputs get as much.
                room = self._cap
                position = find(needle, max(onward[piece], pieces.sources_at))
            else:
                break
        return Place.of(first, windows, (told[0], told[1]), is_field=is_field)

    def _gather(self, hits: Sequence[int]) -> Place:
        """A place from the pieces that hold a needle, ascending."""
        first: list[int | None] = [None, None, None, None, None]
        told = [-1, -1]
        windows: set[int] = set()
        for piece in hits:
            role, order, held = self._facts[piece]
            if first[role] is None:
                first[role] = order
                if role <= Role.USER:
                    told[role] = piece
            windows.update(held)
        return Place.of(first, windows, (told[0], told[1]))

    def _place_by_tokens(self, value: Value, queries: Queries, everywhere: Postings) -> Place:
        """Where all tokens of a value stand in one text: what is left where searching every value would take too long."""
        ids = sorted({queries.vocabulary.get(token, 0) for token in texts.tokens(value.needle)})
        if not ids or not ids[0]:
            return self._gather(())
        held, *others = sorted((everywhere.document[everywhere.start[at] : everywhere.start[at + 1]] for at in ids), key=len)
        for other in others:
            held = np.intersect1d(held, other, assume_unique=True)
        # Texts are numbered passages, units, spoken; pieces the other way round, with several for P, the first spoken one.
        passages, units, spoken = len(self._corpus.passages), len(self._corpus.units), self._pieces.first_unit
        in_units, in_spoken = held - passages + spoken, held - passages - units
        in_spoken = np.where(in_spoken > 0, in_spoken + self._pieces.of_task - 1, 0)
        pieces = np.where(held < passages, held + spoken + units, np.where(held < passages + units, in_units, in_spoken))
        kept: Counter[Role] = Counter()
        hits: list[int] = []
        for piece in sorted(pieces.tolist()):
            role = self._pieces.role[piece]
            kept[role] += 1
            if kept[role] <= self._cap:
                hits.append(piece)
        return self._gather(hits)


def _numbers(corpus: Corpus, needles: set[str], cap: int) -> dict[str, list[int]]:
    """Pieces that hold the numbers of at most three digits among `needles`, at digit boundaries; one pass over the texts."""
    found: dict[str, list[int]] = {needle: [] for needle in needles if is_short_number(needle)}
    if not found:
        return found
    wanted = {needle.encode("ascii"): pieces for needle, pieces in found.items()}
    pieces = corpus.pieces
    # One byte a character. A dot is parted from the number before it, so that what stands behind a dot begins with it: "1.5" is "1", ".5".
    digits = pieces.joined.encode("ascii", "replace").translate(_ONLY_DIGITS)
    for piece, (begin, end) in enumerate(zip(pieces.begin, pieces.end, strict=True)):
        limit = 2 * cap if piece >= pieces.first_passage else cap
        for number in wanted.keys() & set(digits[begin:end].replace(b".", b" .").split()):
            if len(wanted[number]) < limit:
                wanted[number].append(piece)
    return found


def _facts(corpus: Corpus) -> list[tuple[Role, int, tuple[int, ...]]]:
    """Of each piece: role, place in the order of first mention, and its windows, its own first.

    A passage stands in the window that it opens and in the one of the passage before it; only the former holds what reaches beyond it.
    """
    pieces, passages = corpus.pieces, corpus.passages
    found: list[tuple[Role, int, tuple[int, ...]]] = []
    for role, order in zip(pieces.role, pieces.order, strict=True):
        windows: tuple[int, ...] = ()
        if role is Role.SOURCE:
            passage = len(found) - pieces.first_passage
            follows = passage > 0 and passages[passage - 1].message == order
            windows = (passage, passage - 1) if follows else (passage,)
        elif role is Role.PREVIOUS:
            windows = (len(passages) + order,)
        found.append((role, order, windows))
    return found
