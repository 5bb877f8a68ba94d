"""Refutation: values of an entry that nobody says and that follow from nothing, and values that belong elsewhere."""

import math
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from winnow.compaction.claims.atoms import MONTHS, UNITS, Atom, bare, is_amount, is_number
from winnow.compaction.claims.binding import Asked, Binding, Bound, Entries
from winnow.compaction.claims.derived import backward_range, false_equation, is_share, reaches
from winnow.compaction.claims.naming import name_of
from winnow.compaction.claims.records import AFTER_MARKS, Records, stems_of
from winnow.compaction.claims.said import Said
from winnow.compaction.text import word_set
from winnow.compaction.values import scaled_number

# Margins by which a record with another value must fit the entry's words better than every record with this one. Chosen on sourcebench
# dev so that few natural entries are capped (docs/judging.md has the curve).
#: A value that an output or M says.
MARGIN: Final = 0.17
#: The same in an entry that tells what to do: there a value is chosen rather than reported.
MARGIN_CHOSEN: Final = 0.25
#: A line number: its neighbours stand in rows around it.
MARGIN_LINE: Final = 0.45
#: A value that nobody says but that the entry excuses: an estimate, a number of two digits, a duration. And an amount that somebody says
#: and that its entry words as computed from several: no single field is its place.
MARGIN_EXCUSED: Final = 0.3
#: A value that can be computed, or that the task or a user says: another one must fit nearly perfectly.
MARGIN_GIVEN: Final = 0.6
#: Digits below which a value is not looked at: single digits stand everywhere.
_DIGITS: Final = 2
#: Words before a value that make it an estimate.
_ABOUT: Final = word_set("about around approx approximately roughly nearly almost over under up ca circa least most some")
#: Words before "than" that leave open by how much: "more than 40" is an estimate, "older than 24 hours" a limit that somebody set.
_MORE: Final = word_set("more less fewer greater larger bigger smaller")
#: Words before a value that say that it was computed, often from values that are not at hand.
_COMPUTED: Final = re.compile(r"(?:differen|remain|averag|net\Z|rest\Z|leav|sav(?:e|ing)|surplus|shortfall)")
#: Words near a value that follows from one of the entry's numbers and one of a source's.
_RECKONED: Final = re.compile(r"(?:total|sum\Z|charg|pa(?:id|y)|refund|balance|cost|change|left\Z|more\Z|less\Z|extra|differen|remain)")
#: Words before a value that counts.
_COUNTED: Final = re.compile(r"(?:count|number|total|lines?\Z|entr|rows?\Z|items?\Z|files?\Z|size|length)")
#: Words before an amount that may be computed from several.
_SUMMED: Final = re.compile(rf"(?:total|sum\Z|refund|balance|additional|extra|cost\Z|{_COMPUTED.pattern})")
#: The kind of whole numbers that may be a part of a code.
_LONG: Final = "n4"
#: Numbers that are added to a source's: smaller ones reach everything. In ten-thousandths.
_SMALL: Final = 20 * 10_000
#: Half of a day, in hours; and a time that says which half it is in.
_NOON: Final = 12
_HALF: Final = re.compile(r"\A[\d:]+\s?[ap]\.?m\b")
#: The unit of scaled numbers, and an entry's own numbers of which a source's may be taken so many times: passengers, nights, copies.
_UNIT: Final = 10_000
_COPIES: Final = range(2 * _UNIT, 9 * _UNIT + 1, _UNIT)
#: Numbers of an entry that are tried so.
_OWN: Final = 16
#: Words before a year.
_BEFORE_YEAR: Final = word_set("in since until till during early mid late year fy copyright q1 q2 q3 q4")
_ORDINAL: Final = re.compile(r"[0-9]{1,2}(?:st|nd|rd|th)")
#: Kinds beside which a quantity may be a duration.
_TIMES: Final = frozenset({"clock", "date", "day"})
#: Without it no entry holds a range.
_RANGED: Final = re.compile(r"[0-9]{3}[-:][0-9]{3}")
#: Findings of one entry: the first ones say enough.
_PER_ENTRY: Final = 3
#: Words on each side in which a reason for a value is looked for.
_NEAR: Final = 3


