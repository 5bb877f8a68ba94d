"""The character-sequence ratio."""

import difflib

from hypothesis import given
from hypothesis import strategies as st

from winnow.compaction.similarity import RATIO_CHARS, ratio

SHORT = st.text(alphabet="ab c", max_size=60)


@given(SHORT, SHORT)
def test_ratio_is_that_of_difflib(left, right):
    """Without a floor the ratio is difflib's, junk heuristics off, to the last bit."""
    expected = difflib.SequenceMatcher(None, left, right, autojunk=False).ratio()
    assert ratio(left, right, 0.0) == expected


@given(SHORT, st.lists(st.tuples(st.integers(0, 60), st.sampled_from(["", "x", "ab"])), max_size=4), st.floats(0.5, 1.0))
def test_floor_changes_only_what_is_below_it(left, edits, floor):
    """With a floor the ratio is the same where it reaches the floor, and 0 elsewhere; the bounds reject nothing that reaches it."""
    right = left
    for at, piece in edits:
        right = right[:at] + piece + right[at + 1 :]
    exact = difflib.SequenceMatcher(None, left, right, autojunk=False).ratio()
    assert ratio(left, right, floor) == (exact if exact >= floor else 0.0)


def test_very_long_texts_are_compared_by_their_beginning():
    """Text beyond the limit does not count, so that a hostile entry costs no more than a long one."""
    assert ratio("a" * RATIO_CHARS + "b" * 100_000, "a" * RATIO_CHARS + "c" * 100_000, 0.85) == 1.0
