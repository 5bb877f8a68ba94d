"""Search of what a run has said: BM25 over stretches of its messages and entries, in one pass over the texts that hold a word asked for.

Retrieval of evidence promises the scores of a library; this promises an order. So a text that holds none of the words is only looked
through for them (in C), the rest is cut and counted. Inverse document frequency is log(1 + (N - n + 0.5) / (n + 0.5)), which is never
negative; N counts all stretches, n those that hold the word.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from winnow.compaction import text as texts
from winnow.compaction.passages import PASSAGE_CHARS, cuts
from winnow.compaction.retrieval import K1, B

#: Characters of a query that are read, and distinct words of it that are looked for.
QUERY_CHARS: Final = 1_000
QUERY_WORDS: Final = 32
#: Characters of an excerpt.
EXCERPT_CHARS: Final = 240
#: Characters before the first word found that an excerpt shows.
_BEFORE: Final = 60
#: Characters that are cut and counted at most: a second of work. What lies behind is not searched, and the answer says so.
COUNTED_CHARS: Final = 4_000_000


@dataclass(frozen=True, slots=True)
class Match:
    """A text that was found: its place among those given, its score (not comparable between searches), and its best stretch."""

    text: int
    score: float
    excerpt: str


@dataclass(frozen=True, slots=True)
class Matches:
    """What a search found, best first; of equal scores the text that was given first."""

    found: tuple[Match, ...]
    #: Whether all texts were searched.
    complete: bool


def words_of(query: str) -> tuple[str, ...]:
    """The distinct words that a query asks for, stemmed, in order; none where it holds function words and signs alone."""
    return tuple(dict.fromkeys(texts.tokens(texts.normalise(query[:QUERY_CHARS]))))[:QUERY_WORDS]


def search(query: str, given: Sequence[str]) -> Matches:
    """Find the texts that hold a word of `query`, best first. Linear in the length of all texts."""
    wanted = words_of(query)
    known = frozenset(wanted)
    stretches = sum(len(text) // PASSAGE_CHARS + 1 for text in given)
    held: list[tuple[int, int, int, Counter[str], int]] = []  # text, start, end, counts of wanted words, length in tokens
    left = COUNTED_CHARS
    complete = True
    for at in _holding(given, wanted):
        text = given[at]
        if len(text) > left:
            complete = False
            continue
        left -= len(text)
        spans = list(cuts(text, PASSAGE_CHARS))
        stream = texts.stream([texts.normalise(text[start:end]) for start, end in spans])
        for number, (start, end) in enumerate(spans):
            tokens = stream.of(number)
            counts = Counter(token for token in tokens if token in known)
            if counts:
                held.append((at, start, end, counts, len(tokens)))
    weights = _weights([counts for _, _, _, counts, _ in held], stretches)
    average = sum(length for *_, length in held) / len(held) if held else 1.0
    best: dict[int, tuple[float, int, int]] = {}
    for at, start, end, counts, length in held:
        of_length = K1 * (1 - B + B * length / average)
        score = sum(weights[word] * count * (K1 + 1) / (count + of_length) for word, count in counts.items())
        if at not in best or score > best[at][0]:
            best[at] = (score, start, end)
    ranked = sorted(best.items(), key=lambda found: (-found[1][0], found[0]))
    return Matches(
        found=tuple(
            Match(text=at, score=score, excerpt=excerpt(given[at], wanted, start=start, end=end)) for at, (score, start, end) in ranked
        ),
        complete=complete,
    )


def _holding(given: Sequence[str], wanted: Sequence[str]) -> list[int]:
    """The texts in which some word may stand, those with most of the words first: each token of a text is a stretch of its lower case."""
    found = []
    for at, text in enumerate(given if wanted else ()):
        lower = texts.normalise(text).lower()
        if words := sum(word in lower for word in wanted):
            found.append((-words, at))
    return [at for _, at in sorted(found)]


def _weights(counts: Sequence[Counter[str]], stretches: int) -> dict[str, float]:
    """Inverse document frequency of each word that occurs."""
    frequency: Counter[str] = Counter()
    for of_stretch in counts:
        frequency.update(of_stretch.keys())
    return {word: math.log(1 + (max(stretches, n) - n + 0.5) / (n + 0.5)) for word, n in frequency.items()}


def excerpt(text: str, wanted: Sequence[str] = (), *, start: int = 0, end: int | None = None, limit: int = EXCERPT_CHARS) -> str:
    """One line of `text` that shows the first of the words in `[start, end)`; control characters are escaped, cuts are marked by `…`."""
    stop = len(text) if end is None else end
    lower = text[start:stop].lower()
    places = [place for word in wanted if (place := lower.find(word)) >= 0]
    begin = max(start, start + min(places, default=0) - _BEFORE)
    line = " ".join(text[begin : begin + limit * 2].split())
    opened = "…" if text[:begin].strip() else ""
    shown = texts.one_line(opened + line, limit)
    return shown if shown.endswith("…") or begin + limit * 2 >= len(text) else texts.one_line(opened + line + "…", limit)
