"""What every text of a boundary says, atom by atom: the index that decides whether a value is said at all."""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

from winnow.compaction.claims.atoms import VALUE, Atom, bare, is_number
from winnow.compaction.claims.derived import number_word
from winnow.compaction.claims.equivalents import Amounts
from winnow.compaction.claims.records import Records, Words, source_texts, stems_of
from winnow.compaction.corpus import Corpus
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
    def of(cls, atoms: Sequence[tuple[int, Atom]]) -> "Canons":
        """The values of atoms."""
        codes = [canon for _, (canon, kind, _, digits) in atoms if digits >= _RUN_DIGITS and kind.startswith("code")]
        return cls(frozenset([canon for _, (canon, _, _, _) in atoms]), frozenset(codes))

    @cached_property
    def runs(self) -> frozenset[str]:
        """Long digit runs of codes, and their ends."""
        found = {run[-_RUN_CHARS:] for code in self.codes for run in _DIGIT_RUN.findall(code)}
        return frozenset(run[at:] for run in found for at in range(len(run) - _RUN_DIGITS + 1)) | found


def canons(lowered: str) -> Canons:
    """The atoms of a text without marks."""
    return Canons.of(Words(lowered.replace("\n", " \x01 ")).atoms if VALUE.search(lowered) else ())


@lru_cache(maxsize=32)
def _canons_again(lowered: str) -> Canons:
    """The atoms of the last task prompts of this process: the same at every boundary of a fleet."""
    return canons(lowered)


def task_canons(lowered: str) -> Canons:
    """The atoms of a task prompt."""
    return _canons_again(lowered) if len(lowered) <= _TASK_CHARS else canons(lowered)


@dataclass(frozen=True)
class Said:
    """What every text of a boundary says. Not slotted: parts are computed when first needed."""

    corpus: Corpus
    records: Records

    @cached_property
    def sources(self) -> Canons:
        """Outputs and M."""
        return Canons.of(self._source_atoms)

    @cached_property
    def _source_atoms(self) -> list[tuple[int, Atom]]:
        """Atoms of outputs and M."""
        return self.records.words.atoms[: bisect_left(self.records.words.atoms, (self.records.agent_at,))]

    @cached_property
    def given(self) -> Canons:
        """Task and user turns: conditions and wishes, which no output refutes."""
        task = [task_canons(text) for text in source_texts(self.corpus, Role.TASK)]
        user = canons("\n".join(source_texts(self.corpus, Role.USER)))
        return Canons(user.values.union(*(one.values for one in task)), user.codes.union(*(one.codes for one in task)))

    @cached_property
    def agent(self) -> Canons:
        """The agent's own words."""
        return Canons.of(self.records.words.atoms[len(self._source_atoms) :])

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
        return frozenset(atom.kind for _, atom in self.records.words.atoms if atom.kind.startswith("code"))

    @cached_property
    def counts(self) -> frozenset[int]:
        """Numbers of lines or objects of the outputs: what a count may have counted."""
        found: set[int] = set()
        for text in source_texts(self.corpus, Role.SOURCE):
            found |= {text.count("\n") + 1, text.strip().count("\n") + 1, text.count("{")}
        return frozenset(found)

    def adds_up(self, scaled: int, stems: Iterable[str]) -> bool:
        """Whether an amount is the sum of one field over all records of a text, or over those that hold one of some words."""
        return any(scaled in self._sums.get(stem[:_PREFIX], ()) for stem in ("", *stems))

    @cached_property
    def _sums(self) -> dict[str, set[int]]:
        """By the beginning of a word: sums of what one text gives under one name in the records that hold the word; "" for all records."""
        records, words = self.records, self.records.words.words
        fields: dict[tuple[int, str], list[tuple[int, int]]] = {}
        for at, atom in self._source_atoms:
            if is_number(atom) and at and words[at - 1][0].isalpha() and (scaled := scaled_number(atom.canon)) is not None:
                record = int(records.starts.searchsorted(at, "right")) - 1
                values = fields.setdefault((int(records.texts[record]), bare(words[at - 1])), [])
                if len(values) <= _SUMMED:
                    values.append((scaled, record))
        found: dict[str, set[int]] = {}
        for values in fields.values():
            if not 1 < len(values) <= _SUMMED:
                continue
            by_word: dict[str, list[int]] = {"": [scaled for scaled, _ in values]}
            for scaled, record in values:
                span = words[int(records.starts[record]) : int(records.ends[record])][:_SUMMED_WORDS]
                for beginning in {stem[:_PREFIX] for word in span for stem in stems_of(word)}:
                    by_word.setdefault(beginning, []).append(scaled)
            for beginning, some in by_word.items():
                if len(some) > 1:
                    found.setdefault(beginning, set()).add(sum(some))
        return found

    @cached_property
    def amounts(self) -> frozenset[int]:
        """Bare numbers of outputs and M, in ten-thousandths."""
        return frozenset(s for _, atom in self._source_atoms if is_number(atom) and (s := scaled_number(atom.canon)) is not None)

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
        if atom.kind.startswith("code") or atom.kind in {"hex", "colour"}:
            return self._stands(atom.shown.lstrip("0x#"))
        if len(atom.canon) >= _RUN_DIGITS and any(atom.canon in said.runs for said in every):
            return True
        word = number_word(int(atom.canon)) if atom.canon.isdigit() and len(atom.canon) <= _WORD_DIGITS else None
        return word is not None and self._stands(word)

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
