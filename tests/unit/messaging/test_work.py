"""The handler's part of the recipe."""

import asyncio

import pytest

from tests.harness import eventually
from tests.unit.messaging.support import HASTE, ScriptedHandler, World, candidate, outgoing, received
from winnow.contracts.errors import Conflict, Permanent, Retryable
from winnow.messaging.faults import Fault, Limit, classify
from winnow.messaging.records import Handled
from winnow.messaging.work import SUSPECT_AFTER, GoingAway, Halted

NEVER = Limit(min_failures=10**6, max_consecutive=10**6)


def batch(*numbers, **kwargs):
    return [received(n, run=f"r{n}", **kwargs) for n in numbers]


def when(*numbers, error):
    """Fail where one of `numbers` is in the batch."""
    return lambda given: error if {one.event.index for one in given} & set(numbers) else None


async def test_a_batch_is_handled_at_once_and_published_in_order():
    """One call, one publication of all, nothing dead."""
    world = World()
    assert await world.worker.run(batch(1, 2, 3)) == []
    assert world.handler.calls == [[1, 2, 3]]
    assert [o.key for o in world.publisher.sent] == ["f/r1", "f/r2", "f/r3"]


async def test_a_permanent_error_makes_one_dead_letter_and_holds_no_neighbour():
    """The batch runs again record by record; the bad one is dead with its own reason, after one attempt alone."""
    world = World()
    world.handler.fail = when(2, error=Conflict())
    [dead] = await world.worker.run(batch(1, 2, 3))
    assert (dead.record.offset, dead.reason) == (2, "id_conflict")
    assert world.handler.calls == [[1, 2, 3], [1], [2], [3]]
    assert [o.key for o in world.publisher.sent] == ["f/r1", "f/r3"]
    assert world.metric("winnow_handler_errors_total") == 0


async def test_an_error_of_our_own_is_tried_some_times_alone():
    """The record becomes handler_error after the attempts of the policy; its text quotes no content."""
    world = World(limit=NEVER)
    world.handler.fail = when(2, error=KeyError("the secret plan"))
    [dead] = await world.worker.run(batch(1, 2))
    assert dead.reason == "handler_error"
    assert "secret" not in dead.error
    assert dead.error.startswith("KeyError at")
    assert world.handler.calls == [[1, 2], [1], *[[2]] * HASTE.own_attempts]
    assert world.metric("winnow_handler_errors_total") == 1


async def test_a_transient_error_is_repeated_and_passes():
    """Two failures of the database are invisible to everybody else."""
    world = World()
    errors = iter([Retryable(), ConnectionResetError(), None])
    world.handler.fail = lambda _: next(errors)
    assert await world.worker.run(batch(1)) == []
    assert len(world.handler.calls) == 3
    assert world.metric("winnow_transient_errors_total") == 2


async def test_a_transient_error_that_stays_is_raised_and_nothing_is_dead():
    """After its patience the batch goes back to the broker; it is never dead-lettered and never split."""
    world = World()
    world.handler.fail = lambda _: TimeoutError()
    with pytest.raises(TimeoutError):
        await world.worker.run(batch(1, 2))
    assert world.handler.calls == [[1, 2]] * HASTE.transient_attempts


async def test_patience_ends_with_the_time_of_the_batch():
    """No pause is begun that would end after the batch's deadline."""
    world = World(max_poll_interval_ms=1000)
    world.handler.fail = lambda _: setattr(world, "now", world.now + 0.3) or TimeoutError()
    with pytest.raises(TimeoutError):
        await world.worker.run(batch(1))
    assert len(world.handler.calls) == 2


async def test_a_publish_error_is_raised_after_the_commit():
    """The fetch comes again; the handler then publishes its stored results."""
    world = World()
    world.publisher.error = ConnectionError()
    with pytest.raises(ConnectionError):
        await world.worker.run(batch(1))


async def test_an_output_above_its_topic_s_limit_kills_its_record_alone():
    """Too large an output is a dead letter with too_large, not an endless loop; its neighbours are published."""
    world = World()
    world.handler.answer = lambda one: outgoing(one.event, b"x" * (2_000_000 if one.event.index == 2 else 10))
    [dead] = await world.worker.run(batch(1, 2, 3))
    assert (dead.record.offset, dead.reason) == (2, "too_large")
    assert [o.key for o in world.publisher.sent] == ["f/r1", "f/r3"]


async def test_what_the_handler_declares_dead_is_dead():
    """Dead letters of the handler's own are passed on."""
    world = World()
    first = batch(1)
    from winnow.messaging.records import Dead

    async def handle(given):
        return Handled(dead=[Dead(record=given[0].record, reason="unknown_boundary", error="nobody knows it")])

    world.handler.handle = handle
    assert [d.reason for d in await world.worker.run(first)] == ["unknown_boundary"]


async def test_errors_of_our_own_that_pile_up_stop_consumption():
    """A bad deploy halts before it drains the topic into its dead letters."""
    world = World(limit=Limit(max_consecutive=4, min_failures=100))
    world.handler.fail = lambda _: ZeroDivisionError()
    with pytest.raises(Halted):
        await world.worker.run(batch(*range(1, 50)))
    assert world.worker.halted
    assert world.metric("winnow_consumption_halted") == 1
    assert world.metric("winnow_handler_errors_total") == 3
    with pytest.raises(Halted):
        await world.worker.run(batch(50))


