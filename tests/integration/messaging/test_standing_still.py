"""Partitions that nobody reads though every heartbeat is answered: the watchdog gets them going again, or liveness fails."""

import contextlib

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment

from tests.harness import eventually
from tests.integration.messaging.conftest import running, settings_for
from tests.unit.messaging.support import candidate
from winnow.contracts.topics import CANDIDATE
from winnow.embedded import Capability
from winnow.messaging.broker import consumer_of
from winnow.messaging.health import examine, vital
from winnow.messaging.watchdog import LOOKS

pytestmark = pytest.mark.needs(Capability.IDEMPOTENCE)  # groups as Apache Kafka has them

#: Seconds: above two session timeouts of these tests.
STALL_S = 2.5


@pytest.fixture
def kafka(broker):
    return settings_for(broker, stall_s=STALL_S)


def _partition(world, number: int) -> TopicPartition:
    return TopicPartition(world.settings.topic_name(CANDIDATE.name), number)


async def _settled(world, partitions: int) -> None:
    subscription = world.bus.subscriptions[0]
    await eventually(lambda: len([p for p in (subscription.positions() or {}).values() if p is not None]) == partitions, 20)


async def test_a_fetcher_that_leaves_out_a_partition(kafka):
    """A partition of ours that is never fetched is read again after the consumer has left its group and joined it anew."""
    async with running(kafka) as world:
        await _settled(world, kafka.partitions)
        consumer_of(world.bus.subscriptions[0].subscriber).pause(*(_partition(world, n) for n in range(kafka.partitions)))
        await world.send(candidate(1))
        await eventually(lambda: world.stage.seen, 30, what="the event behind the stand-still")
        assert world.metric("winnow_stalls_total", cure="rejoin") == 1
        assert world.metric("winnow_stalls_total", cure="restart") == 0
        assert (await examine(vital(world.bus.checks()))).well


@contextlib.asynccontextmanager
async def _unfair(settings, *, forever: bool):
    """The leader of the group, which deals out partition 0 to nobody: the first time that there is somebody else, or always."""
    unfairly: list[int] = []

    class Unfair(RoundRobinPartitionAssignor):
        @classmethod
        def assign(cls, cluster, members):
            ours = {m: metadata for m, metadata in members.items() if m == leader._coordinator.member_id}
            others = {m: metadata for m, metadata in members.items() if m not in ours}
            dealt = super().assign(cluster, others) if others else {}
            if others and (forever or not unfairly):
                unfairly.append(1)
                dealt = {
                    member: ConsumerProtocolMemberAssignment(
                        given.version, [(topic, [n for n in numbers if n != 0]) for topic, numbers in given.assignment], b""
                    )
                    for member, given in dealt.items()
                }
            return dealt | {m: ConsumerProtocolMemberAssignment(0, [], b"") for m in ours}

    leader = AIOKafkaConsumer(
        settings.topic_name(CANDIDATE.name), **settings.client_options(), group_id=settings.group("retriever", CANDIDATE.name),
        partition_assignment_strategy=(Unfair,), session_timeout_ms=settings.session_timeout_ms,
        heartbeat_interval_ms=settings.heartbeat_interval_ms, enable_auto_commit=False,
    )  # fmt: skip
    await leader.start()
    try:
        yield unfairly
    finally:
        await leader.stop()


async def test_a_partition_without_an_owner(kafka):
    """A partition that was dealt out to nobody is dealt out again."""
    async with running(kafka) as world:
        await world.bus.stop()  # the topics are there
    async with _unfair(kafka, forever=False) as unfairly, running(kafka, topics=False) as world:
        await eventually(lambda: unfairly, 20, what="an unfair deal")
        await _settled(world, kafka.partitions - 1)
        await world.send(candidate(1), partition=0)
        await eventually(lambda: world.stage.seen, 30, what="the event in the partition without an owner")
        assert world.metric("winnow_stalls_total", cure="rejoin") == 1


async def test_what_joining_again_does_not_heal(kafka):
    """Where joining again does not help, liveness fails and says which partitions nobody reads."""
    async with running(kafka) as world:
        await world.bus.stop()
    async with _unfair(kafka, forever=True), running(kafka, topics=False) as world:
        await _settled(world, kafka.partitions - 1)
        await world.send(candidate(1), partition=0)
        await eventually(lambda: world.metric("winnow_stalls_total", cure="restart") >= 1, 40, what="a failed cure")
        problems = (await examine(vital(world.bus.checks()))).problems
        assert "partitions 0" in problems[f"progress {CANDIDATE.name}"]
        assert not world.stage.seen


@pytest.mark.needs(Capability.TRANSACTIONS)
async def test_an_open_transaction_is_no_stand_still(kafka):
    """Records behind a transaction that somebody leaves open cannot be read by anyone; nothing is done about it, and then they are read."""
    async with running(kafka) as world:
        await _settled(world, kafka.partitions)
        looks = []
        step = world.bus._watchdog._look

        async def look(*args):
            looks.append(await step(*args))
            return looks[-1]

        world.bus._watchdog._look = look
        other = AIOKafkaProducer(**kafka.client_options(), transactional_id=f"{kafka.topic_prefix}t")
        await other.start()
        try:
            await other.begin_transaction()
            await other.send_and_wait(kafka.topic_name(CANDIDATE.name), b"never", partition=0)
            await world.send(candidate(1), partition=0)
            await eventually(lambda: len(looks) > 2 * LOOKS, 30, what="looks for longer than a stand-still")
            assert not any(looks)
            assert not world.stage.seen
            await other.abort_transaction()
        finally:
            await other.stop()
        await eventually(lambda: world.stage.seen, 20, what="the event behind the transaction")
        assert world.metric("winnow_stalls_total", cure="rejoin") == 0
