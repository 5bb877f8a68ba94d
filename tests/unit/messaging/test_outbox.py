"""The outbox relay and the sweeper."""

import asyncio
import random

from hypothesis import given
from hypothesis import strategies as st

from tests.harness import eventually
from tests.unit.messaging.support import NOW, FakePublisher
from winnow.contracts.topics import CANDIDATE, OBSERVATION
from winnow.messaging import background
from winnow.messaging import outbox as messaging_outbox
from winnow.messaging.fakes import MemoryOutbox
from winnow.messaging.outbox import OutboxRelay, outgoing_of, send_in_order, waves
from winnow.messaging.ports import OutboxItem
from winnow.messaging.sweeper import Sweeper
from winnow.telemetry import Telemetry

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def item(number, key="f/r", topic=CANDIDATE.name, body=b"{}"):
    return OutboxItem(id=number, topic=topic, key=key, body=body, event_id=str(number), time=NOW, traceparent=PARENT)


@given(st.lists(st.sampled_from("abcd"), max_size=60))
def test_waves_keep_every_row_and_the_order_of_each_key(keys):
    """No wave has a key twice; over the waves each key's rows stand in their order."""
    rows = [item(n, key=k) for n, k in enumerate(keys)]
    cut = list(waves(rows))
    assert sorted(r.id for wave in cut for r in wave) == [r.id for r in rows]
    for wave in cut:
        assert len({r.key for r in wave}) == len(wave)
    for key in set(keys):
        assert [r.id for wave in cut for r in wave if r.key == key] == [r.id for r in rows if r.key == key]


@given(st.lists(st.sampled_from("abcd"), max_size=40), st.sets(st.sampled_from("abcd")))
def test_a_key_that_fails_never_overtakes_itself(keys, broken):
    """After a failure the later rows of the key stay unsent; other keys go on."""
    publisher = FakePublisher()
    publisher.error, publisher.only = ConnectionError(), broken
    if not broken:
        publisher.error = None
    rows = [item(n, key=k) for n, k in enumerate(keys)]
    done = asyncio.run(send_in_order(publisher, rows, Telemetry.plain()))
    assert sorted(done) == [r.id for r in rows if r.key not in broken]


def test_a_row_carries_its_trace_and_identity():
    """The event that is published is the one that was stored."""
    one = outgoing_of(item(7, topic=OBSERVATION.name))
    assert (one.topic, one.event_id, one.time, one.traceparent) == (OBSERVATION, "7", NOW, PARENT)
    assert outgoing_of(item(7, topic="nowhere")) is None


async def test_a_row_that_can_never_be_sent_holds_nothing_behind_it():
    """An unknown topic or an oversize body is reported and done with."""
    telemetry, publisher = Telemetry.plain(), FakePublisher()
    rows = [item(1, topic="nowhere"), item(2, body=b"x" * 9_000_000), item(3)]
    assert await send_in_order(publisher, rows, telemetry) == [1, 2, 3]
    for topic in ("nowhere", CANDIDATE.name):
        assert telemetry.metrics.value("winnow_publish_errors_total", service=telemetry.service, topic=topic) == 1
    assert [o.event_id for o in publisher.sent] == ["3"]


async def test_the_relay_sends_what_is_there_and_what_it_is_told_of():
    """Rows go out at start, and at once when the relay is woken."""
    store, publisher, telemetry = MemoryOutbox(), FakePublisher(), Telemetry.plain()
    store.put(item(0))
    relay = OutboxRelay(store, publisher, telemetry, rng=random.Random(0), clock=lambda: 0.0, poll_s=3600)
    relay.start()
    await eventually(lambda: len(publisher.sent) == 1)
    store.put(item(0))
    relay.wake()
    await eventually(lambda: len(publisher.sent) == 2)
    await relay.stop()
    await relay.stop()
    assert store.unsent == []
    assert telemetry.metrics.value("winnow_outbox_sent_total", service="test") == 2


async def test_the_relay_goes_on_at_once_where_bytes_cut_a_round(monkeypatch):
    """Large rows are taken a few at a time, and the rest does not wait for the next poll."""
    monkeypatch.setattr(messaging_outbox, "RELAY_BYTES", 2)

    class OneByOne(MemoryOutbox):
        async def relay(self, limit, send):
            return await super().relay(min(limit, 1), send)

    store, publisher = OneByOne(), FakePublisher()
    for _ in range(5):
        store.put(item(0, body=b"{}"))
    relay = OutboxRelay(store, publisher, Telemetry.plain(), rng=random.Random(0), clock=lambda: 0.0, poll_s=3600)
    relay.start()
    await eventually(lambda: len(publisher.sent) == 5)
    await relay.stop()


async def test_the_relay_survives_a_broker_that_is_away(monkeypatch):
    """Rows wait with back-off and go out when the broker is back, each once in the table."""
    monkeypatch.setattr(background, "FIRST_PAUSE_S", 0.0001)
    monkeypatch.setattr(background, "MOST_PAUSE_S", 0.001)
    store, publisher, telemetry = MemoryOutbox(), FakePublisher(), Telemetry.plain()
    publisher.error = ConnectionError()
    for _ in range(3):
        store.put(item(0))
    relay = OutboxRelay(store, publisher, telemetry, rng=random.Random(0), clock=lambda: 0.0, poll_s=0.001)
    relay.start()
    await eventually(lambda: relay._loop.errors >= 3)
    assert len(store.unsent) == 3
    publisher.error = None
    await eventually(lambda: not store.unsent)
    await relay.stop()
    assert [o.event_id for o in publisher.sent] == ["0", "0", "0"]


async def test_the_sweeper_publishes_what_is_stuck():
    """Stuck boundaries go out again and are counted by topic."""
    store, publisher, telemetry = MemoryOutbox(), FakePublisher(), Telemetry.plain()
    store.stuck = [item(1), item(2)]
    sweeper = Sweeper(store, publisher, telemetry, rng=random.Random(0))
    sweeper.start()
    await eventually(lambda: len(publisher.sent) == 2)
    await sweeper.stop()
    assert telemetry.metrics.value("winnow_swept_total", service="test", topic=CANDIDATE.name) == 2


async def test_a_loop_that_meets_errors_goes_on(monkeypatch):
    """An error is reported with its pause; the step is called again."""
    monkeypatch.setattr(background, "FIRST_PAUSE_S", 0.0001)
    calls, said = [], []

    async def step():
        calls.append(1)
        if len(calls) < 3:
            raise ZeroDivisionError
        return False

    loop = background.Background(
        "x", step, every_s=0.0001, telemetry=Telemetry.plain(), rng=random.Random(0), failed=lambda exc, pause: said.append((exc, pause))
    )
    loop.start()
    await eventually(lambda: len(calls) >= 5)
    await loop.stop()
    assert [type(exc) for exc, _ in said] == [ZeroDivisionError] * 2
    assert loop.errors == 0
