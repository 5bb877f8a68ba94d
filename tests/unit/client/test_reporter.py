"""The queue behind reports."""

import asyncio
from datetime import UTC, datetime
from uuid import uuid4

from tests.harness import eventually
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
    assert arrived == ["7", "8", "9"]
    assert reporter.dropped == 7
    assert reporter.sent == 3


async def test_runs_do_not_wait_for_one_another():
    """An event that cannot be delivered holds up its own run alone; within a run order is kept."""
    arrived, gate = [], asyncio.Event()

    async def send(event):
        if event.run == "stuck":
            await gate.wait()
        arrived.append((event.run, event.event_id))

    reporter = Reporter(send)
    stuck, others = [_event("stuck") for _ in range(3)], [_event(f"r{n % 5}") for n in range(50)]
    for event in stuck + others:
        reporter.publish(event)
    await eventually(lambda: len(arrived) == 50)
    assert not any(run == "stuck" for run, _ in arrived)
    gate.set()
    assert await reporter.drain(5)
    await reporter.close(1)
    for run in {e.run for e in stuck + others}:
        assert [i for r, i in arrived if r == run] == [e.event_id for e in stuck + others if e.run == run]


async def test_close_counts_what_it_leaves():
    """What is under way or waits when time is over is dropped, and counted."""

    async def send(event):
        await asyncio.Event().wait()

    reporter = Reporter(send)
    for n in range(20):
        reporter.publish(_event(str(n % 3)))
    await reporter.close(0.02)
    assert (reporter.sent, reporter.dropped) == (0, 20)


async def test_a_failed_delivery_is_tried_again_before_the_next():
    """Order within a run is kept through failures."""
    arrived, failures = [], [OSError(), ValueError(), TimeoutError()]

    async def send(event):
        if failures:
            raise failures.pop()
        arrived.append(event)

    reporter = Reporter(send, backoff=NO_WAIT)
    events = [_event("a"), _event("a")]
    for event in events:
        reporter.publish(event)
    assert await reporter.drain(5)
    await reporter.close(1)
    assert arrived == events


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
