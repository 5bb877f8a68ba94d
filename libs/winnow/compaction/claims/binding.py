"""How well each atom of an entry is bound to what the entry says of it: in its own records, and in those that give another value.

For an atom (a number, date, code) of an entry, every record of M and of the outputs that holds an atom of its kind is compared with the
words around the atom in the entry. If records with another value fit those words clearly better than every record with this one, the
value belongs elsewhere. All entries at once, by numpy; every sum is over whole numbers, so that it is exact in any order.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain
from typing import Final, NamedTuple

import numpy as np

from winnow.compaction.claims.atoms import VALUE, Atom
from winnow.compaction.claims.records import BREAK, Records, Words, form_of, stems_of
from winnow.compaction.postings import Bools, Floats, Ints, expanded

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
    name: str = ""  # a code that stands right before it: what the entry gives the value to; "" where none does


class Bound(NamedTuple):
    """How well an atom is bound, 0 to 1 each."""

    own: float  # best fit of a record that holds it
    other: float  # best fit of a record with another value of its kind
    record: int  # that record; -1 where there is none
    occurrence: int  # the other value there, as a number of the records' atoms; -1 where there is none
    named: int = -1  # the value that best fits in a record of its name, where no record of the name holds the asked one


@dataclass(frozen=True, slots=True)
class Entries:
    """The entries' words: joined by marks, which also stand for punctuation."""

    words: Words
    #: First word of each entry, and the end of the last.
    starts: list[int]
    atoms: list[list[tuple[int, Atom]]]  # by entry
    #: Words that are identifiers, in lower case.
    identifiers: AbstractSet[str]

    @classmethod
    def of(cls, lowered: Sequence[str], identifiers: AbstractSet[str] = frozenset()) -> "Entries":
        """Read entries in lower case, normalised, without marker and without marks; of one that holds no value nothing is read."""
        joined = " \x02 ".join((*(text if VALUE.search(text) else "" for text in lowered), ""))
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
        return cls(words, starts, atoms, identifiers)

    def beside(self, at: int) -> Iterator[tuple[int, str]]:
        """Yield the forms of the words left (-1) and right (1) of a word, behind punctuation."""
        words = self.words.words
        for side in (-1, 1):
            near = at + side
            while 0 <= near < len(words) and words[near] == BREAK:
                near += side
            yield side, form_of(words[near]) if 0 <= near < len(words) else ""


