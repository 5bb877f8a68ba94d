"""BM25 over passages: the scores of `rank_bm25.BM25Okapi` to the last bit, from an inverted index over its statistics.

The library builds a dense vector for each query token; here only the passages that hold the token are touched, with the same
expression in the same order. A passage that does not hold it gets 0.0 added there and nothing here, which is the same number.
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Final

import numpy as np

from winnow.compaction.postings import Block, Floats, Ints, Postings, Queries, ids_of

#: Parameters of BM25Okapi, its defaults.
K1: Final = 1.5
B: Final = 0.75
EPSILON: Final = 0.25
#: Passages retrieved for an entry.
TOP: Final = 3
#: Up to so many passages a row is sorted; a longer one is searched for its best, one after another.
_SORTED: Final = 64
#: Stands for a passage without tokens: the library divides by zero where all passages are empty. No text has it as a token.
PLACEHOLDER: Final = "\0"


#: A retrieved passage and its score.
Hit = tuple[int, float]


class Index:
    """BM25 statistics of passages for the tokens of some queries."""

    __slots__ = ("passages", "postings", "weights")

    def __init__(self, passage: Callable[[int], Sequence[str]], lengths: Sequence[int], postings: Postings) -> None:
        """Index passages, of which there is at least one.

        Args:
            passage: gives the tokens of the n-th passage; asked only where some token stands in more than half of the passages.
            lengths: how many tokens each passage has.
            postings: where the queries' tokens stand. Its first documents are the passages; what follows them has no weight.
        """
        self.postings = postings
        self.passages = len(lengths)
        length = np.maximum(np.array(lengths), 1)  # an empty passage holds the placeholder
        average_length = int(length.sum()) / len(lengths)
        in_passages = postings.frequency_within(self.passages)
        document = np.minimum(postings.document, self.passages - 1)
        idf = _idf(passage, self.passages, in_passages).repeat(postings.document_frequency)
        # The library's own expression, operation by operation: floating point does not forgive another order.
        of_length = K1 * (1 - B + B * length / average_length)
        frequency = postings.frequency
        weights = idf * (frequency * (K1 + 1) / (frequency + of_length[document]))
        #: Of each match, what it adds to its query's score for its passage.
        self.weights: Floats = weights if postings.documents == self.passages else weights * (postings.document < self.passages)

    @classmethod
    def of(cls, passages: Sequence[Sequence[str]], queries: Queries) -> "Index":
        """Index token lists, of which there is at least one."""
        lengths = [len(passage) for passage in passages]
        tokens = list(chain.from_iterable(passages))
        at = np.arange(len(lengths)).repeat(lengths)
        postings = Postings.of(ids_of(tokens, queries.vocabulary), at, len(lengths), len(queries.vocabulary))
        return cls(passages.__getitem__, lengths, postings)

    def scores(self, block: Block) -> Floats:
        """Scores of each query of `block` (row) for each passage (column); not comparable between corpora."""
        scores: Floats = block.totals(self.weights[None, block.match])[0, :, : self.passages]
        return scores


def _idf(passage: Callable[[int], Sequence[str]], size: int, document_frequency: Ints) -> Floats:
    """Inverse document frequency by token id as the library has it, negative ones lifted to a share of the average."""
    of_count = np.zeros(size + 1)
    negative = False
    for count in set(document_frequency.tolist()) - {0}:
        of_count[count] = math.log(size - count + 0.5) - math.log(count + 0.5)
        negative = negative or of_count[count] < 0
    if negative:
        # The average counts the negative ones too, and is summed in the order of first appearance in the corpus.
        of_count[of_count < 0] = EPSILON * _average_idf(passage, size)
    idf: Floats = of_count[document_frequency]
    return idf


def _average_idf(passage: Callable[[int], Sequence[str]], size: int) -> float:
    """Average idf over all words of the corpus."""
    held = Counter(chain.from_iterable(dict.fromkeys(passage(at) or (PLACEHOLDER,)) for at in range(size)))
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
    tiny, limit = passages <= limit, min(limit, passages)
    every = np.arange(rows)
    if passages <= _SORTED:
        best = (-scores).argsort(axis=1, kind="stable")[:, :limit]
    else:
        left = scores.copy()
        best = np.empty((rows, limit), np.int64)
        for rank in range(limit):
            best[:, rank] = left.argmax(axis=1)
            left[every, best[:, rank]] = -np.inf
    values = scores[every[:, None], best]
    taken = np.where(tiny | (values[:, 0] <= 0), limit, (values > 0).sum(axis=1)).tolist()
    found = zip(best.tolist(), values.tolist(), taken, strict=True)
    return [list(zip(places, values_of, strict=True))[:count] for places, values_of, count in found]
