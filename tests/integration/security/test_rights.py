"""Access rules of a broker: whoever may not read or write hears what to grant, at once, and nobody waits for ever."""

import asyncio
import json
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.protocol.admin import CreateAclsRequest, DeleteAclsRequest

from tests.harness import Spawner, eventually
from tests.integration.messaging.conftest import Stage, producer_for
from tests.integration.security.conftest import PASSWORD, USER, SecuredKafka
from tests.unit.client.answers import candidate
from tests.unit.messaging.support import HASTE
from winnow.client import WinnowClient
from winnow.client.kafka import KafkaTransport
from winnow.client.result import Because
from winnow.contracts.envelope import headers_for
from winnow.contracts.rights import NotAllowed, Operation, Resource, Right
from winnow.contracts.topics import CANDIDATE, COMMITTED, EVIDENCE, TOPICS
from winnow.messaging import Bus, KafkaSettings, rights
from winnow.messaging.fakes import MemoryDeadLetters
from winnow.messaging.health import examine
from winnow.messaging.lag import LagReader
from winnow.messaging.reach import told
from winnow.messaging.topics import ensure_topics
from winnow.telemetry import Telemetry

pytestmark = pytest.mark.timeout(120)

#: Kafka's numbers: resources, operations, a literal name, a prefix, and what a rule does.
RESOURCES = {Resource.TOPIC: 2, Resource.GROUP: 3}
OPERATIONS = {Operation.READ: 3, Operation.WRITE: 4, Operation.DESCRIBE: 8}
LITERAL, PREFIXED = 3, 4
ALLOW = 3
#: Somebody else, so that what nobody may is closed to all others: topics and groups without a rule are open here.
OWNER = "User:owner"


@dataclass
class Rules:
    """The rules of one prefix: closed to everybody at first."""

    admin: AIOKafkaAdminClient
    settings: KafkaSettings

    async def close_all(self) -> None:
        """Nothing under the prefix is open."""
        for number in RESOURCES.values():
            await self._ask(CreateAclsRequest(number, self.settings.topic_prefix, PREFIXED, OWNER, "*", 2, ALLOW))
        await self._until(rights.needs(rights.SERVICES, self.settings), granted=False)

    async def grant(self, *granted: Right) -> None:
        """Allow the tests' user."""
        for right in granted:
            number, operation = RESOURCES[right.resource], OPERATIONS[right.operation]
            await self._ask(CreateAclsRequest(number, right.name, LITERAL, f"User:{USER}", "*", operation, ALLOW))
        await self._until(granted, granted=True)

    async def revoke(self, right: Right) -> None:
        """Allow it no more."""
        number, operation = RESOURCES[right.resource], OPERATIONS[right.operation]
        await self._ask(DeleteAclsRequest(number, right.name, LITERAL, f"User:{USER}", "*", operation, ALLOW))
        await self._until([right], granted=False)

    async def _until(self, changed: Sequence[Right], *, granted: bool) -> None:
        """A broker learns of a rule a moment after its controller has it."""
        client = AIOKafkaAdminClient(**self.settings.client_options())
        await client.start()
        try:

            async def known() -> bool:
                lacking = await rights.missing(client, changed)
                return not lacking if granted else {one.name for one in lacking} == {one.name for one in changed}

            await eventually(known, 20, what="the broker to know the rules")
        finally:
            await client.close()

    async def _ask(self, question) -> None:
        answer = (await self.admin._send_request(question)).to_object()
        assert not [one for many in answer.values() if isinstance(many, list) for one in many if one["error_code"]], answer


@pytest.fixture
async def closed(secured_kafka: SecuredKafka):
    """Topics under a prefix of this test's own that nobody may use, and the settings of a user who signs in well."""
    prefix = f"r{uuid.uuid4().hex[:8]}."
    plain = KafkaSettings(kafka_bootstrap_servers=secured_kafka.broker.bootstrap, topic_prefix=prefix, partitions=1)
    await ensure_topics(plain, Telemetry.plain())
    admin = AIOKafkaAdminClient(bootstrap_servers=secured_kafka.broker.bootstrap)
    await admin.start()
    quick = {"session_timeout_ms": 1000, "heartbeat_interval_ms": 200, "request_timeout_ms": 5000, "graceful_timeout_s": 5.0}
    settings = secured_kafka.settings("SASL_PLAINTEXT", topic_prefix=prefix, partitions=1, hard_exit_s=8.0, **quick)
    rules = Rules(admin, settings)
    try:
        await rules.close_all()
        yield rules, settings, plain
    finally:
        await admin.close()


