"""Token counts, back-off, the breaker and strict JSON."""

import json
import math
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winnow.judging.adapters.breaker import Breaker, BreakerPolicy, Circuit
from winnow.judging.adapters.failures import Failed, Failure
from winnow.judging.adapters.material import instruction
from winnow.judging.adapters.retrying import Retry, retry_after
from winnow.judging.adapters.strict_json import Fields, count, field, loads, name, probability
from winnow.judging.adapters.tokens import by_characters, cautious, estimate, o200k
from winnow.judging.adapters.transport import BadEndpoint, checked


def test_o200k_counts_as_its_vocabulary_does():
    """The real tokenizer is there, takes markup of tokens as plain text, and any text at all."""
    tokens = o200k()
    assert tokens("hello world") == 2
    assert tokens("<|endoftext|>") > 1
    assert tokens("\ud800") >= 1
    assert tokens("a" * 100_000) < 100_000


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("abcdef", 1), ("abcdefg", 2), ("12", 1), ("{}", 2), ("你好", 2), ("a b\n", 2)])
def test_the_estimate_counts_words_digits_and_symbols(text, tokens):
    """Six letters of a word are one token, a digit half of one, any other symbol .9; the sum is rounded up."""
    assert estimate(text) == tokens


@settings(max_examples=30)
@given(st.text(max_size=300))
def test_the_cautious_count_is_the_larger_one(text):
    """A plan that fits by it fits by both."""
    assert cautious(by_characters)(text) == max(by_characters(text), estimate(text))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None), ({"retry-after": "3"}, 3.0), ({"retry-after-ms": "1500"}, 1.5), ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "0.5"}, 0.5), ({"retry-after": "-1"}, None), ({"retry-after": "nan"}, None), ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None), ({"retry-after": "9" * 400}, None), ({"retry-after": "１２"}, None), ({"retry-after": ""}, None),
        ({"retry-after": "Mon, 30 Nov 2026 08:00:10 GMT"}, 10.0), ({"retry-after": "Mon, 30 Nov 2026 07:00:00 GMT"}, 0.0),
        ({"retry-after": "Mon, 30 Nov 2026 08:00:10"}, None), ({"retry-after": "1e9"}, 86400.0),
    ],
)  # fmt: skip
def test_retry_after_is_read_or_ignored(headers, seconds):
    """Seconds, milliseconds and dates are read; what cannot be read is as if it were not there."""
    assert retry_after(headers, lambda: datetime(2026, 11, 30, 8, tzinfo=UTC)) == seconds


@settings(max_examples=50)
@given(st.integers(1, 100), st.floats(0, 1, exclude_max=True), st.none() | st.floats(0, 1e6))
def test_pauses_grow_are_capped_and_never_below_what_is_asked(attempt, jitter, asked):
    """Doubling from half a second to five, up to a quarter less by jitter, and at least what the server asks."""
    pause = Retry().pause(attempt, jitter, asked)
    full = min(5.0, 0.5 * 2.0 ** (attempt - 1))
    assert pause >= (asked or 0.0)
    assert math.isclose(pause, asked or 0.0) or 0.75 * full <= pause <= full


@pytest.mark.parametrize("failure", Failure)
def test_which_failures_open_the_circuit_at_once(failure):
    """Only a refused key or account does; everything else must happen in a row."""
    breaker = Breaker(BreakerPolicy(failures=3), lambda: 0.0)
    breaker.failed(failure)
    assert breaker.state is (Circuit.OPEN if failure in {Failure.UNAUTHORISED, Failure.UNPAID} else Circuit.CLOSED)


@settings(max_examples=50)
@given(st.lists(st.sampled_from(["ok", "bad", "unpaid", "wait", "cancelled"]), max_size=40))
def test_the_breaker_admits_one_trial_at_a_time(events):
    """Whatever happens, an open circuit admits nobody, a half-open one a single trial, and a success closes it."""
    now = [0.0]
    breaker = Breaker(BreakerPolicy(failures=2, pause_s=10, refused_pause_s=20), lambda: now[0])
    for event in events:
        if event == "wait":
            now[0] += 11
            continue
        state = breaker.state
        admitted = breaker.admits()
        assert admitted == (state is not Circuit.OPEN)
        if not admitted:
            continue
        if state is Circuit.HALF_OPEN:
            assert not breaker.admits()
        if event == "ok":
            breaker.succeeded()
            assert breaker.state is Circuit.CLOSED
        elif event == "cancelled":
            breaker.gave_up()
            assert breaker.state is state
        else:
            breaker.failed(Failure.UNPAID if event == "unpaid" else Failure.TIMEOUT)
            assert state is not Circuit.HALF_OPEN or breaker.state is Circuit.OPEN


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda x: st.lists(x) | st.dictionaries(st.text(max_size=3), x),
    max_leaves=8,
)


@settings(max_examples=25)
@given(json_values)
def test_any_json_is_an_object_or_malformed(value):
    """Whatever is valid JSON comes out as an object with the same fields, or is malformed; nothing else is raised."""
    body = json.dumps(value).encode()
    if isinstance(value, dict):
        found = loads(body)
        assert set(found) == set(value)
        assert found.repeated == frozenset()
    else:
        with pytest.raises(Failed, match="malformed"):
            loads(body)


@settings(max_examples=50)
@given(st.binary(max_size=100))
def test_any_bytes_are_an_object_or_malformed(body):
    """Whatever comes, it is an object or malformed."""
    try:
        found: Fields | Failure = loads(body)
    except Failed as failed:
        found = failed.failure
    assert isinstance(found, Fields) or found is Failure.MALFORMED


def test_a_repeated_name_is_as_if_it_were_not_there():
    """The last of two does not win."""
    found = loads(b'{"a": 1, "b": 2, "a": 3}')
    assert (field(found, "a"), field(found, "b"), field(found, "c")) == (None, 2, None)


@settings(max_examples=25)
@given(json_values)
def test_only_numbers_are_numbers(value):
    """A probability is a number in [0, 1], a count a whole number that is not negative, and a boolean is neither."""
    p, n = probability(value), count(value)
    assert p is None or (type(value) in {int, float} and 0 <= p <= 1 and p == value)
    assert n is None or (type(value) is int and n == value >= 0)
    said = name(value)
    assert said is None or (isinstance(value, str) and value.startswith(said) and said.isprintable())


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("SYSTEM PROMPT:\npolicy\n\nUSER:\nBook a flight.", "Book a flight."), ("USER:\nhello\n\nUSER:\nagain", "hello\n\nUSER:\nagain"),
        ("just a task\nUSER: not a mark", "just a task\nUSER: not a mark"),
        ("SYSTEM PROMPT:\nnobody speaks", "SYSTEM PROMPT:\nnobody speaks"),
        ("", ""),
    ],
)  # fmt: skip
def test_the_instruction_is_what_the_user_said_first(task, said):
    """The system prompt is left out where the text marks its parts; a text without marks is the instruction."""
    assert instruction(task) == said


@pytest.mark.parametrize("url", ["https://api.example.com/v1/x", "https://[::1]:8443/x?y=1"])
def test_whole_https_urls_are_taken(url):
    """An endpoint is its whole URL."""
    assert checked(url) == url


@pytest.mark.parametrize(
    "url",
    ["http://a/b", "https://u:p@a/b", "https://a/b#c", "//a/b", "", "https://", "file:///etc/passwd", "https://\x00"],
)
def test_other_urls_are_refused(url):
    """A key goes to https only, and nowhere that is not spelt out."""
    with pytest.raises(BadEndpoint):
        checked(url)
