"""The start-up step: creates what is missing from the registry, and checks what is there against it."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import KafkaError, TopicAlreadyExistsError, for_code

from winnow.contracts.errors import WinnowError
from winnow.contracts.rights import NotAllowed, Operation, Resource, Right
from winnow.contracts.topics import CANDIDATE, COMMITTED, EVIDENCE, SCORES, TOPICS, Topic
from winnow.messaging import rights
from winnow.messaging.broker import consumer_options
from winnow.messaging.settings import KafkaSettings
from winnow.telemetry import Telemetry

#: One run's boundaries pass these in order, so the same key must mean the same partition number everywhere.
BOUNDARY_TOPICS = (CANDIDATE, EVIDENCE, SCORES, COMMITTED)
#: Seconds until a created topic must have leaders. A one-node Kafka takes 0.2 s.
LEADER_S = 30.0
#: Seconds between looks.
LOOK_S = 0.1


class TopicMismatch(WinnowError):
    """The topics on the broker do not fit the registry; change the broker's topics or the settings, then start again."""


class Severity(Enum):
    """What a finding means for a start."""

    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A difference between the broker and the registry."""

    topic: str
    severity: Severity
    #: What is wrong and what to do.
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A topic as the broker has it. `config` is empty where the broker does not tell."""

    partitions: int
    config: Mapping[str, str]


def topic_config(topic: Topic, settings: KafkaSettings) -> dict[str, str]:
    """The configuration with which a topic is created."""
    return {
        "max.message.bytes": str(topic.max_record_bytes),
        "retention.ms": str(int(topic.retention.total_seconds() * 1000)),
        "cleanup.policy": "delete",
        "min.insync.replicas": str(2 if settings.replication_factor > 2 else 1),  # noqa: PLR2004  two of three may say yes
    }


def compare(found: Mapping[str, Found], settings: KafkaSettings, topics: Sequence[Topic] = TOPICS) -> list[Finding]:
    """All differences, by topic name without prefix."""
    findings: list[Finding] = []
    counts = {topic.name: found[topic.name].partitions for topic in BOUNDARY_TOPICS if topic in topics and topic.name in found}
    if len(set(counts.values())) > 1:
        said = ", ".join(f"{name} has {count}" for name, count in counts.items())
        problem = f"the boundary topics must have the same number of partitions, or runs lose their order: {said}; recreate the odd ones"
        findings.extend(Finding(topic=name, severity=Severity.ERROR, problem=problem) for name in counts)
    for topic in topics:
        if topic.name not in found:
            findings.append(
                Finding(
                    topic=topic.name,
                    severity=Severity.ERROR,
                    problem="it is missing; run `winnow topics ensure`",
                )
            )
            continue
        findings.extend(_compare_one(topic, found[topic.name], settings))
    return findings


def _compare_one(topic: Topic, found: Found, settings: KafkaSettings) -> list[Finding]:
    findings: list[Finding] = []

    def say(severity: Severity, problem: str) -> None:
        findings.append(Finding(topic=topic.name, severity=severity, problem=problem))

    if found.partitions != settings.partitions:
        say(
            Severity.WARNING,
            f"it has {found.partitions} partitions, WINNOW_PARTITIONS says {settings.partitions}; the topic's number is used",
        )
    most = _number(found.config.get("max.message.bytes"))
    if most is not None and most < topic.max_record_bytes:
        say(Severity.ERROR, f"max.message.bytes is {most}, events need {topic.max_record_bytes}; raise it on the broker")
    fetch = int(consumer_options(settings, max_record_bytes=topic.max_record_bytes)["max_partition_fetch_bytes"])
    if most is not None and most > fetch:
        say(Severity.WARNING, f"max.message.bytes is {most}, consumers fetch {fetch}: a larger record may stop its partition; lower it")
    retention = _number(found.config.get("retention.ms"))
    wanted = int(topic.retention.total_seconds() * 1000)
    if retention is not None and (retention > wanted or retention < 0):
        say(
            Severity.WARNING,
            f"retention.ms is {retention}, the stated horizon of erasure is {wanted}; lower it, or erased content stays on the bus longer",
        )
    policy = found.config.get("cleanup.policy")
    if policy is not None and "compact" in policy:
        say(Severity.ERROR, "cleanup.policy is compact: records of one run would replace each other; set it to delete")
    return findings


