"""From a record to a valid event, or to a dead letter with a reason."""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.messaging.support import NOW, candidate, record
from winnow.contracts.envelope import headers_for
from winnow.contracts.errors import SchemaTooNew
from winnow.contracts.events import Candidate, ClaimCheck, sha256
from winnow.contracts.limits import ORIGINAL_BYTES
from winnow.contracts.topics import CANDIDATE
from winnow.messaging.fakes import MemoryClaims
from winnow.messaging.intake import Opened, open_record, resolve, validate
from winnow.messaging.records import Dead

HANDLE = "h" * 32


def admit(one, claims=None):
    """Through all steps."""
    opened = open_record(CANDIDATE, one)
    if isinstance(opened, Dead):
        return opened
    bodies = asyncio.run(resolve([opened], claims))
    body = bodies.get(one.position, one.value)
    return body if isinstance(body, Dead) else validate(Candidate, opened, body)


def claimed(event, *, fleet="f", size=None, digest=None, handle=HANDLE):
    body = event.model_dump_json().encode()
    claim = ClaimCheck(fleet=fleet, handle=handle, sha256=digest or sha256(body), size=len(body) if size is None else size)
    headers = headers_for(CANDIDATE, event_id="1", source="t", subject=event.key, time=NOW, claim=True)
    claims = MemoryClaims()
    claims.originals["f", HANDLE] = body
    return replace(record(value=claim.model_dump_json().encode(), key=event.key.encode(), headers=headers)), claims


def test_a_good_record_is_valid():
    """Headers, body and key agree: the event is the one that was sent."""
    event = candidate()
    valid = admit(record(event))
    assert valid == event


def test_a_plain_producer_may_send_the_body_alone():
    """Without CloudEvents headers the topic says what it is."""
    assert isinstance(admit(record(candidate(), headers=())), Candidate)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"value": None}, "tombstone"),
        ({"value": b""}, "tombstone"),
        ({"value": b"{bad"}, "invalid"),
        ({"value": b"\xff\xfe"}, "invalid"),
        ({"value": b"[" * 100_000}, "invalid"),
        ({"value": b"null"}, "invalid"),
        ({"value": b'"a"'}, "invalid"),
        ({"value": b"{}"}, "invalid"),
        ({"value": b'{"fleet": "f", "run": "r", "index": 1, "candidate": "\\ud800"}'}, "invalid"),
        ({"value": b"9" * 1_000_000}, "invalid"),
        ({"key": None}, "key_mismatch"),
        ({"key": b"f/other"}, "key_mismatch"),
        ({"key": b"other/r"}, "key_mismatch"),
        ({"key": b"\xff"}, "key_mismatch"),
        ({"headers": (("ce_type", b"\xff"),)}, "bad_headers"),
        ({"headers": (("ce_type", b"winnow.alert.v1"),)}, "bad_headers"),
        ({"headers": (("ce_type", b"x" * 1_000_000),)}, "bad_headers"),
    ],
)
def test_what_is_wrong_has_a_reason(changes, reason):
    """Every kind of bad input is one dead letter with its own reason code, whose text quotes nothing."""
    dead = admit(replace(record(candidate(text="the secret plan")), **changes))
    assert isinstance(dead, Dead)
    assert dead.reason == reason
    assert "secret" not in dead.error
    assert len(dead.error) < 600


def test_foreign_headers_may_hold_any_bytes():
    """Binary headers of others are no reason to refuse an event."""
    headers = (("x", b"\xff\x00"), ("traceparent", b"\xff"), ("x", b"2"))
    assert isinstance(admit(record(candidate(), headers=headers)), Candidate)


def test_a_newer_major_version_is_never_a_dead_letter():
    """It is told to the consumer, which waits."""
    with pytest.raises(SchemaTooNew):
        open_record(CANDIDATE, record(candidate(), headers=(("ce_type", b"winnow.boundary.candidate.v2"),)))


def test_unknown_fields_are_ignored():
    """Within a major version events only grow."""
    body = candidate().model_dump_json()[:-1].encode() + b',"of_tomorrow": [1, 2]}'
    assert isinstance(admit(replace(record(candidate()), value=body)), Candidate)


def test_a_claim_check_is_replaced_by_what_it_stands_for():
    """Hash, size and fleet agree: the event is the stored one."""
    event = candidate()
    one, claims = claimed(event)
    assert admit(one, claims) == event


def test_a_claim_that_points_at_nothing_is_lost():
    """Expired, erased or never stored: claim_lost."""
    one, _ = claimed(candidate())
    assert admit(one, MemoryClaims()).reason == "claim_lost"
    assert admit(one, None).reason == "claim_lost"


def test_a_claim_with_another_hash_or_size_is_refused():
    """The stored bytes must be the promised ones."""
    for one, claims in (claimed(candidate(), digest="0" * 64), claimed(candidate(), size=3)):
        assert admit(one, claims).reason == "hash_mismatch"


def test_a_claim_of_another_fleet_is_refused():
    """A handle of a fleet's own storage cannot smuggle in another fleet's event."""
    other = candidate(fleet="other")
    one, claims = claimed(other, fleet="f")
    assert admit(one, claims).reason == "claim_lost"


def test_a_claim_above_the_limit_is_not_fetched():
    """Nobody makes us load a terabyte."""
    one, _ = claimed(candidate(), size=ORIGINAL_BYTES + 1)
    assert open_record(CANDIDATE, one).reason == "too_large"


def test_a_claim_check_that_is_no_claim_check_is_invalid():
    """The header promises what the body does not hold."""
    headers = headers_for(CANDIDATE, event_id="1", source="t", subject="f/r", time=NOW, claim=True)
    for value in (None, b"", b"{}", b"\xff"):
        assert open_record(CANDIDATE, record(value=value, key=b"f/r", headers=headers)).reason in {"tombstone", "invalid"}


@given(st.binary(max_size=300), st.lists(st.tuples(st.sampled_from(["ce_type", "ce_id", "x", "winnow_claim"]), st.binary(max_size=30))))
def test_no_bytes_at_all_raise_anything_else(value, headers):
    """Any body with any headers is an event, a dead letter, or of a newer version."""
    try:
        result = admit(record(value=value, key=b"f/r", headers=headers), MemoryClaims())
    except SchemaTooNew:
        return
    assert isinstance(result, Dead | Candidate | Opened)
