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
def test_chunks_are_whole_passages(texts):
    """Chunks are consecutive passages of one output within their size; every passage lies in one, and no two chunks could be one."""
    passages = [Span(at, start, end) for at, text in enumerate(texts) for start, end in cuts(text, PASSAGE_CHARS)]
    found = chunks(passages)
    assert [at for first, end in found for at in range(first, end)] == list(range(len(passages)))
    for first, end in found:
        assert len({passage.message for passage in passages[first:end]}) == 1
        assert passages[end - 1].end - passages[first].start <= CHUNK_CHARS
    for (first, end), _ in pairwise(found):
        assert passages[end].message != passages[first].message or passages[end].end - passages[first].start > CHUNK_CHARS
