"""Following entries from summary to summary."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winnow.compaction.similarity import ratio
from winnow.judging.evaluation import carrying
from winnow.judging.evaluation.carrying import ALIKE, Match, follow, match, same_key

WORDS = st.lists(st.sampled_from(["call the airline", "Call the  airline", "call the airlines", "book HAT136", "x", ""]), max_size=8)


def test_exact_then_alike():
    """The same wording is matched first, in order; what is left is matched by similarity, the most alike first."""
    before = ["- call the airline about it", "- book HAT136 for $152", "- CALL the airline about it"]
    now = ["- call the airline about them", "* Call the airline  about it", "- something else"]
    assert match(now, before).found == [Match(2, exact=False), Match(0, exact=True), None]


@settings(max_examples=50)
@given(WORDS, WORDS)
def test_matching_is_one_to_one_and_true(now, before):
    """No entry is matched twice, exact means the same wording, and the rest is alike; what is unmatched has no like left."""
    found = match(now, before).found
    used = [one.previous for one in found if one is not None]
    assert len(used) == len(set(used))
    for text, one in zip(now, found, strict=True):
        if one is not None:
            a, b = same_key(text), same_key(before[one.previous])
            assert (a == b) == one.exact
            assert ratio(a, b) >= ALIKE
    free = [same_key(text) for at, text in enumerate(before) if at not in used]
    for text, one in zip(now, found, strict=True):
        if one is None:
            assert all(ratio(same_key(text), other) < ALIKE for other in free)


def test_chains_end_where_a_summary_lacks_the_entry():
    """An entry that goes and comes back is another chain: it was written anew."""
    followed = follow([["a b c", "plan"], ["a b c"], ["a b c", "plan"]])
    assert [tuple(chain) for chain in followed.chains] == [(0, 0, 3), (0, 1, 1), (2, 1, 1)]
    assert follow([]).chains == []


@settings(max_examples=50)
@given(st.lists(WORDS, max_size=5))
def test_every_entry_is_in_one_chain(summaries):
    """The lengths of the chains add up to the entries."""
    assert sum(chain.length for chain in follow(summaries).chains) == sum(map(len, summaries))


def test_too_many_pairs_are_left_out_and_said(monkeypatch):
    """Where hundreds of new entries are alike in length, the number of comparisons stays bounded, and the answer says so."""
    monkeypatch.setattr(carrying, "MAX_PAIRS", 100)
    found = match([f"entry {n:03d} of now" for n in range(50)], [f"other {n:03d} then" for n in range(50)])
    assert found.capped
    assert not match(["a"], ["b"]).capped


@pytest.mark.parametrize("text", ["\x00", "\ud800", "- " * 5_000, "é" * 3_000])
def test_hostile_texts(text):
    """Any text matches itself."""
    assert match([text], [text]).found == [Match(0, exact=True)]
