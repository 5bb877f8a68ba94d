"""Outputs and the previous summary as records: lines, objects and entries, each with the words around it that say what it is about."""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import chain, count, repeat
from operator import attrgetter
from typing import Final, NamedTuple

import numpy as np

from winnow.compaction import text as texts
from winnow.compaction.claims.atoms import BARE, HOLDS, TELLS, Atom, atoms_in, bare, cut, in_context, signs_of
from winnow.compaction.corpus import Corpus
from winnow.compaction.postings import Bools, Ints, expanded
from winnow.compaction.roles import Role
from winnow.compaction.text import Memo

#: Marks, words of their own: the end of a line, the end of a text, an object's braces, punctuation that parts the clauses of an entry.
LINE: Final = "\x01"
TEXT: Final = "\x02"
OPEN: Final = "\x03"
CLOSE: Final = "\x04"
BREAK: Final = "\x05"
#: Every mark is below it, every other word above.
AFTER_MARKS: Final = "\x06"
MARKS: Final = LINE + TEXT + OPEN + CLOSE + BREAK
_MARKS: Final = re.compile(f"[{MARKS}]")
#: Lines of an output on each side that say what a line is about.
LINES_AROUND: Final = 2
#: Records of an enclosing object that say what is inside it: its first ones, and the one that leads to it. A bound, so that a thousand
#: siblings do not carry a thousand each.
_OF_OBJECT: Final = 4
#: Objects around a record that are looked at.
_DEPTH: Final = 8
#: Fields from which on a text with a brace is read as objects.
_FIELDS: Final = 2
#: Three lines that open with their numbers: a listing of a text, whatever braces it has.
_LISTING: Final = re.compile(r"(?:(?:\A|\n)[ \t]{0,8}[0-9]{1,7}[:|\t][^\n]*){3}")
#: Words in the shared memo, and the longest that it keeps; emptied when full.
_MEMO_WORDS: Final = 65_536
_MEMO_CHARS: Final = 96


def marked(text: str) -> str:
    """A text without the characters that serve as marks."""
    return _MARKS.sub(" ", text) if any(mark in text for mark in MARKS) else text


