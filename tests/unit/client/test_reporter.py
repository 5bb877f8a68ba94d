"""The queue behind reports."""

import asyncio
from datetime import UTC, datetime
from uuid import uuid4

from winnow.client.backoff import Backoff
from winnow.client.reporter import Reporter
from winnow.contracts.events import RuntimeEvent

NO_WAIT = Backoff(first_s=0.001, most_s=0.002)


def _event(run):
    return RuntimeEvent(event_id=uuid4(), fleet="f", run=run, kind="run_ended", at=datetime.now(UTC))


async def test_a_full_queue_loses_its_oldest():
    """Publishing never blocks; what is lost is counted."""
    arrived, gate = [], asyncio.Event()

    async def send(event):
        await gate.wait()
        arrived.append(event.run)

    reporter = Reporter(send, capacity=3)
    for n in range(10):
        reporter.publish(_event(str(n)))
    gate.set()
    assert await reporter.drain(5)
    await reporter.close(1)
    assert arrived[-3:] == ["7", "8", "9"]
    assert reporter.dropped == 7
    assert reporter.sent == 3


async def test_a_failed_delivery_is_tried_again_before_the_next():
    """Order is kept through failures."""
    arrived, failures = [], [OSError(), ValueError(), TimeoutError()]

    async def send(event):
        if failures:
            raise failures.pop()
        arrived.append(event.run)

    reporter = Reporter(send, backoff=NO_WAIT)
    reporter.publish(_event("a"))
    reporter.publish(_event("b"))
    assert await reporter.drain(5)
    await reporter.close(1)
    assert arrived == ["a", "b"]


async def test_the_task_begins_again_should_it_ever_die():
    """A cancelled background task does not silence the reports that follow."""
    arrived = []

    async def send(event):
        arrived.append(event.run)

    reporter = Reporter(send)
    reporter.publish(_event("a"))
    assert await reporter.drain(5)
    reporter._task.cancel()
    await asyncio.gather(reporter._task, return_exceptions=True)
    reporter.publish(_event("b"))
    assert await reporter.drain(5)
    await reporter.close(1)
    assert arrived == ["a", "b"]


async def test_closing_an_unused_reporter_is_immediate():
    """Nothing was published, nothing is waited for."""

    async def send(event):
        raise AssertionError

    reporter = Reporter(send)
    await reporter.close(60)
    assert reporter.dropped == 0
