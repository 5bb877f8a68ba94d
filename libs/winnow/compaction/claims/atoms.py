"""Atoms: the numbers, dates, clock times and codes of a text, in one form whatever the writing. All texts here are in lower case."""

import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from winnow.compaction.text import word_set

#: Longest word that is read as one: base64 and minified code are cut.
WORD_CHARS: Final = 256

#: Everything in ASCII that is no part of a word that may hold an atom becomes a blank; control characters below stay, as marks.
_KEPT: Final = frozenset(b"0123456789abcdefghijklmnopqrstuvwxyz_-.:#%/~\x01\x02\x03\x04\x05")
_TO_BLANKS: Final = bytes(code if code in _KEPT else 32 for code in range(256))
_ATOM: Final = re.compile(
    r"(?P<date>\d{4}-\d\d-\d\d)(?:t(?=(?P<time>\d\d:\d\d:\d\d)|\d)|/(?P<day>\d\d)(?![\d-]))?"
    r"|(?P<clock>(?<![\d.:])\d{1,2}:\d\d)(?::\d\d)?(?!:?\d)"
    r"|(?P<hex>0x[0-9a-f]+)"
    r"|(?P<colour>#[0-9a-f]{3,8}(?![0-9a-z_]))"
    r"|%[0-9a-f]{2}"
    r"|(?P<code>[a-z_][a-z_]{0,63}\d[a-z0-9_]*)"
    r"|(?P<number>\d+(?:\.\d+)?)(?P<tail>[a-z_][a-z0-9_]*)?"
)
#: Every atom holds one of them.
VALUE: Final = re.compile("[0-9#]")
_DIGITS: Final = re.compile(r"\d+")
#: Endings that leave a number a number: "3x", "64-bit" is parted by its hyphen already.
_TAILS: Final = word_set("x k m s ms h d min mins hr hrs sec b kb mb gb px th st nd rd am pm bit bits char chars")
#: Names of months and their beginnings, with the number.
MONTHS: Final = {
    name[:size]: f"{number:02}"
    for number, name in enumerate(
        "january february march april may june july august september october november december".split(),  # noqa: SIM905  a list of words
        1,
    )
    for size in (3, 4, len(name))
}
#: Units after a number that make it a quantity of its own: 24 hours are compared with hours.
UNITS: Final = {
    word: f"of {words[0]}"
    for words in (
        ("hour", "hours", "hr", "hrs", "h"),
        ("minute", "minutes", "min", "mins"),
        ("second", "seconds", "sec", "secs", "s"),
        ("day", "days"),
        ("week", "weeks"),
        ("month", "months"),
        ("year", "years"),
        ("ms",),
        ("percent", "%"),
    )
    for word in words
}
#: A range as editors take it: first line, last line.
_ADDRESS: Final = re.compile(r"[0-9]{1,7}:[0-9]{3,7}[.:]?")
_LINE_WORDS: Final = frozenset({"line", "lines", "l", "ln"})
_LIST_WORDS: Final = frozenset({"and", "to", "-"})
_MERIDIEM: Final = frozenset({"am", "pm", "a.m", "p.m"})
_BARE: Final = frozenset({"n1", "n2", "n3", "n4", "decimal"})
#: Words behind a number, and before one, that can change what it is.
_TELLING: Final = frozenset({*UNITS, *MONTHS, *_MERIDIEM})
_BEFORE_LINES: Final = frozenset({*_LINE_WORDS, *_LIST_WORDS, ""})
#: Signs of a word, as bits: it holds atoms; these are bare numbers, which its neighbours may change; it may change its neighbours', and
#: with what stands behind its own number ("64-bit", "12:") also those.
HOLDS: Final = 1
BARE: Final = 2
TELLS: Final = 4
#: Numbers of at least so many digits are compared with numbers of as many digits or more.
_LONG_DIGITS: Final = 4
_NOON: Final = 12


class Atom(NamedTuple):
    """One value. A named tuple: hundreds are made a boundary."""

    #: Equal atoms are equal values: `152`, `2024-05-24`, `19:00`, `hat136`, `05-24` (a day without its year).
    canon: str
    #: What it may be compared with: `date`, `clock`, `day`, `hex`, `colour`, `code …` (its shape), `n2` (a number of two
    #: digits), `decimal`, `line`, `stamp` (a point in time to the second), or `of …` (a quantity with its unit).
    kind: str
    shown: str
    digits: int


def is_number(atom: Atom) -> bool:
    """Whether it is a bare number."""
    return atom.kind[0] == "n" or atom.kind == "decimal"


def is_amount(atom: Atom) -> bool:
    """Whether it is a number that can be reckoned with: bare, or with its unit."""
    return is_number(atom) or atom.kind.startswith("of ")


def cut(text: str) -> list[str]:
    """The words of a text in lower case: runs of letters, digits and `_-.:#%/~`, and the marks (control characters) as words of their own.

    What is not ASCII is a blank: it parts words and holds no atom.
    """
    return text.encode("ascii", "replace").translate(_TO_BLANKS).decode("ascii").split()


def bare(word: str) -> str:
    """A word without punctuation at its ends."""
    return word.strip("-.:#%/~")


def signs_of(word: str, atoms: Sequence[Atom]) -> int:
    """What has to be asked of a word in its place, as bits."""
    signs = HOLDS if atoms else 0
    if atoms and (atoms[0].kind in _BARE or atoms[0].kind == "clock"):
        signs |= BARE if word[-1].isdigit() else BARE | TELLS
    beside = _beside(word)
    return signs | TELLS if len(atoms) > 1 or beside in _TELLING or beside in _BEFORE_LINES else signs


