"""Tenants on one bus: what an event of another fleet comes to, and where the broker itself draws the line."""

import uuid
from datetime import UTC, datetime

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import TopicAuthorizationFailedError
from aiokafka.protocol.admin import CreateAclsRequest
from aiokafka.structs import TopicPartition

from tests.unit.client.answers import candidate
from winnow.contracts.envelope import headers_for
from winnow.contracts.events import ClaimCheck, RuntimeEvent
from winnow.contracts.topics import CANDIDATE, RUNTIME
from winnow.contracts.vocabulary import Reason, RuntimeEventKind
from winnow.messaging.deadletters import letter_of
from winnow.messaging.intake import open_record, validate
from winnow.messaging.records import Dead, Record

NOW = datetime(2026, 11, 30, tzinfo=UTC)

#: Kafka's numbers: a topic, names that begin so, every operation, allowed.
TOPIC, PREFIXED, ALL, ALLOW = 2, 4, 2, 3


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
    assert taken.event.fleet == "acme"


def test_a_claim_check_of_another_fleet_is_refused():
    """A candidate that claims the originals of another fleet is no valid event, so nothing is looked up."""
    claim = ClaimCheck(fleet="victim", handle="h" * 43, sha256="0" * 64, size=10)
    event = candidate("- a", fleet="attacker", run="r")
    body = event.model_copy(update={"history": (), "retained": (), "messages": claim}).model_dump_json().encode()
    refused = _taken(CANDIDATE, event, key="attacker/r", body=body)
    assert isinstance(refused, Dead)
    assert "another fleet" in refused.error


async def test_the_broker_keeps_tenants_apart_by_prefix(secured_kafka):
    """With a prefix and a rule for each tenant, another's principal neither reads nor writes: the line that Winnow itself does not draw."""
    admin = AIOKafkaAdminClient(bootstrap_servers=secured_kafka.broker.bootstrap)
    await admin.start()
    name = "rival." + CANDIDATE.name
    try:
        await admin.create_topics([NewTopic(name, 1, 1)])
        answer = await admin._send_request(CreateAclsRequest(TOPIC, "rival.", PREFIXED, "User:bob", "*", ALL, ALLOW))
        assert [code for code, *_ in answer.creation_responses] == [0]
    finally:
        await admin.close()
    options = secured_kafka.settings("SASL_SSL").client_options()
    async with AIOKafkaProducer(**options) as producer:
        with pytest.raises(TopicAuthorizationFailedError):
            await producer.send_and_wait(name, b"forged", key=b"rival/r")
    consumer = AIOKafkaConsumer(**options)
    await consumer.start()
    try:
        consumer.assign([TopicPartition(name, 0)])
        with pytest.raises(TopicAuthorizationFailedError):
            await consumer.getone()
    finally:
        await consumer.stop()
