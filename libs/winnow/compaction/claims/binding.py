"""How well each atom of an entry is bound to what the entry says of it: in its own records, and in those that give another value.

For an atom (a number, date, code) of an entry, every record of M and of the outputs that holds an atom of its kind is compared with the
words around the atom in the entry. If records with another value fit those words clearly better than every record with this one, the
value belongs elsewhere. All entries at once, by numpy; every sum is over whole numbers, so that it is exact in any order.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from winnow.compaction.claims.atoms import Atom
from winnow.compaction.claims.records import BREAK, Records, Words
from winnow.compaction.postings import Bools, Floats, Ints

#: Words of an entry on each side of an atom that say what it is; each counts e⁻¹ of the one eight words nearer.
_WINDOW: Final = 24
_DECAY: Final = 8.0
#: Factor for each mark of punctuation, and for each sibling (another atom of the kind), that stands between word and atom.
_ACROSS_BREAK: Final = 0.7
_ACROSS_SIBLING: Final = 0.5
#: Weights are whole numbers, so that their sums are exact in any order.
_SCALE: Final = 256.0
#: Weight of the direct neighbours (two words left, two right) against that of all words.
_NEIGHBOURS: Final = 0.4
#: A number of one or two digits, or with a unit, is compared only where a direct neighbour is the same: 12 stands everywhere.
_WEAK_NEIGHBOURS: Final = 0.3
_SAME_PLACE: Final = 0.5
#: Years between dates that are compared: a date of birth is no travel date.
_YEARS_APART: Final = 1
#: Cells (atoms × records or occurrences) that are held at once: 16 MB an array.
_BLOCK: Final = 2_000_000
#: Cells of all blocks together, a quarter of a second; beyond it the rest is left unbound, and said so.
MAX_CELLS: Final = 20_000_000
_WEAK_KINDS: Final = frozenset({"n1", "n2"})


class Asked(NamedTuple):
    """An atom of an entry."""

    entry: int
    word: int  # word number among all entries' words
    atom: Atom


class Bound(NamedTuple):
    """How well an atom is bound, 0 to 1 each."""

    own: float  # best fit of a record that holds it
    other: float  # best fit of a record with another value of its kind
    record: int  # that record; -1 where there is none
    occurrence: int  # the other value there, as a number of the records' atoms; -1 where there is none


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries' words: joined by marks, which also stand for punctuation."""

    words: Words
    #: First word of each entry, and the end of the last.
    starts: list[int]
    atoms: list[list[tuple[int, Atom]]]  # by entry

    @classmethod
    def of(cls, lowered: Sequence[str]) -> "Entries":
        """Read entries in lower case, normalised, without marker and without marks."""
        joined = " \x02 ".join((*lowered, ""))
        for sign in ",;()+|→":
            if sign in joined:
                joined = joined.replace(sign, f" {BREAK} ")
        words = Words(joined)
        starts = [0, *(at + 1 for at, word in enumerate(words.words) if word == "\x02")]
        atoms: list[list[tuple[int, Atom]]] = [[] for _ in lowered]
        entry = 0
        for at, atom in words.atoms:
            while at >= starts[entry + 1]:
                entry += 1
            atoms[entry].append((at, atom))
        return cls(words, starts, atoms)


