"""BM25 scores are the library's, to the last bit."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from rank_bm25 import BM25Okapi

from tests.unit.compaction.analysis.boundaries import dev
from winnow.compaction import text as texts
from winnow.compaction.passages import PASSAGE_CHARS, cuts, outputs
from winnow.compaction.postings import Queries
from winnow.compaction.retrieval import PLACEHOLDER, Index, top
from winnow.contracts.vocabulary import Rules

TOKENS = st.lists(st.sampled_from("abcdefgh"), max_size=12)


def scores(corpus, queries):
    found = Queries.of(queries)
    index = Index.of(corpus, found)
    return np.concatenate([index.scores(block) for block in index.postings.blocks(found)])


@given(corpus=st.lists(TOKENS, min_size=1, max_size=12), queries=st.lists(TOKENS, min_size=1, max_size=5))
def test_scores_are_the_librarys_on_any_corpus(corpus, queries):
    """Tiny corpora, repeated and unknown query tokens, negative and zero idf, empty passages: bit for bit the same scores."""
    library = BM25Okapi([passage or [PLACEHOLDER] for passage in corpus])
    found = scores(corpus, queries)
    for row, query in zip(found, queries, strict=True):
        assert_array_equal(row, library.get_scores(query))


def test_scores_are_the_librarys_on_every_real_entry():
    """All entries of the development set get the library's scores, bit for bit."""
    entries = 0
    for boundary in dev():
        corpus = [
            texts.tokens(texts.normalise(output.text[start:end]))
            for output in outputs(boundary.messages, Rules.WINNOW)
            for start, end in cuts(output.text, PASSAGE_CHARS)
        ]
        queries = [texts.tokens(texts.normalise(texts.strip_marker(entry.text))) for entry in boundary.parsed.entries]
        library = BM25Okapi([passage or [PLACEHOLDER] for passage in corpus])
        for row, query in zip(scores(corpus, queries), queries, strict=True):
            assert_array_equal(row, library.get_scores(query))
            entries += 1
        found = boundary.analyse()
        for entry, query in zip(found.entries, queries, strict=True):
            best = max((one.bm25 for one in entry.evidence), default=0.0)
            assert best == max(library.get_scores(query).max(), 0.0) or len(corpus) <= 3
    assert entries == 1066


def test_blocks_do_not_change_scores(monkeypatch):
    """Queries that are scored a few at a time, to stay within memory, get the scores that they get together."""
    rng = np.random.default_rng(7)
    words = [f"w{number}" for number in range(60)]
    corpus = [list(rng.choice(words, 20)) for _ in range(40)]
    queries = [list(rng.choice(words, 8)) for _ in range(30)] + [[]]
    together = scores(corpus, queries)
    monkeypatch.setattr("winnow.compaction.postings._BLOCK", 90)
    assert_array_equal(scores(corpus, queries), together)


def test_most_frequent_tokens_go_first_where_matches_are_too_many(monkeypatch):
    """Above the limit of matches the tokens that stand in most passages are left out, and rare ones still find their passage."""
    monkeypatch.setattr("winnow.compaction.postings.MAX_MATCHES", 50)
    corpus = [["common", f"rare{number}"] for number in range(40)]
    found = scores(corpus, [["common", "rare7"], ["common", "rare9"]])
    assert [int(row.argmax()) for row in found] == [7, 9]
    assert (found[0] > 0).sum() == 1


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([1.0, 3.0, 3.0, 0.5, 2.0], [1, 2, 4]),
        ([0.0, 2.0, 0.0, -1.0, 0.0], [1]),
        ([0.0, 0.0, -1.0, 0.0, 0.0], [0, 1, 3]),
        ([-3.0, -1.0, -2.0, -4.0, -5.0], [1, 2, 0]),
        ([-0.275], [0]),
        ([0.0, 0.5], [1, 0]),
        ([0.1, 0.0, 0.9], [2, 0, 1]),
    ],
)
@pytest.mark.parametrize("sorted_up_to", [0, 64], ids=["searched", "sorted"])
def test_top_passages(row, expected, sorted_up_to, monkeypatch):
    """Best first, ties by position; zero and less only where nothing is above; a tiny corpus is taken whole."""
    monkeypatch.setattr("winnow.compaction.retrieval._SORTED", sorted_up_to)
    found = top(np.array([row]))
    assert found == [[(at, row[at]) for at in expected]]