class Refuted(NamedTuple):
    """A value of an entry that is wrong or comes from nowhere."""

    entry: int
    claim: str
    #: The other value; None where nobody says anything.
    said: str | None = None
    #: What the other value stands behind.
    key: str | None = None
    #: Number of the part of M or of the output that says so; -1: the entry's own numbers do, or nobody.
    text: int = -1
    orphan: bool = False


class _Doubt(NamedTuple):
    """An atom that may be wrong."""

    asked: Asked
    margin: float
    unsaid: bool = False  # nobody says it as it stands
    orphan: bool = False  # nor does anything excuse it: wrong whatever fits better


def refute(
    lowered: Sequence[str], entries: Entries, records: Records, binding: Binding, said: Said, chosen: Sequence[bool]
) -> Iterator[Refuted]:
    """Yield the wrong values of entries.

    Args:
        lowered: texts of the entries, as `Entries.of` takes them.
        entries: the same, read.
        records: outputs and M.
        binding: entries against records.
        said: what all texts say.
        chosen: of each entry whether it tells what to do.
    """
    doubts: list[_Doubt] = []
    ranged = _RANGED.search("\n".join(lowered)) is not None
    for number, text in enumerate(lowered):
        if (equation := false_equation(text)) is not None:
            yield Refuted(number, equation[0], said=equation[1], key="the left side")
        if ranged and (backward := backward_range(text)) is not None:
            yield Refuted(number, backward, said="an end before its beginning", key="this range")
        if entries.atoms[number]:
            doubts += _doubts(number, text, entries, said, chosen=chosen[number])
    told: dict[int, int] = {}
    for doubt, bound in zip(doubts, binding.bind([doubt.asked for doubt in doubts]), strict=True):
        number = doubt.asked.entry
        if told.get(number, 0) >= _PER_ENTRY:
            continue
        found = _found(doubt, bound, entries, records, binding)
        if found is None or (doubt.unsaid and said.otherwise.say(doubt.asked.atom, lowered[number], entries.words.words, doubt.asked.word)):
            continue
        told[number] = told.get(number, 0) + 1
        yield found


def _found(doubt: _Doubt, bound: Bound, entries: Entries, records: Records, binding: Binding) -> Refuted | None:
    """What is wrong with a value: its name has another one, another one fits its place better, or nobody says it; None: nothing."""
    if bound.named >= 0:
        return _elsewhere(doubt.asked, bound.named, records, binding)
    ahead = bound.other - bound.own
    if ahead > doubt.margin and (ahead > MARGIN_GIVEN or not _follows(doubt.asked, bound, entries, binding)):
        return _elsewhere(doubt.asked, bound.occurrence, records, binding)
    return Refuted(doubt.asked.entry, doubt.asked.atom.shown, orphan=True) if doubt.orphan else None


def _doubts(number: int, text: str, entries: Entries, said: Said, *, chosen: bool) -> Iterator[_Doubt]:
    """The atoms of an entry that nobody says, or that can be bound to where they are said."""
    atoms = entries.atoms[number]
    last = dict(atoms)
    unnamed = chosen or not any(atom.kind == "line" or atom.kind.startswith("code") for _, atom in atoms)
    seen: set[tuple[str, str]] = set()
    for at, atom in atoms:
        if atom.digits < _DIGITS:
            continue
        name = "" if unnamed else name_of(Asked(number, at, atom), last, entries, text)
        if name in said.given.values and atom.canon in said.given.values:
            name = ""  # the task's or a user's own word
        if (atom.canon, name) not in seen:
            seen.add((atom.canon, name))
            yield from _doubted(Asked(number, at, atom, name), entries, said, chosen=chosen)


def _doubted(asked: Asked, entries: Entries, said: Said, *, chosen: bool) -> Iterator[_Doubt]:
    """One atom of an entry, if it may be wrong. What stands behind a name may be although it could stand anywhere else."""
    atom = asked.atom
    if said.holds(atom):
        margin = _margin(asked, entries, said, chosen=chosen)
        if margin < math.inf or asked.name:
            yield _Doubt(asked, margin)
    elif _explained(asked, entries, said):
        if atom.kind == "n2":
            yield _Doubt(asked._replace(name=""), MARGIN_GIVEN)
    elif _derived(atom, _amounts(entries.atoms[asked.entry])):
        if atom.kind == "n2" or asked.name:
            yield _Doubt(asked, MARGIN_GIVEN if atom.kind == "n2" else math.inf)
    else:
        yield _Doubt(asked, MARGIN_EXCUSED, unsaid=True, orphan=not _excused(asked, entries, said))


