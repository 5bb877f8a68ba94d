"""How far behind each consumer group is: for the gateway's limit, `winnow lag` and a metric."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import GroupAuthorizationFailedError, GroupLoadInProgressError, KafkaError, for_code

from winnow.contracts.rights import NotAllowed, Operation, Resource, Right
from winnow.contracts.topics import CANDIDATE, COMMITTED, EVIDENCE, OBSERVATION, RUNTIME, SCORES, Topic
from winnow.messaging.settings import KafkaSettings
from winnow.telemetry import Telemetry

#: Who reads what as a group of ours. The registry also names who may read; a pair that nobody reads would be behind by its whole topic.
CONSUMPTIONS: tuple[tuple[str, Topic], ...] = (
    ("retriever", CANDIDATE),
    ("judge", EVIDENCE),
    ("pruner", SCORES),
    ("drift_monitor", RUNTIME),
    ("drift_monitor", OBSERVATION),
    ("drift_monitor", COMMITTED),
)
#: Services that a boundary passes. Only their lag keeps a boundary waiting; the drift monitor's keeps nobody.
STAGES = frozenset({"retriever", "judge", "pruner"})
#: Seconds between readings: a limit that is seconds old protects as well.
READ_EVERY_S = 2.0
#: Times that long where nobody was behind: a reading costs a request a group, and an idle broker is asked for nothing else.
CALM = 3
#: Seconds that the first waiting record of a partition may take to come.
FIRST_RECORD_S = 3.0
#: Seconds that a start which is cancelled may take to finish.
SETTLE_S = 1.0
#: Seconds that a group's coordinator may take to load what it knows, and between looks: a broker's restart or an election takes about one.
LOADING_S = 4.0
LOADING_PAUSE_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """Records of a topic that a service has not committed yet."""

    service: str
    #: Registry name.
    topic: str
    by_partition: tuple[int, ...]
    #: Offset of the first record of each partition that is not committed yet.
    next_offsets: tuple[int, ...] = ()

    @property
    def records(self) -> int:
        """Over all partitions."""
        return sum(self.by_partition)


class LagReader:
    """Reads lags from the broker. `async with LagReader(settings) as reader:`, or `start` and `close`."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._admin: AIOKafkaAdminClient | None = None
        self._consumer: AIOKafkaConsumer | None = None
        #: The node that coordinates a group, once asked for.
        self._coordinators: dict[str, int] = {}

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Connect. Raises `KafkaError` where no broker answers.

        Cancelled, it lets the client finish first: aiokafka forgets a connection whose first question is cut off, and never closes it.
        """
        starting = asyncio.ensure_future(self._connect())
        try:
            await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.wait({starting}, timeout=SETTLE_S)
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            await self.close()
            raise

    async def _connect(self) -> None:
        """Start both clients, or neither."""
        options = self._settings.client_options()
        try:
            self._admin = AIOKafkaAdminClient(**options, client_id="winnow-lag")
            await self._admin.start()
            # Ends as our consumers see them: what stands behind an open transaction cannot be read yet, so nobody is behind with it.
            self._consumer = AIOKafkaConsumer(**options, client_id="winnow-lag", isolation_level="read_committed")
            await self._consumer.start()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Disconnect; may be called twice."""
        consumer, admin = self._consumer, self._admin
        self._consumer = self._admin = None
        self._coordinators.clear()
        try:
            if consumer is not None:
                await consumer.stop()
        finally:
            if admin is not None:
                await admin.close()

    async def read(self, wanted: Sequence[tuple[str, Topic]] | None = None) -> list[Lag]:
        """Lags of the pairs of service and topic (all of `CONSUMPTIONS`); topics that do not exist are left out.

        A group that has committed nothing is behind by everything that the topic still holds. Of a group whose coordinator is loading
        nothing is known: it is asked again for `LOADING_S`. Topics that the broker hides from this client are as if they did not exist.
        Raises `KafkaError`, `TimeoutError`, and `NotAllowed` where the broker does not tell this client of a group.
        """
        if self._admin is None or self._consumer is None:
            await self.start()
        admin, consumer = self._admin, self._consumer
        if admin is None or consumer is None:
            return []
        described = {t["topic"]: len(t["partitions"]) for t in await admin.describe_topics(None) if not t["error_code"]}
        asked: list[tuple[str, Topic, list[TopicPartition]]] = []
        for service, topic in CONSUMPTIONS if wanted is None else wanted:
            name = self._settings.topic_name(topic.name)
            if places := [TopicPartition(name, number) for number in range(described.get(name, 0))]:
                asked.append((service, topic, places))
        ends = await consumer.end_offsets(list({place for _, _, places in asked for place in places})) if asked else {}
        committed = [await self._committed(admin, service, topic, places) for service, topic, places in asked]
        # Where a partition begins matters only where somebody is behind: what was deleted waits for nobody.
        waiting = {place for found in committed for place, at in found.items() if max(at, 0) < ends[place]}
        begins = await consumer.beginning_offsets(list(waiting)) if waiting else {}
        lags: list[Lag] = []
        for (service, topic, places), found in zip(asked, committed, strict=True):
            first = tuple(max(found[place], begins.get(place, 0)) for place in places)
            behind = tuple(max(0, ends[place] - at) for place, at in zip(places, first, strict=True))
            lags.append(Lag(service=service, topic=topic.name, by_partition=behind, next_offsets=first))
        return lags

    async def _committed(
        self, admin: AIOKafkaAdminClient, service: str, topic: Topic, places: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """What a service's group has committed; -1 where it has nothing. Raises `KafkaError` and `NotAllowed`.

        aiokafka drops an error that concerns the whole answer, such as a coordinator that is loading or is another node now, and gives
        back no partition: taken for "nothing committed", a group would be behind by the whole topic, and the gateway would refuse
        boundaries.
        """
        group = self._settings.group(service, topic.name)
        until = time.monotonic() + LOADING_S
        while True:
            try:
                if group not in self._coordinators:
                    self._coordinators[group] = await admin.find_coordinator(group)
                found = await admin.list_consumer_group_offsets(group, self._coordinators[group], list(places))
            except GroupAuthorizationFailedError:  # the client's own text names the group in a sentence
                right = Right(resource=Resource.GROUP, name=group, operation=Operation.DESCRIBE)
                raise NotAllowed([right], self._settings.kafka_sasl_username) from None
            if all(place in found for place in places):
                return {place: found[place].offset for place in places}
            self._coordinators.pop(group, None)
            if time.monotonic() >= until:
                msg = f"the coordinator of {group} does not say what the group has committed; ask again in a moment"
                raise GroupLoadInProgressError(msg)
            await asyncio.sleep(LOADING_PAUSE_S)

    async def members(self, group: str) -> tuple[str, list[bytes]]:
        """State of a consumer group, by its name on the broker, and what each of its members was given, as the protocol writes it.

        Raises `KafkaError`.
        """
        if self._admin is None:
            await self.start()
        if self._admin is None:
            return "", []
        (answer,) = await self._admin.describe_consumer_groups([group])
        (described,) = answer.groups
        error_code, _, state, _, _, members, *_ = described
        if error_code:  # the client passes it on; without its members, a group's partitions would seem to be nobody's
            raise for_code(error_code)
        return state, [member[4] for member in members]

    async def oldest(self, lag: Lag) -> dict[int, float | None]:
        """Seconds since the first waiting record of each partition that is behind was written, by partition.

        None where it did not come within `FIRST_RECORD_S`. Reads one record a partition; its content goes nowhere. Raises `KafkaError`.
        """
        if self._consumer is None:
            await self.start()
        consumer = self._consumer
        ages: dict[int, float | None] = {}
        for number, records in enumerate(lag.by_partition):
            if consumer is None or not records:
                continue
            place = TopicPartition(self._settings.topic_name(lag.topic), number)
            consumer.assign([place])
            consumer.seek(place, lag.next_offsets[number])
            try:
                record = await asyncio.wait_for(consumer.getone(place), FIRST_RECORD_S)
            except TimeoutError:
                ages[number] = None
            else:
                ages[number] = max(0.0, time.time() - record.timestamp / 1000)
        if consumer is not None:
            consumer.unsubscribe()
        return ages

    async def ahead(self, seconds: float) -> list[str]:
        """Topics (registry names) that hold a record whose time is more than `seconds` in the future. Raises `KafkaError`."""
        if self._admin is None or self._consumer is None:
            await self.start()
        admin, consumer = self._admin, self._consumer
        if admin is None or consumer is None:
            return []
        names = {self._settings.topic_name(topic.name): topic.name for topic in dict.fromkeys(topic for _, topic in CONSUMPTIONS)}
        described = {t["topic"]: len(t["partitions"]) for t in await admin.describe_topics(None) if not t["error_code"]}
        places = [TopicPartition(name, number) for name in names for number in range(described.get(name, 0))]
        if not places:
            return []
        moment = int((time.time() + seconds) * 1000)
        found = await consumer.offsets_for_times(dict.fromkeys(places, moment))
        return sorted({names[place.topic] for place, offset in found.items() if offset is not None and (offset.timestamp or 0) >= moment})


class LagWatch:
    """Keeps the last known lags at hand, so that a request never waits for the broker."""

    def __init__(self, settings: KafkaSettings, telemetry: Telemetry, wanted: Sequence[tuple[str, Topic]] | None = None) -> None:
        self._settings = settings
        self._telemetry = telemetry
        self._wanted = wanted
        self._lags: dict[tuple[str, str], int] = {}

    def records(self, service: str, topic: Topic) -> int:
        """Records that wait, by the last reading; 0 before the first."""
        return self._lags.get((service, topic.name), 0)

    @property
    def most(self) -> int:
        """The largest lag of a stage of the pipeline."""
        return max((records for (service, _), records in self._lags.items() if service in STAGES), default=0)

    async def run(self, every_s: float = READ_EVERY_S) -> None:
        """Read for ever, more rarely while nobody is behind; run it as a task and cancel it. What is not answered leaves them as known."""
        reader = LagReader(self._settings)
        try:
            while True:
                try:
                    async with asyncio.timeout(max(10.0, every_s)):
                        self._take(await reader.read(self._wanted))
                except (KafkaError, NotAllowed, OSError, TimeoutError) as exc:
                    self._telemetry.log.warning("lag_unknown", error=exc)
                    await reader.close()
                await asyncio.sleep(CALM * every_s if self._lags and not any(self._lags.values()) else every_s)
        finally:
            await reader.close()

    def _take(self, lags: Sequence[Lag]) -> None:
        self._lags = {(lag.service, lag.topic): lag.records for lag in lags}
        for lag in lags:
            self._telemetry.metrics.set("winnow_consumer_lag_records", lag.records, service=lag.service, topic=lag.topic)
