"""Stress transformations: boundaries changed so that the true answer for some entries is certain without an annotator.

Two kinds of change. The *source* of an entry is taken away (its outputs are another run's, or stand in the task; its previous summary is
another run's), so that no judge may keep it for a source. Or a *value* of it is made wrong (a digit, a number), so that it still has a
source but outputs or the previous summary say otherwise: that binds the capped score, never p. They measure a judge, train it (negatives)
and make canaries. Pure: all chance comes from the generator that is passed in.
"""

import re
from collections.abc import Callable, Iterator, MutableSequence, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import Final, Protocol, TypeVar

from winnow.compaction import text as texts
from winnow.compaction.values import Value, is_short_number, values_of
from winnow.contracts.events import Message
from winnow.contracts.vocabulary import MessageKind

T = TypeVar("T")

#: Share of an entry's words in one line of another summary, from which on that line may say the same.
_SAME_WORDS: Final = 0.5
#: A number that is changed: a maximal run of at least two digits. A single digit stands in every text, so that changing it proves little.
_NUMBER: Final = re.compile(r"[0-9]{2,}")


class Chance(Protocol):
    """What is drawn with; a seeded `random.Random`. The core itself knows no randomness."""

    def choice(self, seq: Sequence[T], /) -> T:
        """One item."""
        ...

    def shuffle(self, x: MutableSequence[T], /) -> None:
        """Mix in place."""
        ...

    def randrange(self, start: int, /) -> int:
        """A number from 0 to below `start`."""
        ...


class Stress(StrEnum):
    """What is changed."""

    OTHER_DOMAIN = "outputs_of_another_domain"
    SAME_DOMAIN = "outputs_of_the_same_domain"
    INTO_TASK = "outputs_moved_into_the_task"
    PREVIOUS_SWAPPED = "previous_summary_swapped"
    DIGIT_CHANGED = "digit_changed"
    NUMBER_SWAPPED = "number_swapped"


class Truth(StrEnum):
    """What is certain of the entries of a changed boundary."""

    NO_SOURCE = "no_source"  # env = 0 and prev = 0: p must fall
    VALUE_WRONG = "value_wrong"  # a source stays, a value of it is wrong: the capped score must fall