async def test_invalid_input_never_stops_consumption():
    """A thousand conflicts are a thousand dead letters, or one tenant could stop all."""
    world = World(limit=Limit(max_consecutive=4, min_failures=4, max_ratio=0.1))
    world.handler.fail = lambda _: Conflict()
    dead = await world.worker.run(batch(*range(1, 101)))
    assert len(dead) == 100
    assert not world.worker.halted


async def test_consumption_goes_on_when_a_trial_succeeds():
    """While halted, one record that our handler takes is enough; the broken one is then a dead letter."""
    world = World(limit=Limit(max_consecutive=2, min_failures=100))
    world.handler.fail = lambda _: ZeroDivisionError()
    with pytest.raises(Halted):
        await world.worker.run(batch(1, 2, 3))
    world.handler.fail = when(1, error=ZeroDivisionError())
    dead = await world.worker.run(batch(1, 2, 3))
    assert [d.record.offset for d in dead] == [1]
    assert not world.worker.halted
    assert world.metric("winnow_consumption_halted") == 0


async def test_a_pause_ends_at_once_when_the_process_stops():
    """Whoever waits for the database does not hold up a shutdown."""
    world = World(patience=type(HASTE)(first_pause_s=100, most_pause_s=100))
    world.handler.fail = lambda _: Retryable()
    running = asyncio.create_task(world.worker.run(batch(1)))
    await eventually(lambda: world.handler.calls)
    world.around.stopping.set()
    with pytest.raises(GoingAway):
        await running


async def test_a_record_whose_errors_only_seem_to_pass_is_found():
    """It fails with time-outs while its neighbours succeed, fetch after fetch: in the end it is a dead letter."""
    world = World(limit=NEVER)
    world.handler.fail = when(2, error=TimeoutError())
    for round_ in range(SUSPECT_AFTER, SUSPECT_AFTER + HASTE.own_attempts - 1):
        with pytest.raises(TimeoutError):
            await world.worker.run(batch(1, 2, 3), failed_fetches=round_)
    [dead] = await world.worker.run(batch(1, 2, 3), failed_fetches=SUSPECT_AFTER + HASTE.own_attempts)
    assert (dead.record.offset, dead.reason) == (2, "handler_error")


async def test_where_everything_fails_nothing_is_suspected():
    """A database that is down makes no dead letters, however long it is down."""
    world = World(limit=NEVER)
    world.handler.fail = lambda _: TimeoutError()
    for round_ in range(20):
        with pytest.raises(TimeoutError):
            await world.worker.run(batch(1, 2, 3), failed_fetches=round_)
    assert world.metric("winnow_handler_errors_total") == 0


async def test_the_records_of_a_key_wait_for_the_suspect_before_them():
    """Order within a run holds: what stands behind a suspect is handled only after it was given up."""
    world = World(limit=NEVER)
    given = [received(1, run="a"), received(2, run="a"), received(3, run="b")]
    world.handler.fail = when(1, error=TimeoutError())
    world.handler.calls.clear()
    rounds = 0
    dead = None
    while dead is None:
        try:
            dead = await world.worker.run(given, failed_fetches=SUSPECT_AFTER + rounds)
        except TimeoutError:
            rounds += 1
            assert [2] not in world.handler.calls
    assert [d.record.offset for d in dead] == [1]
    assert world.handler.calls[-1] == [2]
    assert rounds == HASTE.own_attempts - 1


async def test_a_service_s_own_knowledge_of_errors_is_used():
    """A driver's error that storage knows to pass is repeated, not dead-lettered."""

    class DeadlockDetected(Exception):
        pass

    world = World(classify=lambda exc: Fault.TRANSIENT if isinstance(exc, DeadlockDetected) else classify(exc))
    errors = iter([DeadlockDetected(), None])
    world.handler.fail = lambda _: next(errors)
    assert await world.worker.run(batch(1)) == []


async def test_cancellation_passes_through():
    """A cancelled batch is neither dead nor repeated."""
    world = World()

    async def handle(_):
        raise asyncio.CancelledError

    world.handler.handle = handle
    with pytest.raises(asyncio.CancelledError):
        await world.worker.run(batch(1))


async def test_a_permanent_error_keeps_the_reason_it_was_raised_with():
    """The reason code of the error is the reason code of the letter."""
    world = World()
    world.handler.fail = lambda _: Permanent("no such boundary", reason="unknown_boundary")
    [dead] = await world.worker.run(batch(1))
    assert (dead.reason, dead.error) == ("unknown_boundary", "Permanent: no such boundary")


def test_the_handler_s_contract_is_small():
    """A handler needs a topic, a model, an identity and a call."""
    handler = ScriptedHandler()
    assert handler.identity(candidate(1)) == handler.identity(candidate(1))
    assert handler.identity(candidate(1)) != handler.identity(candidate(2))
