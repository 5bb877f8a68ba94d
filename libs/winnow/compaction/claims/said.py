"""What every text of a boundary says, atom by atom: the index that decides whether a value is said at all."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numpy as np

from winnow.compaction.claims.atoms import VALUE, Atom, bare
from winnow.compaction.claims.derived import number_word
from winnow.compaction.claims.equivalents import Amounts
from winnow.compaction.claims.records import Records, Words, source_texts, stems_of
from winnow.compaction.corpus import Corpus
from winnow.compaction.postings import expanded
from winnow.compaction.roles import Role
from winnow.compaction.values import scaled_number

#: A digit run of a code that a bare number may name: "the card ending in 7447".
_RUN_DIGITS: Final = 4
#: Longest end of a run that names it.
_RUN_CHARS: Final = 16
_DIGIT_RUN: Final = re.compile(rf"\d{{{_RUN_DIGITS},}}")
#: Numbers of at most so many digits are also said by their English word.
_WORD_DIGITS: Final = 2
#: Values of one field that are summed, and words of a record by which they are chosen: a longer list is a table, whose sums say little.
_SUMMED: Final = 12
_SUMMED_WORDS: Final = 32
#: Letters in which a word and its plural agree.
_PREFIX: Final = 6
#: Characters that may be searched for codes and number words of a boundary together, a tenth of a second or two.
_SEARCHED: Final = 500_000_000
#: Longest hexadecimal number, "0x" included, that is not looked for without it: 40 is a number of its own, 40060d an address.
_SHORT_HEX: Final = 5
#: A version with a v, and a time of day after noon in twelve hours.
_VERSION: Final = re.compile(r"(?<![a-z0-9])v(\d{1,6}\.\d{1,6})(?!\d)")
_AFTERNOON: Final = re.compile(r"(?<!\d)(\d{1,2})[:.](\d\d)(?::\d\d)?\s?p\.?m")
_NOON: Final = 12
#: Longest task prompt whose atoms are remembered.
_TASK_CHARS: Final = 65_536


@dataclass(frozen=True)
class Canons:
    """What texts say, as atoms are compared. Not slotted: parts are computed when first needed."""

    values: frozenset[str]
    #: Codes with digits enough to be named by some of them.
    codes: frozenset[str]

    @classmethod
    def of(cls, atoms: Sequence[Atom]) -> "Canons":
        """The values of atoms."""
        codes = [canon for canon, kind, _, digits in atoms if digits >= _RUN_DIGITS and kind.startswith("code")]
        return cls(frozenset([canon for canon, _, _, _ in atoms]), frozenset(codes))

    @cached_property
    def runs(self) -> frozenset[str]:
        """Long digit runs of codes, and their ends."""
        found = {run[-_RUN_CHARS:] for code in self.codes for run in _DIGIT_RUN.findall(code)}
        return frozenset(run[at:] for run in found for at in range(len(run) - _RUN_DIGITS + 1)) | found


def canons(lowered: str) -> Canons:
    """The atoms of a text without marks."""
    return Canons.of(Words(lowered.replace("\n", " \x01 ")).values_at(slice(None)) if VALUE.search(lowered) else ())


@lru_cache(maxsize=32)
def _canons_again(lowered: str) -> Canons:
    """The atoms of the last task prompts of this process: the same at every boundary of a fleet."""
    return canons(lowered)


def task_canons(lowered: str) -> Canons:
    """The atoms of a task prompt."""
    return _canons_again(lowered) if len(lowered) <= _TASK_CHARS else canons(lowered)


class _Fields:
    """Numbers that texts give under one name, a few at a time, and the records that they stand in."""

    def __init__(self, records: Records, values: dict[int, list[tuple[int, int]]]) -> None:
        """`values` has of each record the numbers of its fields, and what it gives them."""
        self.values = values
        held = np.array(list(values), np.int64)
        starts = records.starts[held]
        at, word = expanded(starts, np.minimum(starts + _SUMMED_WORDS, records.ends[held]))
        self._record, self._word = held[at], records.words.number[word]
        self._size = len(records.words.distinct)
        self._beginnings: dict[str, list[int]] = {}
        for number in set(self._word.tolist()):
            for stem in stems_of(records.words.distinct[number]):
                self._beginnings.setdefault(stem[:_PREFIX], []).append(number)

    def holding(self, beginning: str) -> set[int]:
        """The records of which one of the first words has a token with a beginning."""
        if beginning not in self._beginnings:
            return set()
        named = np.zeros(self._size, np.bool_)
        named[self._beginnings[beginning]] = True
        return set(self._record[named[self._word]].tolist())


def _writing(atom: Atom) -> str | None:
    """How else a code, colour, hexadecimal number or point in time is written; "" where it is not, None for values of other kinds."""
    if atom.kind == "hex":
        return atom.canon[2:] if len(atom.canon) > _SHORT_HEX else ""
    if atom.kind == "stamp":
        return atom.canon.replace("t", " ")
    return atom.shown.lstrip("#") if atom.kind == "colour" or atom.kind.startswith("code") else None


@dataclass(frozen=True)
class Said:
    """What every text of a boundary says. Not slotted: parts are computed when first needed."""

    corpus: Corpus
    records: Records

    @cached_property
    def sources(self) -> Canons:
        """Outputs and M."""
        return Canons.of(self.records.source_values)

    @cached_property
    def given(self) -> Canons:
        """Task and user turns: conditions and wishes, which no output refutes."""
        task = [task_canons(text) for text in source_texts(self.corpus, Role.TASK)]
        user = canons("\n".join(source_texts(self.corpus, Role.USER)))
        return Canons(user.values.union(*(one.values for one in task)), user.codes.union(*(one.codes for one in task)))

    @cached_property
    def agent(self) -> Canons:
        """The agent's own words."""
        return Canons.of(self.records.words.values_at(slice(self.records.source_atoms, None)))

    @cached_property
    def _dates(self) -> tuple[frozenset[str], str]:
        """Days of all full dates, and the year that most of them have."""
        dates = [value for said in (self.sources, self.given, self.agent) for value in said.values if value[4:5] == "-" == value[7:8]]
        years = Counter(sorted(value[:4] for value in dates)).most_common(1)
        return frozenset(value[5:] for value in dates), years[0][0] if years else ""

    @cached_property
    def years(self) -> frozenset[str]:
        """Years of the full dates of outputs and M."""
        return frozenset(value[:4] for value in self.sources.values if value[4:5] == "-" == value[7:8] and value[:4].isdigit())

    @cached_property
    def versions(self) -> frozenset[str]:
        """First two numbers of the versions of outputs and M that are written with a v, as "v20.11.0" is."""
        return frozenset(_VERSION.findall(self._sources_text))

    @cached_property
    def afternoons(self) -> frozenset[str]:
        """Times of day after noon that outputs and M write with twelve hours, in 24 hours: "6:30 PM" is 18:30."""
        found = _AFTERNOON.findall(self._sources_text)
        return frozenset(f"{int(hour) % _NOON + _NOON:02}:{minutes}" for hour, minutes in found)

    @property
    def _sources_text(self) -> str:
        """Outputs and M, in lower case."""
        pieces = self.corpus.pieces
        return pieces.joined[pieces.begin[pieces.first_unit] :] if pieces.first_unit < len(pieces.begin) else ""

    @cached_property
    def shapes(self) -> frozenset[str]:
        """Shapes of the codes in outputs and M."""
        return frozenset([kind for _, kind, _, _ in self.records.words.values if kind.startswith("code")])

    @cached_property
    def counts(self) -> frozenset[int]:
        """Numbers of lines or objects of the outputs: what a count may have counted."""
        found: set[int] = set()
        for text in source_texts(self.corpus, Role.SOURCE):
            found |= {text.count("\n") + 1, text.strip().count("\n") + 1, text.count("{")}
        return frozenset(found)

    def adds_up(self, scaled: int, stems: Iterable[str]) -> bool:
        """Whether an amount is the sum of one field over all records of a text, or over those that hold one of some words."""
        return any(scaled in self._sums_with(stem[:_PREFIX]) for stem in ("", *stems))

    @cached_property
    def _sums(self) -> dict[str, frozenset[int]]:
        """The sums that were asked for, by the beginning of a word."""
        return {}

    def _sums_with(self, beginning: str) -> frozenset[int]:
        """Sums of what one text gives under one name in the records that hold a word with a beginning; "" for all records."""
        if beginning not in self._sums:
            fields = self._fields
            parts: dict[int, list[int]] = {}
            for record in fields.holding(beginning) if beginning else fields.values:
                for field, scaled in fields.values[record]:
                    parts.setdefault(field, []).append(scaled)
            self._sums[beginning] = frozenset(sum(some) for some in parts.values() if len(some) > 1)
        return self._sums[beginning]

    @cached_property
    def _fields(self) -> "_Fields":
        """The fields that are summed."""
        records, words, part = self.records, self.records.words, slice(self.records.source_atoms)
        scaled_by = [self._scaled.get(canon) if _is_bare(kind) else None for canon, kind, _, _ in words.values]
        every = zip(words.atom_at[part].tolist(), words.atom[part].tolist(), strict=True)
        numbers = [
            (at, scaled) for at, atom in every if (scaled := scaled_by[atom]) is not None and at and words.words[at - 1][0].isalpha()
        ]
        of_record = records.record_of(np.array([at for at, _ in numbers], np.int64))
        fields: dict[tuple[int, str], list[tuple[int, int]]] = {}
        places = zip(numbers, of_record.tolist(), records.texts[of_record].tolist(), strict=True)
        for (at, scaled), record, text in places:
            values = fields.setdefault((text, bare(words.words[at - 1])), [])
            if len(values) <= _SUMMED:
                values.append((scaled, record))
        found: dict[int, list[tuple[int, int]]] = {}
        for field, values in enumerate(fields.values()):
            if 1 < len(values) <= _SUMMED:
                for scaled, record in values:
                    found.setdefault(record, []).append((field, scaled))
        return _Fields(records, found)

    @cached_property
    def _scaled(self) -> dict[str, int]:
        """Bare numbers of outputs and M, in ten-thousandths."""
        numbers = [canon for canon, kind, _, _ in self.records.source_values if _is_bare(kind)]
        return {canon: scaled for canon in numbers if (scaled := scaled_number(canon)) is not None}

    @cached_property
    def amounts(self) -> frozenset[int]:
        """Bare numbers of outputs and M, in ten-thousandths."""
        return frozenset(self._scaled.values())

    @cached_property
    def otherwise(self) -> Amounts:
        """Other writings of what any text says."""
        return Amounts(self.corpus.pieces.joined)

    def holds(self, atom: Atom) -> bool:
        """Whether any text says the value, in any writing."""
        every = (self.sources, self.given, self.agent)
        if any(atom.canon in said.values for said in every):
            return True
        if atom.kind == "date":
            return atom.canon[5:] in self._days and atom.canon[:4] == self._dates[1]
        if atom.kind == "day":
            return atom.canon in self._dates[0]
        if (writing := _writing(atom)) is not None:
            return self._stands(writing) if writing else False
        if len(atom.canon) >= _RUN_DIGITS and any(atom.canon in said.runs for said in every):
            return True
        word = number_word(int(atom.canon)) if atom.canon.isdigit() and len(atom.canon) <= _WORD_DIGITS else None
        return word is not None and self._stands(word)

    def in_code_alone(self, number: str) -> bool:
        """Whether a number is said as a part of codes, and nowhere by itself."""
        every = (self.sources, self.given, self.agent)
        return not any(number in said.values for said in every) and any(number in said.runs for said in every)

    def _stands(self, needle: str) -> bool:
        """Whether a text stands anywhere; True, unseen, where too much was searched already: what is not known is not held against it."""
        if needle not in self._searched:
            room = _SEARCHED // (len(self.corpus.pieces.joined) + 1)
            self._searched[needle] = len(self._searched) >= room or needle in self.corpus.pieces.joined
        return self._searched[needle]

    @cached_property
    def _searched(self) -> dict[str, bool]:
        """What was searched for."""
        return {}

    @cached_property
    def _days(self) -> frozenset[str]:
        """Days that are said without a year."""
        return frozenset(v for said in (self.sources, self.given, self.agent) for v in said.values if v[2:3] == "-" and len(v) == 5)  # noqa: PLR2004  MM-DD


def _is_bare(kind: str) -> bool:
    """Whether atoms of a kind are bare numbers."""
    return kind[0] == "n" or kind == "decimal"
