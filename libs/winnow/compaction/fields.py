"""Fields of outputs, as keys and values: `"membership": "gold"`, `exit_code=0`. What an entry says of a key is what a record says of it."""

from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain
from typing import Final

import numpy as np

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
#: Comparisons of a value with an entry, of all values and entries together: a second. A boundary of recorded size takes hundreds.
_COMPARED: Final = 2_000_000
_MEMO_WORDS: Final = 32_768
_MEMO_CHARS: Final = 96


def agreeing(outputs: Sequence[str], queries: Queries) -> list[set[int]]:
    """Of each entry the ids of its tokens that are a value which an output gives a key that the entry names too, or that key."""
    found: list[set[int]] = [set() for _ in range(queries.count)]
    keys = _keys(outputs, queries)
    if not keys:
        return found
    wanted = np.zeros(len(queries.vocabulary) + 1, np.bool_)
    wanted[list(chain.from_iterable(keys))] = True
    (places,) = wanted[queries.ids].nonzero()
    holders: dict[int, dict[int, None]] = {}  # of each token of a value the entries that hold it
    for token, entry in zip(queries.ids[places].tolist(), queries.query[places].tolist(), strict=True):
        holders.setdefault(token, {})[entry] = None
    ids = queries.ids.tolist()
    tokens = list(queries.vocabulary)  # by id, from 1
    starts = queries.query.searchsorted(range(queries.count + 1)).tolist()
    near: dict[int, dict[str, set[int]]] = {}  # the forms of an entry's tokens, with the tokens that have them
    room = _COMPARED
    for value, of_value in keys.items():
        entries, *others = sorted((holders[token] for token in value), key=len)
        room -= len(entries)
        if room < 0:
            break
        for entry in entries:
            if all(entry in other for other in others):
                if entry not in near:
                    near[entry] = _by_form(ids[starts[entry] : starts[entry + 1]], tokens)
                named = near[entry].keys() & of_value
                if named:
                    found[entry].update(value, *(near[entry][form] for form in named))
    return found


def _by_form(ids: Sequence[int], tokens: Sequence[str]) -> dict[str, set[int]]:
    """The forms of some tokens, each with the ids of the tokens that have it."""
    found: dict[str, set[int]] = {}
    for token in ids:
        for form in _forms((tokens[token - 1],)):
            found.setdefault(form, set()).add(token)
    return found


def _keys(outputs: Sequence[str], queries: Queries) -> dict[tuple[int, ...], set[str]]:
    """Of each value that entries may hold, as token ids, the forms of its keys."""
    vocabulary, stems = queries.vocabulary, _stems()
    keys: dict[str, set[str]] = {}  # by the word of a value that entries may hold
    strange: set[str] = set()
    for output in outputs:
        if ":" not in output and "=" not in output:
            continue
        # A line's end is a word of its own: a field does not reach beyond its line.
        words = output.translate(_BLANKS).replace("\n", " \0 ").replace(":", " : ").replace("=", " = ").split()
        words.append("\0")
        for at in [at for at, word in enumerate(words) if word in _SEPARATORS]:
            word = words[at + 1]
            if word in keys:
                keys[word].add(words[at - 1])
            elif word not in strange:
                value = stems[word]
                if 0 < len(value) <= _VALUE_TOKENS and vocabulary.keys() >= set(value) and not _COMMON.issuperset(value):
                    keys[word] = {words[at - 1]}
                else:
                    strange.add(word)
    found: dict[tuple[int, ...], set[str]] = {}
    for word, of_word in keys.items():
        value = stems[word]
        named = [stems[key] for key in of_word if key[0].isalpha() or key[0] == "_"]
        forms = _forms(token for tokens in named for token in tokens if token not in value)
        if forms:
            found.setdefault(tuple([vocabulary[token] for token in value]), set()).update(forms)
    return found


def _forms(tokens: Iterable[str]) -> set[str]:
    """Tokens as keys are compared: as they are, and the beginning of long ones."""
    found = set(tokens)
    return found | {token[:_PREFIX] for token in found if len(token) >= _PREFIX_FROM}


@cache
def _stems() -> Memo[tuple[str, ...]]:
    """Tokens of words of this process: a pure function's values."""
    return Memo(_tokens, room=_MEMO_WORDS, longest=_MEMO_CHARS)


def _tokens(word: str) -> tuple[str, ...]:
    """Tokens of one word; none of one that is too long to be a value."""
    return tuple(texts.tokens(texts.normalise(word))) if len(word) <= _MEMO_CHARS else ()
