"""Waiting between tries."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.client.backoff import Backoff, retry_after

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)


@given(st.integers(1, 10_000), st.floats(0, 1, exclude_max=True))
def test_a_delay_is_bounded(attempt, jitter):
    """No attempt number and no jitter gives a delay of zero or above the limit."""
    assert 0 < Backoff().delay(attempt, jitter) <= Backoff().most_s


def test_delays_grow():
    """Each try waits at least as long as the one before, for the same jitter."""
    delays = [Backoff().delay(n, 0.5) for n in range(1, 10)]
    assert delays == sorted(delays)
    assert delays[-1] > delays[0]


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, None),
        ("2", 2.0),
        (" 7 ", 7.0),
        ("0", 0.0),
        ("Mon, 30 Nov 2026 12:00:30 GMT", 30.0),
        ("Mon, 30 Nov 2026 11:00:00 GMT", 0.0),
        ("-3", None),
        ("1.5", None),
        ("soon", None),
        ("", None),
        ("٣", None),
    ],
)
def test_retry_after_is_read_in_both_forms(value, seconds):
    """Seconds and HTTP dates are understood; anything else is as if it were not there."""
    assert retry_after(value, lambda: NOW) == seconds


def test_an_absurd_retry_after_is_a_number():
    """A header of a thousand digits costs no time and overflows nothing."""
    assert retry_after("9" * 1000, lambda: NOW) == 999_999_999.0


@given(st.text(max_size=60))
def test_any_header_is_survived(value):
    """No text makes the reader fail."""
    seconds = retry_after(value, lambda: NOW)
    assert seconds is None or seconds >= 0
