"""Refutation: values of an entry that nobody says and that follow from nothing, and values that belong elsewhere."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from winnow.compaction.claims.atoms import MONTHS, UNITS, Atom, bare, is_amount, is_number
from winnow.compaction.claims.binding import Asked, Binding, Bound, Entries
from winnow.compaction.claims.derived import backward_range, false_equation, is_share, reaches
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
#: A value that nobody says but that the entry excuses: an estimate, a number of two digits, a duration.
MARGIN_EXCUSED: Final = 0.3
#: A value that can be computed, or that the task or a user says: another one must fit nearly perfectly.
MARGIN_GIVEN: Final = 0.6
#: Digits below which a value is not looked at: single digits stand everywhere.
_DIGITS: Final = 2
#: Words before a value that make it an estimate.
_ABOUT: Final = frozenset("about around approx approximately roughly nearly almost over under up ca circa least most than some".split())  # noqa: SIM905
#: Words before a value that say that it was computed, often from values that are not at hand.
_COMPUTED: Final = re.compile(r"(?:differen|remain|averag|net\Z|rest\Z|leav|sav(?:e|ing)|surplus|shortfall)")
#: Words near a value that follows from one of the entry's numbers and one of a source's.
_RECKONED: Final = re.compile(r"(?:total|sum\Z|charg|pa(?:id|y)|refund|balance|cost|change|left\Z|more\Z|less\Z|extra|differen|remain)")
#: Numbers that are added to a source's: smaller ones reach everything. In ten-thousandths.
_SMALL: Final = 20 * 10_000
#: Half of a day, in hours; and which half a time in twelve hours is in.
_NOON: Final = 12
_HALF: Final = re.compile(r"\A[\d:]+\s?([ap])\.?m\b")
#: The unit of scaled numbers, and an entry's own numbers of which a source's may be taken so many times: passengers, nights, copies.
_UNIT: Final = 10_000
_COPIES: Final = range(2 * _UNIT, 9 * _UNIT + 1, _UNIT)
#: Numbers of an entry that are tried so.
_OWN: Final = 16
#: Words before a year.
_BEFORE_YEAR: Final = word_set("in since until till during early mid late year fy copyright q1 q2 q3 q4")
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
            doubts += _doubts(number, entries, said, chosen=chosen[number])
    told: dict[int, int] = {}
    for doubt, bound in zip(doubts, binding.bind([doubt.asked for doubt in doubts]), strict=True):
        number = doubt.asked.entry
        if told.get(number, 0) >= _PER_ENTRY:
            continue
        ahead = bound.other - bound.own
        if ahead > doubt.margin and (ahead > MARGIN_GIVEN or not _follows(doubt.asked, bound, entries, binding)):
            found = _elsewhere(doubt, bound, records, binding)
        elif doubt.orphan:
            found = Refuted(number, doubt.asked.atom.shown, orphan=True)
        else:
            continue
        if doubt.unsaid and said.otherwise.say(doubt.asked.atom, lowered[number], entries.words.words, doubt.asked.word):
            continue
        told[number] = told.get(number, 0) + 1
        yield found


def _doubts(number: int, entries: Entries, said: Said, *, chosen: bool) -> Iterator[_Doubt]:
    """The atoms of an entry that nobody says, or that can be bound to where they are said."""
    atoms = entries.atoms[number]
    seen: set[str] = set()
    for at, atom in atoms:
        if atom.digits < _DIGITS or atom.canon in seen:
            continue
        seen.add(atom.canon)
        asked = Asked(number, at, atom)
        if said.holds(atom):
            if atom.canon in said.agent.values and atom.canon not in said.sources.values:
                continue  # the agent's own value: no output can have another one in its place
            if atom.kind not in {"hex", "colour"}:
                given, line = atom.canon in said.given.values, atom.kind == "line"
                yield _Doubt(asked, MARGIN_GIVEN if given else MARGIN_LINE if line else MARGIN_CHOSEN if chosen else MARGIN)
        elif _derived(atom, _amounts(atoms)) or _explained(asked, entries, said):
            if atom.kind == "n2":
                yield _Doubt(asked, MARGIN_GIVEN)
        else:
            yield _Doubt(asked, MARGIN_EXCUSED, unsaid=True, orphan=not _excused(asked, entries, said))


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
    if not _ABOUT.isdisjoint(before) or any(word.startswith("~") for word in (*near[-1:], words[at])):
        return True
    return any(_COMPUTED.match(word) for word in before)


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
    return scaled is not None and ((atom.canon.isdigit() and int(atom.canon) in said.counts) or _reckoned(asked, scaled, entries, said))


def _is_year(asked: Asked, entries: Entries) -> bool:
    """Whether a number is worded as a year: "in 2024", "May 24, 2024"; an amount or a card may have the same digits."""
    words, start = entries.words.words, entries.starts[asked.entry]
    before = [bare(word) for word in words[max(start, asked.word - _NEAR) : asked.word] if word >= AFTER_MARKS]
    if before[-2:] == ["ending", "in"]:
        return False  # a card
    return not before or before[-1] in _BEFORE_YEAR or not MONTHS.keys().isdisjoint(before)


def _half_day(asked: Asked, entries: Entries, said: Said) -> bool:
    """Whether a time of day is said in the other writing: 6:30 pm for 18:30, or the other way round."""
    atom, words = asked.atom, entries.words.words
    hour, minutes = int(atom.canon[:2]), atom.canon[3:5]
    if hour >= _NOON and atom.canon[:5] in said.afternoons:
        return True
    half = _HALF.search(" ".join(words[asked.word : asked.word + 2]))
    if half is None:
        return False
    return said.holds(atom._replace(canon=f"{hour % _NOON + (_NOON if half[1] == 'p' else 0):02}:{minutes}"))


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


def _elsewhere(doubt: _Doubt, bound: Bound, records: Records, binding: Binding) -> Refuted:
    """A value whose place another one has."""
    at, other = binding.occurrence(bound.occurrence)
    before = records.words.words[at - 1] if at > records.starts[bound.record] else ""
    key = bare(before) if before >= AFTER_MARKS and before[:1].isalpha() else None
    return Refuted(doubt.asked.entry, doubt.asked.atom.shown, said=other.shown, key=key, text=int(records.texts[bound.record]))
