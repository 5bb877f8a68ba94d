"""Fields of outputs, as keys and values: `"membership": "gold"`, `exit_code=0`. What an entry says of a key is what a record says of it."""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import islice, pairwise
from typing import Final

from winnow.compaction import text as texts
from winnow.compaction.postings import Queries
from winnow.compaction.text import Memo

#: Quotes, brackets and commas of records become blanks.
_BLANKS: Final = str.maketrans(dict.fromkeys("\"'{}[](),;", " "))
_SEPARATORS: Final = frozenset(":=")
#: A key is found in an entry by its stem, or by its first letters where it is long enough: `membership` is what makes a `member`.
_PREFIX: Final = 6
_PREFIX_FROM: Final = 4
#: Tokens of a value; a longer one is prose.
_VALUE_TOKENS: Final = 4
#: Values that every record holds: agreeing with them says nothing.
_COMMON: Final = frozenset({"true", "fals", "none", "null", "0", "1"})
#: Fields of an entry are counted up to here.
COUNTED: Final = 4
#: Comparisons of a value with an entry, of all values and entries together: a second. A boundary of recorded size takes hundreds.
_COMPARED: Final = 2_000_000
_MEMO_WORDS: Final = 32_768
_MEMO_CHARS: Final = 96


def agreeing(outputs: Sequence[str], queries: Queries) -> list[int]:
    """Of each entry the number of distinct values, at most `COUNTED`, that stand in it together with a key that an output gives them."""
    counts = [0] * queries.count
    keys = _keys(outputs, queries)
    if not keys:
        return counts
    tokens = list(queries.vocabulary)  # by id, from 1
    ids, starts = queries.ids.tolist(), queries.query.searchsorted(range(queries.count + 1)).tolist()
    of_entry = [frozenset(ids[begin:end]) for begin, end in pairwise(starts)]
    holders: dict[int, list[int]] = {}
    for entry, held in enumerate(of_entry):
        for token in held:
            holders.setdefault(token, []).append(entry)
    words: list[set[str] | None] = [None] * queries.count
    room = _COMPARED
    for value, of_value in keys.items():
        entries = min((holders.get(token, []) for token in value), key=len)
        room -= len(entries)
        if room < 0:
            break
        for entry in entries:
            if counts[entry] >= COUNTED or not all(token in of_entry[entry] for token in value):
                continue
            near = words[entry]
            if near is None:
                near = words[entry] = _forms(tokens[token - 1] for token in of_entry[entry])
            counts[entry] += not near.isdisjoint(of_value)
    return counts


def _keys(outputs: Sequence[str], queries: Queries) -> dict[tuple[int, ...], set[str]]:
    """Of each value that entries may hold, as token ids, the forms of its keys."""
    stems, vocabulary = _stems(), queries.vocabulary
    fields: dict[tuple[str, str], None] = {}
    for output in outputs:
        # A line's end is a word of its own: a field does not reach beyond its line.
        words = output.translate(_BLANKS).replace("\n", " \0 ").replace(":", " : ").replace("=", " = ").split()
        fields.update(
            dict.fromkeys(
                [(words[at - 1], words[at + 1]) for at in _separators(words) if words[at - 1][0].isalpha() or words[at - 1][0] == "_"]
            )
        )
    found: dict[tuple[int, ...], set[str]] = {}
    for key, word in fields:
        value = stems[word]
        if not 0 < len(value) <= _VALUE_TOKENS or _COMMON.issuperset(value):
            continue
        ids = tuple([vocabulary.get(token, 0) for token in value])
        if 0 in ids:
            continue
        forms = _forms(token for token in stems[key] if token not in value)
        if forms:
            found.setdefault(ids, set()).update(forms)
    return found


def _separators(words: Sequence[str]) -> list[int]:
    """Where a separator stands between two words."""
    return [at for at, word in enumerate(islice(words, 1, max(1, len(words) - 1)), 1) if word in _SEPARATORS]


def _forms(tokens: Iterable[str]) -> set[str]:
    """Tokens as keys are compared: as they are, and the beginning of long ones."""
    found: set[str] = set()
    for token in tokens:
        found.add(token)
        if len(token) >= _PREFIX_FROM:
            found.add(token[:_PREFIX])
    return found


@cache
def _stems() -> Memo[tuple[str, ...]]:
    """Tokens of words of this process: a pure function's values."""
    return Memo(_tokens, room=_MEMO_WORDS, longest=_MEMO_CHARS)


def _tokens(word: str) -> tuple[str, ...]:
    """Tokens of one word; none of one that is too long to be a value."""
    return tuple(texts.tokens(texts.normalise(word))) if len(word) <= _MEMO_CHARS else ()
