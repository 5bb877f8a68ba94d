"""The watchdog: whose partition stands still, and what is done about it."""

import asyncio
from types import SimpleNamespace

import pytest
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from aiokafka.errors import GroupCoordinatorNotAvailableError, KafkaConnectionError

from winnow.contracts.topics import CANDIDATE
from winnow.messaging import watchdog
from winnow.messaging.lag import Lag, LagReader
from winnow.messaging.settings import KafkaSettings
from winnow.messaging.subscription import Subscription as BusSubscription
from winnow.messaging.watchdog import Watchdog
from winnow.telemetry import Telemetry

STALL_S = 60.0


class Subscription:
    """What the watchdog sees of a subscription."""

    topic, group = CANDIDATE, "group"

    def __init__(self) -> None:
        self.own: dict[int, int | None] | None = {0: 5}
        self.at_work = False
        self.rejoined = 0
        self.why: str | None = None

    def positions(self):
        return self.own

    def excused(self):
        return self.at_work

    async def rejoin(self):
        self.rejoined += 1

    def stand_still(self, why):
        self.why = why


class Reader:
    """Offsets of three partitions, each with four records to go, and a group of two members."""

    def __init__(self) -> None:
        self.state = "Stable"
        self.given = [[0], [1]]
        self.away = False
        self.closed = 0

    async def read(self, wanted):
        if self.away:
            raise KafkaConnectionError
        ((service, topic),) = wanted
        return [Lag(service=service, topic=topic.name, by_partition=(4, 4, 0), next_offsets=(5, 5, 9))]

    async def members(self, group):
        assert group == "group"
        return self.state, [ConsumerProtocolMemberAssignment(0, [("topic", numbers)], b"").encode() for numbers in self.given]

    async def close(self):
        self.closed += 1


class World:
    def __init__(self) -> None:
        self.subscription, self.reader, self.now = Subscription(), Reader(), 0.0
        self.telemetry = Telemetry.plain("test")
        self.dog = Watchdog(
            "judge", [self.subscription], self.reader, stall_s=STALL_S, clock=lambda: self.now, telemetry=self.telemetry
        )  # fmt: skip

    async def after(self, seconds: float) -> None:
        self.now += seconds
        assert await self.dog.step() is False

    def cures(self, cure: str) -> float:
        return self.telemetry.metrics.value("winnow_stalls_total", service="judge", topic=CANDIDATE.name, cure=cure)


@pytest.fixture
def world() -> World:
    return World()


async def test_own_partition(world):
    """A partition of ours is joined anew; if it stays, liveness says so until it moves."""
    await world.after(0)
    await world.after(STALL_S)
    assert (world.subscription.rejoined, world.subscription.why, world.cures("rejoin")) == (1, None, 1)
    await world.after(1)
    await world.after(STALL_S)
    assert world.subscription.rejoined == 1
    assert "partitions 0" in world.subscription.why
    await world.after(1)
    assert world.subscription.why is not None
    world.subscription.own = {0: 6}
    await world.after(1)
    assert (world.subscription.why, world.cures("restart")) == (None, 1)


class Coordinator:
    """A group's coordinator as aiokafka has it: leaving asks the broker, whose answer may never come."""

    def __init__(self, *, answers: bool) -> None:
        self.answers, self.generation, self.joins = answers, 7, 0

    async def _leave(self) -> None:
        if not self.answers:
            await asyncio.Event().wait()
        self.reset_generation()

    def maybe_leave_group(self):
        return asyncio.get_running_loop().create_task(self._leave())

    def reset_generation(self) -> None:
        self.generation, self.joins = -1, self.joins + 1


@pytest.mark.parametrize("answers", [True, False])
async def test_a_leave_without_an_answer_joins_anew_all_the_same(world, monkeypatch, answers):
    """The first cure is a new membership, also where the broker says nothing: only what that does not help is a restart."""
    monkeypatch.setattr(watchdog, "LEAVE_S", 0.01)
    coordinator = Coordinator(answers=answers)
    subscriber = SimpleNamespace(consumer=SimpleNamespace(_coordinator=coordinator))
    real = BusSubscription(CANDIDATE, "group", subscriber, None, None, None, None, lambda _: None)
    world.subscription.rejoin = real.rejoin
    await world.after(0)
    await world.after(STALL_S)
    assert (coordinator.joins, world.cures("rejoin"), world.subscription.why) == (1, 1, None)


async def test_a_batch_at_work(world):
    """While a batch is at work nothing of ours stands still."""
    world.subscription.at_work = True
    for _ in range(5):
        await world.after(STALL_S)
    assert world.subscription.rejoined == 0


async def test_a_position_past_the_committed_offset(world):
    """A position at the end is no stand-still, whatever is committed: a transaction's marker is passed and never committed."""
    world.subscription.own = {0: 9}
    for _ in range(3):
        await world.after(STALL_S)
    assert world.subscription.rejoined == 0


async def test_another_members_partition(world):
    """What a living member has is that member's; what nobody has, or a group that is not settled, is everybody's."""
    world.subscription.own = {0: 9}
    for _ in range(3):
        await world.after(STALL_S)
    assert world.subscription.rejoined == 0
    world.reader.given = [[0], []]
    await world.after(STALL_S)
    await world.after(STALL_S)
    assert world.subscription.rejoined == 1


async def test_a_group_that_never_settles(world):
    """In a group that stays in its rebalance nobody has anything."""
    world.subscription.own = {}
    world.reader.state = "PreparingRebalance"
    await world.after(0)
    await world.after(STALL_S)
    assert world.subscription.rejoined == 1


async def test_nothing_is_known(world):
    """While the broker is away, or the consumer does not run, no time passes."""
    await world.after(0)
    world.reader.away = True
    await world.after(STALL_S)
    assert world.reader.closed == 1
    world.reader.away = False
    await world.after(STALL_S)
    world.subscription.own = None
    await world.after(STALL_S)
    world.subscription.own = {0: 5}
    await world.after(STALL_S)
    assert world.subscription.rejoined == 0


class Admin:
    """Answers about one group, as the client library passes it on: with the error and without raising it."""

    async def describe_consumer_groups(self, _groups):
        return [SimpleNamespace(groups=[(15, "g", "", "", "", [], 0)])]


async def test_a_group_that_the_broker_does_not_tell_of_has_no_partitions_that_are_nobodys():
    """An error in the answer is an error, not an empty group: else healthy consumers would be told to join again."""
    reader = LagReader(KafkaSettings())
    reader._admin = Admin()
    with pytest.raises(GroupCoordinatorNotAvailableError):
        await reader.members("g")
