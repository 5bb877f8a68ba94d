"""Whose fault an error is, how long to wait, and when to stop."""

import random

import pytest
from aiokafka.errors import KafkaConnectionError, MessageSizeTooLargeError, RequestTimedOutError
from hypothesis import given
from hypothesis import strategies as st

from winnow.contracts.errors import Conflict, Permanent, Retryable, SchemaTooNew, TooLarge
from winnow.messaging.faults import Breaker, Fault, Limit, classify, pause

LIMIT = Limit(max_ratio=0.5, min_failures=10, max_consecutive=20, window=50, fleets=8)


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (Retryable(), Fault.TRANSIENT),
        (SchemaTooNew(), Fault.TRANSIENT),
        (ConnectionResetError(), Fault.TRANSIENT),
        (TimeoutError(), Fault.TRANSIENT),
        (KafkaConnectionError(), Fault.TRANSIENT),
        (RequestTimedOutError(), Fault.TRANSIENT),
        (Permanent(), Fault.INPUT),
        (Conflict(), Fault.INPUT),
        (TooLarge(), Fault.INPUT),
        (MessageSizeTooLargeError(), Fault.OWN),
        (KeyError("x"), Fault.OWN),
        (AssertionError(), Fault.OWN),
        (MemoryError(), Fault.OWN),
        (ExceptionGroup("g", [TimeoutError(), Retryable()]), Fault.TRANSIENT),
        (ExceptionGroup("g", [TimeoutError(), KeyError()]), Fault.OWN),
        (ExceptionGroup("g", [TimeoutError(), Permanent()]), Fault.TRANSIENT),
    ],
)
def test_an_error_has_one_fault(error, fault):
    """Errors are told apart by type; in a group our own fault outweighs what passes, and that outweighs the input's."""
    assert classify(error) is fault


@given(st.integers(1, 10_000), st.floats(0.001, 10), st.floats(0.001, 100), st.integers())
def test_pauses_grow_and_are_bounded(attempt, first, most, seed):
    """A pause lies between half and all of the doubled first one, and never above the longest."""
    seconds = pause(attempt, first, most, random.Random(seed))
    full = min(most, first * 2.0 ** min(attempt - 1, 30))
    assert full / 2 <= seconds <= full <= most


def test_failures_in_a_row_open_the_breaker():
    """A handler that takes nothing at all is broken, however few records come."""
    breaker = Breaker(Limit(max_consecutive=5, min_failures=100))
    assert [breaker.failed("f") for _ in range(5)] == [False] * 4 + [True]
    assert breaker.open


def test_a_high_share_of_failures_opens_the_breaker():
    """More than half of the records fail: stop before the topic is drained into its dead letters."""
    breaker = Breaker(LIMIT)
    for _ in range(9):
        breaker.succeeded("f")
        assert not breaker.failed("f")
    assert breaker.failed("f")


def test_few_failures_among_many_successes_do_not():
    """A poison record now and then is a dead letter, not a halt."""
    breaker = Breaker(LIMIT)
    for _ in range(1000):
        breaker.succeeded("f", 10)
        assert not breaker.failed("f")


def test_one_tenant_cannot_stop_the_others():
    """A fleet has one vote, however much it sends: a thousand failures of one beside two that succeed are no halt."""
    breaker = Breaker(LIMIT)
    breaker.succeeded("good", 20)
    breaker.succeeded("fine", 20)
    assert not any(breaker.failed("hostile") for _ in range(1000))


def test_the_only_tenant_can():
    """Where one fleet is all there is, its failures are all we know."""
    breaker = Breaker(LIMIT)
    assert any(breaker.failed("only") for _ in range(20))


def test_a_success_closes_the_breaker_and_forgets():
    """What was counted belongs to the code that was broken then."""
    breaker = Breaker(LIMIT)
    while not breaker.failed("f"):
        pass
    breaker.succeeded("f")
    assert not breaker.open
    assert breaker.failures == 0
    assert not breaker.failed("f")


@given(st.lists(st.tuples(st.integers(0, 100), st.booleans()), max_size=400))
def test_the_breaker_s_memory_is_bounded(events):
    """Fleets and marks are limited, and the ratio is a share."""
    breaker = Breaker(LIMIT)
    for fleet, ok in events:
        breaker.succeeded(str(fleet)) if ok else breaker.failed(str(fleet))
        assert 0 <= breaker.ratio <= 1
        assert len(breaker._seen) <= LIMIT.fleets
        assert all(len(marks) <= LIMIT.window for marks in breaker._seen.values())
        assert len(breaker._streak_fleets) <= LIMIT.fleets
