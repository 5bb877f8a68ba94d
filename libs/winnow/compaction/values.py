"""Values of an entry: the names, numbers and strings that a reader would look up in the span."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Final

from winnow.compaction.text import Memo

#: Values of an entry that are looked up; the event carries no more either.
MAX_VALUES: Final = 32
#: Longest value; a longer one (base64, a data URL) is looked up by its beginning.
VALUE_CHARS: Final = 200
#: Numbers of at most this many digits match at digit boundaries only: "1" stands in every longer number.
SHORT_DIGITS: Final = 3
#: Pieces of entries between blanks in the shared memo; emptied when full.
_MEMO_CHUNKS: Final = 32_768
_MEMO_CHARS: Final = 96

#: Upper-case words that name no thing.
_NO_VALUES: Final = frozenset({"TODO", "TODOS", "API", "URL", "ID", "OK"})
QUOTED: Final = re.compile(r"""`([^`\n]{1,200})`|"([^"\n]{1,200})"|'(?<!\w')([^'\n]{2,80})'(?!\w)""")
_MAIL: Final = r"[\w.+-]{1,64}@[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}"
_PATH: Final = r"(?:~|\.{1,2})?/?[\w.@+-]{1,200}(?:/[\w.@+-]{1,200}){1,32}/?|/[\w.@+-]{1,200}"
_NAME: Final = r"[A-Za-z_][\w-]{0,100}\.[A-Za-z]\w{0,100}"
_WITH_DIGIT: Final = r"[$€£]?(?:\w*\d\w*|\w+-\w*\d\w*)(?:[-:.]\w*\d\w*)*"
#: One candidate of a chunk that holds neither "@" nor "/", the one, the other, or both: an address or a path is looked for only where
#: one can be, because every place where one might begin costs up to 200 steps.
_ATOMS: Final = {
    (mail, path): re.compile("|".join([_MAIL] * mail + [_PATH] * path + [_NAME, _WITH_DIGIT, r"\w+"]))
    for mail in (False, True)
    for path in (False, True)
}
_SURROUND: Final = ".,;:()[]{} \t"
_LEADING: Final = " `\"'(*"
_SENTENCE_END: Final = ".!?:;\n-"
_CURRENCY: Final = "$€£"
#: Two values written as one: a pair of codes, a range of numbers, of clock times; two days of one month; a name shortened in its middle.
_TWO: Final = re.compile(
    r"(?P<code>[a-z]{3})[-–](?P<other>[a-z]{3})|(?P<low>[0-9]+)[-–](?P<high>[0-9]+)|(?P<from>[0-9]{1,2}:[0-9]{2})[-–](?P<to>[0-9]{1,2}:[0-9]{2})"
    r"|(?P<month>[0-9]{4}-[0-9]{2}-)(?P<day>[0-9]{2})/(?P<next>[0-9]{2})|(?P<head>[^ ]{3,}?)\.\.\.(?P<tail>[^ .][^ ]+)"
)
#: Shortest last part of a path that names it.
_NAME_CHARS: Final = 4
#: Numbers of an entry that are summed, and terms of a sum: under 600 sums an entry.
_SUMMED: Final = 8
_TERMS: Final = 3
#: Longest chunk that is read at once: an entry may be one word of a megabyte.
_CHUNK_CHARS: Final = 4_096
_NUMBER: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")
#: Weight of a code, the name of a file or a path.
CODE: Final = 2


@dataclass(frozen=True, slots=True)
class Value:
    """A value as the entry writes it, and what is searched for it."""

    shown: str
    #: Lower case, without currency sign: values are equal without case.
    needle: str
    #: Ways in which a text may hold it; each way is a tuple of needles that must all stand there.
    ways: tuple[tuple[str, ...], ...]
    #: A bare number: `152`, `3.5`.
    is_number: bool
    #: A number of one or two digits: too common for its place to say much.
    is_weak: bool
    #: Last part of a path or address, where it tells one thing from another; else empty. Who says it first, says the path.
    name: str = ""
    #: How much it counts that no source holds it: 0 for a weak one, 2 for a code, name of a file or path, 1 for the rest. Numbers may be
    #: computed, names and phrases be reworded; nobody rewords a code.
    weight: int = 1


