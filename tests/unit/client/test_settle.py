"""Which text an agent goes on with."""

from datetime import UTC, datetime
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.client.answers import LINES, candidate, decision, line_span, pruned
from winnow.client.result import Because, Unheard
from winnow.client.settle import settle, without
from winnow.client.testing import unpruned
from winnow.contracts.events import Text, sha256
from winnow.contracts.vocabulary import Adopted, Decision, Mode, Outcome, Reason


def _settle(asked, committed):
    return settle(asked, asked.request_sha256(), committed)


def test_the_committed_text_is_adopted_with_its_decisions():
    """An answer whose bytes are the candidate minus whole entries is what the agent goes on with."""
    asked = candidate()
    result = _settle(asked, pruned(asked, asked.request_sha256(), line_span(2)))
    assert result.summary == LINES[0] + LINES[1] + LINES[3]
    assert result.source is Adopted.COMMITTED
    assert (result.pruned, result.bypassed_because, result.outcome) == (1, None, Outcome.JUDGED)
    assert [d.span for d in result.unsupported] == [line_span(2)]


def test_shadow_mode_gives_no_verdicts():
    """In shadow mode the agent gets the candidate as committed text and sees no decision, even where the answer holds some."""
    asked = candidate()
    committed = unpruned(asked, asked.request_sha256()).model_copy(
        update={"mode": Mode.SHADOW, "decisions": (decision(1, line_span(2), Decision.PRUNED),)}
    )
    result = _settle(asked, committed)
    assert (result.summary, result.source, result.decisions, result.pruned) == (asked.candidate, Adopted.COMMITTED, (), 0)


def test_annotate_mode_gives_verdicts_and_the_whole_candidate():
    """In annotate mode nothing is removed and the unsupported entries are told."""
    asked = candidate()
    committed = unpruned(asked, asked.request_sha256()).model_copy(
        update={"mode": Mode.ANNOTATE, "decisions": (decision(1, line_span(2), Decision.PRUNED),)}
    )
    result = _settle(asked, committed)
    assert result.summary == asked.candidate
    assert len(result.unsupported) == 1


def test_a_summary_that_travels_by_handle_is_rebuilt_without_being_fetched():
    """Candidate, spans and hash are enough: no second request is needed for a long summary."""
    asked = candidate()
    text = LINES[0] + LINES[1] + LINES[3]
    far = Text(sha256=sha256(text), size=len(text.encode()), handle="h" * 32)
    result = _settle(asked, pruned(asked, asked.request_sha256(), line_span(2), summary=far))
    assert result.summary == text


@pytest.mark.parametrize(
    ("change", "because"),
    [
        ({"fleet": "other"}, Because.INVALID_ANSWER),
        ({"run": "other"}, Because.INVALID_ANSWER),
        ({"boundary_id": uuid4()}, Because.INVALID_ANSWER),
        ({"request_sha256": "0" * 64}, Because.ID_CONFLICT),
        ({"candidate_sha256": "0" * 64}, Because.HASH_MISMATCH),
        ({"committed_sha256": "0" * 64}, Because.HASH_MISMATCH),
        ({"committed_sha256": None}, Because.HASH_MISMATCH),
        ({"summary": None}, Because.HASH_MISMATCH),
        ({"summary": Text.of("- invented\n")}, Because.HASH_MISMATCH),
        ({"summary": Text.of("- invented\n"), "committed_sha256": sha256("- invented\n")}, Because.HASH_MISMATCH),
        ({"decisions": ()}, Because.HASH_MISMATCH),
        ({"decisions": (decision(1, (0, 10_000), Decision.PRUNED),)}, Because.HASH_MISMATCH),
        ({"decisions": (decision(1, (10, 0), Decision.PRUNED),)}, Because.HASH_MISMATCH),
        ({"decisions": (decision(1, (-5, 0), Decision.PRUNED),)}, Because.HASH_MISMATCH),
        ({"mode": Mode.ANNOTATE}, Because.HASH_MISMATCH),
        ({"late": True}, Because.LATE),
        ({"outcome": Outcome.REJECTED, "reason": Reason.TOO_LARGE, "summary": None, "committed_sha256": None}, Because.REJECTED),
        ({"outcome": Outcome.REJECTED, "reason": Reason.ID_CONFLICT}, Because.ID_CONFLICT),
    ],
)
def test_what_cannot_be_trusted_leaves_the_agent_its_candidate(change, because):
    """Whatever is stated wrongly, the agent keeps its own bytes and learns why."""
    asked = candidate()
    result = _settle(asked, pruned(asked, asked.request_sha256(), line_span(2)).model_copy(update=change))
    assert (result.summary, result.source, result.bypassed_because) == (asked.candidate, Adopted.CANDIDATE, because)
    assert result.pruned == 0


def test_a_text_with_the_right_hash_and_other_bytes_is_impossible():
    """The inline text must be the rebuilt bytes, not merely carry their hash."""
    asked = candidate()
    good = pruned(asked, asked.request_sha256(), line_span(2))
    assert good.summary is not None
    forged = good.model_copy(update={"summary": good.summary.model_copy(update={"text": "- invented\n"})})
    assert _settle(asked, forged).bypassed_because is Because.HASH_MISMATCH


def test_a_span_that_cuts_a_character_is_no_entry():
    """Offsets are bytes; one in the middle of a character is refused, not decoded with replacement."""
    with pytest.raises(Unheard):
        without("aüb", [(0, 2)])


@given(st.lists(st.text(max_size=20), max_size=12), st.data())
def test_removing_spans_leaves_exactly_the_other_pieces(pieces, data):
    """For any pieces and any choice of them, what remains are the other pieces, byte for byte, in order."""
    text = "".join(pieces)
    at, spans = 0, []
    for piece in pieces:
        spans.append((at, at + len(piece.encode())))
        at = spans[-1][1]
    gone = data.draw(st.sets(st.integers(0, max(0, len(pieces) - 1)), max_size=len(pieces))) if pieces else set()
    chosen = data.draw(st.permutations([spans[i] for i in gone]))
    assert without(text, chosen) == "".join(p for i, p in enumerate(pieces) if i not in gone)


@given(st.text(max_size=40), st.lists(st.tuples(st.integers(-5, 60), st.integers(-5, 60)), max_size=5))
def test_any_spans_give_a_subsequence_or_are_refused(text, spans):
    """No list of spans, however hostile, yields a byte that the candidate lacks."""
    try:
        left = without(text, spans)
    except Unheard:
        at = 0
        for start, end in sorted(spans):
            if not at <= start <= end <= len(text.encode()):
                return
            at = end
        assert not text.isascii()  # the spans are in order: one of them cuts a character
    else:
        characters = iter(text)
        assert all(any(c == mine for c in characters) for mine in left)


def test_the_deadline_of_a_late_answer_is_told():
    """A late answer is reported as late, with its outcome, and applied to nothing."""
    asked = candidate(deadline=datetime.now(UTC))
    result = _settle(asked, unpruned(asked, asked.request_sha256()).model_copy(update={"late": True}))
    assert result.late
    assert result.outcome is Outcome.JUDGED
    assert result.source is Adopted.CANDIDATE
