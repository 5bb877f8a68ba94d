"""How long the broker may hold a fetch: short while records come, long once none do."""

from types import SimpleNamespace

import pytest

from winnow.contracts.topics import CANDIDATE
from winnow.messaging.health import Progress
from winnow.messaging.settings import KafkaSettings
from winnow.messaging.subscription import BUSY_S, UNHURRIED, Subscription, Waits

BUSY, IDLE = 40, 250


class Client:
    """A consumer of aiokafka: polls bring what is asked of it."""

    def __init__(self) -> None:
        self._fetcher = SimpleNamespace(_fetch_max_wait_ms=BUSY)
        self.records: dict[str, list[str]] = {}
        self.waited: list[int] = []

    async def getmany(self, *_partitions: object, timeout_ms: int, max_records: int | None) -> dict[str, list[str]]:
        assert max_records == 7
        self.waited.append(timeout_ms)
        return self.records

    @property
    def wait_ms(self) -> int:
        return self._fetcher._fetch_max_wait_ms


async def test_a_fetch_waits_long_only_where_nothing_has_come_for_a_while():
    """A consumer begins as a busy one, falls idle after a while without records, and is busy again with the first one."""
    now = 0.0
    progress, client = Progress(lambda: now, busy_limit_s=60), Client()
    Subscription(
        CANDIDATE, "group", SimpleNamespace(consumer=client), None, progress, None, Waits(busy=BUSY, idle=IDLE), lambda _: None
    ).watch_polls()
    for seconds, records, wait_ms in ((BUSY_S, {}, BUSY), (0.1, {}, IDLE), (9, {"p": ["r"]}, BUSY)):
        now, client.records = now + seconds, records
        assert await client.getmany(timeout_ms=10, max_records=7) == records
        assert client.wait_ms == wait_ms
    progress.working()
    progress.idle()  # the batch that came is over
    client.records = {}
    for seconds, wait_ms in ((BUSY_S, BUSY), (0.1, IDLE)):
        now += seconds
        await client.getmany(timeout_ms=10, max_records=7)
        assert client.wait_ms == wait_ms
    assert min(client.waited) > 10


def test_a_consumer_nobody_waits_for_asks_more_rarely():
    """Its fetches wait as long as records gather, at least, and several times as long as others' where none come."""
    settings = KafkaSettings(fetch_max_wait_ms=IDLE, fetch_busy_wait_ms=BUSY)
    assert Waits.of(settings, 0) == Waits(busy=BUSY, idle=IDLE)
    assert Waits.of(settings, 200) == Waits(busy=200, idle=UNHURRIED * IDLE)
    assert Waits.of(settings, 2 * UNHURRIED * IDLE).idle == 2 * UNHURRIED * IDLE


@pytest.mark.parametrize(("given", "busy"), [({}, 100), ({"fetch_busy_wait_ms": 30}, 30), ({"fetch_max_wait_ms": 500}, 500)])
def test_the_wait_while_records_come_is_the_other_one_unless_it_is_set(given, busy):
    """One setting suffices where the broker ends the wait when a record comes."""
    assert KafkaSettings(**given).busy_wait_ms == busy