def is_short_number(needle: str) -> bool:
    """Whether `needle` matches at digit boundaries only."""
    return len(needle) <= SHORT_DIGITS and needle.isascii() and needle.isdigit()


def values_of(normalised: str) -> list[Value]:
    """Return the distinct values of a normalised entry without its marker, quoted ones first, at most 32. Linear in the length."""
    found: dict[str, Value] = {}
    if "`" in normalised or '"' in normalised or "'" in normalised:
        _take_quoted(normalised, found)
    memo = _atoms()
    for line in normalised.split("\n"):
        after_sentence = True
        for chunk in line.split() if len(line) <= _CHUNK_CHARS else _chunks(line):
            read = memo[chunk]
            if read is _PLAIN:
                after_sentence = False
                continue
            atoms, ends_sentence = read
            for value, first_word in atoms:
                if not (first_word and after_sentence):
                    found.setdefault(value.needle, value)
            if ends_sentence is not None:
                after_sentence = ends_sentence
            if len(found) >= MAX_VALUES:
                return list(found.values())[:MAX_VALUES]
    return list(found.values())


def _take_quoted(normalised: str, found: dict[str, Value]) -> None:
    """Take the strings in quotes and backticks, as many as there is room for."""
    quotations = _quotations()
    for shown in quoted(normalised):
        value = quotations[shown]
        if value is not None:
            found.setdefault(value.needle, value)
            if len(found) >= MAX_VALUES:
                return


def quoted(text: str) -> Iterable[str]:
    """What stands in quotes: the groups of `QUOTED` from left to right. One line with backticks alone, as most are, is split at them."""
    if '"' not in text and "'" not in text and "\n" not in text:
        parts = text.split("`")
        inner = parts[1 : len(parts) - 1 : 2]
        if all(0 < len(one) <= VALUE_CHARS for one in inner):
            return inner
    return (match[match.lastindex or 0] for match in QUOTED.finditer(text))


def _chunks(line: str) -> Iterator[str]:
    """Yield the stretches between blanks, very long ones in slices."""
    for chunk in line.split():
        if len(chunk) <= _CHUNK_CHARS:
            yield chunk
        else:
            yield from (chunk[at : at + _CHUNK_CHARS] for at in range(0, len(chunk), _CHUNK_CHARS))


def _value(shown: str) -> Value | None:
    """Make a value of a candidate; None where nothing is left of it."""
    shown = shown.strip(_SURROUND)[:VALUE_CHARS].strip(_SURROUND)
    if "\0" in shown:  # texts are joined by NUL, so that no value spans two of them
        shown = shown.replace("\0", "")
    needle = shown.lstrip(_CURRENCY).lower()
    if not needle or shown.upper() in _NO_VALUES:
        return None
    is_weak = len(needle) <= 2 and needle.isdigit()  # noqa: PLR2004  as `Value.is_weak` says
    is_number = _NUMBER.fullmatch(needle) is not None
    return Value(
        shown, needle, _ways(needle), is_number, is_weak, _name(needle), 0 if is_weak else CODE if _is_code(needle, is_number) else 1
    )


def _is_code(needle: str, is_number: bool) -> bool:  # noqa: FBT001  said by the caller, who knows it
    """Whether a value is one word with a digit, an underscore, a slash or a dot, and no bare number."""
    if is_number or " " in needle:
        return False
    return any(map(str.isdigit, needle)) or "_" in needle or "/" in needle or "." in needle


