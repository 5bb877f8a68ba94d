"""Outputs and the previous summary as records: lines, objects and entries, each with the words around it that say what it is about."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, repeat
from typing import Final

import numpy as np

from winnow.compaction import text as texts
from winnow.compaction.claims.atoms import Atom, bare, cut, in_context, read_words
from winnow.compaction.corpus import Corpus
from winnow.compaction.postings import Ints
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
_MARKS: Final = re.compile("[\x01-\x05]")
#: Lines of an output on each side that say what a line is about.
LINES_AROUND: Final = 2
#: Records of an enclosing object that say what is inside it: its first ones, and the one that leads to it. A bound, so that a thousand
#: siblings do not carry a thousand each.
_OF_OBJECT: Final = 4
#: Objects around a record that are looked at.
_DEPTH: Final = 8
#: Fields from which on a text with a brace is read as objects.
_FIELDS: Final = 2
#: Words in the shared memos, and the longest that they keep; emptied when full.
_MEMO_WORDS: Final = 65_536
_MEMO_CHARS: Final = 96


def marked(text: str) -> str:
    """A text without the characters that serve as marks."""
    return _MARKS.sub(" ", text) if any(mark in text for mark in (LINE, TEXT, OPEN, CLOSE, BREAK)) else text


class Words:
    """Words of many texts, marks among them, with what is looked up for each."""

    __slots__ = ("atoms", "words")

    def __init__(self, text: str) -> None:
        """Cut a text with marks and find its atoms: word number and atom, in order."""
        self.words = words = cut(text)
        held = list(map(read_words().__getitem__, words))
        self.atoms: list[tuple[int, Atom]] = [(at, atom) for at, atoms in enumerate(held) if atoms for atom in in_context(words, at, atoms)]

    def token_ids(self, vocabulary: Mapping[str, int]) -> tuple[Ints, Ints]:
        """Ids of all known tokens, in order, and the word that each stands in."""
        stems = self.stems()
        lengths = np.fromiter(map(len, stems), np.int64, len(stems))
        ids = np.fromiter(map(vocabulary.get, chain.from_iterable(stems), repeat(0)), np.int64, int(lengths.sum()))
        word = np.arange(len(stems)).repeat(lengths)
        known = ids > 0
        return ids[known], word[known]

    def stems(self) -> list[tuple[str, ...]]:
        """The tokens of each word, as the rest of the core knows them."""
        return list(map(_stems().__getitem__, self.words))

    def form_ids(self, vocabulary: Mapping[str, int]) -> Ints:
        """Of each word the id of its form, 0 where it is unknown or a mark; two zeros behind the last, so that -1 and -2 are nothing."""
        return np.fromiter(chain(map(vocabulary.get, self.forms(), repeat(0)), (0, 0)), np.int64, len(self.words) + 2)

    def forms(self) -> list[str]:
        """Each word as a neighbour: without punctuation and suffix; empty for a mark."""
        return list(map(_forms().__getitem__, self.words))


@cache
def _stems() -> Memo[tuple[str, ...]]:
    """Tokens of words, remembered: a pure function's values."""
    return Memo(lambda word: tuple(texts.tokens(word)), room=_MEMO_WORDS, longest=_MEMO_CHARS)


def stems_of(word: str) -> tuple[str, ...]:
    """Tokens of one word."""
    return _stems()[word]


@cache
def _forms() -> Memo[str]:
    """Forms of words, remembered."""
    return Memo(lambda word: texts.stem(bare(word)) if word >= AFTER_MARKS else "", room=_MEMO_WORDS, longest=_MEMO_CHARS)


@dataclass(frozen=True, slots=True)
class Record:
    """One line, object or entry."""

    begin: int  # first word
    end: int
    text: int  # which text (unit or output, in order) it belongs to
    group: int  # the object it belongs to; -1 for a line or an entry


@dataclass(frozen=True, slots=True)
class Records:
    """All records of M and of the outputs, in order."""

    words: Words
    records: list[Record]
    starts: Ints  # first word of each record
    units: int  # texts that are parts of M; the others are outputs
    agent_at: int  # first word of the agent's own texts, which stand behind the outputs
    #: Pairs of records of which the second says what the first is about; each record with itself among them.
    around: tuple[Ints, Ints]

    @classmethod
    def of(cls, corpus: Corpus) -> "Records":
        """Read the parts of M and the outputs. Linear in their length."""
        parts = [unit.replace("\n", " ") for unit in source_texts(corpus, Role.PREVIOUS)]
        units = len(parts)
        parts += [_with_marks(output) for output in source_texts(corpus, Role.SOURCE)]
        outputs = len(parts)
        parts += [agent.replace("\n", f" {LINE} ") for agent in source_texts(corpus, Role.AGENT)]
        words = Words(f" {TEXT} ".join((*parts, "")))
        records, parents, leads = _records(words.words)
        agent_at = next((record.begin for record in records if record.text >= outputs), len(words.words))
        starts = np.fromiter((record.begin for record in records), np.int64, len(records))
        return cls(words, records, starts, units, agent_at, _around(records, parents, leads))


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
    if "{" in output and output.count('":') + output.count("':") >= _FIELDS:
        output = output.replace('":', " ").replace("':", " ").replace("\n", " ")
        return output.replace("{", f" {OPEN} ").replace("}", f" {CLOSE} ")
    return output.replace("\n", f" {LINE} ")


def _records(words: Sequence[str]) -> tuple[list[Record], list[int], list[int]]:
    """Records between marks; of each object the one around it (-1: none) and the record that leads to it (-1: none)."""
    records: list[Record] = []
    parents: list[int] = []
    leads: list[int] = []
    begin = text = 0
    group = -1
    for at in [at for at, word in enumerate(words) if word < AFTER_MARKS]:
        mark = words[at]
        if at > begin:
            records.append(Record(begin, at, text, group))
        begin = at + 1
        if mark == OPEN:
            parents.append(group)
            leads.append(len(records) - 1 if records and at == records[-1].end else -1)
            group = len(parents) - 1
        elif mark == CLOSE:
            group = parents[group] if group >= 0 else -1
        elif mark == TEXT:
            text += 1
            group = -1
    return records, parents, leads


def _around(records: Sequence[Record], parents: Sequence[int], leads: Sequence[int]) -> tuple[Ints, Ints]:
    """Pairs of records of which the second says what the first is about: lines near it; records of its own object and of those around."""
    group = np.fromiter((record.group for record in records), np.int64, len(records))
    text = np.fromiter((record.text for record in records), np.int64, len(records))
    number = np.arange(len(records))
    first, second = [number], [number]
    for step in range(1, LINES_AROUND + 1):
        near = number[:-step][(text[:-step] == text[step:]) & (group[:-step] < 0) & (group[step:] < 0)]
        first += (near, near + step)
        second += (near + step, near)
    members: dict[int, list[int]] = {}
    for inside in np.flatnonzero(group >= 0).tolist():
        members.setdefault(records[inside].group, []).append(inside)
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
        for inside in own:
            inner += [inside] * len(others)
        outer += others * len(own)
    first.append(np.array(inner, np.int64))
    second.append(np.array(outer, np.int64))
    return np.concatenate(first), np.concatenate(second)
