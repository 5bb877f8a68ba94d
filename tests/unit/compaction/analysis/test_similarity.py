"""The character-sequence ratio."""

import difflib

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.compaction.analysis.boundaries import dev
from tests.unit.compaction.analysis.plain import subsequence
from winnow.compaction import text as texts
from winnow.compaction.features import CARRY_FLOOR
from winnow.compaction.similarity import RATIO_CHARS, bounds, ratio

SHORT = st.text(alphabet="ab c文", max_size=40)


@given(SHORT, SHORT)
def test_ratio_counts_the_longest_common_subsequence(left, right):
    """The ratio is twice the longest common subsequence over both lengths, the same both ways, and 1 for equal texts."""
    expected = 2 * subsequence(left, right) / (len(left) + len(right)) if left != right else 1.0
    assert ratio(left, right) == expected
    assert ratio(right, left) == expected


@given(SHORT, SHORT)
def test_ratio_is_at_least_that_of_difflib(left, right):
    """The matching blocks of difflib are a common subsequence, so its ratio is never higher."""
    assert ratio(left, right) >= difflib.SequenceMatcher(None, left, right, autojunk=False).ratio()


@given(st.lists(st.tuples(SHORT, SHORT), min_size=1, max_size=6))
def test_bound_is_never_below_the_ratio(pairs):
    """What the multisets of characters allow is at least the ratio, for all pairs at once."""
    left, right = [list(side) for side in zip(*pairs, strict=True)]
    ratios = np.array([ratio(*pair) if any(pair) else 0.0 for pair in pairs])
    assert (bounds(left, right) >= ratios - 1e-12).all()


def test_entries_are_carried_as_difflib_sees_it():
    """On the development set the same entries are carried as by difflib's ratio to the most alike entry of the previous summary."""
    later = [boundary for boundary in dev() if boundary.previous is not None][::3]
    assert later
    for boundary in later:
        units = [texts.normalise(texts.strip_marker(entry.text)) for entry in boundary.previous.entries]
        for entry in boundary.analyse().entries:
            text = texts.normalise(texts.strip_marker(entry.text))
            matcher = difflib.SequenceMatcher(None, "", text, autojunk=False)
            alike = 0.0
            for unit in units:
                matcher.set_seq1(unit)
                if matcher.real_quick_ratio() > CARRY_FLOOR and matcher.quick_ratio() > CARRY_FLOOR:
                    alike = max(alike, matcher.ratio())
            assert (entry.features["carry"] > CARRY_FLOOR) == (alike > CARRY_FLOOR), entry.text


def test_very_long_texts_are_compared_by_their_beginning():
    """Text beyond the limit does not count, so that a hostile entry costs no more than a long one."""
    assert ratio("a" * RATIO_CHARS + "b" * 100_000, "a" * RATIO_CHARS + "c" * 100_000) == 1.0