def _name(needle: str) -> str:
    """The last part of a path or address: the folder before it is where one looks, the last part is what was found or made there."""
    if "/" not in needle:
        return ""
    last = needle.rstrip("/").rpartition("/")[2]
    return last if len(last) >= _NAME_CHARS and last != needle else ""


def _ways(needle: str) -> tuple[tuple[str, ...], ...]:
    """In which ways a text may hold a value: two values in one also apart. HH:MM:00 holds HH:MM, so clock times need none."""
    two = _TWO.fullmatch(needle)
    if two is None:
        return ((needle,),)
    if two["month"]:
        return ((needle,), (two["month"] + two["day"], two["month"] + two["next"]))
    first, second = filter(None, two.groups())
    return ((needle,), (first, second))


#: Values of a chunk between blanks, each with "is the chunk's first word, capitalised"; and whether a sentence ends with the chunk
#: (None: the chunk is opening punctuation alone and changes nothing).
_Chunk = tuple[tuple[tuple[Value, bool], ...], bool | None]


#: A chunk without a value that ends no sentence, as most are.
_PLAIN: Final[_Chunk] = ((), False)


@cache
def _atoms() -> Memo[_Chunk]:
    """Chunks of this process: most chunks of a summary come again."""
    return Memo(_read, room=_MEMO_CHUNKS, longest=_MEMO_CHARS)


@cache
def _quotations() -> Memo[Value | None]:
    """Quoted strings of this process."""
    return Memo(_value, room=_MEMO_CHUNKS, longest=_MEMO_CHARS)


def _read(chunk: str) -> _Chunk:
    """Find the values of a chunk by their form."""
    bare = chunk.rstrip(_LEADING)
    ends = bare[-1] in _SENTENCE_END if bare else None
    atoms: list[tuple[Value, bool]] = []
    for match in _ATOMS["@" in chunk, "/" in chunk].finditer(chunk):
        atom = match.group()
        first_word = False
        if not _is_value(atom):
            if len(atom) == 1 or not atom[0].isupper():
                continue
            before = chunk[: match.start()].rstrip(_LEADING)
            if before and before[-1] in _SENTENCE_END:
                continue
            first_word = not before
        value = _value(atom)
        if value is not None:
            atoms.append((value, first_word))
    return (tuple(atoms), ends) if atoms or ends is not False else _PLAIN


def _is_value(atom: str) -> bool:
    """Whether an atom is a value whatever stands before it: digit, path, address, name.ext, snake_case, CAPS or camelCase."""
    if any(char.isdigit() for char in atom) or "/" in atom or "@" in atom or "." in atom or "_" in atom.strip("_"):
        return True
    if not atom.isalpha() or len(atom) == 1:
        return False
    return atom.isupper() or any(low.islower() and high.isupper() for low, high in pairwise(atom))


def sums(numbers: list[str]) -> frozenset[int]:
    """Return the sums and differences of two or three of `numbers`, in ten-thousandths; of the first eight only.

    Compressors compute ("152 + 103 = 255"). With many numbers almost anything is a sum, so only an entry's own count.
    """
    parts = [scaled for number in numbers if (scaled := scaled_number(number)) is not None][:_SUMMED]
    reached = [{0}]
    for part in parts:
        # From the longest down, so that no number is used twice.
        for terms in range(min(len(reached), _TERMS), 0, -1):
            if terms == len(reached):
                reached.append(set())
            for total in reached[terms - 1]:
                reached[terms] |= {total + part, total - part}
    return frozenset(abs(total) for totals in reached[2:] for total in totals) - {0}


def scaled_number(number: str) -> int | None:
    """Return a number in ten-thousandths, exactly; None where it is none or too long to be an amount."""
    whole, _, fraction = number.partition(".")
    if not (whole.isascii() and whole.isdigit()) or len(whole) > 15 or len(fraction) > 4 or (fraction and not fraction.isdigit()):  # noqa: PLR2004  amounts
        return None
    return int(whole) * 10_000 + int((fraction or "0").ljust(4, "0"))
