"""Which entries of a summary stood in the one before, and how long what was once written stays. Pure."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

from winnow.compaction.similarity import bounds, ratio

#: Character similarity from which an entry counts as the same one, reworded (the published study's).
ALIKE: Final = 0.9
#: Pairs of texts that are compared for one summary. More only arise where hundreds of entries of like length are all new.
MAX_PAIRS: Final = 100_000
_MARKER: Final = re.compile(r"^\s*(?:[-*+\u2022]|\d{1,4}[.)])\s+")
#: Pairs whose bound is computed at once.
_AT_ONCE: Final = 5_000


class Match(NamedTuple):
    """The entry of the previous summary that one stood as."""

    previous: int  # its place there
    exact: bool  # the same text but for marker, case and spacing


class Matches(NamedTuple):
    """For each entry of a summary its match in the previous one, or None; and whether pairs were left out for their number."""

    found: list[Match | None]
    capped: bool


def same_key(text: str) -> str:
    """A text as wordings are compared: without bullet, case and spacing, as the column `text_key` hashes it. A check box is part of it."""
    return " ".join(_MARKER.sub("", text, count=1).split()).casefold()


def match(current: Sequence[str], previous: Sequence[str]) -> Matches:
    """Match entries one to one: by normalised text in order of the summaries, then by character similarity, the most alike first."""
    found: list[Match | None] = [None] * len(current)
    keys, before = [same_key(text) for text in current], [same_key(text) for text in previous]
    free: dict[str, list[int]] = {}
    for at, key in enumerate(before):
        free.setdefault(key, []).append(at)
    for at, key in enumerate(keys):
        if places := free.get(key):
            found[at] = Match(places.pop(0), exact=True)
    taken = {one.previous for one in found if one is not None}
    left = [at for at in range(len(current)) if found[at] is None]
    right = sorted((at for at in range(len(previous)) if at not in taken), key=lambda at: len(before[at]))
    pairs, capped = _possible(keys, before, left, right)
    alike = [(ratio(keys[a], before[b]), a, b) for a, b in pairs]
    for like, a, b in sorted(alike, key=lambda row: (-row[0], row[1], row[2])):
        if like >= ALIKE and found[a] is None and b not in taken:
            found[a] = Match(b, exact=False)
            taken.add(b)
    return Matches(found, capped)


def _possible(keys: Sequence[str], before: Sequence[str], left: Sequence[int], right: Sequence[int]) -> tuple[list[tuple[int, int]], bool]:
    """Pairs whose length and characters allow the similarity: both bounds are cheap and never too low."""
    lengths = [len(before[at]) for at in right]
    # 2 · shorter / (shorter + longer) >= ALIKE
    spread = ALIKE / (2.0 - ALIKE)
    pairs: list[tuple[int, int]] = []
    for at in left:
        size = len(keys[at])
        lo, hi = bisect_left(lengths, int(size * spread)), bisect_right(lengths, int(size / spread) + 1)
        pairs += [(at, right[place]) for place in range(lo, hi)]
        if len(pairs) > MAX_PAIRS:
            break
    capped = len(pairs) > MAX_PAIRS
    del pairs[MAX_PAIRS:]
    kept: list[tuple[int, int]] = []
    for start in range(0, len(pairs), _AT_ONCE):
        block = pairs[start : start + _AT_ONCE]
        allowed = bounds([keys[a] for a, _ in block], [before[b] for _, b in block]) >= ALIKE
        kept += [pair for pair, possible in zip(block, allowed.tolist(), strict=True) if possible]
    return kept, capped


class Chain(NamedTuple):
    """One entry followed through the summaries of a run."""

    first: int  # number of the summary that first has it, from 0
    entry: int  # its place there
    length: int  # summaries in a row that have it


class Followed(NamedTuple):
    """A run's entries, followed."""

    chains: list[Chain]
    matches: list[Matches]  # of each summary with the one before; the first has no match
    capped: int  # summaries for which pairs were left out


def follow(summaries: Sequence[Sequence[str]]) -> Followed:
    """Follow every entry from the summary that first has it, as long as each next one has a match for it."""
    open_: dict[int, tuple[int, int, int]] = {}  # by place in the last summary: first, entry, length
    chains: list[Chain] = []
    matches: list[Matches] = []
    for number, current in enumerate(summaries):
        found = match(current, summaries[number - 1]) if number else Matches([None] * len(current), capped=False)
        matches.append(found)
        going: dict[int, tuple[int, int, int]] = {}
        for at, one in enumerate(found.found):
            if one is None:
                going[at] = (number, at, 1)
            else:
                first, entry, length = open_.pop(one.previous)
                going[at] = (first, entry, length + 1)
        chains += [Chain(*ended) for ended in open_.values()]
        open_ = going
    chains += [Chain(*ended) for ended in open_.values()]
    return Followed(sorted(chains), matches, sum(one.capped for one in matches))
