"""Whether the broker lets this process do what it must: asked before anything waits for it.

A client that may not even describe a topic is never told where it is led from, and waits for ever: `position`, `getone` and a seek have no
time-out, and `getmany` returns nothing, again and again. So the broker is asked outright. It tells the operations that are allowed on a
topic or a group since Kafka 2.3 (`questions`).
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    IncompatibleBrokerVersion,
    KafkaError,
    TopicAuthorizationFailedError,
    for_code,
)
from aiokafka.protocol.api import Request

from winnow.contracts.rights import NotAllowed, Operation, Resource, Right
from winnow.contracts.topics import ALERT, CANDIDATE, DEAD_LETTER, EVIDENCE, OBSERVATION, RUNTIME, SCORES, TOPICS, Topic
from winnow.messaging.lag import CONSUMPTIONS
from winnow.messaging.questions import AskGroups, AskTopics
from winnow.messaging.settings import KafkaSettings

#: Seconds that a fresh broker may take until it knows who coordinates a group, and between two questions.
COORDINATOR_S, PAUSE_S = 10.0, 0.3
#: Kafka's numbers of the operations: bits of the answer.
BITS: Mapping[Operation, int] = {Operation.READ: 3, Operation.WRITE: 4, Operation.DESCRIBE: 8}
#: The answer of a broker that does not tell.
UNTOLD = -(2**31)
#: Every service that talks to the broker.
SERVICES = ("gateway", "retriever", "judge", "pruner", "drift_monitor")
#: What the outbox holds.
RELAYED = (CANDIDATE, RUNTIME, OBSERVATION, ALERT)
#: What services publish that others made: the outbox's rows, and stuck boundaries by the retriever's sweeper.
ALSO_WRITTEN: Mapping[str, tuple[Topic, ...]] = {"gateway": RELAYED, "drift_monitor": RELAYED, "retriever": (EVIDENCE, SCORES)}


def needs(services: Iterable[str], settings: KafkaSettings, topics: Sequence[Topic] = TOPICS) -> list[Right]:
    """What these services must be allowed, each once: to see all topics, and to read and write those that are theirs."""
    found: dict[Right, None] = {}

    def need(resource: Resource, name: str, operation: Operation) -> None:
        found[Right(resource=resource, name=name, operation=operation)] = None

    for topic in topics:
        need(Resource.TOPIC, settings.topic_name(topic.name), Operation.DESCRIBE)
    for service in services:
        consumed = [topic for reader, topic in CONSUMPTIONS if reader == service]
        for topic in consumed:
            need(Resource.TOPIC, settings.topic_name(topic.name), Operation.READ)
            need(Resource.GROUP, settings.group(service, topic.name), Operation.READ)
        # An alert leaves by the outbox, whoever made it.
        written = [t for t in topics if (service in t.produced_by and t is not ALERT) or (t is DEAD_LETTER and consumed)]
        for topic in dict.fromkeys((*written, *ALSO_WRITTEN.get(service, ()))):
            need(Resource.TOPIC, settings.topic_name(topic.name), Operation.WRITE)
        if service == "gateway":  # it answers 429 where the stages are too far behind
            for reader, topic in CONSUMPTIONS:
                need(Resource.GROUP, settings.group(reader, topic.name), Operation.DESCRIBE)
    return list(found)


async def missing(admin: AIOKafkaAdminClient, rights: Sequence[Right]) -> list[Right]:
    """Which of `rights` the broker does not grant to this client. What a broker does not tell counts as granted. Raise `KafkaError`."""
    allowed = await _of_topics(admin, [right.name for right in rights if right.resource is Resource.TOPIC])
    deadline = asyncio.get_running_loop().time() + COORDINATOR_S
    for name in dict.fromkeys(right.name for right in rights if right.resource is Resource.GROUP):
        allowed[Resource.GROUP, name] = await _of_group(admin, name, deadline)
    lacking = [right for right in rights if not allowed[right.resource, right.name] >> BITS[right.operation] & 1]
    more = {(right.resource, right.name) for right in lacking if right.operation is not Operation.DESCRIBE}
    # Whoever may read or write may describe: it need not be granted beside it.
    return [right for right in lacking if right.operation is not Operation.DESCRIBE or (right.resource, right.name) not in more]


async def check(settings: KafkaSettings, services: Iterable[str]) -> None:
    """Raise `NotAllowed` with everything that these services lack; `KafkaError` where no broker answers."""
    admin = AIOKafkaAdminClient(**settings.client_options(), client_id="winnow-rights")
    try:
        await admin.start()
        lacking = await missing(admin, needs(services, settings))
    finally:
        await admin.close()
    if lacking:
        raise NotAllowed(lacking, settings.kafka_sasl_username)


def refused(error: BaseException, settings: KafkaSettings, *, writing: bool = False) -> NotAllowed | None:
    """What the broker does not allow, where that is what `error` of a client says; None for every other error."""
    if isinstance(error, NotAllowed):
        return error
    if isinstance(error, GroupAuthorizationFailedError):
        resource, operation = Resource.GROUP, Operation.READ
    elif isinstance(error, TopicAuthorizationFailedError):
        resource, operation = Resource.TOPIC, Operation.WRITE if writing else Operation.READ
    else:
        return None
    said: Any = error.args[0] if error.args else None
    names = [said] if isinstance(said, str) else sorted(map(str, said)) if isinstance(said, set | frozenset | list | tuple) else []
    rights = [Right(resource=resource, name=name, operation=operation) for name in names or ["?"]]
    return NotAllowed(rights, settings.kafka_sasl_username)


async def _of_topics(admin: AIOKafkaAdminClient, names: Sequence[str]) -> dict[tuple[Resource, str], int]:
    """Bits of what is allowed on each topic."""
    wanted = list(dict.fromkeys(names))
    allowed = {(Resource.TOPIC, name): UNTOLD for name in wanted}
    if wanted and (answer := await _asked(admin, AskTopics(wanted))) is not None:
        for topic in answer["topics"]:
            allowed[Resource.TOPIC, topic["topic"]] = _bits(topic, TopicAuthorizationFailedError)
    return {key: ~0 if bits == UNTOLD else bits for key, bits in allowed.items()}


async def _of_group(admin: AIOKafkaAdminClient, name: str, deadline: float) -> int:
    """Bits of what is allowed on a group; only its coordinator tells, and a fresh broker has none yet: it is asked until `deadline`."""
    while True:
        try:
            node = await admin.find_coordinator(name)
            answer = await _asked(admin, AskGroups([name]), node)
        except GroupAuthorizationFailedError:
            return 0
        except KafkaError as error:
            if not error.retriable or asyncio.get_running_loop().time() > deadline:
                return ~0
        else:
            if answer is None:
                return ~0
            (group,) = answer["groups"]
            if not group["error_code"] or for_code(group["error_code"]) is GroupAuthorizationFailedError:
                bits = _bits(group, GroupAuthorizationFailedError)
                return ~0 if bits == UNTOLD else bits
            if asyncio.get_running_loop().time() > deadline:
                return ~0
        await asyncio.sleep(PAUSE_S)


def _bits(described: Mapping[str, Any], refusal: type[KafkaError]) -> int:
    """What an answer says of one topic or group: nothing is allowed where it is refused altogether."""
    return 0 if described["error_code"] and for_code(described["error_code"]) is refusal else int(described["authorized_operations"])


async def _asked(admin: AIOKafkaAdminClient, question: Request[Any], node: int | None = None) -> dict[str, Any] | None:
    """The answer; None from a broker that is older than the question."""
    try:
        answer = await admin._send_request(question, node)  # noqa: SLF001  the client has no public way; its version is pinned
    except (IncompatibleBrokerVersion, NotImplementedError):
        return None
    told: dict[str, Any] = answer.to_object()
    return told
