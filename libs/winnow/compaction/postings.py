"""Inverted index of a handful of query tokens over many documents, and the sums over it; everything adds in a fixed order."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Final

import numpy as np
from numpy.typing import NDArray

from winnow.compaction.text import Stream

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

#: Cells (queries × documents) and matches that are held at once: 16 MB an array.
_BLOCK: Final = 2_000_000
#: Matches (query token × document that holds it) of all queries together. Above it the most frequent tokens, which say least, are
#: left out. 40 entries over 100,000 tokens have about 60,000; a megabyte of entries over 8 MiB would have thousands of millions.
MAX_MATCHES: Final = 20_000_000


@dataclass(frozen=True, slots=True)
class Queries:
    """Token lists of all entries, as ids."""

    count: int
    vocabulary: dict[str, int]  # token to id, from 1; 0 is every other token
    ids: Ints  # token ids of all queries, in order, repeats repeated
    query: Ints  # the query each of them stands in
    first: Bools  # the first of its kind in its query

    @classmethod
    def of(cls, token_lists: Sequence[Sequence[str]]) -> "Queries":
        """Number the tokens of `token_lists` by first appearance."""
        flat = list(chain.from_iterable(token_lists))
        return cls._numbered(flat, np.arange(len(token_lists)).repeat([len(tokens) for tokens in token_lists]), len(token_lists))

    @classmethod
    def of_stream(cls, stream: Stream) -> "Queries":
        """The queries that are the texts of a stream."""
        mark = stream.tokens[-1] if stream.marks else ""
        flat = [token for token in stream.tokens if token != mark]
        return cls._numbered(flat, np.arange(len(stream.marks)).repeat(stream.lengths()), len(stream.marks))

    @classmethod
    def _numbered(cls, flat: list[str], query: Ints, count: int) -> "Queries":
        """Number tokens, and find the first of its kind in each query."""
        distinct = dict.fromkeys(flat)
        vocabulary = dict(zip(distinct, range(1, len(distinct) + 1), strict=True))
        ids = np.fromiter(map(vocabulary.__getitem__, flat), np.int64, len(flat))
        first = np.zeros(len(flat), np.bool_)
        codes = query * (len(vocabulary) + 1) + ids
        order = codes.argsort(kind="stable")
        ranked = codes[order]
        first[order[1:][ranked[1:] != ranked[:-1]]] = True
        first[order[:1]] = True
        return cls(count, vocabulary, ids, query, first)

    def sums(self, weights: Floats) -> Floats:
        """For each row of `weights` (by token id) and each query: the sum over the query's distinct tokens, added in query order."""
        return tally(self.query, weights[:, self.ids] * self.first, self.count)


@dataclass(frozen=True, slots=True)
class Block:
    """Matches of some consecutive queries with all documents."""

    begin: int  # first query
    end: int
    documents: int
    cell: Ints  # (query - begin) * documents + document, in query order
    match: Ints  # index into the postings
    token: Ints  # token id
    first: Bools  # the token is the first of its kind in its query

    def totals(self, weights: Floats) -> Floats:
        """For each row of `weights` (one a match), each query and each document: the sum, added in query order."""
        queries = self.end - self.begin
        return tally(self.cell, weights, queries * self.documents).reshape(len(weights), queries, self.documents)


@dataclass(frozen=True, slots=True)
class Postings:
    """For each token id the documents that hold it, with counts."""

    documents: int
    start: Ints  # of a token id's matches; one longer than there are ids
    document: Ints
    frequency: Ints

    @classmethod
    def of(cls, ids: Ints, document: Ints, documents: int, vocabulary: int) -> "Postings":
        """Index a stream of token ids (0 is skipped) and the documents they stand in."""
        held = ids > 0
        # What np.unique does, without the price of its wrapper on a few hundred numbers.
        codes = ids[held] * max(documents, 1) + document[held]
        codes.sort()
        new = np.empty(len(codes) + 1, np.bool_)
        new[:1] = new[-1:] = True
        np.not_equal(codes[1:], codes[:-1], out=new[1:-1])
        (edges,) = new.nonzero()
        if not len(codes):
            edges = edges[:1]
        token, at = np.divmod(codes[edges[:-1]], max(documents, 1))
        return cls(documents, token.searchsorted(np.arange(vocabulary + 2)), at, edges[1:] - edges[:-1])

    @property
    def document_frequency(self) -> Ints:
        """Number of documents that hold each token id."""
        frequency: Ints = self.start[1:] - self.start[:-1]
        return frequency

    def frequency_within(self, documents: int) -> Ints:
        """Number of the first `documents` documents that hold each token id."""
        if documents == self.documents:
            return self.document_frequency
        token = np.arange(len(self.start) - 1).repeat(self.document_frequency)
        return np.bincount(token[self.document < documents], minlength=len(self.start) - 1)

    def excessive(self, queries: Queries) -> bool:
        """Whether the queries have more matches than are looked at, so that the most frequent tokens are left out."""
        return int(self.document_frequency[queries.ids].sum()) > MAX_MATCHES

    def blocks(self, queries: Queries) -> Iterator[Block]:
        """Match all queries, as many at a time as fit in memory."""
        lengths = self.document_frequency[queries.ids]
        if self.excessive(queries):
            lengths = np.where(lengths > max(1, MAX_MATCHES // max(1, len(lengths))), 0, lengths)
        if queries.count * self.documents <= _BLOCK and int(lengths.sum()) <= _BLOCK:
            yield self._block(queries, lengths, (0, queries.count), slice(None))
            return
        ends = np.cumsum(np.bincount(queries.query, lengths, queries.count))
        rows = max(1, _BLOCK // max(1, self.documents))
        begin, done = 0, 0
        while begin < queries.count:
            end = min(begin + rows, int(np.searchsorted(ends, done + _BLOCK, "right")), queries.count)
            end = max(end, begin + 1)
            low, high = np.searchsorted(queries.query, (begin, end))
            yield self._block(queries, lengths, (begin, end), slice(int(low), int(high)))
            begin, done = end, int(ends[end - 1])

    def _block(self, queries: Queries, lengths: Ints, span: tuple[int, int], part: slice) -> Block:
        """Lay out the matches of some queries in query order."""
        ids, counts = queries.ids[part], lengths[part]
        before = counts.cumsum() - counts
        match = np.arange(int(counts.sum())) + (self.start[ids] - before).repeat(counts)
        query = (queries.query[part] - span[0]).repeat(counts)
        return Block(
            span[0],
            span[1],
            self.documents,
            query * self.documents + self.document[match],
            match,
            ids.repeat(counts),
            queries.first[part].repeat(counts),
        )


def tally(cell: Ints, weights: Floats, cells: int) -> Floats:
    """For each row of `weights` add its numbers into `cells` cells, one after another: the order, and so the last bit, is fixed."""
    rows = len(weights)
    where = cell if rows == 1 else (cell + (np.arange(rows) * cells)[:, None]).ravel()
    return np.asarray(np.bincount(where, weights.ravel(), rows * cells), np.float64).reshape(rows, cells)


def ids_of(tokens: Sequence[str], vocabulary: Mapping[str, int]) -> Ints:
    """Token ids of a stream; 0 where a token is in no query."""
    return np.fromiter(map(vocabulary.get, tokens, repeat(0)), np.int64, len(tokens))


def expanded(low: Ints, high: Ints) -> tuple[Ints, Ints]:
    """All numbers of many ranges [low, high), one range after another, each with the number of its range."""
    counts = high - low
    number = np.arange(len(counts)).repeat(counts)
    return number, np.arange(len(number)) + (low - counts.cumsum() + counts).repeat(counts)
