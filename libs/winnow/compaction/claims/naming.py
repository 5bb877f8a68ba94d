"""What an entry gives a value to: the code right before it, or the identifier that it finds at a line of a listing."""

import re
from collections.abc import Mapping
from typing import Final

from winnow.compaction.claims.atoms import Atom, bare
from winnow.compaction.claims.binding import Asked, Entries
from winnow.compaction.claims.records import BREAK

#: Words, besides punctuation, between a code and the value that is given to it; and words of both sorts that are passed for it.
_BETWEEN: Final = 2
_PASSED: Final = 12
#: Kinds of values that may stand between a code and its value.
_TIMES: Final = frozenset({"clock", "date", "day"})
#: Words on each side that tell how a value came about.
_NEAR: Final = 3
#: Beginnings of words beside a value that was computed from several, or is not the record's own: what is left, what is paid.
_COMPUTED: Final = re.compile(
    r"(?:total|sum\Z|charg|pa(?:id|y)|refund|balance|cost|change|left\Z|more\Z|less\Z|extra|differen|remain|averag|net\Z|rest\Z|leav"
    r"|sav(?:e|ing)|surplus|shortfall)"
)
#: Signs of arithmetic beside a value; characters that are read for them, and standings of the value that are looked at.
_SIGNS: Final = ("+", "=", "*", "×", "−", " - ", "->", "→")
_BESIDE: Final = 6
_STANDINGS: Final = 8
#: A line number that is no range, and words before it, and behind, among which the identifier stands that is found there.
_ONE_LINE: Final = re.compile(r"[0-9]+[.:]?")
_BEFORE_LINE: Final = 5
_BEHIND_LINE: Final = 2


def name_of(asked: Asked, atoms: Mapping[int, Atom], entries: Entries, text: str) -> str:
    """What a value is given to: of a line number the identifier at that line, else the code before the value; "" where there is none.

    Args:
        asked: the value.
        atoms: the last value in each word of its entry.
        entries: all entries.
        text: its entry in lower case.
    """
    if asked.atom.kind.startswith("code"):
        return ""
    return _at_line(asked, entries) if asked.atom.kind == "line" else _before(asked, atoms, entries, text)


def _before(asked: Asked, atoms: Mapping[int, Atom], entries: Entries, text: str) -> str:
    """The code right before a value, or behind two words, times or dates; "" where there is none.

    Not behind several codes, whose values may follow in their order; not in a calculation, nor where the words around say that the value
    was computed; nor where a code behind it may be what it is of ("260 on `gift_card_5094406`").
    """
    words, start, end = entries.words.words, entries.starts[asked.entry], entries.starts[asked.entry + 1]
    if any(_is_code(atoms.get(at)) for at in range(asked.word + 1, min(end, asked.word + _BETWEEN + 1))):
        return ""
    room = _BETWEEN
    for at in range(asked.word - 1, max(start, asked.word - _PASSED) - 1, -1):
        if words[at] == BREAK:
            continue
        one = atoms.get(at)
        if one is not None and _is_code(one):
            near = words[max(start, asked.word - _NEAR) : min(end, asked.word + _NEAR)]
            computed = any(_COMPUTED.match(bare(word)) for word in near) or _is_calculated(asked.atom.shown, text)
            earlier = next((back for back in range(at - 1, max(start, at - _PASSED) - 1, -1) if words[back] != BREAK), at)
            twin = atoms.get(earlier) if earlier != at else None
            return "" if computed or (twin is not None and twin.kind == one.kind) else one.canon
        if room == 0 or (one is not None and (one.kind == asked.atom.kind or one.kind not in _TIMES)):
            return ""
        room -= 1
    return ""


def _is_code(atom: Atom | None) -> bool:
    """Whether it is a value that names something."""
    return atom is not None and atom.kind.startswith("code")


def _at_line(asked: Asked, entries: Entries) -> str:
    """The identifier that an entry finds at a line: the nearest before its number, else right behind it; "" where there is none."""
    words, start, end = entries.words.words, entries.starts[asked.entry], entries.starts[asked.entry + 1]
    if _ONE_LINE.fullmatch(words[asked.word]) is None:
        return ""
    before = range(asked.word - 1, max(start, asked.word - 1 - _BEFORE_LINE) - 1, -1)
    behind = range(asked.word + 1, min(end, asked.word + 1 + _BEHIND_LINE))
    return next((word for at in (*before, *behind) if (word := bare(words[at])) in entries.identifiers), "")


def _is_calculated(shown: str, text: str) -> bool:
    """Whether a value stands beside a sign of arithmetic."""
    at = text.find(shown)
    for _ in range(_STANDINGS):
        if at < 0:
            break
        end = at + len(shown)
        if text[max(0, at - _BESIDE) : at].rstrip(" $€£(").endswith(_SIGNS):
            return True
        if text[end : end + _BESIDE].lstrip(" )").startswith(_SIGNS):
            return True
        at = text.find(shown, end)
    return False
