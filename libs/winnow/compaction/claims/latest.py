"""The latest value wins: an entry that gives a record's field a value which a later output of the same record has replaced.

A record is a JSON object with a key that identifies it (`reservation_id`, `id`, `number` …). Two records are one only if all their
identifying values agree, dates among them, so that the same flight on another day, or another reservation, replaces nothing.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Final, NamedTuple

from winnow.compaction.corpus import Corpus
from winnow.compaction.text import place_of

#: Characters of outputs that are parsed, of all together; objects and depth that are looked at.
_CHARS: Final = 2_000_000
_OBJECTS: Final = 20_000
_DEPTH: Final = 12
#: Entries that are compared, and characters of one.
_ENTRIES: Final = 400
_ENTRY_CHARS: Final = 600
#: What identifies a record, and what tells one moment of it from another that both stay true.
_IDENTITY: Final = re.compile(r"(?:\A|_)(?:id|uuid|key|number|code|sku|isbn|name|path|hostname|email)\Z|\A\w{1,24}Id\Z")
_MOMENT: Final = re.compile(r"date|time|day|month|year|version|page|offset")
#: Letters in which a key and a word of an entry agree, and letters of a key that is looked for.
_PREFIX: Final = 6
_KEY_LETTERS: Final = 4
#: Characters around a value in which its key is named.
_NEAR: Final = 40
_WORD: Final = re.compile(r"[a-z]{4,}")
#: Words that tell of the past, of a change or of a wish: the older value is right there.
_PAST: Final = re.compile(
    r"\b(?:was|were|had|before|previous\w*|earlier|initial\w*|original\w*|old|older|used to|from|first|then|until|formerly|change[ds]?|"
    r"updated?|increased?|decreased?|reduced?|raised|instead|after|paid|charged|refund\w*|should|must|want\w*|if|would)\b|->|→"
)


class Replaced(NamedTuple):
    """A value of an entry that a later output of the same record has replaced."""

    entry: int
    key: str
    claim: str
    said: str
    output: int  # position of the message


class _Field(NamedTuple):
    """One value of a field."""

    output: int  # index among the outputs
    key: str
    value: str


def replaced(lowered: Sequence[str], corpus: Corpus) -> Iterator[Replaced]:
    """Yield the entries that state an outdated value of a record that they name. Linear in outputs and entries.

    Args:
        lowered: texts of the entries in lower case, normalised and without marker.
        corpus: the boundary's texts.
    """
    changed = _changed(corpus, "\n".join(lowered))
    if not changed:
        return
    for entry, text in list(enumerate(lowered))[:_ENTRIES]:
        head = text[:_ENTRY_CHARS]
        if _PAST.search(head):
            continue
        found = next(
            (one for subjects, fields in changed if _stands(subjects, head) and (one := _outdated(fields, head)) is not None), None
        )
        if found is not None:
            old, new = found
            message = corpus.outputs[new.output].message
            if not any(place_of(old.value, later.text.lower()) >= 0 for later in corpus.messages[message + 1 :]):
                yield Replaced(entry, new.key.rpartition(".")[2], old.value, new.value, message)  # nobody gave it the older value again


def _changed(corpus: Corpus, entries: str) -> list[tuple[tuple[str, ...], list[_Field]]]:
    """Of each record that entries name, with a field that changed: what it is known by, and the values of that field in order."""
    room, objects = _CHARS, 0
    fields: dict[tuple[tuple[str, ...], str], list[_Field]] = {}
    records = [(number, output.text) for number, output in enumerate(corpus.outputs) if output.text.lstrip()[:1] in {"{", "["}]
    identifies = cache(_identifies)  # the same few keys, in hundreds of objects
    named = cache(lambda subjects: _stands(subjects, entries))
    for number, text in records if len(records) > 1 else ():
        room -= len(text)
        if room < 0:
            break
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            continue
        for subjects, path, value in _values(data, (), "", 0, identifies):
            objects += 1
            if objects > _OBJECTS:
                break
            if named(subjects):
                fields.setdefault((subjects, path), []).append(_Field(number, path, value))
    found = []
    for (subjects, _), values in fields.items():
        # Twice in one output is a list of such records, and no change.
        of_outputs = [one.output for one in values]
        if len({one.value for one in values}) > 1 and len(set(of_outputs)) == len(of_outputs):
            found.append((subjects, values))
    return found


def _values(
    data: Any,  # noqa: ANN401  JSON
    subjects: tuple[str, ...],
    path: str,
    depth: int,
    identifies: Callable[[str], bool],
) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """The plain values of identified objects: what identifies them, the path of keys below that, and the value in lower case."""
    if depth > _DEPTH:
        return
    if isinstance(data, list):
        for one in data:
            yield from _values(one, subjects, path, depth + 1, identifies)
    elif isinstance(data, dict):
        own = tuple(str(value).lower() for key, value in data.items() if isinstance(value, (str, int)) and identifies(key))
        known = subjects + own
        for key, value in data.items():
            if isinstance(value, (list, dict)):
                yield from _values(value, (*known, key.lower()) if isinstance(value, dict) else known, key, depth + 1, identifies)
            elif known and isinstance(value, (str, int, float)) and str(value).lower() not in own:
                yield known, f"{path}.{key}".removeprefix(".").lower(), str(value).lower()


def _identifies(key: str) -> bool:
    """Whether a key is what tells one record from another, or one moment of it."""
    return _IDENTITY.search(key) is not None or _MOMENT.search(key) is not None


def _stands(subjects: tuple[str, ...], text: str) -> bool:
    """Whether an entry names a record: by one of its values that has letters and digits, or an underscore."""
    return any(
        len(subject) >= _KEY_LETTERS
        and ("_" in subject or (any(map(str.isdigit, subject)) and any(map(str.isalpha, subject))))
        and subject in text
        for subject in subjects
    )


def _outdated(values: Sequence[_Field], text: str) -> tuple[_Field, _Field] | None:
    """The older value that an entry states with the field's key, and the latest one; None where it states the latest, or neither."""
    latest = values[-1]
    if place_of(latest.value, text) >= 0:
        return None
    for old in reversed(values[:-1]):
        at = place_of(old.value, text) if old.value != latest.value and len(old.value) > 1 else -1
        if at >= 0 and _named(old.key, text[max(0, at - _NEAR) : at + len(old.value) + _NEAR]):
            return old, latest
    return None


def _named(key: str, around: str) -> bool:
    """Whether a word of a key stands near a value, up to its ending."""
    words = {word[:_PREFIX] for word in _WORD.findall(around)}
    return any(part[:_PREFIX] in words for part in _WORD.findall(key.rpartition(".")[2]))