def right(operation: Operation, resource: Resource, name: str) -> Right:
    return Right(resource=resource, name=name, operation=operation)


def of_retriever(settings: KafkaSettings) -> tuple[Right, Right]:
    """Its topic and its group."""
    return (
        right(Operation.READ, Resource.TOPIC, settings.topic_name(CANDIDATE.name)),
        right(Operation.READ, Resource.GROUP, settings.group("retriever", CANDIDATE.name)),
    )


async def lacking(settings: KafkaSettings, services: Iterable[str]) -> set[Right]:
    """What the broker does not grant for these services."""
    try:
        await rights.check(settings, services)
    except NotAllowed as exc:
        return set(exc.missing)
    return set()


async def test_what_is_missing_is_told_right_by_right(closed):
    """Each granted right leaves the list; who may read need not be allowed to describe; a plain broker lacks nothing."""
    rules, settings, plain = closed
    wanted = rights.needs(["retriever"], settings)
    missing = await lacking(settings, ["retriever"])
    described = {one for one in wanted if one.operation is Operation.DESCRIBE}
    more = {one.name for one in wanted if one.operation is not Operation.DESCRIBE}
    assert missing == {one for one in wanted if one not in described or one.name not in more}
    topic, group = of_retriever(settings)
    await rules.grant(right(Operation.DESCRIBE, Resource.GROUP, group.name))
    assert await lacking(settings, ["retriever"]) == missing
    await rules.grant(topic, group)
    assert await lacking(settings, ["retriever"]) == missing - {topic, group}
    await rules.grant(*wanted)
    assert await lacking(settings, ["retriever"]) == set()
    assert await lacking(plain, ["gateway", "retriever", "judge", "pruner", "drift_monitor"]) == set()


async def test_a_consumer_that_may_not_read_says_what_to_grant_instead_of_waiting(closed):
    """Without a right on the topic, then without one on the group: a start ends at once with the right that is missing."""
    rules, settings, _ = closed
    topic, group = of_retriever(settings)
    for granted, missing in (((), topic), ((topic,), group)):
        await rules.grant(*granted)
        bus = await Bus.open(settings, telemetry=Telemetry.plain("retriever"), dead_letters=MemoryDeadLetters(), patience=HASTE)
        bus.subscribe(Stage())
        began = time.monotonic()
        try:
            with pytest.raises(Exception, match="Authorization") as failed:
                await bus.start()
        finally:
            await bus.stop()
        found = await told(settings, failed.value)
        assert isinstance(found, NotAllowed)
        assert found.missing == (missing,)
        assert f"User:{USER}" in str(found)
        assert f"--operation Read --{missing.resource} {missing.name}" in str(found)
        assert PASSWORD not in str(found)
        assert time.monotonic() - began < settings.request_timeout_ms / 1000