class Words:
    """Words of many texts, marks among them. Most come again, so that what is asked of a word is asked of each distinct one once."""

    __slots__ = ("_numbers", "_read", "atom", "atom_at", "distinct", "number", "values", "words")

    def __init__(self, text: str) -> None:
        """Cut a text with marks and find its atoms: word number and atom, in order."""
        self.words = words = cut(text)
        # Not by the dictionary's own length: it would refer to itself, and hold memory until a collection.
        numbers: defaultdict[str, int] = defaultdict(count().__next__)
        #: Of each word its number among the distinct ones.
        self.number: Ints = np.fromiter(map(numbers.__getitem__, words), np.int64, len(words))
        self._numbers = numbers
        self.distinct = list(numbers)
        self._read = read = list(map(_reads().__getitem__, self.distinct))
        of_distinct = np.fromiter(map(_SIGNS, read), np.int64, len(read))
        signs = of_distinct[self.number]
        (places,) = (signs & HOLDS).nonzero()
        tells = np.concatenate((signs & TELLS, (TELLS,)))  # before the first word, and behind the last, is an end
        changing = (signs[places] & BARE).astype(np.bool_) & ((tells[places - 1] | tells[places] | tells[places + 1]) > 0)
        values: defaultdict[Atom, int] = defaultdict(count().__next__)
        # Words whose atoms are theirs wherever they stand, all at once; then the few that their neighbours may change.
        holding = (of_distinct & HOLDS).nonzero()[0].tolist()
        atoms = [read[number].atoms for number in holding]
        ends = np.zeros(len(read), np.int64)
        ends[holding] = list(map(len, atoms))
        ends = ends.cumsum()
        numbers_of = np.fromiter(map(values.__getitem__, chain.from_iterable(atoms)), np.int64)
        fixed = places[~changing]
        begins = np.concatenate(((0,), ends[:-1]))[self.number[fixed]]
        row, which = expanded(begins, ends[self.number[fixed]])
        at, atom = fixed[row], numbers_of[which]
        if len(fixed) < len(places):
            changed = [(at, in_context(words, at, read[self.number[at]].atoms)) for at in places[changing].tolist()]
            at = np.concatenate((at, np.array([at for at, some in changed for _ in some], np.int64)))
            atom = np.concatenate((atom, np.fromiter(map(values.__getitem__, chain.from_iterable(some for _, some in changed)), np.int64)))
            order = at.argsort(kind="stable")
            at, atom = at[order], atom[order]
        #: Atoms in order: the word that each stands in, and its number among `values`, the distinct ones. These may be more than stand
        #: anywhere: `12` although each is a day of May.
        self.atom_at: Ints = at
        self.atom: Ints = atom
        self.values = list(values)

    @property
    def atoms(self) -> list[tuple[int, Atom]]:
        """Word number and atom, in order."""
        return list(zip(self.atom_at.tolist(), map(self.values.__getitem__, self.atom.tolist()), strict=True))

    def values_at(self, part: slice) -> list[Atom]:
        """The distinct atoms of some atoms that follow each other."""
        held = np.zeros(len(self.values), np.bool_)
        held[self.atom[part]] = True
        return [self.values[number] for number in held.nonzero()[0].tolist()]

    def standing(self, marks: str) -> Ints:
        """Where the words stand that are one of some marks."""
        table = np.zeros(len(self.distinct), np.bool_)
        table[[self._numbers[mark] for mark in marks if mark in self._numbers]] = True
        (places,) = table[self.number].nonzero()
        return places

    def token_ids(self, vocabulary: Mapping[str, int]) -> tuple[Ints, Ints]:
        """Ids of all known tokens, in order, and the word that each stands in."""
        tokens = list(map(_TOKENS, self._read))
        ids = np.fromiter(map(vocabulary.get, chain.from_iterable(tokens), repeat(0)), np.int64)
        of_word = np.arange(len(tokens)).repeat(np.fromiter(map(len, tokens), np.int64, len(tokens)))
        known = ids > 0
        ids = ids[known]
        ends = np.bincount(of_word[known], minlength=len(tokens)).cumsum()
        begins = np.concatenate(((0,), ends[:-1]))
        (places,) = (ends > begins)[self.number].nonzero()
        number = self.number[places]
        word, at = expanded(begins[number], ends[number])
        return ids[at], places[word]

    def forms(self) -> list[str]:
        """Each distinct word as a neighbour: without punctuation and suffix; empty for a mark."""
        return list(map(_FORM, self._read))

    def form_ids(self, vocabulary: Mapping[str, int]) -> Ints:
        """Of each word the id of its form, 0 where it is unknown or a mark; two zeros behind the last, so that -1 and -2 are nothing."""
        forms = np.fromiter(map(vocabulary.get, self.forms(), repeat(0)), np.int64, len(self.distinct))
        return np.concatenate((forms[self.number], (0, 0)))


class _Read(NamedTuple):
    """One word, read without its neighbours."""

    atoms: tuple[Atom, ...]
    #: What has to be asked of it in its place.
    signs: int
    #: Its tokens, as the rest of the core knows them.
    tokens: tuple[str, ...]
    #: As a neighbour: without punctuation and suffix; empty for a mark.
    form: str


_SIGNS: Final = attrgetter("signs")
_TOKENS: Final = attrgetter("tokens")
_FORM: Final = attrgetter("form")


@cache
def _reads() -> Memo[_Read]:
    """Single words, remembered: a pure function's values. One memo for all that is asked of a word: a look-up costs more than the rest."""
    return Memo(_read, room=_MEMO_WORDS, longest=_MEMO_CHARS)