#: What each change makes certain.
TRUTHS: Final = {
    Stress.OTHER_DOMAIN: Truth.NO_SOURCE,
    Stress.SAME_DOMAIN: Truth.NO_SOURCE,
    Stress.INTO_TASK: Truth.NO_SOURCE,
    Stress.PREVIOUS_SWAPPED: Truth.NO_SOURCE,
    Stress.DIGIT_CHANGED: Truth.VALUE_WRONG,
    Stress.NUMBER_SWAPPED: Truth.VALUE_WRONG,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """One entry of a candidate with its labels."""

    n: int
    #: UTF-8 byte offsets [start, end) in the candidate, as the parser gives them.
    span: tuple[int, int]
    #: An output says it.
    env: bool
    #: The previous summary says it.
    prev: bool
    #: A user message of H or R says it, which no change here takes away.
    user: bool = False


@dataclass(frozen=True, kw_only=True)
class Case:
    """A boundary with labelled entries. Not slotted: what is derived from its texts is remembered on it."""

    #: The run, or whatever else must not be mixed: two cuts of one trajectory are no donors of one another.
    run: str
    #: Kind of work, for example `airline`; empty where it is unknown (then every other run is of the same domain).
    domain: str = ""
    task: str
    previous: str | None
    history: tuple[Message, ...]
    retained: tuple[Message, ...]
    candidate: str
    entries: tuple[Labelled, ...]

    @cached_property
    def outputs(self) -> tuple[Message, ...]:
        """Environment messages of H and R."""
        return tuple(m for m in (*self.history, *self.retained) if m.kind is MessageKind.ENVIRONMENT)

    @cached_property
    def _texts(self) -> dict[int, str]:
        """Text of each entry, by number."""
        data = self.candidate.encode()
        return {entry.n: data[entry.span[0] : entry.span[1]].decode("utf-8", "replace") for entry in self.entries}

    def text_of(self, n: int) -> str:
        """Text of entry `n`, with its marker."""
        return self._texts[n]

    @cached_property
    def said_by_outputs(self) -> str:
        """All outputs as values are matched."""
        return _matched("\0".join(m.text for m in self.outputs))

    @cached_property
    def said_by_previous(self) -> str:
        """The previous summary as values are matched."""
        return _matched(self.previous or "")

    @cached_property
    def previous_lines(self) -> tuple[frozenset[str], ...]:
        """Words of each line of the previous summary."""
        return tuple(frozenset(texts.tokens(texts.normalise(line))) for line in (self.previous or "").splitlines())

    @cached_property
    def output_lines(self) -> tuple[frozenset[str], ...]:
        """Words of each line of the outputs."""
        return tuple(frozenset(texts.tokens(texts.normalise(line))) for m in self.outputs for line in m.text.splitlines())

    def touches(self, entry: str, *, previous: bool) -> bool:
        """Whether the previous summary, or an output, holds a part of an entry: one of its values, or a line with half of its words."""
        if self.may_say(entry, previous=previous):
            return True
        words = frozenset(texts.tokens(texts.normalise(texts.strip_marker(entry))))
        return not previous and bool(words) and any(len(words & line) >= _SAME_WORDS * len(words) for line in self.output_lines)

    def may_say(self, entry: str, *, previous: bool) -> bool:
        """Whether the previous summary, or an output, may support an entry of another run, so that nothing is certain of it.

        It may if it holds one of the entry's values. A previous summary may also if one of its lines has half of the entry's words: runs of
        one kind of work carry the same rules of their task, and those name no value.
        """
        said = self.said_by_previous if previous else self.said_by_outputs
        if any(holds(said, value) for value in telling(entry)):
            return True
        words = frozenset(texts.tokens(texts.normalise(texts.strip_marker(entry)))) if previous else frozenset()
        return any(len(words & line) >= _SAME_WORDS * len(words) for line in self.previous_lines) if words else False


@dataclass(frozen=True, kw_only=True)
class Stressed:
    """A changed boundary and the entries for which its truth is certain. Not slotted: what is derived from it is remembered."""

    kind: Stress
    case: Case
    entries: tuple[int, ...]

    @property
    def truth(self) -> Truth:
        """What is certain of `entries`."""
        return TRUTHS[self.kind]

    @cached_property
    def bare(self) -> frozenset[int]:
        """Entries whose support is gone altogether: the source that the change leaves in place holds no part of them either.

        Annotators said of every entry that this source does not say it. It may all the same hold a value or half of the words: the file
        that an output told something new of, the rule that an output follows. Then something of the entry is still supported.
        """
        if self.truth is not Truth.NO_SOURCE:
            return frozenset()
        of_previous = self.kind is not Stress.PREVIOUS_SWAPPED
        return frozenset(n for n in self.entries if not self.case.touches(self.case.text_of(n), previous=of_previous))


def stressed(kind: Stress, cases: Sequence[Case], chance: Chance) -> Iterator[Stressed]:
    """Change every case in one way.

    Args:
        kind: the change. `OTHER_DOMAIN`, `SAME_DOMAIN` and `INTO_TASK` concern entries that outputs alone support (no user turn either),
            `PREVIOUS_SWAPPED` those that the previous summary alone supports, the other two those that have a source and a number of at
            least two digits that an output or the previous summary holds.
        cases: boundaries with labels; donors of one another.
        chance: draws donors, numbers and digits. The same seed and cases give the same changes.

    A donor that may state the same fact (`Case.may_say`) is rejected for that entry. An entry without any donor is left
    out. A case can give several changed boundaries, each with other entries.
    """
    match kind:
        case Stress.OTHER_DOMAIN:
            yield from _with_donors(kind, cases, chance, lambda a, b: b.domain != a.domain and bool(b.outputs))
        case Stress.SAME_DOMAIN:
            yield from _with_donors(kind, cases, chance, lambda a, b: b.domain == a.domain and bool(b.outputs))
        case Stress.PREVIOUS_SWAPPED:
            yield from _with_donors(kind, cases, chance, lambda _, b: bool(b.previous))
        case Stress.INTO_TASK:
            yield from (_moved(case) for case in cases if _outputs_only(case))
        case Stress.DIGIT_CHANGED:
            yield from _with_numbers(kind, cases, chance, _other_digit)
        case Stress.NUMBER_SWAPPED:
            yield from _with_numbers(kind, cases, chance, _other_number)


def _outputs_only(case: Case) -> list[int]:
    """Entries that nothing but outputs supports."""
    return [e.n for e in case.entries if e.env and not e.prev and not e.user]


def _previous_only(case: Case) -> list[int]:
    """Entries that nothing but the previous summary supports."""
    return [e.n for e in case.entries if e.prev and not e.env and not e.user]


def _with_donors(kind: Stress, cases: Sequence[Case], chance: Chance, fits: Callable[[Case, Case], bool]) -> Iterator[Stressed]:
    """Swap outputs or the previous summary for those of donors, as few donors a case as are needed to have a clean one an entry."""
    of_previous = kind is Stress.PREVIOUS_SWAPPED
    for case in cases:
        wanted = _previous_only(case) if of_previous else _outputs_only(case)
        donors = [other for other in cases if other.run != case.run and fits(case, other)]
        chance.shuffle(donors)
        for donor in donors:
            if not wanted:
                break
            free = tuple(n for n in wanted if not donor.may_say(case.text_of(n), previous=of_previous))
            if not free:
                continue
            wanted = [n for n in wanted if n not in free]
            changed = replace(case, previous=donor.previous) if of_previous else _swapped(case, donor)
            yield Stressed(kind=kind, case=changed, entries=free)


def _swapped(case: Case, donor: Case) -> Case:
    """The case with the donor's outputs in place of its own, in their order, again from the first where there are too few."""
    texts_of = donor.outputs
    place = {id(message): texts_of[at % len(texts_of)] for at, message in enumerate(case.outputs)}

    def swap(messages: tuple[Message, ...]) -> tuple[Message, ...]:
        return tuple(
            message.model_copy(update={"text": new.text, "tool": new.tool, "is_error": new.is_error})
            if (new := place.get(id(message)))
            else message
            for message in messages
        )

    return replace(case, history=swap(case.history), retained=swap(case.retained))


def _moved(case: Case) -> Stressed:
    """The case with its outputs' texts behind the task, and no output in H or R."""
    changed = replace(
        case,
        task="\n".join((case.task, *(message.text for message in case.outputs))),
        history=tuple(m for m in case.history if m.kind is not MessageKind.ENVIRONMENT),
        retained=tuple(m for m in case.retained if m.kind is not MessageKind.ENVIRONMENT),
    )
    return Stressed(kind=Stress.INTO_TASK, case=changed, entries=tuple(_outputs_only(case)))


#: Makes another number of one: the number, those of the outputs by length, those of the entry. None where there is none.
_Change = Callable[[str, "_Numbers", Chance], str | None]


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Numbers of a boundary."""

    outputs: dict[int, list[str]]  # by length, sorted
    entry: frozenset[str]


def _with_numbers(kind: Stress, cases: Sequence[Case], chance: Chance, change: _Change) -> Iterator[Stressed]:
    """Change one number in every entry that has one; all entries of a case at once, because no entry decides another's score."""
    for case in cases:
        of_outputs = set(_NUMBER.findall(case.said_by_outputs))
        known = of_outputs | set(_NUMBER.findall(case.said_by_previous))
        by_length: dict[int, list[str]] = {}
        for number in sorted(of_outputs):
            by_length.setdefault(len(number), []).append(number)
        edits: dict[int, str] = {}
        for entry in case.entries:
            if not (entry.env or entry.prev):
                continue
            text = case.text_of(entry.n)
            places = [found for found in _NUMBER.finditer(texts.normalise(text)) if found.group() in known]
            numbers = _Numbers(by_length, frozenset(found.group() for found in places))
            if not places:
                continue
            number = chance.choice(places).group()
            new = change(number, numbers, chance)
            if new is not None and (edited := _replaced(text, number, new)) is not None:
                edits[entry.n] = edited
        if edits:
            yield Stressed(kind=kind, case=_edited(case, edits), entries=tuple(edits))


def _other_digit(number: str, _: _Numbers, chance: Chance) -> str:
    """The number with another digit in one place; no zero in front."""
    at = chance.randrange(len(number))
    digits = [digit for digit in "0123456789" if digit != number[at] and (digit != "0" or at > 0)]
    return number[:at] + chance.choice(digits) + number[at + 1 :]


def _other_number(number: str, numbers: _Numbers, chance: Chance) -> str | None:
    """Another number of the same length that an output says and the entry does not."""
    others = [other for other in numbers.outputs.get(len(number), ()) if other not in numbers.entry]
    return chance.choice(others) if others else None


def _replaced(text: str, number: str, new: str) -> str | None:
    """The text with the first standing of `number` replaced, thousands separators kept where they stand."""
    pattern = "(?<![0-9])(?<![0-9],)" + ",?".join(number) + "(?!,?[0-9])"
    found = re.search(pattern, text)
    if found is None:
        return None
    digits = iter(new)
    return text[: found.start()] + "".join(next(digits) if c.isdigit() else c for c in found.group()) + text[found.end() :]


def _edited(case: Case, edits: dict[int, str]) -> Case:
    """The case with other texts for some entries; the spans of what follows move."""
    data = case.candidate.encode()
    parts: list[bytes] = []
    entries: list[Labelled] = []
    at = shift = 0
    for entry in sorted(case.entries, key=lambda e: e.span):
        start, end = entry.span
        new = edits[entry.n].encode() if entry.n in edits else data[start:end]
        if start < at:  # inside an entry that was written already; entries do not overlap
            msg = f"entry {entry.n} overlaps the one before it"
            raise ValueError(msg)
        parts += (data[at:start], new)
        entries.append(replace(entry, span=(start + shift, start + shift + len(new))))
        shift += len(new) - (end - start)
        at = end
    parts.append(data[at:])
    order = {entry.n: entry for entry in entries}
    return replace(case, candidate=b"".join(parts).decode(), entries=tuple(order[e.n] for e in case.entries))


def _matched(text: str) -> str:
    """A text as values are matched."""
    return texts.normalise(text).lower()


def telling(entry: str) -> list[Value]:
    """Values by which an entry could be known; bare numbers of one or two digits stand in every text."""
    return [value for value in values_of(texts.normalise(texts.strip_marker(entry))) if not value.is_weak]


def holds(said: str, value: Value) -> bool:
    """Whether a text holds a value, in one of its ways."""
    return any(all(_stands(said, needle) for needle in way) for way in value.ways)


def _stands(said: str, needle: str) -> bool:
    """Whether a needle stands in a text; short numbers at digit boundaries only."""
    if not is_short_number(needle):
        return needle in said
    return re.search(rf"(?<![0-9.]){needle}(?![0-9])", said) is not None
