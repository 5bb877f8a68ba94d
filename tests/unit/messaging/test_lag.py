"""How far behind a group is, also while its coordinator does not say."""

import asyncio
from collections import Counter

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import GroupLoadInProgressError, KafkaError
from aiokafka.structs import OffsetAndMetadata

from winnow.contracts.topics import CANDIDATE, EVIDENCE
from winnow.messaging import lag
from winnow.messaging.lag import LagReader, LagWatch
from winnow.messaging.settings import KafkaSettings
from winnow.telemetry import Telemetry

SETTINGS = KafkaSettings()
#: Records of each of the two partitions, of which the first ten have been deleted.
END, BEGIN = 1000, 10


class Broker:
    """A broker as aiokafka's clients show it: `committed` by partition, and `loading` answers that name no partition first."""

    def __init__(self, committed: dict[int, int], *, loading: int = 0) -> None:
        self.committed = committed
        self.loading = loading
        self.asked = 0
        #: How often the broker was asked who coordinates a group, for ends, and for beginnings.
        self.requests: Counter[str] = Counter()

    async def describe_topics(self, _topics: object) -> list[dict]:
        names = [SETTINGS.topic_name(topic.name) for topic in (CANDIDATE, EVIDENCE)]
        return [{"topic": name, "partitions": [{}, {}], "error_code": 0} for name in names]

    async def find_coordinator(self, _group: str) -> int:
        self.requests["coordinator"] += 1
        return 1

    async def list_consumer_group_offsets(self, _group: str, _coordinator: int, partitions: list[TopicPartition]) -> dict:
        self.asked += 1
        if self.loading:
            self.loading -= 1
            return {}
        return {place: OffsetAndMetadata(self.committed.get(place.partition, -1), "") for place in partitions}

    async def end_offsets(self, places: list[TopicPartition]) -> dict:
        self.requests["ends"] += 1
        return dict.fromkeys(places, END)

    async def beginning_offsets(self, places: list[TopicPartition]) -> dict:
        self.requests["begins"] += 1
        return dict.fromkeys(places, BEGIN)

    async def stop(self) -> None:
        """Nothing to stop."""

    close = stop


def reader(broker: Broker) -> LagReader:
    made = LagReader(SETTINGS)

    async def start() -> None:
        made._admin = made._consumer = broker  # type: ignore[assignment]

    made.start = start  # type: ignore[method-assign]  # also after an error, which makes it connect anew
    return made


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(lag, "LOADING_PAUSE_S", 0.001)
    monkeypatch.setattr(lag, "LOADING_S", 0.05)


async def test_a_group_is_behind_by_what_it_has_not_committed():
    """From its offset on; one that has committed nothing, or less than is still there, by all that is there."""
    (found,) = await reader(Broker({0: 990, 1: 3})).read([("retriever", CANDIDATE)])
    assert (found.by_partition, found.next_offsets) == ((10, 990), (990, 10))
    found, other = await reader(Broker({})).read([("retriever", CANDIDATE), ("judge", EVIDENCE)])
    assert found.by_partition == other.by_partition == (990, 990)


async def test_an_idle_broker_is_asked_little():
    """Ends once for all topics, beginnings only while somebody is behind, a coordinator once; anew where it does not answer."""
    broker = Broker({0: END, 1: END})
    lags = reader(broker)
    for _ in range(3):
        assert not any(lag.records for lag in await lags.read([("retriever", CANDIDATE), ("judge", EVIDENCE)]))
    assert (broker.requests, broker.asked) == ({"coordinator": 2, "ends": 3}, 6)
    broker.loading = 1
    await lags.read([("retriever", CANDIDATE)])
    assert broker.requests["coordinator"] == 3
    broker.committed = {}
    assert [lag.next_offsets for lag in await lags.read([("retriever", CANDIDATE)])] == [(BEGIN, BEGIN)]
    assert broker.requests["begins"] == 1


async def test_a_coordinator_that_loads_is_asked_again():
    """An answer without partitions is no answer: the next one counts."""
    broker = Broker({0: 995, 1: 1000}, loading=3)
    (found,) = await reader(broker).read([("retriever", CANDIDATE)])
    assert (found.records, broker.asked) == (5, 4)


async def test_a_coordinator_that_goes_on_loading_is_an_error_and_no_lag():
    """Nobody is said to be behind by a whole topic: the caller hears that it is not known."""
    with pytest.raises(GroupLoadInProgressError, match="ask again") as raised:
        await reader(Broker({}, loading=10**6)).read([("retriever", CANDIDATE)])
    assert isinstance(raised.value, KafkaError)


async def test_the_gateway_keeps_the_last_lag_that_it_knows(monkeypatch):
    """While the coordinator loads, the limit is compared with what was known before, and with the new lag as soon as there is one."""
    broker = Broker({0: 997, 1: 1000})
    monkeypatch.setattr(lag, "LagReader", lambda _settings: reader(broker))
    watch = LagWatch(SETTINGS, Telemetry.plain("test"), [("retriever", CANDIDATE)])
    running = asyncio.create_task(watch.run(every_s=0.001))
    try:
        async with asyncio.timeout(10):
            while watch.most != 3:  # noqa: ASYNC110  a condition with a deadline
                await asyncio.sleep(0.001)
            broker.loading, asked = 10**6, broker.asked
            while broker.asked < asked + 20:
                await asyncio.sleep(0.001)
                assert watch.most == 3
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


class Client:
    """A client of aiokafka whose start takes until it is let go."""

    def __init__(self, *_: object, **__: object) -> None:
        self.let_go, self.started, self.ended = asyncio.Event(), False, False

    async def start(self) -> None:
        await self.let_go.wait()
        self.started = True

    async def stop(self) -> None:
        self.ended = True

    close = stop


@pytest.mark.parametrize("answers", [True, False], ids=["a broker that answers", "a broker that is silent"])
async def test_a_start_that_is_cancelled_leaves_no_connection(monkeypatch, answers):
    """The client may finish its first question, for a while, and is closed: cut off, it would forget what it has opened."""
    admin = Client()
    monkeypatch.setattr(lag, "AIOKafkaAdminClient", lambda *_, **__: admin)
    monkeypatch.setattr(lag, "AIOKafkaConsumer", Client)
    monkeypatch.setattr(lag, "SETTLE_S", 0.05)
    starting = asyncio.create_task(LagReader(SETTINGS).start())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    starting.cancel()
    await asyncio.sleep(0)
    if answers:
        admin.let_go.set()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert (admin.started, admin.ended) == (answers, True)
