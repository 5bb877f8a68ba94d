"""One consumed topic: its consumer's place in the group, its polls, and what keeps it."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import KafkaError
from faststream.kafka.subscriber.usecase import BatchSubscriber

from winnow.contracts.rights import NotAllowed
from winnow.contracts.topics import Topic
from winnow.messaging.broker import consumer_of
from winnow.messaging.consumer import BatchConsumer
from winnow.messaging.health import Progress
from winnow.messaging.settings import KafkaSettings

#: Milliseconds that a poll waits for records. It ends as soon as there is one, so the wait only says how often an idle consumer wakes.
POLL_MS = 1_000
#: Seconds after the last record in which a consumer counts as busy.
BUSY_S = 2.0
#: Times the wait of others that the first record may wait which ends the idleness of a consumer nobody waits for.
UNHURRIED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Waits:
    """Milliseconds that the broker may hold a fetch which finds nothing, see `KafkaSettings`."""

    #: While records come.
    busy: int
    #: Once none has come for `BUSY_S`.
    idle: int

    @classmethod
    def of(cls, settings: KafkaSettings, gather_ms: int) -> Self:
        """Waits of a consumer whose handler lets records gather for so many milliseconds; 0: somebody waits for its work."""
        idle = settings.fetch_max_wait_ms * (UNHURRIED if gather_ms else 1)
        return cls(busy=max(settings.busy_wait_ms, gather_ms), idle=max(idle, gather_ms))


class Membership(ConsumerRebalanceListener):  # type: ignore[misc]  # aiokafka ships no annotations
    """Whether a consumer is in its group, and with how many partitions. None is fine where there are more members than partitions."""

    def __init__(self, tell: Callable[[int], None]) -> None:
        self._tell = tell
        self.joined = False

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:  # noqa: ARG002  aiokafka's interface
        """A rebalance begins."""
        self.joined = False
        self._tell(0)

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        """A rebalance is over."""
        self.joined = True
        self._tell(len(assigned))


class Subscription:
    """One consumed topic: subscriber, recipe, progress and membership."""

    def __init__(
        self, topic: Topic, group: str, subscriber: BatchSubscriber, consumer: BatchConsumer[Any], progress: Progress, member: Membership,
        waits: Waits, explain: Callable[[KafkaError], NotAllowed | None],
    ) -> None:  # fmt: skip
        """`explain` tells and returns what the broker's rules forbid, where that is what an error of a poll says."""
        self.topic = topic
        self.group = group
        self.subscriber = subscriber
        self.consumer = consumer
        self.progress = progress
        self.member = member
        self._waits = waits
        self._explain = explain
        #: What the broker does not let this consumer do; None once it polls again.
        self.refused: NotAllowed | None = None
        #: Why liveness fails though the consumer polls; the watchdog says so.
        self.standing_still: str | None = None

    def __repr__(self) -> str:
        return f"<Subscription({self.topic.name}, joined={self.member.joined}, {self.consumer!r})>"

    def positions(self) -> dict[int, int | None] | None:
        """Next offset of each assigned partition (None: not known yet); None where the consumer does not run, or may not."""
        client = consumer_of(self.subscriber)
        if client is None or self.refused is not None:
            return None
        subscription = client._subscription.subscription  # noqa: SLF001  `position()` waits for what may never come; a test watches it
        assignment = subscription.assignment if subscription is not None else None
        if assignment is None:
            return {}
        known = assignment.all_consumed_offsets()
        return {place.partition: known[place].offset if place in known else None for place in assignment.tps}

    def excused(self) -> bool:
        """Partitions of ours stand still on purpose: a batch is at work, within its limit, or consumption is paused."""
        return self.progress.busy or self.consumer.halted or self.consumer.waits_for_newer

    async def rejoin(self) -> None:
        """Leave the group and join it as a new member: all partitions are dealt out anew. A batch at work comes again, as after a crash.

        Cancelled while the broker does not answer the leave, it joins anew all the same: the old membership ends with its session.
        """
        client = consumer_of(self.subscriber)
        if client is None:
            return
        coordinator = client._coordinator  # noqa: SLF001  there is no public way; the version is pinned, a test watches it
        try:
            await coordinator.maybe_leave_group()
        finally:
            if coordinator.generation > 0:
                coordinator.reset_generation()

    def stand_still(self, why: str | None) -> None:
        """Let liveness fail because of `why`; None: no longer."""
        self.standing_still = why

    def watch_polls(self) -> None:
        """Note every poll: FastStream has no hook for one that brings nothing, and an idle consumer must count as alive.

        A poll waits for `POLL_MS` instead of `batch_timeout_ms`: it returns as soon as there is a record, but after an empty one FastStream
        sleeps `batch_timeout_ms`, and what comes then waits. So the sleep is short and rare.

        The fetches behind the polls wait as `Waits` says.
        """
        client = consumer_of(self.subscriber)
        if client is None:
            return
        getmany, fetcher = client.getmany, client._fetcher  # noqa: SLF001  the client's own wait is for ever the same; a test watches it

        async def watched(*partitions: TopicPartition, timeout_ms: int = 0, max_records: int | None = None) -> Any:  # noqa: ANN401  passed on
            self.progress.polled()
            try:
                records = await getmany(*partitions, timeout_ms=max(timeout_ms, POLL_MS), max_records=max_records)
            except KafkaError as exc:
                self.refused = self._explain(exc)
                raise
            self.refused = None
            self.progress.polled()
            if records:
                fetcher._fetch_max_wait_ms = self._waits.busy  # noqa: SLF001  as said
            elif self.progress.idle_s > BUSY_S:
                fetcher._fetch_max_wait_ms = self._waits.idle  # noqa: SLF001  as said
            return records

        client.getmany = watched

    def fetch_age_s(self) -> float | None:
        """Seconds since the broker last answered a fetch of any partition that is not paused; None where nothing is fetched."""
        client: AIOKafkaConsumer | None = consumer_of(self.subscriber)
        if client is None:
            return None
        fetched = client.assignment() - client.paused()
        stamps = [stamp for place in fetched if (stamp := client.last_poll_timestamp(place)) is not None]
        return time.time() - max(stamps) / 1000 if stamps else None