def _beside(word: str) -> str:
    """A word as its neighbours see it."""
    return word if word[-1:].isalpha() or word == "%" else bare(word)


def atoms_in(word: str) -> tuple[Atom, ...]:
    """The atoms of one word by its form."""
    found: list[Atom] = []
    for match in _ATOM.finditer(word[:WORD_CHARS]):
        kind, text = match.lastgroup, match.group()
        if match["date"]:
            found += _dated(match["date"], match["time"], match["day"])
        elif kind == "clock":
            hour, minute = match["clock"].split(":")
            found.append(Atom(f"{int(hour):02}:{minute}", "clock", text, 4))
        elif kind == "hex":
            found.append(Atom("0x" + (text[2:].lstrip("0") or "0"), "hex", text, len(text) - 2))
        elif kind == "colour":
            found.append(Atom(text, "colour", text, len(text) - 1))
        elif kind == "code":
            found.append(_code(text))
        elif kind == "number" or (kind == "tail" and match["tail"] in _TAILS):
            found.append(_number(match["number"]))
        elif kind == "tail":
            found.append(_code(text))
    return tuple(found)


def _dated(date: str, time: str | None, day: str | None) -> Iterator[Atom]:
    """A date, with the point in time that it begins, or with the second day that it names."""
    yield Atom(date, "date", date, 8)
    if time:
        yield Atom(f"{date}t{time}", "stamp", f"{date}t{time}", 14)
    if day:
        yield Atom(date[:8] + day, "date", day, 2)


def _code(text: str) -> Atom:
    """A code: letters and digits mixed. Its shape has a 9 for each digit."""
    return Atom(text, f"code {_DIGITS.sub(lambda run: '9' * len(run.group()), text)}", text, sum(map(str.isdigit, text)))


def _number(text: str) -> Atom:
    """A number; trailing zeros behind the point do not count, leading zeros of a whole number do (a code in disguise)."""
    whole, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0")
    canon = f"{whole.lstrip('0') or '0'}.{fraction}" if fraction else whole
    kind = "decimal" if fraction else f"n{min(_LONG_DIGITS, len(whole))}"
    return Atom(canon, kind, text, len(whole) + len(fraction))


def in_context(words: Sequence[str], at: int, atoms: tuple[Atom, ...]) -> tuple[Atom, ...]:
    """The atoms of word `at` as its neighbours make them: days of a month, clock times, line numbers, quantities with their unit."""
    atom = atoms[0]
    word = words[at]
    after = _beside(words[at + 1]) if at + 1 < len(words) else ""
    if atom.kind not in _BARE:
        return _in_half(atoms, after if after in _MERIDIEM else word.rstrip(".:")[-2:])
    if after == "%" and words[at + 2 : at + 3] and words[at + 2][0].isdigit():
        after = ""  # a remainder: "n = 123 % 256"
    before = _beside(words[at - 1]) if at else ""
    if len(atoms) == 1 and (after in _TELLING or before in MONTHS or not word[-1].isdigit()):
        if atom.digits <= 2 and atom.kind != "decimal" and (found := _of_time(atom, word, before, after)) is not None:  # noqa: PLR2004
            return (found,)
        unit = UNITS["percent"] if word[-1] == "%" else UNITS.get(after) or UNITS.get(word.lstrip("-.:#%/~0123456789"))
        if unit is not None:
            return (atom._replace(kind=unit),)
    opens = (before in _BEFORE_LINES or word[-1] == ":") and _is_line(words, at) and all(map(is_number, atoms))
    if opens or (len(atoms) > 1 and _ADDRESS.fullmatch(word) is not None):
        return tuple([atom._replace(kind="line") for atom in atoms])
    return atoms


def _of_time(atom: Atom, word: str, before: str, after: str) -> Atom | None:
    """A number of one or two digits as a day ("May 24") or an hour ("7 pm"); None where it is neither."""
    month = MONTHS.get(before) or MONTHS.get(after)
    if month is not None:
        return Atom(f"{month}-{int(atom.canon):02}", "day", atom.shown, atom.digits)
    tail = after if after in _MERIDIEM else word.rstrip(".:")[-2:]
    if tail in _MERIDIEM and int(atom.canon) <= _NOON:
        hour = int(atom.canon) % _NOON + (_NOON if tail[0] == "p" else 0)
        return Atom(f"{hour:02}:00", "clock", atom.shown, 4)
    return None


def _in_half(atoms: tuple[Atom, ...], half: str) -> tuple[Atom, ...]:
    """Values of which the last may be a clock time of twelve hours, in 24: 6:30 pm is 18:30. One above twelve is in 24 already."""
    last = atoms[-1]
    if half not in _MERIDIEM or last.kind != "clock" or int(last.canon[:2]) > _NOON:
        return atoms
    hour = int(last.canon[:2]) % _NOON + (_NOON if half[0] == "p" else 0)
    return (*atoms[:-1], last._replace(canon=f"{hour:02}{last.canon[2:]}"))


def _is_line(words: Sequence[str], at: int) -> bool:
    """Whether the word is a line number: "line 12", "lines 55-60 and 70"; or it opens its line, as in a listing ("12: text")."""
    for back in range(1, 4):
        if at < back:
            break
        before = bare(words[at - back])
        if before in _LINE_WORDS:
            return True
        if before and before not in _LIST_WORDS and not before[0].isdigit():
            break
    return words[at].endswith(":") and (at == 0 or words[at - 1] < "\x06")
