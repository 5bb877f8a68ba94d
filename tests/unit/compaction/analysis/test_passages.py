"""Passages and chunks."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from winnow.compaction.passages import CHUNK_CHARS, PASSAGE_CHARS, Span, chunks, cuts

TEXT = st.text(alphabet="ab,. \n", max_size=3_000)


@given(TEXT, st.integers(2, 400))
def test_cuts_lose_nothing(text, size):
    """Windows follow each other without gap, none is empty or longer than asked, and together they are the text."""
    found = list(cuts(text, size))
    assert "".join(text[start:end] for start, end in found) == text
    assert all(0 < end - start <= size for start, end in found)


def test_cut_backs_up_to_the_best_separator():
    """A window ends behind the last newline of its second half, else behind a comma, else behind a blank, else where it is full."""
    assert next(cuts("a" * 200 + "\n" + "b" * 40 + ", " + "c" * 200, 300)) == (0, 201)
    assert next(cuts("a" * 200 + ", " + "b" * 40 + " " + "c" * 200, 300)) == (0, 202)
    assert next(cuts("a" * 200 + " " + "b" * 200, 300)) == (0, 201)
    assert next(cuts("\n" + "a" * 400, 300)) == (0, 300)


@given(st.lists(TEXT, max_size=4))
def test_chunk_encloses_its_passage(texts):
    """Every passage lies wholly in its chunk, chunks stay in one output and within their size, and neighbours share them."""
    passages = [Span(at, start, end) for at, text in enumerate(texts) for start, end in cuts(text, PASSAGE_CHARS)]
    enclosing = chunks(passages)
    assert len(enclosing) == len(passages)
    for passage, chunk in zip(passages, enclosing, strict=True):
        assert chunk.message == passage.message
        assert chunk.start <= passage.start
        assert passage.end <= chunk.end
        assert chunk.end - chunk.start <= CHUNK_CHARS
    distinct = list(dict.fromkeys(enclosing))
    for left, right in pairwise(distinct):
        assert left.message != right.message or left.end == right.start