class Binding:
    """Atoms of entries against the records of one boundary."""

    def __init__(self, records: Records, entries: Entries, *, idle: bool = False) -> None:
        """Look up the entries' tokens, neighbours and atoms in the records; `idle`: do not, and leave everything unbound."""
        self._records = records
        self._entries = entries
        vocabulary = _numbered(chain.from_iterable(entries.words.stems()))
        canons = _numbered(atom.canon for atoms in entries.atoms for _, atom in atoms)
        kinds = _numbered(atom.kind for atoms in entries.atoms for _, atom in atoms)
        self._canons, self._kinds, self._tokens = canons, kinds, len(vocabulary)
        #: True where atoms were left unbound, because records and entries together are too many.
        self.capped = idle and bool(canons)
        self._empty = idle or not records.records or not canons
        if self._empty:
            return
        self._vocabulary = vocabulary
        self._numeral = np.array([False, *(token.isdigit() for token in vocabulary)])
        self._read_entries(vocabulary)
        self._read_records(vocabulary)

    def _read_entries(self, vocabulary: dict[str, int]) -> None:
        """Tokens, forms, punctuation and siblings of the entries."""
        words = self._entries.words
        self._token, self._token_word = words.token_ids(vocabulary)
        marks = np.fromiter((word == BREAK for word in words.words), np.bool_, len(words.words))
        self._breaks = marks.cumsum()
        forms = words.forms()
        self._form = _numbered(forms)
        kept = np.array([at for at, word in enumerate(words.words) if word != BREAK], np.int64)
        numbers = words.form_ids(self._form)
        self._near = np.concatenate((numbers[kept], (0, 0)))  # without punctuation, so that "(152" has the word before the bracket
        self._at_near = np.zeros(len(words.words), np.int64)
        self._at_near[kept] = np.arange(len(kept))
        keys = [
            ((entry * (len(self._kinds) + 1) + self._kinds[atom.kind]) * len(words.words)) + at
            for entry, atoms in enumerate(self._entries.atoms)
            for at, atom in atoms
        ]
        self._siblings = np.array(sorted(keys), np.int64)

    def _read_records(self, vocabulary: dict[str, int]) -> None:
        """Which record holds which token and atom, narrowly and with what is around it; and where atoms occur."""
        records = self._records
        rows: list[tuple[int, int, int, int]] = []
        self.occurrences: list[tuple[int, Atom]] = []
        for at, atom in records.words.atoms:
            canon, kind = self._canons.get(atom.canon, 0), self._kinds.get(atom.kind, 0) if at < records.agent_at else 0
            if canon or kind:
                rows.append((at, canon, kind, _year(atom)))
                self.occurrences.append((at, atom))
            if atom.kind == "date" and (day := self._canons.get(atom.canon[5:], 0)):
                rows.append((at, day, 0, 0))
                self.occurrences.append((at, atom))
        table = np.array(rows, np.int64).reshape(len(rows), 4)
        self._o_word, self._o_canon, self._o_kind, self._o_year = table.T
        self._o_record = records.starts.searchsorted(self._o_word, "right") - 1
        token, word = records.words.token_ids(vocabulary)
        columns = self._tokens + len(self._canons) + 1
        named = self._o_canon > 0
        held = np.concatenate((token, self._tokens + self._o_canon[named]))
        record = np.concatenate((records.starts.searchsorted(word, "right") - 1, self._o_record[named]))
        order = record.argsort(kind="stable")
        held, record = held[order], record[order]
        narrow, wide = np.zeros((2, len(records.records), columns), np.bool_)
        narrow[record, held] = True
        _widen(wide, record, held, records.around)
        df = narrow[:, : self._tokens + 1].sum(axis=0)
        idf = np.log1p((len(narrow) - df + 0.5) / (df + 0.5))
        # What no record says tells no record from another, and in a long span neither does what one in twenty says.
        idf[(df == 0) | (df > max(_MANY, len(narrow) // _COMMON))] = 0.0
        self._idf = idf
        self._wide = wide
        token, self._holding = wide[:, : self._tokens + 1].T.nonzero()
        self._holding_from = token.searchsorted(np.arange(self._tokens + 2))
        order = self._o_canon.argsort(kind="stable")
        self._saying = self._o_record[order]
        self._saying_from = self._o_canon[order].searchsorted(np.arange(len(self._canons) + 2))
        self._forms = records.words.form_ids(self._form)

    def bind(self, asked: Sequence[Asked]) -> list[Bound]:
        """How each asked atom is bound."""
        if self._empty or not asked or not len(self._o_word):
            return [_UNBOUND] * len(asked)
        rows = max(1, _BLOCK // max(len(self._o_word), len(self._records.records), self._tokens))
        found: list[Bound] = []
        for begin in range(0, len(asked), rows):
            if begin * len(self._o_word) > MAX_CELLS:
                self.capped = True
                found += [_UNBOUND] * (len(asked) - begin)
                break
            found += self._bind(asked[begin : begin + rows])
        return found

    def _bind(self, asked: Sequence[Asked]) -> list[Bound]:
        """One block of atoms against all occurrences."""
        word = np.array([one.word for one in asked])
        canon = np.array([self._canons[one.atom.canon] for one in asked])
        kind = np.array([self._kinds[one.atom.kind] for one in asked])
        cover = self._cover(*self._weights(asked, word, kind), len(asked))
        neighbours = self._neighbours(word)
        fit = (1.0 - _NEIGHBOURS) * cover[:, self._o_record] + _NEIGHBOURS * neighbours
        own = np.where(self._o_canon == canon[:, None], fit, 0.0).max(axis=1)
        other = (self._o_kind == kind[:, None]) & (self._o_canon != canon[:, None])
        other &= ~self._wide.T[self._tokens + canon][:, self._o_record]
        siblings, holding = self._siblings_of(asked)
        other &= ~siblings[:, self._o_canon]
        other &= ~holding[:, self._o_record] | (neighbours >= _SAME_PLACE)
        year = np.array([_year(one.atom) for one in asked])
        other &= np.abs(self._o_year - year[:, None]) <= _YEARS_APART
        weak = np.array([one.atom.kind in _WEAK_KINDS or one.atom.kind.startswith("of ") for one in asked])
        other &= ~weak[:, None] | (neighbours >= _WEAK_NEIGHBOURS)
        fits = np.where(other, fit, 0.0)
        best = fits.argmax(axis=1)
        found: list[Bound] = []
        for row, (at, fitting) in enumerate(zip(best.tolist(), fits.max(axis=1).tolist(), strict=True)):
            where = at if fitting > 0.0 else -1
            found.append(Bound(float(own[row]), fitting, int(self._o_record[at]) if where >= 0 else -1, where))
        return found

    def _cover(self, row: Ints, token: Ints, weight: Floats, rows: int) -> Floats:
        """For each atom and record: the share of the atom's weight whose tokens the record, or one around it, holds."""
        number, at = expanded(self._holding_from[token], self._holding_from[token + 1])
        cells = row[number] * len(self._records.records) + self._holding[at]
        summed = np.bincount(cells, weight[number], rows * len(self._records.records)).reshape(rows, -1)
        total = np.maximum(np.bincount(row, weight, rows), 1.0)
        return np.asarray(summed / total[:, None], np.float64)

    def _siblings_of(self, asked: Sequence[Asked]) -> tuple[Bools, Bools]:
        """For each atom its siblings, and the records that hold one: what they say is the sibling's."""
        pairs = [
            (row, self._canons[atom.canon])
            for row, one in enumerate(asked)
            for _, atom in self._entries.atoms[one.entry]
            if atom.kind == one.atom.kind and atom.canon != one.atom.canon
        ]
        siblings = np.zeros((len(asked), len(self._canons) + 1), np.bool_)
        holding = np.zeros((len(asked), len(self._records.records)), np.bool_)
        if pairs:
            row, canon = np.array(pairs).T
            siblings[row, canon] = True
            number, at = expanded(self._saying_from[canon], self._saying_from[canon + 1])
            holding[row[number], self._saying[at]] = True
        return siblings, holding

    def _weights(self, asked: Sequence[Asked], word: Ints, kind: Ints) -> tuple[Ints, Ints, Floats]:
        """The tokens near each atom in its entry: number of the atom, token, and its weight there as a whole number."""
        starts = np.array(self._entries.starts)
        entry = np.array([one.entry for one in asked])
        low = self._token_word.searchsorted(np.maximum(starts[entry], word - _WINDOW))
        high = self._token_word.searchsorted(np.minimum(starts[entry + 1], word + _WINDOW + 1))
        row, token_at = expanded(low, high)
        at, own = self._token_word[token_at], word[row]
        first, last = np.minimum(at, own), np.maximum(at, own)
        breaks = self._breaks[last] - self._breaks[first]
        base = ((entry * (len(self._kinds) + 1) + kind) * len(self._entries.words.words))[row]
        siblings = self._siblings.searchsorted(base + last) - self._siblings.searchsorted(base + first, "right")
        weight = np.exp((first - last + breaks) / _DECAY) * _ACROSS_BREAK**breaks * _ACROSS_SIBLING ** np.maximum(siblings, 0)
        weight = np.rint(_SCALE * weight * self._idf[self._token[token_at]]) * ((at != own) | self._beside(asked, row, token_at))
        kept = weight > 0.0
        return row[kept], self._token[token_at[kept]], weight[kept]

    def _beside(self, asked: Sequence[Asked], row: Ints, token_at: Ints) -> Bools:
        """Tokens that are no part of the atom itself, though they may stand in its word: a host name before its port."""
        own = np.array([self._vocabulary.get(one.atom.canon, 0) for one in asked])[row]
        beside: Bools = (self._token[token_at] != own) & ~self._numeral[self._token[token_at]]
        return beside

    def _neighbours(self, word: Ints) -> Floats:
        """Agreement of the two words on each side, 0 to 1, of every atom with every occurrence."""
        at = self._at_near[word]
        agreed = np.zeros((len(word), len(self._o_word)))
        for side in (-1, 1):
            near = self._near[at + side][:, None]
            same = (near == self._forms[self._o_word + side]) & (near > 0)
            far = self._near[at + 2 * side][:, None]
            agreed += same + 0.5 * (same & (far == self._forms[self._o_word + 2 * side]) & (far > 0))
        return agreed / 3.0


#: Records up to which every word counts, and the share (one in so many) that makes a word common beyond.
_MANY: Final = 1_000
_COMMON: Final = 20
_UNBOUND: Final = Bound(0.0, 0.0, -1, -1)


def _numbered(items: Iterable[str]) -> dict[str, int]:
    """Numbers from 1 by first appearance."""
    return {item: number for number, item in enumerate(dict.fromkeys(filter(None, items)), 1)}


def _year(atom: Atom) -> int:
    """The year of a date, 0 of everything else."""
    return int(atom.canon[:4]) if atom.kind == "date" else 0


def expanded(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """All numbers of many ranges [low, high), one range after another, each with the number of its range."""
    counts = high - low
    number = np.arange(len(counts)).repeat(counts)
    return number, np.arange(len(number)) + (low - counts.cumsum() + counts).repeat(counts)


def _widen(wide: Bools, record: Ints, held: Ints, around: tuple[Ints, Ints]) -> None:
    """Mark in each row what the records around it hold; `record` is sorted and says where each of `held` stands."""
    first, second = around
    low, high = record.searchsorted(second), record.searchsorted(second, "right")
    ends = (high - low).cumsum()
    begin = 0
    while begin < len(first):
        done = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(ends.searchsorted(done + _BLOCK, "right")))
        number, at = expanded(low[begin:end], high[begin:end])
        wide[first[begin:end][number], held[at]] = True
        begin = end
