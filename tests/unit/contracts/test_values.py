"""Deadlines, errors and texts: the small values that everything rests on."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from winnow.contracts import errors, limits
from winnow.contracts.deadline import Deadline
from winnow.contracts.events import Text, sha256


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
