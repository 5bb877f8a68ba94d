"""Headers and bodies of records: what is read, what is refused and with which reason code."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from winnow.contracts import envelope, events, limits, topics
from winnow.contracts.errors import Permanent, Retryable, SchemaTooNew, TooLarge
from winnow.contracts.vocabulary import Reason

AT = datetime(2026, 11, 30, 12, tzinfo=UTC)


def candidate(**fields: object) -> bytes:
    return json.dumps({"fleet": "default", "run": "r", "index": 1, "candidate": "- one\n"} | fields).encode()


def reason(body: bytes | None, model: type[events.Event] = events.Candidate) -> str:
    with pytest.raises(envelope.Invalid) as caught:
        envelope.decode(model, body)
    return caught.value.reason


@pytest.mark.parametrize("topic", [t for t in topics.TOPICS if t.event], ids=lambda t: t.name)
@pytest.mark.parametrize("claim", [False, True])
def test_written_headers_are_read_back_and_belong_to_their_topic(topic, claim):
    """What Winnow writes into headers it reads out again, and the type check passes."""
    headers = envelope.headers_for(topic, event_id="e-1", source="retriever", subject="default/r", time=AT, claim=claim)
    read = envelope.read_headers(headers)
    assert read == envelope.Envelope(type=topic.name, id="e-1", source="retriever", time=AT.isoformat(), claim=claim)
    envelope.check_type(topic, read)
    assert all(isinstance(value, bytes) for _, value in headers)


def test_a_record_without_headers_is_welcome():
    """A plain producer may send the body alone."""
    read = envelope.read_headers([])
    envelope.check_type(topics.CANDIDATE, read)
    assert read == envelope.Envelope()


def test_foreign_binary_headers_are_tolerated():
    """A header that is not ours may hold any bytes, or none."""
    read = envelope.read_headers([("x-b3", b"\xff\xfe\x00"), ("datadog", None), ("ce_id", b"1")])
    assert read.id == "1"


def test_a_broken_trace_never_costs_an_event():
    """A traceparent of any bytes is dropped, and the event goes on."""
    assert envelope.read_headers([("traceparent", b"\xff\x00"), ("ce_id", b"1")]) == envelope.Envelope(id="1")


def test_one_of_our_headers_that_is_not_utf8_is_refused_with_its_own_reason():
    """A CloudEvents header of broken bytes is `bad_headers`, for good."""
    with pytest.raises(envelope.Invalid) as caught:
        envelope.read_headers([("ce_type", b"\xc3\x28")])
    assert caught.value.reason == Reason.BAD_HEADERS
    assert isinstance(caught.value, Permanent)


def test_a_header_that_is_there_but_empty_reads_as_empty():
    """A header without a value is an empty text, which is no type of any topic."""
    with pytest.raises(envelope.Invalid):
        envelope.check_type(topics.CANDIDATE, envelope.read_headers([("ce_type", None)]))


def test_the_first_of_repeated_headers_counts():
    """A second header of the same name, which a proxy may have added, changes nothing."""
    assert envelope.read_headers([("ce_id", b"1"), ("ce_id", b"2")]).id == "1"


def test_a_newer_major_version_pauses_and_is_never_a_dead_letter():
    """`.v2` on a `.v1` topic is retryable: it waits for a service that reads it."""
    with pytest.raises(SchemaTooNew) as caught:
        envelope.check_type(topics.SCORES, envelope.Envelope(type="winnow.boundary.scores.v2"))
    assert isinstance(caught.value, Retryable)
    assert not isinstance(caught.value, Permanent)


@pytest.mark.parametrize(
    "said",
    [
        "winnow.boundary.evidence.v1",  # another topic's event
        "winnow.boundary.scores.v0",  # older than v1: there was none
        "winnow.boundary.scores",
        "winnow.boundary.scores.v",
        "winnow.boundary.scores.v1\n",
        "winnow.boundary.scores.v1.v1",
        "winnow.boundary.scores.v99999",  # no version, five digits
        "WINNOW.BOUNDARY.SCORES.V1",
        "com.example.order.created",
        "a" * 1_000_000,
        "",
        "\x00",
    ],
)
def test_another_type_is_refused(said):
    """A type that is not the topic's own is `bad_headers`, and the message quotes no more than a hundred characters of it."""
    with pytest.raises(envelope.Invalid) as caught:
        envelope.check_type(topics.SCORES, envelope.Envelope(type=said))
    assert caught.value.reason == Reason.BAD_HEADERS
    assert len(str(caught.value)) < 300


