"""Other writings of one value: 1.5 MB and 1572864 bytes, 90 min and 1h30m, 50 % and 0.5, 24.05.2024, telephone numbers without hyphens.

Asked only of values that no text says as they stand, so that another unit is no wrong value. All texts here are in lower case.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import Final

from winnow.compaction.claims.atoms import Atom, bare, is_amount
from winnow.compaction.claims.derived import number_words
from winnow.compaction.text import place_of

_NUMBER: Final = re.compile(r"(?<![\w.])\d{1,15}(?:\.\d{1,12})?")
#: Everything in ASCII that is neither a letter, a digit, `_` nor a dot becomes a blank; what is not ASCII stays.
_NUMERIC: Final = bytes(code if code > 127 or chr(code).isalnum() or code in b"_." else 32 for code in range(256))  # noqa: PLR2004  ASCII
#: 1.234,50 and 1 234,50: thousands and decimals as they are written outside English.
_FOREIGN: Final = re.compile(r"(?<![\w.,])\d{1,3}(?:[. ]\d{3}){1,4},\d{1,2}(?!\d)")
#: What every such amount ends with.
_DECIMALS: Final = re.compile(r",(?<=\d\d\d,)\d")
_TELEPHONE: Final = re.compile(r"(?<![\w.])(?:\+|\()?\d(?:[ ().-]{0,2}\d){6,16}(?![\w.]\w)")
_TELEPHONE_DIGITS: Final = 7
#: A duration in two or three units: 1h30m, 1 hour 30 minutes, 2d 4h.
_COMPOUND: Final = re.compile(
    r"(?<![\w.])(?=\d)(?:(\d{1,4}) ?d(?:ays?)?,? ?)?(?:(\d{1,4}) ?h(?:(?:ou)?rs?)?,? ?(?:and )?)?"
    r"(?:(\d{1,4}) ?m(?:in(?:ute)?s?)?,? ?(?:and )?)?(?:(\d{1,5}) ?s(?:ec(?:ond)?s?)?)?(?![a-z0-9])"
)
#: Where one can begin: with days, hours or minutes. Read first and from a digit on, at a tenth of the other's price.
_OPENING: Final = re.compile(r"\d(?<![\w.]\d)(?=\d{0,3} ?[dhm])")
_SECONDS: Final = (86_400, 3_600, 60, 1)
#: A date with day or month first.
_DATE: Final = re.compile(r"(?<![\d.])(\d{1,2})([./-])(\d{1,2})\2((?:19|20)\d\d)(?!\d)")
_MONTHS_OF_YEAR: Final = 12
_NAMES: Final = "january february march april may june july august september october november december".split()  # noqa: SIM905  a list of words
_NO_DIGITS: Final = re.compile(r"\D+")
_PERCENTAGE: Final = re.compile(r"(?<![\w.])(\d{1,9}(?:\.\d{1,9})?) ?(?:%|percent)")
_WORD: Final = re.compile("[a-z0-9]+")
_UNIT: Final = re.compile(r"\d(%|[a-z]{1,8})")
#: Seconds of each unit of time.
_TIMES: Final = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 0.001),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3_600.0),
    **dict.fromkeys(("d", "day", "days"), 86_400.0),
    **dict.fromkeys(("week", "weeks"), 604_800.0),
}
#: What each unit of size or number stands for, in thousands and in powers of two.
_SIZES: Final = {
    **dict.fromkeys(("k", "kb", "kib", "thousand"), (1e3, 2.0**10)),
    **dict.fromkeys(("m", "mn", "mb", "mib", "million"), (1e6, 2.0**20)),
    **dict.fromkeys(("b", "bn", "gb", "gib", "billion"), (1e9, 2.0**30)),
    **dict.fromkeys(("tb", "tib", "trillion"), (1e12, 2.0**40)),
}
_OF_SIZE: Final = (1.0, 1e3, 2.0**10, 1e6, 2.0**20, 1e9, 2.0**30)
_PERCENT: Final = frozenset({"%", "percent"})
#: Decimals of an amount of money, and the cents of one.
_CENTS: Final = 2
_HUNDRED: Final = 100.0
#: Relative error of a product of floats, far above what they have.
_EXACT: Final = 1e-9
#: Words behind a number in which its unit may stand.
_BEHIND: Final = 2
#: Longest whole number that is looked for in words.
_WORD_DIGITS: Final = 9
#: Decimals from which on a number may be another one that was rounded.
_ROUNDED: Final = 2


class Amounts:
    """The numbers, durations and telephone numbers of a text, read when first asked for. Linear in its length."""

    def __init__(self, text: str) -> None:
        """Read from a text in lower case, normalised."""
        self._text = text

    @cached_property
    def _numbers(self) -> list[float]:
        """All numbers, ascending."""
        found = numbers(self._runs)
        if _DECIMALS.search(self._text):
            found |= {_amount(number) for number in _FOREIGN.findall(self._text)}
        return sorted(found)

    @cached_property
    def _durations(self) -> frozenset[int]:
        """Durations in several units, in seconds."""
        return frozenset(seconds for _, _, seconds in durations(self._text))

    @cached_property
    def _telephones(self) -> frozenset[str]:
        """Telephone numbers, their digits alone, and the last seven of each."""
        found = [_NO_DIGITS.sub("", number) for number in _TELEPHONE.findall(self._text)]
        return frozenset([*found, *(digits[-_TELEPHONE_DIGITS:] for digits in found)])

    def stands(self, writing: str) -> bool:
        """Whether a writing stands somewhere, not as a part of a longer number or word: then each of its words does, or is, one."""
        return self._words.issuperset(_WORD.findall(writing)) and place_of(writing, self._text) >= 0

    @cached_property
    def _runs(self) -> set[str]:
        """The distinct runs of letters, digits, `_` and dots: most come again."""
        return runs(self._text)

    @cached_property
    def _words(self) -> set[str]:
        """The distinct words, of letters and digits in ASCII."""
        return set(_WORD.findall(" ".join(self._runs)))

    @cached_property
    def _in_words(self) -> bool:
        """Whether some number from a hundred up may be written in words."""
        return "hundred" in self._text or "thousand" in self._text

    @cached_property
    def _percentages(self) -> list[float]:
        """Numbers before a percent sign, as shares, ascending."""
        if "%" not in self._text and "percent" not in self._text:
            return []
        return sorted({float(number) / _HUNDRED for number in _PERCENTAGE.findall(self._text)})

    def _between(self, low: float, high: float) -> bool:
        """Whether some number lies between two, both included."""
        return _any_between(self._numbers, low, high)

    def say(self, atom: Atom, entry: str, words: Sequence[str], at: int) -> bool:
        """Whether the text says the value of an atom in another writing.

        Args:
            atom: a number, date or hexadecimal number; of other kinds the answer is no.
            entry: the text that it stands in, in lower case and with its punctuation.
            words: words of the entries.
            at: the word that holds it.
        """
        if atom.kind in {"date", "day"} or _DATE.search(entry):
            dated = [atom.canon] if atom.kind in {"date", "day"} else [one for found in _DATE.finditer(entry) for one in _read(found, atom)]
            if any(self.stands(writing) for date in dated for writing in _dates(date)):
                return True
        if not atom.canon[:1].isdigit() or not is_amount(atom):
            return atom.kind == "hex" and self._between(int(atom.canon, 16), int(atom.canon, 16))
        return (
            any(map(self.stands, _whole(atom, in_words=self._in_words)))
            or any(self._between(low, high) for low, high in _writings(atom, words, at))
            or self._as_share(atom, words[at])
            or self._in_several_units(atom, entry, words, at)
            or self._as_telephone(atom, entry)
            or self._as_foreign(atom, entry)
        )

    def _in_several_units(self, atom: Atom, entry: str, words: Sequence[str], at: int) -> bool:
        """Whether a duration is said in several units, or is a part of one that is said in one."""
        number = float(atom.canon)
        unit = next((_TIMES[unit] for unit in _units(words, at) if unit in _TIMES), None)
        if unit is not None and (number * unit).is_integer() and int(number * unit) in self._durations:
            return True
        for begin, end, seconds in durations(entry):
            if atom.shown in _NO_DIGITS.split(entry[begin:end]):
                same = seconds in self._durations or any(self._between(seconds / other, seconds / other) for other in set(_TIMES.values()))
                if same:
                    return True
        return False

    def _as_share(self, atom: Atom, word: str) -> bool:
        """Whether a number below one, and no part of a version, is said as a percentage."""
        decimals, number = len(atom.shown.partition(".")[2]), float(atom.canon)
        last = 10.0**-decimals
        return (
            decimals > 0 and number < 1.0 and bare(word) == atom.shown and _any_between(self._percentages, number - last / 2, number + last)
        )

    def _as_telephone(self, atom: Atom, entry: str) -> bool:
        """Whether a number is part of a telephone number that is said with other punctuation."""
        numbers = (found.group() for found in _TELEPHONE.finditer(entry) if atom.shown in found.group())
        return any(_NO_DIGITS.sub("", number)[-_TELEPHONE_DIGITS:] in self._telephones for number in numbers)

    def _as_foreign(self, atom: Atom, entry: str) -> bool:
        """Whether a number is part of an amount that is said with a point for its decimals."""
        amounts = (_amount(found.group()) for found in _FOREIGN.finditer(entry) if atom.shown in found.group())
        return any(self._between(amount, amount) for amount in amounts)


def _any_between(numbers: Sequence[float], low: float, high: float) -> bool:
    """Whether some number of an ascending list lies between two, both included."""
    at = bisect_left(numbers, low)
    return at < len(numbers) and numbers[at] <= high


def _writings(atom: Atom, words: Sequence[str], at: int) -> Iterator[tuple[float, float]]:
    """The ranges in which another writing of a number would lie: rounded or cut where it has decimals or a size, else exactly it."""
    number = float(atom.canon)
    decimals = len(atom.shown.partition(".")[2])
    last: float = 10.0**-decimals
    rounded = (number - last / 2, number + last)
    exact = (number * (1 - _EXACT), number * (1 + _EXACT))
    for unit in _units(words, at):
        for size in _SIZES.get(unit, ()):
            yield from (_times(rounded, size / other) for other in _OF_SIZE if size != other)
        if unit in _TIMES:
            others = {_TIMES[unit] / other for other in _TIMES.values()} - {1.0}
            near = rounded if decimals else exact
            # Two days, like every small number, may be anything: 48 hours are looked for in smaller units.
            yield from (_times(near, factor) for factor in sorted(others) if factor > 1.0 or number * factor != round(number * factor))
        if unit in _PERCENT:
            yield _times(rounded, 1.0 / _HUNDRED)
    if decimals == _CENTS:
        yield _times(exact, _HUNDRED)
    if decimals >= _ROUNDED:
        yield rounded


def _whole(atom: Atom, *, in_words: bool) -> Iterator[str]:
    """A whole number in words, where any is written so, and as a hexadecimal one where it has more than a byte."""
    if atom.canon.isdigit() and len(atom.canon) <= _WORD_DIGITS:
        if in_words:
            yield from number_words(int(atom.canon))
        if int(atom.canon) > 255:  # noqa: PLR2004  a byte's
            yield f"0x{int(atom.canon):x}"


def _read(found: re.Match[str], atom: Atom) -> Iterator[str]:
    """What a written date that holds an atom may mean, as year, month, day: with a slash the month may stand first."""
    if atom.shown in found.group():
        first, _, second, year = found.groups()
        for month, day in ((second, first), (first, second)):
            if 1 <= int(month) <= _MONTHS_OF_YEAR:
                yield f"{year}-{int(month):02}-{int(day):02}"


def _dates(canon: str) -> Iterator[str]:
    """Writings of a date, or of a day without its year (`05-24`)."""
    *year, month, day = canon.split("-")
    months, days = {month, month.lstrip("0")}, {day, day.lstrip("0")}
    end = year[0] if year else ""
    if year:
        yield canon
    for m in sorted(months):
        for d in sorted(days):
            yield from (f"{d}.{m}.{end}", f"{m}/{d}/{end}", f"{d}/{m}/{end}", *((f"{d}-{m}-{end}", f"{m}-{d}-{end}") if year else ()))
    if year and 1 <= int(month) <= _MONTHS_OF_YEAR:
        for name in (_NAMES[int(month) - 1], _NAMES[int(month) - 1][:3]):
            yield from (f"{name} {day.lstrip('0')}, {end}", f"{name} {day.lstrip('0')} {end}", f"{day.lstrip('0')} {name} {end}")


def _times(between: tuple[float, float], factor: float) -> tuple[float, float]:
    """A range times a number."""
    return between[0] * factor, between[1] * factor


def _units(words: Sequence[str], at: int) -> list[str]:
    """What may be the unit of a number: the letters that end its word, and the word behind it."""
    own = _UNIT.findall(words[at])[-1:]
    return own or [word if word in _PERCENT else bare(word) for word in words[at + 1 : at + _BEHIND]]


def durations(text: str) -> Iterator[tuple[int, int, int]]:
    """Durations in two units or more: where they stand, and their seconds."""
    done = 0
    for opening in _OPENING.finditer(text):
        found = _COMPOUND.match(text, opening.start()) if opening.start() >= done else None
        if found is not None and sum(part is not None for part in found.groups()) > 1:
            seconds = sum(int(part or 0) * unit for part, unit in zip(found.groups(), _SECONDS, strict=True))
            done = found.end()
            yield found.start(), done, seconds


def runs(text: str) -> set[str]:
    """The distinct runs of letters, digits, `_` and dots of a text: most come again. What is not ASCII parts none."""
    return set(text.encode("utf-8", "surrogatepass").translate(_NUMERIC).decode("utf-8", "surrogatepass").split())


def numbers(of_text: Iterable[str]) -> set[float]:
    """The numbers of a text by its runs: each stands where one begins, or behind something that is not ASCII."""
    found: set[float] = set()
    for run in of_text:
        if run[0].isdigit() or not run.isascii():
            found.update(map(float, _NUMBER.findall(run)))
    return found


def _amount(foreign: str) -> float:
    """The number that a foreign writing is."""
    return float(foreign.replace(".", "").replace(" ", "").replace(",", "."))
