"""BM25 over passages: the scores of `rank_bm25.BM25Okapi` to the last bit, from an inverted index over its statistics.

The library builds a dense vector for each query token; here only the passages that hold the token are touched, with the same
expression in the same order. A passage that does not hold it gets 0.0 added there and nothing here, which is the same number.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise
from typing import Final

import numpy as np

from winnow.compaction.postings import Block, Floats, Ints, Postings, Queries, ids_of

#: Parameters of BM25Okapi, its defaults.
K1: Final = 1.5
B: Final = 0.75
EPSILON: Final = 0.25
#: Passages retrieved for an entry.
TOP: Final = 3
#: Stands for a passage without tokens: the library divides by zero where all passages are empty. No text has it as a token.
PLACEHOLDER: Final = "\0"


@dataclass(frozen=True, slots=True)
class Hit:
    """A retrieved passage, best first."""

    passage: int
    score: float


class Index:
    """BM25 statistics of a corpus for the tokens of some queries."""

    __slots__ = ("_weights", "postings")

    def __init__(self, tokens: Sequence[str], lengths: Sequence[int], postings: Postings) -> None:
        """Index passages.

        Args:
            tokens: the tokens of all passages in order, each empty passage with `PLACEHOLDER`.
            lengths: how many of them belong to each passage; at least one passage.
            postings: where the queries' tokens stand among them.
        """
        self.postings = postings
        length = np.array(lengths)
        average_length = len(tokens) / len(lengths)
        frequency = postings.frequency
        idf = np.repeat(_idf(tokens, lengths, postings.document_frequency), postings.document_frequency)
        document_length = length[postings.document]
        # The library's own expression, operation by operation: floating point does not forgive another order.
        self._weights: Floats = idf * (frequency * (K1 + 1) / (frequency + K1 * (1 - B + B * document_length / average_length)))

    @classmethod
    def of(cls, passages: Sequence[Sequence[str]], queries: Queries) -> "Index":
        """Index token lists, of which there is at least one."""
        filled = [passage or (PLACEHOLDER,) for passage in passages]
        tokens = list(chain.from_iterable(filled))
        lengths = [len(passage) for passage in filled]
        at = np.repeat(np.arange(len(lengths)), lengths)
        return cls(tokens, lengths, Postings.of(ids_of(tokens, queries.vocabulary), at, len(lengths), len(queries.vocabulary)))

    def scores(self, block: Block) -> Floats:
        """Scores of each query of `block` (row) for each passage (column); not comparable between corpora."""
        return block.totals(self._weights[block.match])


def _idf(tokens: Sequence[str], lengths: Sequence[int], document_frequency: Ints) -> Floats:
    """Inverse document frequency by token id as the library has it, negative ones lifted to a share of the average."""
    size = len(lengths)
    of_count = {count: math.log(size - count + 0.5) - math.log(count + 0.5) for count in set(document_frequency.tolist()) if count}
    if any(value < 0 for value in of_count.values()):
        # The average counts the negative ones too, and is summed in the order of first appearance in the corpus.
        lifted = EPSILON * _average_idf(tokens, lengths)
        of_count = {count: lifted if value < 0 else value for count, value in of_count.items()}
    return np.array([of_count.get(count, 0.0) for count in document_frequency.tolist()])


def _average_idf(tokens: Sequence[str], lengths: Sequence[int]) -> float:
    """Average idf over all words of the corpus."""
    size = len(lengths)
    documents = (dict.fromkeys(tokens[start:end]) for start, end in pairwise(accumulate(lengths, initial=0)))
    held = Counter(chain.from_iterable(documents))
    of_count = {count: math.log(size - count + 0.5) - math.log(count + 0.5) for count in set(held.values())}
    total = 0.0
    for count in held.values():  # not sum(): from Python 3.12 on it compensates rounding, the library's loop does not
        total += of_count[count]
    return total / len(held)


def top(scores: Floats, limit: int = TOP) -> list[list[Hit]]:
    """The best passages of each row: ties by position, none at or below zero where some passage of the row is above it.

    With `limit` passages or fewer all are taken: on a tiny corpus scores are zero or negative and say nothing.
    """
    rows, passages = scores.shape
    if passages <= limit:
        order = np.argsort(-scores, axis=1, kind="stable")
        ranked = np.take_along_axis(scores, order, axis=1).tolist()
        return [
            [Hit(passage, score) for passage, score in zip(places, values, strict=True)]
            for places, values in zip(order.tolist(), ranked, strict=True)
        ]
    left = scores.copy()
    every = np.arange(rows)
    found: list[list[Hit]] = [[] for _ in range(rows)]
    for _ in range(limit):
        best = left.argmax(axis=1)
        for hits, passage, score in zip(found, best.tolist(), left[every, best].tolist(), strict=True):
            if not hits or score > 0 or hits[0].score <= 0:
                hits.append(Hit(passage, score))
        left[every, best] = -np.inf
    return found