@given(st.lists(st.tuples(st.text(max_size=20), st.none() | st.binary(max_size=40)), max_size=8))
@example([("ce_type", b"winnow.boundary.scores.v2")])
@example([("ce_time", b"\xff")])
def test_any_headers_are_read_or_refused_clearly(headers):
    """Whatever the headers hold, reading them gives an envelope, a pause, or a refusal with a reason code."""
    refused: Exception | None = None
    try:
        envelope.check_type(topics.SCORES, envelope.read_headers(headers))
    except (envelope.Invalid, SchemaTooNew) as exc:
        refused = exc
    newer = isinstance(refused, SchemaTooNew)
    assert newer <= any(value and b".v" in value for _, value in headers)
    assert refused is None or newer or refused.reason == Reason.BAD_HEADERS


@pytest.mark.parametrize("body", [None, b""])
def test_a_tombstone_has_a_reason_of_its_own(body):
    """A record without a body is `tombstone`, on every topic and for a claim check too."""
    assert reason(body) == Reason.TOMBSTONE
    assert reason(body, events.Observation) == Reason.TOMBSTONE
    with pytest.raises(envelope.Invalid) as caught:
        envelope.decode_claim(body)
    assert caught.value.reason == Reason.TOMBSTONE


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"{", Reason.INVALID),
        (b"\xff\xfe{}", Reason.INVALID),
        (b"null", Reason.INVALID),
        (b"[1]", Reason.INVALID),
        (b'"candidate"', Reason.INVALID),
        (b"NaN", Reason.INVALID),
        (b"[" * 100_000, Reason.INVALID),
        (b'{"a":' * 100_000, Reason.INVALID),
        (candidate(fleet="Default"), Reason.INVALID),
        (candidate(fleet="../x"), Reason.INVALID),
        (candidate(fleet="x" * 65), Reason.INVALID),
        (candidate(run=""), Reason.INVALID),
        (candidate(run="a\x00b"), Reason.INVALID),
        (candidate(run="a\x1b[31mb"), Reason.INVALID),
        (candidate(run="a\u202eb"), Reason.INVALID),
        (candidate(run="x" * 201), Reason.INVALID),
        (candidate(index=0), Reason.INVALID),
        (candidate(index="one"), Reason.INVALID),
        (candidate(candidate=None), Reason.INVALID),
        (candidate(candidate=7), Reason.INVALID),
        (candidate(mode="delete"), Reason.INVALID),
        (candidate(boundary_at="2026-11-30T12:00:00"), Reason.INVALID),  # no time zone
        (candidate(history=[{"i": -1, "kind": "user", "text": ""}]), Reason.INVALID),
        (candidate(pins=[""]), Reason.INVALID),
        (candidate(pins=["x"] * (limits.MAX_PINS + 1)), Reason.INVALID),
        (candidate(candidate_sha256="0" * 64), Reason.HASH_MISMATCH),
        (candidate(previous_summary="M", previous_sha256="0" * 64), Reason.HASH_MISMATCH),
        (candidate(candidate="x" * (limits.SUMMARY_BYTES + 1)), Reason.TOO_LARGE),
        (candidate(candidate="é" * (limits.SUMMARY_BYTES // 2 + 1)), Reason.TOO_LARGE),
        (b'{"fleet":"default","run":"r","index":1,"candidate":"\\ud800"}', Reason.INVALID),  # half a character
        (b'{"fleet":"default","run":"r","index":1,"candidate":"a","task":"\\udfff"}', Reason.INVALID),
    ],
    ids=lambda v: repr(v)[:40] if isinstance(v, bytes) else v,
)
def test_a_bad_body_is_refused_with_the_reason_that_fits(body, expected):
    """Not JSON, not the schema, a wrong hash, too large: each has its code and none raises anything else."""
    assert reason(body) == expected


def test_a_text_with_nul_is_a_text():
    """NUL is content like any other; only names refuse it."""
    decoded = envelope.decode(events.Candidate, candidate(candidate="- a\x00b\n", task="\x00"))
    assert decoded.candidate == "- a\x00b\n"


def test_the_limit_of_a_summary_is_inclusive():
    """A candidate of exactly the limit is taken."""
    envelope.decode(events.Candidate, candidate(candidate="x" * limits.SUMMARY_BYTES))


SECRET = "Xq7SECRETzz"


@pytest.mark.parametrize(
    "body",
    [
        candidate(mode=SECRET),
        candidate(fleet=SECRET),
        candidate(run=SECRET + "\x00"),
        candidate(boundary_at=SECRET),
        candidate(boundary_id=SECRET),
        candidate(candidate=[SECRET]),
        candidate(candidate_sha256=SECRET),
        candidate(history=[SECRET]),
        candidate(history=SECRET),
        b'{"' + SECRET.encode(),
        SECRET.encode(),
    ],
)
def test_the_text_of_an_error_never_quotes_the_content(body):
    """What is wrong is told by field and rule; whatever the producer wrote stays out of logs and dead-letter headers."""
    with pytest.raises(envelope.Invalid) as caught:
        envelope.decode(events.Candidate, body)
    assert SECRET not in str(caught.value)
    assert len(str(caught.value)) < 2_000


@given(
    st.binary(max_size=200)
    | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(lambda v: json.dumps(v).encode())
)
def test_any_bytes_are_an_event_or_a_reason(body):
    """Whatever bytes arrive, decoding gives an event or a refusal with a code from the list."""
    for topic in topics.TOPICS:
        if topic.event is not None:
            with pytest.raises(envelope.Invalid) as caught:
                envelope.decode(topic.event, body)
            assert caught.value.reason in set(Reason)


def test_a_body_above_its_topics_limit_asks_for_a_claim_check():
    """Encoding counts uncompressed bytes, as the broker's client does, and says what to do instead."""
    huge = events.Alert.model_validate(
        {
            "fleet": "default",
            "alert_id": "7d0b1c52-8f6e-5a9d-b1a4-2f7c6e1d9a30",
            "kind": "raised",
            "at": AT,
            "because": "x" * limits.EVENT_BODY_BYTES,
            "done": "-",
        }
    )
    with pytest.raises(TooLarge, match="claim check"):
        envelope.encode(topics.ALERT, huge)


@pytest.mark.parametrize(
    "body", [b"{}", b"x", b'{"fleet":"default","handle":"short","sha256":"' + b"0" * 64 + b'","size":1}', b'{"size":-1}']
)
def test_a_bad_claim_check_is_refused(body):
    """A claim check without its four fields is invalid."""
    with pytest.raises(envelope.Invalid):
        envelope.decode_claim(body)


def test_a_claim_check_of_another_fleet_is_refused_by_the_candidate():
    """A candidate cannot point at another fleet's original."""
    claim = {"fleet": "other", "handle": "h" * 32, "sha256": "0" * 64, "size": 1}
    with pytest.raises(envelope.Invalid, match="another fleet"):
        envelope.decode(events.Candidate, candidate(messages=claim))


def test_messages_are_inline_or_claimed_and_never_both():
    """A candidate with both is ambiguous and refused."""
    claim = {"fleet": "default", "handle": "h" * 32, "sha256": "0" * 64, "size": 1}
    with pytest.raises(envelope.Invalid, match="not both"):
        envelope.decode(events.Candidate, candidate(messages=claim, history=[{"i": 0, "kind": "user", "text": "x"}]))
