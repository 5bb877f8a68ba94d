"""How an entry is worded: observation, intent, instruction. Weak signs, read from word lists; English only."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from winnow.compaction import text as texts

MODAL: Final = texts.word_set("will should would must may might want wants prefer prefers expect expects assume assumes before")
_MODAL_PHRASES: Final = (" need to ", " needs to ", " plan to ", " plans to ", " ask to ", " instead of ")
OBSERVATION: Final = texts.word_set(
    "returned returns failed fails printed prints contains contained shows showed shown has have exists exist error errors rejected "
    "produced produces holds lists listed costs cost works worked found confirmed succeeded passed passes reported reports gives "
    "gave raised raises"
)
_OBSERVATION_PHRASES: Final = (" is already ",)
#: First words of the phrases: without one of them no phrase needs to be looked for.
_STARTERS: Final = frozenset(phrase.split()[0] for phrase in (*_MODAL_PHRASES, *_OBSERVATION_PHRASES))
_PASSIVE: Final = frozenset(("was", "were"))
IMPERATIVE: Final = texts.word_set(
    "check ask add run edit fix verify send update remove create write test implement continue start open read find search make use "
    "set get try look review report confirm book cancel offer provide tell inform call submit install build move rename replace "
    "refactor delete change apply compute calculate determine decide identify inspect investigate examine explore list print view "
    "show wait keep ensure handle proceed finish complete follow obtain collect retrieve fetch download upload extract decode decrypt "
    "encrypt solve craft exploit connect dump analyze analyse debug reproduce rerun re-run locate "
    "brute-force modify clean commit push deploy document "
    "present explain respond reply answer do choose select pick compare consider go give leave avoid resolve return transfer pass "
    "process"
)
#: Words of an entry that are read; the sign is weak, an entry of a megabyte needs no more.
_WORDS: Final = 400
_FIRST_CHARS: Final = 64


class Style(NamedTuple):
    """Signs of wording, each 0.0 or 1.0; `length` is the share of 40 words, at most 1."""

    observation: float
    imperative: float
    modal: float
    length: float


def styles_of(normalised: Sequence[str]) -> list[Style]:
    """Read the wording of normalised entries without their markers."""
    words = texts.word_lists([text[: _WORDS * 16].lower() for text in normalised])
    return [_style(text, found[:_WORDS]) for text, found in zip(normalised, words, strict=True)]


def _style(normalised: str, found: list[str]) -> Style:
    """Read the wording of one entry from its words in lower case."""
    distinct = frozenset(found)
    observation = not OBSERVATION.isdisjoint(distinct)
    if not observation and not _PASSIVE.isdisjoint(distinct):
        observation = any(word in _PASSIVE and after.endswith("ed") for word, after in pairwise(found))
    modal = not MODAL.isdisjoint(distinct)
    if not (observation and modal) and not _STARTERS.isdisjoint(distinct):
        spaced = f" {' '.join(found)} "
        observation = observation or any(phrase in spaced for phrase in _OBSERVATION_PHRASES)
        modal = modal or any(phrase in spaced for phrase in _MODAL_PHRASES)
    # The word between blanks: "refactor.md updated" is no instruction to refactor.
    first = normalised[:_FIRST_CHARS].split(maxsplit=1)
    imperative = bool(first) and first[0].strip("`*_:,.()\"'").lower() in IMPERATIVE
    return Style(float(observation), float(imperative), float(modal), min(40, len(found)) / 40)