def _number(text: str | None) -> int | None:
    try:
        return int(text) if text is not None else None
    except ValueError:
        return None


async def look(admin: AIOKafkaAdminClient, settings: KafkaSettings, topics: Sequence[Topic] = TOPICS) -> dict[str, Found]:
    """The topics that are there, by name without prefix. Never asks for a topic by name before it is known: some brokers create it then."""
    named = {settings.topic_name(topic.name): topic for topic in topics}
    described: list[dict[str, Any]] = await admin.describe_topics(None)
    there = {
        t["topic"]: len(t["partitions"])
        for t in described
        if t["topic"] in named and not t["error_code"] and t["partitions"] and all(p["leader"] >= 0 for p in t["partitions"])
    }
    configs: dict[str, dict[str, str]] = {}
    if there:
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in there]
        for response in await admin.describe_configs(resources):
            for resource in response.to_object()["resources"]:
                if resource["error_code"] == 0:
                    configs[resource["resource_name"]] = {e["config_names"]: e["config_value"] for e in resource["config_entries"]}
    return {named[name].name: Found(partitions=count, config=configs.get(name, {})) for name, count in there.items()}


async def create(admin: AIOKafkaAdminClient, settings: KafkaSettings, missing: Sequence[Topic], telemetry: Telemetry) -> None:
    """Create topics; one that another process creates at the same time is fine. Raise `TopicMismatch` where the broker refuses."""
    new = [
        NewTopic(
            settings.topic_name(topic.name), settings.partitions, settings.replication_factor, topic_configs=topic_config(topic, settings)
        )
        for topic in missing
    ]
    response = await admin.create_topics(new)
    for error in response.to_object()["topic_errors"]:
        kind = for_code(error["error_code"])
        if error["error_code"] and kind is not TopicAlreadyExistsError:
            said = error.get("error_message") or kind.__name__
            msg = f"the broker refuses to create {error['topic']}: {said}; create it as the registry says, or mend the settings"
            raise TopicMismatch(msg)
        telemetry.log.info("topic_created", topic=error["topic"], partitions=settings.partitions)


async def ensure_topics(
    settings: KafkaSettings, telemetry: Telemetry, topics: Sequence[Topic] = TOPICS, *, may_create: bool = True
) -> list[Finding]:
    """Create missing topics and compare all with the registry; return what is only worth a warning.

    Safe to run from several processes at once. Raises `TopicMismatch` on any error, `NotAllowed` where the broker hides a topic from this
    client, `KafkaError` where no broker answers.
    """
    admin = AIOKafkaAdminClient(**settings.client_options(), client_id="winnow-topics")
    try:
        await admin.start()
        found = await look(admin, settings, topics)
        missing = [topic for topic in topics if topic.name not in found]
        if missing:
            seeing = [Right(resource=Resource.TOPIC, name=settings.topic_name(t.name), operation=Operation.DESCRIBE) for t in missing]
            if hidden := await rights.missing(admin, seeing):  # what cannot be seen is not missing
                raise NotAllowed(hidden, settings.kafka_sasl_username)
        if missing and may_create:
            await create(admin, settings, missing, telemetry)
            found = await _until_there(admin, settings, topics)
    finally:
        await admin.close()
    findings = compare(found, settings, topics)
    for finding in findings:
        report = telemetry.log.error if finding.severity is Severity.ERROR else telemetry.log.warning
        report("topic_finding", topic=finding.topic, problem=finding.problem, severity=finding.severity.value)
    errors = [f"{f.topic}: {f.problem}" for f in findings if f.severity is Severity.ERROR]
    if errors:
        msg = f"{TopicMismatch.__doc__}\n" + "\n".join(errors)
        raise TopicMismatch(msg)
    return findings


async def _until_there(admin: AIOKafkaAdminClient, settings: KafkaSettings, topics: Sequence[Topic]) -> dict[str, Found]:
    """Look until all topics have leaders; after `LEADER_S` return what is there."""
    found: dict[str, Found] = {}
    try:
        async with asyncio.timeout(LEADER_S):
            while True:
                found = await look(admin, settings, topics)
                if all(topic.name in found for topic in topics):
                    return found
                await asyncio.sleep(LOOK_S)
    except (TimeoutError, KafkaError):
        return found