def _read(word: str) -> _Read:
    """Read one word."""
    atoms = atoms_in(word)
    form = texts.stem(bare(word)) if word >= AFTER_MARKS else ""
    return _Read(atoms, signs_of(word, atoms), tuple(texts.tokens(word)), form)


def stems_of(word: str) -> tuple[str, ...]:
    """Tokens of one word."""
    return _reads()[word].tokens


def form_of(word: str) -> str:
    """A word as a neighbour."""
    return _reads()[word].form


@dataclass(frozen=True)
class Records:
    """All records of M and of the outputs, in order: lines, objects, entries. Not slotted: parts are computed when first needed."""

    words: Words
    units: int  # texts that are parts of M; behind them stand the outputs, and behind these the agent's own
    outputs: int

    @classmethod
    def of(cls, corpus: Corpus) -> "Records":
        """Read the parts of M, the outputs and what the agent wrote. Linear in their length."""
        units = [unit.replace("\n", " ") for unit in source_texts(corpus, Role.PREVIOUS)]
        outputs = [_with_marks(output) for output in source_texts(corpus, Role.SOURCE)]
        agent = [text.replace("\n", f" {LINE} ") for text in source_texts(corpus, Role.AGENT)]
        return cls(Words(f" {TEXT} ".join((*units, *outputs, *agent, ""))), len(units), len(outputs))

    @cached_property
    def agent_at(self) -> int:
        """First word of the agent's own texts."""
        behind = self.units + self.outputs
        return int(self.words.standing(TEXT)[behind - 1]) + 1 if behind else 0

    @cached_property
    def source_atoms(self) -> int:
        """How many atoms M and the outputs hold: they come first."""
        return int(self.words.atom_at.searchsorted(self.agent_at))

    @cached_property
    def source_values(self) -> list[Atom]:
        """The distinct atoms of M and the outputs."""
        return self.words.values_at(slice(self.source_atoms))

    @cached_property
    def by_kind(self) -> Mapping[str, AbstractSet[str]]:
        """Of each kind the values that M and the outputs say."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for canon, kind, _, _ in self.source_values:
            found[kind].add(canon)
        return found

    @cached_property
    def _neighbours(self) -> dict[str, set[tuple[int, str]]]:
        """What `beside` has read."""
        return {}

    def beside(self, kinds: AbstractSet[str]) -> Mapping[str, AbstractSet[tuple[int, str]]]:
        """Of each kind the forms of the words left (-1) and right (1) of its values there. Read once: entries come in many groups."""
        for kind in kinds - self._neighbours.keys():
            of_kind = np.array([atom.kind == kind for atom in self.words.values], np.bool_)
            at = self.words.atom_at[: self.source_atoms][of_kind[self.words.atom[: self.source_atoms]]]
            found = {(-1, "")} if len(at) and at[0] == 0 else set()
            for side, near in ((-1, at[at > 0] - 1), (1, at + 1)):
                found.update((side, form_of(self.words.distinct[number])) for number in set(self.words.number[near].tolist()))
            self._neighbours[kind] = found
        return self._neighbours

    @cached_property
    def _marks(self) -> Ints:
        """Where marks stand: a record is what stands between two of them. The last word is a mark."""
        return self.words.standing(MARKS)

    @cached_property
    def _follows(self) -> Bools:
        """Of each mark whether a record ends at it."""
        return np.diff(self._marks, prepend=-1) > 1

    @cached_property
    def ends(self) -> Ints:
        """Behind the last word of each record."""
        return self._marks[self._follows]

    @cached_property
    def starts(self) -> Ints:
        """First word of each record."""
        return np.concatenate(((0,), self._marks[:-1] + 1))[self._follows]

    @cached_property
    def texts(self) -> Ints:
        """Which text (unit, output or agent's, in order) each record belongs to."""
        return self.words.standing(TEXT).searchsorted(self.starts)

    def record_of(self, word: Ints) -> Ints:
        """The records that words, which are no marks, stand in."""
        return self.starts.searchsorted(word, "right") - 1

    @cached_property
    def around(self) -> tuple[Ints, Ints]:
        """Pairs of records of which the second says what the first is about; each record with itself among them.

        Lines near it; records of its own object and of those around.
        """
        text, group = self.texts, self._objects[0]
        number = np.arange(len(text))
        first, second = [number], [number]
        for step in range(1, LINES_AROUND + 1):
            near = number[:-step][(text[:-step] == text[step:]) & (group[:-step] < 0) & (group[step:] < 0)]
            first += (near, near + step)
            second += (near + step, near)
        inner, outer = self._beside_in_objects()
        return np.concatenate((*first, inner)), np.concatenate((*second, outer))

    @cached_property
    def _objects(self) -> tuple[Ints, list[int], list[int]]:
        """Of each record its object (-1: none); of each object the one around it and the record that leads to it (-1: none)."""
        groups: list[int] = []
        parents: list[int] = []
        leads: list[int] = []
        if not len(self.words.standing(OPEN)):
            return np.full(len(self.starts), -1), parents, leads
        group = -1
        words = self.words.words
        for at, follows in zip(self._marks.tolist(), self._follows.tolist(), strict=True):
            mark = words[at]
            if follows:
                groups.append(group)
            if mark == OPEN:
                parents.append(group)
                leads.append(len(groups) - 1 if follows else -1)
                group = len(parents) - 1
            elif mark == CLOSE:
                group = parents[group] if group >= 0 else -1
            elif mark == TEXT:
                group = -1
        return np.array(groups, np.int64), parents, leads

    def _beside_in_objects(self) -> tuple[Ints, Ints]:
        """Pairs of records of which the first stands in an object, and the second in the same or in one around it, or leads to it."""
        group, parents, leads = self._objects
        members: dict[int, list[int]] = {}
        (inside,) = (group >= 0).nonzero()
        for record, of_record in zip(inside.tolist(), group[inside].tolist(), strict=True):
            members.setdefault(of_record, []).append(record)
        inner: list[int] = []
        outer: list[int] = []
        for one, own in members.items():
            others = own[: 2 * _OF_OBJECT]
            at = one
            for _ in range(_DEPTH):
                lead, at = leads[at], parents[at]
                if lead >= 0:
                    others.append(lead)
                if at < 0:
                    break
                others += members.get(at, ())[:_OF_OBJECT]
            for record in own:
                inner += [record] * len(others)
            outer += others * len(own)
        return np.array(inner, np.int64), np.array(outer, np.int64)


def source_texts(corpus: Corpus, role: Role) -> list[str]:
    """The texts of a role as values are matched, passages of one output together, without characters that serve as marks."""
    pieces = corpus.pieces
    joined, begin, end, order = pieces.joined, pieces.begin, pieces.end, pieces.order
    if role is Role.SOURCE:
        numbers: Sequence[int] = range(pieces.first_passage, len(begin))
    elif role is Role.PREVIOUS:
        numbers = range(pieces.first_unit, pieces.first_passage)
    else:
        numbers = [number for number in range(pieces.first_unit) if pieces.role[number] is role]
    spans: dict[int, tuple[int, int]] = {}
    for number in numbers:
        spans[order[number]] = (spans[order[number]][0] if order[number] in spans else begin[number], end[number])
    texts_of = [joined[first:last] for first, last in spans.values()]
    return [marked(text) for text in texts_of]


def _with_marks(output: str) -> str:
    """An output with marks between its lines, or at the braces of its objects."""
    if "{" in output and output.count('":') + output.count("':") >= _FIELDS and _LISTING.search(output) is None:
        output = output.replace('":', " ").replace("':", " ").replace("\n", " ")
        return output.replace("{", f" {OPEN} ").replace("}", f" {CLOSE} ")
    return output.replace("\n", f" {LINE} ")