@pytest.mark.long
async def test_a_consumer_that_is_refused_while_it_runs_tells_and_goes_on_once_it_may(closed, caplog):
    """A rule that goes away: unready with what to grant, no restart, no rejoining; a rule that comes back: the next record is handled."""
    rules, settings, plain = closed
    topic, group = of_retriever(settings)
    evidence = right(Operation.WRITE, Resource.TOPIC, settings.topic_name(EVIDENCE.name))
    await rules.grant(topic, group, evidence)
    stage, telemetry = Stage(), Telemetry.plain("retriever")
    bus = await Bus.open(settings, telemetry=telemetry, dead_letters=MemoryDeadLetters(), patience=HASTE)
    subscription = bus.subscribe(stage)

    async def problem() -> str | None:
        return (await examine(bus.checks())).problems[f"consuming {CANDIDATE.name}"]

    async with producer_for(plain) as producer:

        async def send(run: str) -> None:
            event = candidate("- a", fleet="acme", run=run)
            headers = headers_for(CANDIDATE, event_id=str(event.boundary_id), source="t", subject=event.key, time=_now())
            await producer.send_and_wait(topic.name, event.model_dump_json().encode(), key=event.key.encode(), headers=headers)

        try:
            await bus.start()
            await send("before")
            await eventually(lambda: [run for run, _ in stage.seen] == ["before"], 30)
            await rules.revoke(topic)
            said = await eventually(problem, 30)
            assert f"--operation Read --topic {topic.name}" in said
            assert subscription.positions() is None, "the watchdog has nothing to cure"
            telemetry.metrics.render()
            assert telemetry.metrics.value("winnow_not_allowed", service="retriever", topic=CANDIDATE.name) == 1
            assert not [name for name, bad in (await examine([c for c in bus.checks() if c.vital])).problems.items() if bad]
            await send("meanwhile")
            await rules.grant(topic)
            await eventually(lambda: [run for run, _ in stage.seen] == ["before", "meanwhile"], 30)
            assert await problem() is None
        finally:
            await bus.stop()
    assert {record.getMessage() for record in caplog.records if record.name == "winnow.retriever"} >= {"not_allowed"}


async def test_a_service_that_may_not_write_keeps_the_record_and_says_so(closed):
    """The batch comes again until it may: nothing is a dead letter, readiness names the topic, and afterwards it is well."""
    rules, settings, plain = closed
    topic, group = of_retriever(settings)
    await rules.grant(topic, group)
    stage, store = Stage(), MemoryDeadLetters()
    bus = await Bus.open(settings, telemetry=Telemetry.plain("retriever"), dead_letters=store, patience=HASTE)
    bus.subscribe(stage)

    async def problem() -> str | None:
        return (await examine(bus.checks())).problems["publishing"]

    async with producer_for(plain) as producer:
        try:
            await bus.start()
            event = candidate("- a", fleet="acme", run="r")
            headers = headers_for(CANDIDATE, event_id=str(event.boundary_id), source="t", subject=event.key, time=_now())
            await producer.send_and_wait(topic.name, event.model_dump_json().encode(), key=event.key.encode(), headers=headers)
            said = await eventually(problem, 30)
            name = settings.topic_name(EVIDENCE.name)
            assert f"--operation Write --topic {name}" in said
            assert store.rows == {}
            await rules.grant(right(Operation.WRITE, Resource.TOPIC, name))

            async def well() -> bool:
                return await problem() is None

            await eventually(well, 30)
            assert store.rows == {}
        finally:
            await bus.stop()


@pytest.mark.parametrize(
    ("granted", "missing"),
    [
        ([], (Operation.READ, COMMITTED)),
        ([(Operation.DESCRIBE, COMMITTED)], (Operation.WRITE, CANDIDATE)),
        ([(Operation.DESCRIBE, COMMITTED), (Operation.WRITE, CANDIDATE)], (Operation.READ, COMMITTED)),
    ],
    ids=["sees nothing", "may not write", "may not read"],
)
async def test_an_agent_that_is_refused_goes_on_at_once(closed, granted, missing, caplog):
    """The SDK's answer is its own candidate with `unauthorised`, long before the deadline, and the log says what to grant."""
    rules, settings, _ = closed
    await rules.grant(*(right(operation, Resource.TOPIC, settings.topic_name(topic.name)) for operation, topic in granted))
    options = settings.client_options()
    transport = KafkaTransport(",".join(options.pop("bootstrap_servers")), topic_prefix=settings.topic_prefix, options=options)
    deadline_s = 40
    began = time.monotonic()
    async with WinnowClient(transport, fleet="acme") as client:
        given = await client.compact(candidate("- a", fleet="acme", run="r"), deadline_s=deadline_s)
        assert given.bypassed_because is Because.UNAUTHORISED
        assert given.summary == "- a"
        assert time.monotonic() - began < deadline_s / 2
    operation, topic = missing
    [said] = {record.error for record in caplog.records if record.getMessage() == "refused"}
    assert f"--operation {operation} --topic {settings.topic_name(topic.name)}" in said
    assert PASSWORD not in said