def _margin(asked: Asked, entries: Entries, said: Said, *, chosen: bool) -> float:
    """By how much another value must fit better than one that is said; infinite where none can have its place."""
    atom = asked.atom
    if atom.kind in {"hex", "colour"} or _is_part(asked, entries, said):
        return math.inf
    if atom.canon in said.agent.values and atom.canon not in said.sources.values:
        return math.inf  # the agent's own value
    if atom.canon in said.given.values:
        return MARGIN_GIVEN
    margin = MARGIN_LINE if atom.kind == "line" else MARGIN_CHOSEN if chosen else MARGIN
    return max(margin, MARGIN_EXCUSED) if _is_summed(asked, entries) else margin


def _is_part(asked: Asked, entries: Entries, said: Said) -> bool:
    """Whether a number is told as a part of a code: "the card ending in 7447", "certificate 7504069" for `certificate_7504069`."""
    canon, words, start = asked.atom.canon, entries.words.words, entries.starts[asked.entry]
    if asked.atom.kind != _LONG or not said.in_code_alone(canon):
        return False
    before = [bare(word) for word in words[max(start, asked.word - _NEAR) : asked.word] if word >= AFTER_MARKS]
    return bool(before) and ("ending" in before or f"{before[-1]}_{canon}" in said.sources.codes)


def _is_summed(asked: Asked, entries: Entries) -> bool:
    """Whether the words before an amount say that it may be computed from several."""
    before = entries.words.words[max(entries.starts[asked.entry], asked.word - _NEAR) : asked.word]
    return is_amount(asked.atom) and any(map(_SUMMED.match, map(bare, before)))


def _follows(asked: Asked, bound: Bound, entries: Entries, binding: Binding) -> bool:
    """Whether a value that another one fits better is right all the same: computed from its neighbours, or one more or less."""
    other = binding.occurrence(bound.occurrence)[1].canon
    if asked.atom.kind == "n2" and other.isdigit() and asked.atom.canon.isdigit() and abs(int(other) - int(asked.atom.canon)) == 1:
        return True  # "longer than 79" is "at most 80"
    return _derived(asked.atom, _amounts(entries.atoms[asked.entry]))


def _amounts(atoms: Sequence[tuple[int, Atom]]) -> list[str]:
    """The numbers of an entry that can be reckoned with."""
    return [atom.canon for _, atom in atoms if is_amount(atom)]


def _derived(atom: Atom, amounts: Sequence[str]) -> bool:
    """Whether a number follows from the other numbers of its entry."""
    if len(amounts) < 2 or not is_amount(atom):  # noqa: PLR2004  itself and another one
        return False
    scaled = scaled_number(atom.canon)
    if scaled is None:
        return False
    others = [other for other in amounts if other != atom.canon]
    return reaches(scaled, others) or (atom.kind == UNITS["%"] and is_share(scaled, others))


def _excused(asked: Asked, entries: Entries, said: Said) -> bool:
    """Whether a value that nobody says need not be wrong."""
    atom, at, words = asked.atom, asked.word, entries.words.words
    if atom.kind.startswith("code"):
        return atom.kind not in said.shapes  # nothing of its kind is known
    if atom.kind in {"colour", "n2"}:
        return True
    if atom.kind.startswith("of ") and any(other.kind in _TIMES for _, other in entries.atoms[asked.entry]):
        return True  # a duration, computed from the times beside it
    if not is_amount(atom):
        return False
    near = words[max(0, at - 2) : at]
    before = [bare(word) for word in near]
    if any(word.startswith("~") for word in (*near[-1:], words[at])):
        return True
    more = before[-1:] == ["than"] and not _MORE.isdisjoint(before)
    return more or not _ABOUT.isdisjoint(before) or any(_COMPUTED.match(word) for word in before)


