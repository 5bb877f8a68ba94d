"""Publishing: order, sizes, failures."""

import asyncio

import pytest
from aiokafka.errors import TopicAuthorizationFailedError
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.messaging.support import NOW, candidate, outgoing
from winnow.contracts.errors import TooLarge
from winnow.contracts.rights import NotAllowed
from winnow.contracts.topics import CANDIDATE, EVIDENCE
from winnow.messaging.publisher import Publisher, check_size, record_bytes
from winnow.messaging.records import Outgoing
from winnow.messaging.settings import KafkaSettings
from winnow.telemetry import Telemetry

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class FakeProducer:
    """Queues, and confirms when told; fails to queue or to confirm as told."""

    def __init__(self):
        self.queued, self.futures, self.queue_error, self.confirm_error = [], [], {}, {}

    async def send(self, topic, *, value, key, headers, partition=None):
        number = len(self.queued)
        if number in self.queue_error:
            raise self.queue_error[number]
        self.queued.append((topic, key, value, headers))
        future = asyncio.get_running_loop().create_future()
        if number in self.confirm_error:
            future.set_exception(self.confirm_error[number])
        else:
            future.set_result(None)
        return future


def made(prefix=""):
    producer, telemetry = FakeProducer(), Telemetry.plain("judge")
    return producer, telemetry, Publisher(lambda: producer, KafkaSettings(topic_prefix=prefix), telemetry)


async def test_events_are_queued_in_order_with_their_headers():
    """Exact bytes, the run as the key, CloudEvents headers, the trace parent of the row."""
    producer, telemetry, publisher = made("p.")
    await publisher.send(
        [
            Outgoing(topic=EVIDENCE, key=f"f/r{n}", body=b"%d" % n, event_id=str(n), time=NOW, traceparent=PARENT, claim=n == 1)
            for n in range(3)
        ]
    )
    assert [(t, k, v) for t, k, v, _ in producer.queued] == [("p." + EVIDENCE.name, b"f/r%d" % n, b"%d" % n) for n in range(3)]
    headers = [dict(h) for *_, h in producer.queued]
    assert [h["ce_id"] for h in headers] == [b"0", b"1", b"2"]
    assert {h["traceparent"] for h in headers} == {PARENT.encode()}
    assert ["winnow_claim" in h for h in headers] == [False, True, False]
    assert headers[0]["ce_source"] == b"winnow/judge"
    assert telemetry.metrics.value("winnow_published_total", service="judge", topic=EVIDENCE.name) == 3


async def test_nothing_is_sent_where_one_is_too_large():
    """The size is known before anything leaves."""
    producer, _, publisher = made()
    with pytest.raises(TooLarge):
        await publisher.send([outgoing(candidate(1)), outgoing(candidate(2), b"x" * 1_000_000)])
    assert producer.queued == []


async def test_a_confirmation_that_fails_is_raised_after_the_others_are_settled():
    """The batch comes again; every other confirmation was awaited."""
    producer, telemetry, publisher = made()
    producer.confirm_error[1] = ConnectionError("lost")
    with pytest.raises(ConnectionError):
        await publisher.send([outgoing(candidate(n)) for n in range(1, 4)])
    assert len(producer.queued) == 3
    assert telemetry.metrics.value("winnow_publish_errors_total", service="judge", topic=EVIDENCE.name) == 1


async def test_after_an_error_in_queueing_nothing_behind_it_is_sent():
    """Order: what comes later must not overtake what failed."""
    producer, _, publisher = made()
    producer.queue_error[1] = TimeoutError()
    errors = await publisher.send_each([outgoing(candidate(n)) for n in range(1, 5)])
    assert [type(e).__name__ for e in errors] == ["NoneType", "TimeoutError", "TimeoutError", "TimeoutError"]
    assert len(producer.queued) == 1
    assert publisher.refused == {}, "no rule of the broker is made up for it"


@given(
    st.none() | st.binary(max_size=200),
    st.none() | st.binary(max_size=2000),
    st.lists(st.tuples(st.text(max_size=20), st.binary(max_size=50))),
)
def test_the_size_of_a_record_is_never_underestimated(key, value, headers):
    """Our estimate is at least what the client's own builder makes of it."""
    builder = DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, 1 << 30)
    builder.append(0, timestamp=2**40, key=key, value=value, headers=headers)
    assert record_bytes(key, value, headers) >= len(builder.build())


def test_the_largest_bodies_of_the_contract_fit():
    """A body at its topic's limit passes with the longest key there is."""
    key = "f" * 64 + "/" + "\U0001f600" * 200
    for topic in (CANDIDATE, EVIDENCE):
        check_size(topic, b"x" * topic.max_body_bytes, key)
        with pytest.raises(TooLarge, match="claim check"):
            check_size(topic, b"x" * (topic.max_body_bytes + 1), key)


async def test_a_topic_that_the_broker_hides_holds_up_its_own_records_alone():
    """Others go out in their order, the refusal says what to grant, and it is over with the first record that is confirmed."""
    producer, telemetry, publisher = made("p.")
    allowed: list[bool] = []
    items = [
        Outgoing(topic=topic, key=f"f/r{n}", body=b"%d" % n, event_id=str(n), time=NOW)
        for n, topic in enumerate((CANDIDATE, EVIDENCE, EVIDENCE, CANDIDATE))
    ]

    async def send(topic, **fields):
        if topic.endswith(EVIDENCE.name) and not allowed:
            raise TopicAuthorizationFailedError(topic)
        return await plain(topic, **fields)

    plain, producer.send = FakeProducer.send.__get__(FakeProducer()), send
    errors = await publisher.send_each(items)
    assert [error is None for error in errors] == [True, False, False, True]
    assert all(isinstance(error, NotAllowed) for error in errors[1:3])
    assert "--operation Write --topic p." + EVIDENCE.name in str(errors[1])
    assert set(publisher.refused) == {"p." + EVIDENCE.name}
    assert telemetry.metrics.value("winnow_publish_errors_total", service="judge", topic=EVIDENCE.name) == 2
    allowed.append(True)
    assert await publisher.send_each(items) == [None] * 4
    assert publisher.refused == {}