@pytest.mark.parametrize("forgets", [False, True], ids=["the reader is running", "the client reads the topic's metadata anew"])
async def test_an_agent_that_loses_its_right_later_hears_of_it(closed, forgets):
    """A topic that is hidden while a client lives is told as `unauthorised`, long before the deadline, and not taken for a slow answer."""
    rules, settings, _ = closed
    read = right(Operation.READ, Resource.TOPIC, settings.topic_name(COMMITTED.name))
    await rules.grant(read, right(Operation.WRITE, Resource.TOPIC, settings.topic_name(CANDIDATE.name)))
    options = settings.client_options() | ({"metadata_max_age_ms": 200} if forgets else {})
    transport = KafkaTransport(",".join(options.pop("bootstrap_servers")), topic_prefix=settings.topic_prefix, options=options)
    deadline_s = 60
    async with WinnowClient(transport, fleet="acme") as client:

        async def reads() -> bool:
            given = await client.compact(candidate("- a", fleet="acme", run="r"), deadline_s=3)
            return given.bypassed_because is Because.DEADLINE  # nobody answers here; before it is connected: unreachable

        await eventually(reads, 60)
        await rules.revoke(read)
        for run in ("r", "another partition or not"):
            began = time.monotonic()
            given = await client.compact(candidate("- a", fleet="acme", run=run), deadline_s=deadline_s)
            assert given.bypassed_because is Because.UNAUTHORISED, run
            assert time.monotonic() - began < deadline_s / 2


async def test_lags_of_a_group_that_is_hidden_are_no_hang_and_no_number(closed):
    """Whoever may see the topics and not the groups hears which group; without the topics nothing is behind."""
    rules, settings, _ = closed
    async with LagReader(settings) as reader:
        assert await asyncio.wait_for(reader.read(), 20) == []
    await rules.grant(*(right(Operation.DESCRIBE, Resource.TOPIC, settings.topic_name(topic.name)) for topic in TOPICS))
    async with LagReader(settings) as reader:
        with pytest.raises(NotAllowed, match=f"--operation Describe --group {settings.group('retriever', CANDIDATE.name)}"):
            await asyncio.wait_for(reader.read(), 20)


async def test_hidden_topics_are_not_taken_for_missing_ones(closed):
    """Who may neither see nor create the topics is told so, where a topic that is only missing would be created."""
    _, settings, _ = closed
    with pytest.raises(NotAllowed, match=f"--operation Describe --topic {settings.topic_name(CANDIDATE.name)}"):
        await ensure_topics(settings, Telemetry.plain())


@pytest.mark.long
def test_a_process_ends_its_start_with_all_that_is_missing(closed, secured_kafka, database, tmp_path, winnow):
    """One text names every right of its services; `winnow doctor` says the same, and `winnow lag` what it may not see."""
    _, settings, _ = closed
    environment = secured_kafka.environment("SASL_PLAINTEXT") | {
        "WINNOW_TOPIC_PREFIX": settings.topic_prefix, "WINNOW_PARTITIONS": "1", "WINNOW_STATUS_PORT": "0",
        "WINNOW_DATABASE_URL": database.dsn,
    }  # fmt: skip
    spawner = Spawner(tmp_path)
    try:
        services = spawner.services("retriever", env=environment)
        assert services.wait(60) == 1
        assert all(f"--topic {settings.topic_name(one.name)}" in services.output for one in TOPICS)
        assert f"--group {of_retriever(settings)[1].name}" in services.output
        assert PASSWORD not in services.output
    finally:
        spawner.stop()
    doctor = winnow("doctor", "--json", **environment)
    [finding] = [
        one for line in doctor.text.splitlines() if line.startswith("{") and (one := json.loads(line)).get("check") == "broker.rights"
    ]
    assert finding["level"] == "error"
    assert f"--group {of_retriever(settings)[1].name}" in finding["advice"]
    assert "it is missing" not in doctor.text
    for words in (["topics", "ensure"], ["lag"]):
        said = winnow(*words, **environment)
        assert said.status == 1, words
        assert f"--operation Describe --topic {settings.topic_name(CANDIDATE.name)}" in "".join(said.text.split("\n")), said.text
        assert PASSWORD not in said.text + doctor.text


def _now() -> datetime:
    return datetime.now(UTC)
