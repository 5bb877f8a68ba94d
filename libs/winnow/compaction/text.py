"""Text for matching: normalisation, tokens and stems. What is stored and rendered stays raw; offsets never come from here."""

import re
import string
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain, pairwise
from typing import Final, TypeVar

V = TypeVar("V")

#: Version of everything below: a change here changes every feature and score, and calibrations are bound to it.
TEXT_VERSION: Final = "2"

#: Longest run of word characters that is one word; a longer one (base64, minified code) is cut, so that nothing grows with it.
WORD_CHARS: Final = 256
#: Words in the shared memo: 15 MB for English and code, 60 MB at the very worst; emptied when full.
_MEMO_WORDS: Final = 65_536
#: Longest word that the memo keeps: a hostile text of long words must not fill memory.
_MEMO_CHARS: Final = 64
#: Longest text that is kept prepared.
_PREPARED_CHARS: Final = 65_536
#: Slice that is normalised at a time: canonical ordering is quadratic in a run of combining marks.
_NORMAL_CHARS: Final = 512


def word_set(listed: str) -> frozenset[str]:
    """The words of a text between blanks: a list of many words is read more easily so."""
    return frozenset(listed.split())


#: English function words: they carry no source.
STOP_WORDS: Final = word_set(
    "a an the and or but nor so yet if then else than that this these those there here it its he she they them their his her "
    "we us our you your i me my mine is are was were be been being am do does did doing done have has had having will would "
    "shall should can could may might must of in on at to for from by with without within into onto over under about above "
    "below between through during before after against as per via up down out off again further once not no yes only own "
    "same such too very just also both each few more most other some any all what which who whom whose when where why how "
    "because while until"
)
#: Tried in this order.
_SUFFIXES: Final = ("ations", "ation", "ings", "ing", "edly", "ed", "ies", "es", "s", "ly")
_STEM_LETTERS: Final = 4

_MARKER: Final = re.compile(r"\s{0,64}(?:(?:[-*+•–—→·]|\d{1,9}[.)]|\(\d{1,9}\))[ \t]{1,64}(?:\[[ xX]\][ \t]{1,64})?|\[[ xX]\][ \t]{1,64})")
#: A comma between digits that groups thousands. It begins with the literal comma: a leading look-behind costs thirty times as much.
_THOUSANDS: Final = re.compile(r",(?<=[0-9],)(?=[0-9]{3}(?![0-9]))")
_CAMEL: Final = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
#: Zero-width characters, bidirectional controls, soft hyphen, byte order mark: invisible, so they must not part words.
_INVISIBLE: Final = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff]")
_QUOTES: Final = (("‘", "'"), ("’", "'"), ("“", '"'), ("”", '"'), ("‐", "-"), ("‑", "-"))  # noqa: RUF001  the look-alikes are the point
#: Mark behind each text of a stream: a control character that is no blank, so that it stands as a word of its own. In texts it is a blank.
_MARK: Final = "\x01"
_WORD_BYTES: Final = frozenset((string.ascii_letters + string.digits + "_" + _MARK).encode())
#: Everything in ASCII that is no word character becomes a blank: with `split` four times as fast as a regular expression.
_TO_BLANKS: Final = bytes(code if code in _WORD_BYTES else 32 for code in range(256))
#: Scripts that are written without blanks (and Hangul, whose particles stick to the word): read as bigrams of characters.
_UNSPACED_RANGES: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
_UNSPACED: Final = re.compile(f"[{_UNSPACED_RANGES}]+")
#: Words of any script: letters, digits, underscore, and the combining marks that belong to a word.
_WORD: Final = re.compile(
    rf"[\w\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0900-\u0963\u0966-\u0dff{_UNSPACED_RANGES}]+"
)


#: Distinct symbols that are blanked out one by one.
_SYMBOLS: Final = 32


def normalise(text: str) -> str:
    """Return `text` as it is matched: compatibility forms folded, invisible characters gone, thousands separators removed.

    Case stays: camelCase is split later. Linear in the length, whatever the text holds.
    """
    if not text.isascii():
        if unicodedata.is_normalized("NFKC", text):
            folded = text
        else:
            folded = "".join(unicodedata.normalize("NFKC", text[at : at + _NORMAL_CHARS]) for at in range(0, len(text), _NORMAL_CHARS))
        text = _INVISIBLE.sub("", folded)
        for curly, straight in _QUOTES:  # six scans in C; `translate` looks every character up in a dict
            text = text.replace(curly, straight)
    return _THOUSANDS.sub("", text) if "," in text else text