class Binding:
    """Atoms of entries against the records of one boundary."""

    def __init__(self, records: Records, entries: Entries, *, idle: bool = False) -> None:
        """Compare atoms of `entries` with `records`; `idle`: do not, and leave everything unbound."""
        self._records = records
        self._entries = entries
        self._idle = idle
        #: True where atoms were left unbound, because records and entries together are too many.
        self.capped = False

    def bind(self, asked: Sequence[Asked]) -> list[Bound]:
        """How each asked atom is bound; an atom without a rival is left unbound, for nothing can fit better."""
        found = [_UNBOUND] * len(asked)
        rivals = self._with_rivals(asked)
        if self._idle or not rivals:
            self.capped = bool(rivals)
            return found
        some = [asked[number] for number in rivals]
        self._read_entries(some)
        self._read_records()
        rows = max(1, _BLOCK // max(len(self._o_word), len(self._records.starts), self._tokens))
        for begin in range(0, len(some), rows):
            if begin * len(self._o_word) > MAX_CELLS:
                self.capped = True
                break
            for number, bound in zip(rivals[begin : begin + rows], self._bind(some[begin : begin + rows]), strict=True):
                found[number] = bound
        return found

    def occurrence(self, number: int) -> tuple[int, Atom]:
        """A place of the records that may say an asked atom or another one of its kind: its word and its atom."""
        return int(self._o_word[number]), self._records.words.values[self._o_atom[number]]

    def _with_rivals(self, asked: Sequence[Asked]) -> list[int]:
        """The asked atoms, by number, for which M or an output has another value that could be meant."""
        kinds = {one.atom.kind for one in asked}
        canons = {kind: self._records.by_kind.get(kind, frozenset()) for kind in kinds}
        beside = self._records.beside({kind for kind in kinds if _is_weak(kind)})
        found: list[int] = []
        for number, one in enumerate(asked):
            kind = one.atom.kind
            if one.name and canons[kind] - {one.atom.canon}:
                found.append(number)
                continue
            # What an entry says besides is not what it should have said here.
            own = {atom.canon for _, atom in self._entries.atoms[one.entry] if atom.kind == kind}
            if len(canons[kind]) == sum(canon in canons[kind] for canon in own):
                continue
            if kind not in beside or any(form and (side, form) in beside[kind] for side, form in self._entries.beside(one.word)):
                found.append(number)
        return found

    def _read_entries(self, asked: Sequence[Asked]) -> None:
        """Tokens, forms, punctuation and siblings of the entries that are asked about."""
        words, atoms, starts = self._entries.words, self._entries.atoms, self._entries.starts
        entries = dict.fromkeys(one.entry for one in asked)
        said = [words.words[starts[entry] : starts[entry + 1]] for entry in entries]
        self._vocabulary = _numbered(chain.from_iterable(map(stems_of, chain.from_iterable(said))))
        self._tokens = len(self._vocabulary)
        self._kinds = _numbered(one.atom.kind for one in asked)
        values = (atom.canon for entry in entries for _, atom in atoms[entry] if atom.kind in self._kinds)
        self._canons = _numbered(chain(values, (one.name for one in asked)))
        self._numeral = np.array([False, *(token.isdigit() for token in self._vocabulary)])
        self._token, self._token_word = words.token_ids(self._vocabulary)
        marks = np.zeros(len(words.words), np.bool_)
        marks[words.standing(BREAK)] = True
        self._breaks = marks.cumsum()
        self._form = _numbered(words.forms())
        (kept,) = (~marks).nonzero()
        self._near = np.concatenate((words.form_ids(self._form)[kept], (0, 0)))  # "(152" has the word before the bracket
        self._at_near = np.zeros(len(words.words), np.int64)
        self._at_near[kept] = np.arange(len(kept))
        keys = [
            ((entry * (len(self._kinds) + 1) + self._kinds[atom.kind]) * len(words.words)) + at
            for entry in entries
            for at, atom in atoms[entry]
            if atom.kind in self._kinds
        ]
        self._siblings = np.array(sorted(keys), np.int64)

    def _read_records(self) -> None:
        """Which record holds which token and atom, narrowly and with what is around it; and where atoms occur."""
        records, kinds, canons = self._records, self._kinds, self._canons
        words = records.words
        values = [
            (
                canons.get(canon, 0),
                kinds.get(kind, 0),
                int(canon[:4]) if kind == "date" else 0,
                canons.get(canon[5:], 0) if kind == "date" else 0,
            )
            for canon, kind, _, _ in words.values
        ]
        canon, kind, year, day = np.array(values, np.int64).reshape(-1, 4).T
        self._o_canon, self._o_kind, self._o_year = canon[words.atom], kind[words.atom], year[words.atom]
        self._o_kind[records.source_atoms :] = 0
        kept = ((self._o_canon > 0) | (self._o_kind > 0)).nonzero()[0]
        (days,) = day[words.atom].nonzero()  # a date also stands for its day
        order = np.concatenate((kept * 2, days * 2 + 1))
        order.sort()
        kept, is_day = order // 2, order % 2 > 0
        self._o_word, self._o_atom = words.atom_at[kept], words.atom[kept]
        self._o_canon, self._o_kind, self._o_year = (
            np.where(is_day, day[self._o_atom], self._o_canon[kept]),
            np.where(is_day, 0, self._o_kind[kept]),
            np.where(is_day, 0, self._o_year[kept]),
        )
        self._o_record = records.record_of(self._o_word)
        token, word = records.words.token_ids(self._vocabulary)
        (named,) = self._o_canon.nonzero()
        held = np.concatenate((token, self._tokens + self._o_canon[named]))
        record = np.concatenate((records.record_of(word), self._o_record[named]))
        count = len(records.starts)
        self._narrow = np.zeros((self._tokens + len(canons) + 1, count), np.bool_)
        self._narrow[held, record] = True
        df = np.count_nonzero(self._narrow[: self._tokens + 1], axis=1)
        idf = np.log1p((count - df + 0.5) / (df + 0.5))
        # What no record says tells no record from another, and in a long span neither does what one in twenty says.
        idf[(df == 0) | (df > max(_MANY, count // _COMMON))] = 0.0
        self._idf = idf
        self._wide = _widened(self._narrow, records.around)
        self._forms = records.words.form_ids(self._form)

    def _bind(self, asked: Sequence[Asked]) -> list[Bound]:
        """One block of atoms against all occurrences."""
        word = np.array([one.word for one in asked])
        canon = np.array([self._canons[one.atom.canon] for one in asked])
        kind = np.array([self._kinds[one.atom.kind] for one in asked])
        neighbours = self._neighbours(word)
        fit = (1.0 - _NEIGHBOURS) * self._cover(asked, word, kind) + _NEIGHBOURS * neighbours
        same = self._o_canon == canon[:, None]
        named = self._of_names(asked, kind, same, fit)
        own = np.where(same, fit, 0.0).max(axis=1)
        other = (self._o_kind == kind[:, None]) & ~same
        other &= ~self._wide[self._tokens + canon][:, self._o_record]
        siblings = self._siblings_of(asked)
        other &= ~siblings[:, self._o_canon]
        # What a record says that holds a sibling is the sibling's.
        holding = siblings.astype(np.float64) @ self._narrow[self._tokens :] > 0.0
        other &= ~holding[:, self._o_record] | (neighbours >= _SAME_PLACE)
        year = np.array([_year(one.atom) for one in asked])
        other &= np.abs(self._o_year - year[:, None]) <= _YEARS_APART
        weak = np.array([_is_weak(one.atom.kind) for one in asked])
        other &= ~weak[:, None] | (neighbours >= _WEAK_NEIGHBOURS)
        fits = np.where(other, fit, 0.0)
        best = fits.argmax(axis=1)
        found: list[Bound] = []
        for row, (at, fitting) in enumerate(zip(best.tolist(), fits.max(axis=1).tolist(), strict=True)):
            where = at if fitting > 0.0 else -1
            found.append(Bound(float(own[row]), fitting, int(self._o_record[at]) if where >= 0 else -1, where, named.get(row, -1)))
        return found

    def _of_names(self, asked: Sequence[Asked], kind: Ints, same: Bools, fit: Floats) -> dict[int, int]:
        """Of the atoms behind a name that no record of that name holds: the best fitting other value of the kind in one, if any."""
        rows = np.array([row for row, one in enumerate(asked) if one.name], np.int64)
        if not len(rows):
            return {}
        of_rows = [asked[row] for row in rows.tolist()]
        of_kind = self._o_kind == kind[rows, None]
        codes = np.array([self._tokens + self._canons[one.name] for one in of_rows])
        held = self._wide[codes][:, self._o_record]
        others = held & of_kind & ~same[rows]
        wrong = others.any(axis=1) & ~(held & same[rows]).any(axis=1)
        lines = np.array([one.atom.kind == "line" for one in of_rows])
        if lines.any():
            # A listing opens each of its lines with its number: the line itself says what stands in it, not those around.
            listed = self._o_word == self._records.starts[self._o_record]
            words = np.array([self._vocabulary.get(one.name, 0) for one in of_rows])
            held[lines] = self._narrow[words[lines]][:, self._o_record]
            others[lines] = (held & of_kind & listed & ~same[rows])[lines]
            shown = (same[rows] & of_kind & listed).any(axis=1)
            wrong[lines] = (others.any(axis=1) & shown & ~(held & same[rows]).any(axis=1))[lines]
        best = np.where(others, 1.0 + fit[rows], 0.0).argmax(axis=1)
        return dict(zip(rows[wrong].tolist(), best[wrong].tolist(), strict=True))

    def _cover(self, asked: Sequence[Asked], word: Ints, kind: Ints) -> Floats:
        """For each atom and occurrence: the share of the atom's weight whose tokens the record, or one around it, holds."""
        row, token, weight = self._weights(asked, word, kind)
        columns = self._tokens + 1
        weights = np.bincount(row * columns + token, weight, len(asked) * columns).reshape(-1, columns)
        records, of_occurrence = np.unique(self._o_record, return_inverse=True)
        total = np.maximum(np.bincount(row, weight, len(asked)), 1.0)
        covered = weights @ self._wide[:columns, records] / total[:, None]  # whole numbers: exact in any order
        return np.asarray(covered[:, of_occurrence], np.float64)

    def _siblings_of(self, asked: Sequence[Asked]) -> Bools:
        """For each atom the other atoms of its kind in its entry."""
        siblings = np.zeros((len(asked), len(self._canons) + 1), np.bool_)
        for row, one in enumerate(asked):
            others = [self._canons[atom.canon] for _, atom in self._entries.atoms[one.entry] if atom.kind == one.atom.kind]
            siblings[row, others] = True
            siblings[row, self._canons[one.atom.canon]] = False
        return siblings

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


def _is_weak(kind: str) -> bool:
    """Whether a value of this kind stands everywhere, so that only one in the same place is compared with it."""
    return kind in _WEAK_KINDS or kind.startswith("of ")


def _year(atom: Atom) -> int:
    """The year of a date, 0 of everything else."""
    return int(atom.canon[:4]) if atom.kind == "date" else 0


def _widened(narrow: Bools, around: tuple[Ints, Ints]) -> Bools:
    """Of each record what it holds and what the records around it hold."""
    held, record = narrow.nonzero()
    first, second = around
    firsts = first[second.argsort(kind="stable")]
    ends = np.bincount(second, minlength=narrow.shape[1]).cumsum()
    begins = np.concatenate(((0,), ends[:-1]))
    wide = np.zeros_like(narrow)
    reaches = (ends - begins)[record].cumsum()
    begin = 0
    while begin < len(record):
        done = int(reaches[begin - 1]) if begin else 0
        end = max(begin + 1, int(reaches.searchsorted(done + _BLOCK, "right")))
        number, at = expanded(begins[record[begin:end]], ends[record[begin:end]])
        wide[held[begin:end][number], firsts[at]] = True
        begin = end
    return wide
