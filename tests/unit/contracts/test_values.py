"""Deadlines, errors and texts: the small values that everything rests on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from winnow.contracts import errors, limits
from winnow.contracts.deadline import Deadline
from winnow.contracts.events import Candidate, Message, Observation, RuntimeEvent, Text, sha256


class Clock:
    """A clock that stands still until it is moved."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_deadline_counts_down_and_never_below_zero():
    """What remains shrinks with the clock and ends at nothing."""
    clock = Clock()
    deadline = Deadline.after(2.0, clock)
    assert (deadline.remaining(), deadline.passed) == (2.0, False)
    clock.now = 101.5
    assert deadline.remaining() == 0.5
    clock.now = 200.0
    assert (deadline.remaining(), deadline.passed) == (0.0, True)


def test_a_step_can_only_shorten_a_deadline():
    """`at_most` takes the earlier of both."""
    clock = Clock()
    deadline = Deadline.after(2.0, clock)
    assert deadline.at_most(1.0).remaining() == 1.0
    assert deadline.at_most(5.0).remaining() == 2.0


def test_an_error_without_words_says_its_docstring():
    """The default text of an error is what its class says, and a given text replaces it."""
    assert (
        str(errors.Conflict()) == "The same boundary id was submitted before with other content; use a new id or resend the first content."
    )
    assert str(errors.Conflict("other")) == "other"
    assert errors.Permanent("x", reason="too_large").reason == "too_large"
    assert errors.Conflict("x").reason == "id_conflict"


@pytest.mark.parametrize("error", [errors.Conflict, errors.TooLarge, errors.Gone, errors.NotFound, errors.HashMismatch])
def test_what_fails_every_time_is_permanent(error):
    """A conflict, a size, a missing or erased original and a wrong hash are never retried."""
    assert issubclass(error, errors.Permanent)
    assert not issubclass(error, errors.Retryable)


@given(st.text(st.characters(codec="utf-8"), max_size=200))
def test_a_text_knows_its_hash_and_size_in_bytes(text):
    """Hash and size are those of the UTF-8 bytes."""
    wrapped = Text.of(text)
    assert (wrapped.text, wrapped.sha256, wrapped.size) == (text, sha256(text.encode()), len(text.encode()))


def test_a_long_text_travels_by_handle_from_one_byte_above_the_limit():
    """64 KiB are inline, one byte more goes by handle where there is one."""
    handle = "h" * 32
    assert Text.of("x" * limits.INLINE_TEXT_BYTES, handle).text is not None
    long = Text.of("x" * (limits.INLINE_TEXT_BYTES + 1), handle)
    assert (long.text, long.handle, long.size) == (None, handle, limits.INLINE_TEXT_BYTES + 1)


@pytest.mark.parametrize("both", [{}, {"text": "a", "handle": "h" * 32}])
def test_a_text_is_inline_or_by_handle_and_never_neither_or_both(both):
    """Exactly one of the two forms is given."""
    with pytest.raises(ValidationError, match="exactly one"):
        Text(sha256="0" * 64, size=1, **both)


CANDIDATE = {"fleet": "default", "run": "run-17", "index": 1, "candidate": "- one\n"}
REPORT = {"fleet": "default", "event_id": "7d0b1c52-8f6e-5a9d-b1a4-2f7c6e1d9a30"}


@pytest.mark.parametrize("field", ["index", "tokens_before", "tokens_after"])
def test_a_number_that_no_table_holds_is_refused_by_name(field):
    """The largest number is taken; one more is told to the producer before anything is stored."""
    assert getattr(Candidate.model_validate(CANDIDATE | {field: limits.MAX_NUMBER}), field) == limits.MAX_NUMBER
    with pytest.raises(ValidationError, match=field):
        Candidate.model_validate(CANDIDATE | {field: limits.MAX_NUMBER + 1})


def test_a_message_number_that_no_table_holds_is_refused():
    """Numbers of messages are stored with the passages."""
    with pytest.raises(ValidationError, match="less than or equal"):
        Message.model_validate({"i": limits.MAX_NUMBER + 1, "kind": "environment", "text": "x"})


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00"])
@pytest.mark.parametrize(
    ("model", "body"),
    [
        (Candidate, CANDIDATE | {"deadline": None}),
        (Candidate, CANDIDATE | {"boundary_at": None}),
        (RuntimeEvent, REPORT | {"run": "r", "kind": "run_ended", "at": None}),
        (Observation, REPORT | {"stream": "s", "unit": "u", "sampled": {"probability": 1, "at": None}}),
        (Observation, REPORT | {"stream": "s", "unit": "u", "graded": {"loss": 0, "grader": "g", "at": None}}),
    ],
)
def test_a_moment_without_a_year_in_utc_is_refused(model, body, moment):
    """The calendar's ends with an offset that leads beyond them are no moments that could be stored or compared."""

    def filled(value):
        return {k: filled(v) if isinstance(v, dict) else moment if v is None else v for k, v in value.items()}

    with pytest.raises(ValidationError, match="between the years 1 and 9999"):
        model.model_validate(filled(body))