def unescaped(call: str) -> str:
    """Return an agent's text with the escapes of JSON strings undone: what a call's arguments write, as an output would show it.

    Otherwise each line of a file that an agent writes begins with the `n` of its escape, and its words look new when a tool shows them.
    """
    if "\\" not in call:
        return call
    return call.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')


def strip_marker(entry: str) -> str:
    """Return `entry` without its list marker and check box: left in, the marker would be its first word."""
    if entry[:2] == "- " and entry[2:3] not in {" ", "\t", "["}:
        return entry[2:]  # as most entries begin
    found = _MARKER.match(entry)
    return entry[found.end() :] if found else entry


def words(normalised: str) -> list[str]:
    """Return the runs of word characters of a normalised text, in order."""
    plain = _plain(normalised)
    return _ascii_words(plain.replace(_MARK, " ")) if plain.isascii() else _WORD.findall(plain)


def _plain(text: str) -> str:
    """Blank out symbols (dashes, arrows, bullets): most texts that are not ASCII are so only for these, and ASCII is cut faster."""
    if text.isascii():
        return text
    symbols = [char for char in set(text) if char > "\x7f" and not _WORD.match(char)]
    if len(symbols) <= _SYMBOLS:
        for char in symbols:
            text = text.replace(char, " ")
    return text


def _ascii_words(text: str) -> list[str]:
    """Words of an ASCII text; the mark is one of them."""
    return text.encode("ascii").translate(_TO_BLANKS).decode("ascii").split()


def stem(token: str) -> str:
    """Cut one English suffix from a lower-case token of letters: the first of the list after which at least four letters stay."""
    if token.isalpha():
        for suffix in _SUFFIXES:
            if token.endswith(suffix) and len(token) - len(suffix) >= _STEM_LETTERS:
                return token[: -len(suffix)]
    return token


def tokens_of_word(word: str) -> tuple[str, ...]:
    """Return the tokens of one word: itself and the parts of snake_case and camelCase; bigrams for scripts without blanks."""
    if len(word) > WORD_CHARS:
        return tuple(chain.from_iterable(tokens_of_word(word[at : at + WORD_CHARS]) for at in range(0, len(word), WORD_CHARS)))
    if not word.isascii() and _UNSPACED.search(word):
        return tuple(chain.from_iterable(_script_tokens(word)))
    forms = [word.lower()]
    pieces = [word]
    if "_" in word:
        pieces = [piece for piece in word.split("_") if piece]
        if pieces != [word]:
            forms.extend(piece.lower() for piece in pieces)
    for piece in pieces:
        if piece.isalpha() and not piece.islower() and not piece.isupper():
            humps = _CAMEL.findall(piece)
            if len(humps) > 1:
                forms.extend(hump.lower() for hump in humps)
    return tuple(stem(form) for form in forms if form not in STOP_WORDS)


def _script_tokens(word: str) -> Iterator[tuple[str, ...]]:
    """Yield the tokens of a word that mixes scripts: runs without blanks as bigrams, the rest as words."""
    at = 0
    for run in _UNSPACED.finditer(word):
        if run.start() > at:
            yield tokens_of_word(word[at : run.start()])
        found = run.group()
        yield (found,) if len(found) == 1 else tuple(found[i : i + 2] for i in range(len(found) - 1))
        at = run.end()
    if at < len(word):
        yield tokens_of_word(word[at:])


