"""What services must be allowed on the broker, and how a refusal is told."""

import re

import pytest
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    IncompatibleBrokerVersion,
    NotLeaderForPartitionError,
    TopicAuthorizationFailedError,
)
from hypothesis import given
from hypothesis import strategies as st

from tests.harness import REPOSITORY
from winnow.contracts.rights import NotAllowed, Operation, Resource, Right
from winnow.contracts.topics import TOPICS
from winnow.messaging import rights
from winnow.messaging.faults import Fault, classify
from winnow.messaging.settings import KafkaSettings

SETTINGS = KafkaSettings(topic_prefix="shop.")
SIGNED_IN = KafkaSettings(kafka_security_protocol="SASL_PLAINTEXT", kafka_sasl_username="alice", kafka_sasl_password="secret-of-alice")


def of(service: str) -> set[tuple[str, str, str]]:
    """Operation, resource and name without prefix of what a service needs beyond describing the topics."""
    found = rights.needs([service], SETTINGS)
    assert all(right.name.startswith("shop.winnow.") for right in found)
    shown = {
        (right.operation.value, right.resource.value, re.sub(r"^shop\.winnow\.|(^boundary\.)|\.v1$", "", right.name)) for right in found
    }
    return {one for one in shown if one[:2] != ("Describe", "topic")}


def test_a_service_needs_what_the_page_on_security_says():
    """The table of docs/security.md is what the code asks the broker for."""
    page = (REPOSITORY / "docs" / "security.md").read_text()
    rows = dict(re.findall(r"^\| (retriever|judge|pruner|drift_monitor|gateway) \| .*? \| (.*?) \|$", page, re.MULTILINE))
    for service in rights.SERVICES:
        written = {name.removeprefix("boundary.") for operation, kind, name in of(service) if (operation, kind) == ("Write", "topic")}
        assert written == set(re.findall(r"[a-z-]+", re.sub(r"\(.*?\)", "", rows[service]))), service


def test_everybody_may_describe_all_topics_and_reads_its_own_with_its_group():
    """All topics are compared with the registry at a start; a reader needs topic and group; the gateway looks at groups."""
    for service in rights.SERVICES:
        described = {right.name for right in rights.needs([service], SETTINGS) if right.operation is Operation.DESCRIBE}
        assert {SETTINGS.topic_name(topic.name) for topic in TOPICS} <= described
    assert {("Read", "topic", "boundary.evidence"), ("Read", "group", "judge.boundary.evidence")} <= of("judge")
    assert ("Describe", "group", "pruner.boundary.scores") in of("gateway")
    assert not {one for one in of("gateway") if one[0] == "Read"}


def test_no_right_is_named_twice():
    """All services together need each right once."""
    found = rights.needs(rights.SERVICES, SETTINGS)
    assert len(found) == len(set(found))


@pytest.mark.parametrize(
    ("error", "writing", "resource", "operation", "name"),
    [
        (TopicAuthorizationFailedError("a"), False, Resource.TOPIC, Operation.READ, "a"),
        (TopicAuthorizationFailedError("a"), True, Resource.TOPIC, Operation.WRITE, "a"),
        (TopicAuthorizationFailedError({"a"}), False, Resource.TOPIC, Operation.READ, "a"),
        (TopicAuthorizationFailedError(), False, Resource.TOPIC, Operation.READ, "?"),
        (GroupAuthorizationFailedError("g"), False, Resource.GROUP, Operation.READ, "g"),
    ],
)
def test_a_refusal_of_the_client_is_told_as_what_to_grant(error, writing, resource, operation, name):
    """The user, what is missing, the command that grants it, and where to read on; no password."""
    found = rights.refused(error, SIGNED_IN, writing=writing)
    assert found.missing == (Right(resource=resource, name=name, operation=operation),)
    assert str(found).startswith(f"the broker does not let the user 'alice' {operation.lower()} the {resource} {name}; grant it")
    assert f"--allow-principal User:alice --operation {operation} --{resource} {name}" in str(found)
    assert "secret-of-alice" not in str(found)
    assert rights.refused(found, SIGNED_IN) is found


@pytest.mark.parametrize("error", [NotLeaderForPartitionError(), ConnectionError(), TimeoutError(), ValueError("x")])
def test_other_errors_are_no_refusals(error):
    """What passes by itself is not taken for a rule."""
    assert rights.refused(error, SETTINGS) is None


def test_what_is_not_allowed_may_be_granted_at_any_moment():
    """It is never a record's fault: nothing becomes a dead letter for a rule of the broker."""
    refusal = NotAllowed([Right(resource=Resource.TOPIC, name="a", operation=Operation.WRITE)], None)
    assert classify(refusal) is Fault.TRANSIENT
    assert "this client write the topic a" in str(refusal)


class Answers:
    """An admin client whose broker says this."""

    def __init__(self, *, topics=None, groups=None, error=None):
        self.topics, self.groups, self.error = topics or {}, groups or {}, error

    async def _send_request(self, question, node=None):
        if self.error is not None:
            raise self.error
        asked, topics = question._names, type(question).__name__ == "AskTopics"
        said = {
            "topics": [{"topic": n, "error_code": self.topics[n][0], "authorized_operations": self.topics[n][1]} for n in asked if topics],
            "groups": [
                {"group": n, "error_code": self.groups[n][0], "authorized_operations": self.groups[n][1]} for n in asked if not topics
            ],
        }
        return type("Answer", (), {"to_object": lambda _: said})()

    async def find_coordinator(self, group):
        if self.groups.get(group) is None:
            raise GroupAuthorizationFailedError(f"Unable to get coordinator id for {group}")
        return 0


def right(operation: Operation, name: str, resource: Resource = Resource.TOPIC) -> Right:
    return Right(resource=resource, name=name, operation=operation)


@given(st.integers(0, 2**13 - 1))
async def test_the_bits_of_the_answer_are_the_operations(bits):
    """Whatever subset a broker grants, exactly the others are missing; one that may read or write is not asked to describe."""
    wanted = [right(operation, "t") for operation in Operation]
    lacking = await rights.missing(Answers(topics={"t": (0, bits)}), wanted)
    granted = {operation for operation in Operation if bits >> rights.BITS[operation] & 1}
    refused = set(Operation) - granted
    assert {one.operation for one in lacking} == (refused - {Operation.DESCRIBE} or refused)


async def test_a_broker_that_does_not_tell_is_believed():
    """An old broker, the embedded one, and one that has no coordinator to ask: nothing is made up."""
    wanted = [right(Operation.READ, "t"), right(Operation.READ, "g", Resource.GROUP)]
    assert await rights.missing(Answers(topics={"t": (0, rights.UNTOLD)}, groups={"g": (0, rights.UNTOLD)}), wanted) == []
    assert await rights.missing(Answers(topics={"t": (0, -1)}, groups={"g": (0, -1)}), wanted) == []
    for error in (IncompatibleBrokerVersion(), NotImplementedError()):
        assert await rights.missing(Answers(groups={"g": (0, 0)}, error=error), wanted) == []


async def test_what_is_hidden_altogether_is_missing():
    """A topic that must not be seen and a group whose coordinator is not told are refused in all they are needed for."""
    wanted = [right(Operation.WRITE, "t"), right(Operation.READ, "g", Resource.GROUP), right(Operation.READ, "h", Resource.GROUP)]
    answers = Answers(topics={"t": (29, rights.UNTOLD)}, groups={"g": (30, rights.UNTOLD), "h": None})
    assert await rights.missing(answers, wanted) == wanted
