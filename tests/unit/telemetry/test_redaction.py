"""What must not leave the process in a line of text."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from winnow.contracts.errors import TooLarge
from winnow.contracts.events import Candidate, RuntimeEvent
from winnow.telemetry.redaction import (
    MASK,
    MAX_TEXT_CHARS,
    describe,
    describe_without_content,
    format_exception,
    mask,
    mask_headers,
    mask_text,
    printable,
)

SECRET = "hunter2hunter2"


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql+asyncpg://winnow:{SECRET}@db:5432/winnow",
        f"connect to amqp://u:{SECRET}@h failed",
        f"key wnw_{SECRET}",
        f"Authorization: Bearer {SECRET}",
        f"authorization: basic {SECRET}",
        f"sk-{SECRET}",
        f"host=db password={SECRET} port=1",
        f"PASSWORD = {SECRET}",
    ],
)
def test_secrets_that_can_be_told_by_their_form_are_masked(text):
    """URL passwords, API keys, bearer tokens and DSN passwords never stand in a text."""
    assert SECRET not in mask_text(text)
    assert SECRET not in str(mask("message", text))


@pytest.mark.parametrize(
    "name", ["password", "kafka_sasl_password", "api_key", "Authorization", "database_url", "token", "dsn", "client_secret"]
)
def test_fields_with_a_secret_name_are_masked_whatever_they_hold(name):
    """A secret's field shows only that there is one."""
    assert mask(name, SECRET) == MASK
    assert mask(name, 12345) == MASK
    assert mask(name, None) is None
    assert mask("settings", {name: SECRET}) == {name: MASK}
    assert mask("list", [SecretStr(SECRET)]) == [MASK]


def test_token_counts_are_not_secrets():
    """An operator needs the numbers of tokens."""
    assert mask("input_tokens", 12) == 12


def test_events_and_bytes_are_reduced_to_what_they_are():
    """Content never stands in a log line."""
    event = Candidate(fleet="f", run="r", index=1, candidate="the secret plan")
    assert mask("event", event) == "<Candidate>"
    assert mask("body", b"the secret plan") == "<15 bytes>"


def test_long_values_are_cut_and_deep_ones_flattened():
    """A megabyte in a field is a short line."""
    assert len(mask("text", "x" * 1_000_000)) < MAX_TEXT_CHARS + 50
    assert len(mask("items", list(range(10_000)))) == 50
    deep = {"a": {"b": {"c": {"d": "e" * 10_000}}}}
    assert len(str(mask("deep", deep))) < 1000


@given(st.text(alphabet=st.characters(exclude_categories=[]), max_size=300))
def test_printable_text_forges_no_line_and_no_colour(text):
    """Control characters, line ends and lone surrogates never reach a terminal or a log file."""
    safe = printable(text)
    assert safe.isprintable() or safe == ""
    safe.encode()


@given(st.text(max_size=200))
def test_masking_is_idempotent(text):
    """Masking a masked text changes nothing."""
    assert mask_text(mask_text(text)) == mask_text(text)


def seconds(text):
    """Processor time of masking `text`; the best of three, which no neighbour on the machine lengthens."""
    taken = []
    for _ in range(3):
        begun = time.process_time()
        mask_text(text)
        taken.append(time.process_time() - begun)
    return min(taken)


@pytest.mark.parametrize(("head", "unit"), [("a://", "b"), ("", "wnw_"), ("", "bearer "), ("", "password = "), ("", "sk-")])
def test_masking_takes_linear_time(head, unit):
    """Hostile texts are masked in proportion to their length: eight times as long takes nowhere near 64 times as much."""
    short, long = (seconds(head + unit * (size // len(unit))) for size in (125_000, 1_000_000))
    assert long < 25 * max(short, 0.002)


def test_a_validation_error_is_described_without_its_input():
    """Pydantic quotes the input; we do not."""
    fleet = "the secret plan"
    body = {"fleet": fleet, "run": "r"}
    with pytest.raises(ValidationError) as caught:
        RuntimeEvent.model_validate(body)
    for text in (describe(caught.value), describe_without_content(caught.value), format_exception(caught.value)):
        assert "secret plan" not in text
        assert "fleet" in text


def test_a_driver_error_is_cut_before_it_quotes_rows():
    """Statements, parameters and row details are left out."""
    error = RuntimeError(
        "duplicate key value violates unique constraint\nDETAIL:  Key (text)=(the secret plan) already exists.\n[SQL: INSERT x]"
    )
    assert describe(error) == "RuntimeError: duplicate key value violates unique constraint"


def _fail(text):
    raise KeyError(text)


def test_a_foreign_error_is_described_by_type_and_place():
    """Its message may quote content, so a dead letter names type, file and function only."""
    try:
        _fail("the secret plan")
    except KeyError as exc:
        said = describe_without_content(exc)
    assert said.startswith("KeyError at test_redaction.py:")
    assert said.endswith("in _fail")


def test_our_own_error_keeps_its_text():
    """Our texts name fields and limits and say what to do."""
    assert "claim check" in describe_without_content(TooLarge())


def test_a_traceback_shows_causes_but_no_secret():
    """The chain of causes is there, cycles end, secrets are masked."""
    try:
        try:
            _fail("inner")
        except KeyError as exc:
            msg = f"postgresql://u:{SECRET}@db"
            raise RuntimeError(msg) from exc
    except RuntimeError as exc:
        exc.__cause__.__cause__ = exc
        text = format_exception(exc)
    assert "caused by" in text
    assert "_fail" in text
    assert SECRET not in text


@pytest.mark.parametrize(
    "name", ["authorization", "Authorization", "Cookie", "x-api-key", "X-Auth-Token", "proxy-authorization", "password"]
)
def test_headers_that_hold_secrets_are_masked(name):
    """What such a header says is not kept, whatever it is; other headers keep every byte but a secret inside."""
    masked = mask_headers([(name, SECRET.encode()), ("ce_type", b"\xff\x00winnow"), ("note", f"key wnw_{SECRET}".encode())])
    assert masked == ((name, MASK.encode()), ("ce_type", b"\xff\x00winnow"), ("note", b"key wnw_***"))


@given(st.lists(st.tuples(st.sampled_from(["ce_id", "traceparent", "x"]), st.binary(max_size=50))))
def test_headers_without_secrets_stay_as_they_are(headers):
    """Random bytes are no secret: they come through unchanged."""
    assert mask_headers(headers) == tuple(headers)
