"""Tenants on one bus: what an event of another fleet comes to. Where the broker itself draws the line stands in `test_tls`."""

import uuid
from datetime import UTC, datetime

import pytest

from tests.unit.client.answers import candidate
from winnow.contracts.envelope import headers_for
from winnow.contracts.events import ClaimCheck, RuntimeEvent
from winnow.contracts.topics import CANDIDATE, RUNTIME
from winnow.contracts.vocabulary import Reason, RuntimeEventKind
from winnow.messaging.deadletters import letter_of
from winnow.messaging.intake import open_record, validate
from winnow.messaging.records import Dead, Record

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def _taken(topic, event, *, key: str, subject: str | None = None, body: bytes | None = None):
    """What intake makes of `event` under a key and a subject header that its producer chose."""
    said = headers_for(topic, event_id=str(uuid.uuid4()), source="somebody", subject=subject or key, time=NOW)
    value = event.model_dump_json().encode() if body is None else body
    record = Record(topic=topic.name, partition=0, offset=1, key=key.encode(), headers=tuple(said), value=value, timestamp=0)
    opened = open_record(topic, record)
    return opened if isinstance(opened, Dead) else validate(topic.event, opened, value)


@pytest.mark.parametrize(
    ("topic", "event"),
    [
        (CANDIDATE, candidate("- a", fleet="victim", run="r")),
        (RUNTIME, RuntimeEvent(fleet="victim", event_id=uuid.uuid4(), run="r", kind=RuntimeEventKind.RUN_ENDED, at=NOW)),
    ],
)
def test_an_event_under_another_fleets_key_is_refused(topic, event):
    """Key and body must name one fleet and run: else the order of one tenant's run would rest on another. The letter goes to the key's."""
    assert not isinstance(_taken(topic, event, key="victim/r"), Dead)
    for key in ("attacker/r", "victim/other", "victim", "", "victim/r/", "Victim/r", "victim/r\x00"):
        refused = _taken(topic, event, key=key)
        assert isinstance(refused, Dead), key
        assert refused.reason == Reason.KEY_MISMATCH
    letter = letter_of(_taken(topic, event, key="attacker/r"), service="x", attempts=1, at=NOW)
    assert letter.fleet == "attacker"


def test_the_subject_header_decides_nothing():
    """Headers are a producer's word: a subject that names another fleet changes nothing, the body and its key count."""
    taken = _taken(CANDIDATE, candidate("- a", fleet="acme", run="r"), key="acme/r", subject="victim/r")
    assert taken.fleet == "acme"


def test_a_claim_check_of_another_fleet_is_refused():
    """A candidate that claims the originals of another fleet is no valid event, so nothing is looked up."""
    claim = ClaimCheck(fleet="victim", handle="h" * 43, sha256="0" * 64, size=10)
    event = candidate("- a", fleet="attacker", run="r")
    body = event.model_copy(update={"history": (), "retained": (), "messages": claim}).model_dump_json().encode()
    refused = _taken(CANDIDATE, event, key="attacker/r", body=body)
    assert isinstance(refused, Dead)
    assert "another fleet" in refused.error
