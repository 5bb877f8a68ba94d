"""BM25 at a long span: the inverted index beside the library whose scores it must reproduce to the last bit."""

from collections.abc import Iterator

import numpy as np
from rank_bm25 import BM25Okapi

from tests.benchmarks.core import large, timed
from tests.benchmarks.figures import Figure, against
from tests.benchmarks.progress import say
from winnow.compaction import text as texts
from winnow.compaction.passages import cuts
from winnow.compaction.postings import Floats, Queries
from winnow.compaction.retrieval import PLACEHOLDER, Index

#: Tokens of the span and entries of the goal. A token of the recorded text is 4.4 characters on average.
TOKENS, ENTRIES = 100_000, 40


def corpus() -> tuple[list[list[str]], list[list[str]]]:
    """Return the tokens of passages, `TOKENS` in all, and of entries."""
    event = large(800_000, ENTRIES)
    passages: list[list[str]] = []
    left = TOKENS
    for message in event.history:
        for start, end in cuts(message.text, 300):
            found = texts.tokens(texts.normalise(message.text[start:end]))[:left] or [PLACEHOLDER]
            passages.append(found)
            left -= len(found)
            if left <= 0:
                break
        if left <= 0:
            break
    entries = [line for line in event.candidate.split("\n") if line.startswith("- ")]
    return passages, [texts.tokens(texts.normalise(texts.strip_marker(entry))) for entry in entries]


def measure(*, quick: bool) -> Iterator[Figure]:
    """Measure scoring alone, and index and scoring together.

    Raises:
        AssertionError: a score differs from the library's.
    """
    say(f"retrieval: {TOKENS:,} tokens, {ENTRIES} entries")
    passages, entries = corpus()
    total = sum(map(len, passages))
    if total < TOKENS:
        text = f"the span has {total:,} tokens, {TOKENS:,} are wanted"
        raise AssertionError(text)
    times = 2 if quick else 5
    queries = Queries.of(entries)
    theirs = BM25Okapi(passages)
    ours = Index.of(passages, queries)
    wanted = np.array([theirs.get_scores(entry) for entry in entries])
    if not np.array_equal(_scores(ours, queries), wanted):
        text = "scores differ from rank-bm25's"
        raise AssertionError(text)
    yield against(
        f"retrieval, scores for {ENTRIES} entries at {TOKENS:,} tokens (ratio: times faster; identical scores)",
        timed(lambda: _scores(ours, queries), times),
        "ms",
        timed(lambda: [theirs.get_scores(entry) for entry in entries], times),
        goal="ratio >= 20",
        inverse=True,
    )
    yield against(
        "retrieval, index and scores (ratio: times faster)",
        timed(lambda: _scores(Index.of(passages, Queries.of(entries)), Queries.of(entries)), times),
        "ms",
        timed(lambda: [BM25Okapi(passages).get_scores(entry) for entry in entries[:1]], times)
        + timed(lambda: [theirs.get_scores(entry) for entry in entries[1:]], times),
        inverse=True,
    )


def _scores(index: Index, queries: Queries) -> Floats:
    """Return the score of each entry (row) for each passage (column)."""
    return np.concatenate([index.scores(block) for block in index.postings.blocks(queries)])