def _explained(asked: Asked, entries: Entries, said: Said) -> bool:
    """Whether a value that nobody says follows from what outputs and M say: counted, summed, or one further."""
    atom = asked.atom
    if atom.kind == "hex":
        return any(f"0x{int(atom.canon, 16) + step:x}" in said.sources.values for step in (-1, 1))
    if atom.kind == "clock":
        return _half_day(asked, entries, said)
    if atom.kind == "decimal" and atom.shown in said.versions:
        return True  # version 2.3.1 of "v2.3.1"
    if atom.canon in said.years and _is_year(asked, entries):
        return True  # of "2024-05-24": the day is an atom of its own
    if atom.kind == "line":
        return atom.canon.isdigit() and any(str(int(atom.canon) + step) in said.sources.values for step in (-1, 1))
    scaled = scaled_number(atom.canon) if is_number(atom) else None
    return scaled is not None and (_counts(asked, entries, said) or _reckoned(asked, scaled, entries, said))


def _counts(asked: Asked, entries: Entries, said: Said) -> bool:
    """Whether a number is what may have been counted, and worded so: what it counts stands behind it, or before it that it counts."""
    words, at = entries.words.words, asked.word
    if not asked.atom.canon.isdigit() or int(asked.atom.canon) not in said.counts:
        return False
    behind = bare(words[at + 1]) if at + 1 < entries.starts[asked.entry + 1] and words[at + 1] >= AFTER_MARKS else ""
    return behind.isalpha() or any(_COUNTED.match(bare(word)) for word in words[max(entries.starts[asked.entry], at - _NEAR) : at])


def _is_year(asked: Asked, entries: Entries) -> bool:
    """Whether a number is worded as a year: "in 2024", "May 24, 2024"; an amount or a card may have the same digits."""
    words, start = entries.words.words, entries.starts[asked.entry]
    before = [bare(word) for word in words[max(start, asked.word - _NEAR) : asked.word] if word >= AFTER_MARKS]
    if before[-2:] == ["ending", "in"]:
        return False  # a card
    return not before or before[-1] in _BEFORE_YEAR or not MONTHS.keys().isdisjoint(before) or _ORDINAL.fullmatch(before[-1]) is not None


def _half_day(asked: Asked, entries: Entries, said: Said) -> bool:
    """Whether a time of day is said as one after noon, and only the entry leaves open which half it is in: 6:30 of "6:30 PM"."""
    hour, minutes = int(asked.atom.canon[:2]), asked.atom.canon[3:5]
    half = _HALF.search(" ".join(entries.words.words[asked.word : asked.word + 2]))
    return half is None and hour < _NOON and f"{hour + _NOON}:{minutes}" in said.afternoons


def _reckoned(asked: Asked, scaled: int, entries: Entries, said: Said) -> bool:
    """Whether a number is the sum of a field that its words name, or one of its entry's numbers and a source's make it."""
    words = entries.words.words
    near = words[max(entries.starts[asked.entry], asked.word - _NEAR) : min(entries.starts[asked.entry + 1], asked.word + _NEAR)]
    if said.adds_up(scaled, [stem for word in near if word.isalpha() for stem in stems_of(word)]):
        return True
    own = [part for canon in _amounts(entries.atoms[asked.entry]) if (part := scaled_number(canon)) is not None][:_OWN]
    if any(scaled % (part // _UNIT) == 0 and scaled * _UNIT // part in said.amounts for part in own if part in _COPIES):
        return True  # "2 passengers at $152 each: $304", where only the price of one is said
    if not any(_RECKONED.match(bare(word)) for word in near):
        return False
    return any(scaled + part in said.amounts or abs(scaled - part) in said.amounts for part in own if part != scaled and part > _SMALL)


def _elsewhere(asked: Asked, occurrence: int, records: Records, binding: Binding) -> Refuted:
    """A value whose place another one has."""
    at, other = binding.occurrence(occurrence)
    record = int(records.record_of(np.array([at]))[0])
    before = records.words.words[at - 1] if at > records.starts[record] else ""
    key = bare(before) if before >= AFTER_MARKS and before[:1].isalpha() else None
    return Refuted(asked.entry, asked.atom.shown, said=other.shown, key=key, text=int(records.texts[record]))