class Memo(dict[str, V]):
    """A pure function's values by text, bounded by being emptied when full.

    A dict with `__missing__` is read at a third of the price of `lru_cache`, and mapped over a list without a step of Python.
    """

    __slots__ = ("_compute", "_longest", "_room")

    def __init__(self, compute: Callable[[str], V], *, room: int, longest: int) -> None:
        """Remember `compute` for at most `room` texts of at most `longest` characters: long ones must not fill memory.

        Outside ASCII the length is a quarter of that: the bigrams of a text take many times its length.
        """
        super().__init__()
        self._compute = compute
        self._room = room
        self._longest = longest

    def __missing__(self, key: str) -> V:
        """Compute what was not asked lately."""
        found = self._compute(key)
        if len(key) <= (self._longest if key.isascii() else self._longest // 4):
            if len(self) >= self._room:
                self.clear()
            self[key] = found
        return found


@cache
def _memo() -> Memo[tuple[str, ...]]:
    """The words of this process: made at first use, a pure function's values, so that sharing them changes no result."""
    return Memo(tokens_of_word, room=_MEMO_WORDS, longest=_MEMO_CHARS)


def tokens(normalised: str) -> list[str]:
    """Return the tokens of a normalised text, in order, repeats included."""
    return list(chain.from_iterable(map(_memo().__getitem__, words(normalised))))


@dataclass(frozen=True, slots=True)
class Stream:
    """The tokens of many texts, one after another, with one mark behind each text."""

    tokens: list[str]
    #: Where each text's mark stands; its tokens lie between the mark before it and this one.
    marks: list[int]

    def of(self, text: int) -> list[str]:
        """Tokens of one text."""
        return self.tokens[self.marks[text - 1] + 1 if text else 0 : self.marks[text]]

    def with_text(self, number: int, added: Sequence[str]) -> "Stream":
        """Return this stream with the tokens of one more text in front of text `number`."""
        at = self.marks[number - 1] + 1 if number else 0
        size = len(added) + 1
        return Stream(
            [*self.tokens[:at], *added, _MARK, *self.tokens[at:]],
            [*self.marks[:number], at + size - 1, *(mark + size for mark in self.marks[number:])],
        )

    def lengths(self) -> list[int]:
        """Number of tokens of each text."""
        return [end - begin - 1 for begin, end in pairwise((-1, *self.marks))]


def stream(normalised: Sequence[str]) -> Stream:
    """Tokenise many normalised texts at once; their tokens are those of `tokens`.

    Hundreds of short texts cost as much as one long one: runs of ASCII texts are cut into words together.
    """
    all_tokens = list(chain.from_iterable(map(_memo().__getitem__, _marked_words(normalised))))
    return Stream(all_tokens, _marks(all_tokens, len(normalised)))


def word_lists(normalised: Sequence[str]) -> list[list[str]]:
    """The words of each of many normalised texts, cut at once; they are those of `words`."""
    found = _marked_words(normalised)
    return [found[begin + 1 : end] for begin, end in pairwise((-1, *_marks(found, len(normalised))))]


@dataclass(frozen=True, slots=True)
class Prepared:
    """A text as it is matched: in lower case for values, as tokens for the rest."""

    lower: str
    tokens: tuple[str, ...]


def prepared(text: str) -> Prepared:
    """Prepare a text that comes again: a fleet's task prompt is the same at every boundary, and often longer than what is judged."""
    return _prepare_again(text) if len(text) <= _PREPARED_CHARS else _prepare(text)


def _prepare(text: str) -> Prepared:
    """Normalise and tokenise."""
    normal = normalise(text)
    return Prepared(normal.lower(), tuple(tokens(normal)))


@lru_cache(maxsize=32)
def _prepare_again(text: str) -> Prepared:
    """Remember the last task prompts of this process: at most 32 of at most 64 KiB, under 30 MB at the very worst."""
    return _prepare(text)


def _marked_words(normalised: Sequence[str]) -> list[str]:
    """Words of texts, with a mark behind each text."""
    found: list[str] = []
    run: list[str] = []
    for text in map(_plain, normalised):
        if text.isascii():
            run.append(text.replace(_MARK, " ") if _MARK in text else text)
            continue
        if run:
            found.extend(_ascii_words(f" {_MARK} ".join((*run, ""))))
            run.clear()
        found.extend(_WORD.findall(text))
        found.append(_MARK)
    if run:
        found.extend(_ascii_words(f" {_MARK} ".join((*run, ""))))
    return found


def _marks(items: list[str], count: int) -> list[int]:
    """Where the marks stand."""
    found: list[int] = []
    at = -1
    for _ in range(count):
        at = items.index(_MARK, at + 1)
        found.append(at)
    return found


def place_of(value: str, text: str) -> int:
    """Where a value stands in a text, not as a part of a longer word or number; -1: nowhere."""
    at = text.find(value)
    while at >= 0:
        end = at + len(value)
        if not text[max(0, at - 1) : at].isalnum() and not (text[end - 1 : end].isalnum() and text[end : end + 1].isalnum()):
            return at
        at = text.find(value, at + 1)
    return -1


def one_line(text: str, limit: int) -> str:
    """Return untrusted text fit for one line of a report: control characters escaped, at most `limit` characters."""
    shown = text if text.isprintable() else "".join(_printable(text[: limit + 1]))
    return shown if len(shown) <= limit else shown[: limit - 1] + "…"


def _printable(text: str) -> Iterator[str]:
    """Yield characters, those that move a cursor or hide themselves as escapes."""
    for char in text:
        yield char if char.isprintable() else char.encode("unicode_escape", "backslashreplace").decode("ascii")
