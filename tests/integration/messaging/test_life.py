"""Consumers over their life: crashes, second members, broker bounces, shutdowns, start-up checks."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace

import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from tests.harness import REPOSITORY, eventually
from tests.integration.messaging.conftest import Stage, producer_for, read_all, running, settings_for
from tests.unit.messaging.support import HASTE, NOW, candidate
from winnow.contracts.topics import CANDIDATE, COMMITTED, EVIDENCE, OBSERVATION, SCORES
from winnow.messaging import Bus
from winnow.messaging.broker import producer_of
from winnow.messaging.fakes import MemoryDeadLetters, MemoryOutbox
from winnow.messaging.health import examine
from winnow.messaging.lag import LagReader, LagWatch
from winnow.messaging.outbox import OutboxRelay
from winnow.messaging.ports import OutboxItem
from winnow.messaging.topics import TopicMismatch, ensure_topics
from winnow.telemetry import Telemetry, TelemetrySettings
from winnow.telemetry.traces import open_traces


async def test_a_crash_between_commit_and_publish_loses_no_output(kafka):
    """The batch comes again, and its stored results are published: every event has an output, all copies have one body."""
    async with running(kafka) as world:
        handle = world.stage.handle
        crashes = iter(range(3))

        async def crash_after_the_commit(batch):
            handled = await handle(batch)
            if next(crashes, None) is not None:
                raise ConnectionError
            return handled

        world.stage.handle = crash_after_the_commit
        await world.send(*[candidate(n) for n in range(1, 21)])
        await eventually(lambda: world.metric("winnow_records_total", result="handled") >= 20)
        out = await world.read(EVIDENCE, at_least=20)
    assert len({dict(r.headers)["ce_id"] for r in out}) == 20
    assert world.reasons == []


WORKER = """
    import asyncio, os, sys
    from tests.integration.messaging.conftest import Stage, running
    from winnow.messaging import KafkaSettings

    async def main():
        stage = Stage()
        async with running(KafkaSettings(), stage=stage, topics=False):
            print("ready", flush=True)
            await asyncio.Event().wait()

    asyncio.run(main())
"""


def worker(settings):
    """A consumer in a process of its own, to be killed."""
    env = {f"WINNOW_{name.upper()}": str(value) for name, value in settings.model_dump(exclude_defaults=True).items()}
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WORKER)],
        cwd=REPOSITORY,
        env={**os.environ, **env, "PYTHONPATH": "libs:."},
        stdout=subprocess.PIPE,
    )


@pytest.mark.serial
async def test_kills_and_terminations_lose_nothing(kafka):
    """Consumers are killed and terminated in turn while events come: each has at least one output, and keys keep their order."""
    await ensure_topics(kafka, Telemetry.plain())
    events, one, enough = [], None, asyncio.Event()
    async with producer_for(kafka) as producer:
        sending = asyncio.create_task(_send_until(enough, producer, kafka, events))
        try:
            for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGKILL):
                one = worker(kafka)
                await asyncio.to_thread(one.stdout.readline)
                before = await _outputs(kafka)
                await eventually(lambda before=before: _more_than(kafka, before), deadline_s=30)
                one.send_signal(number)
                await asyncio.to_thread(one.wait)
                one.stdout.close()
            one = None
            enough.set()
            await sending
        finally:
            sending.cancel()
            if one is not None:
                one.kill()
                one.wait()
                one.stdout.close()
    async with running(kafka, topics=False):
        out = await read_all(kafka, EVIDENCE, timeout_s=40)
        while len({dict(r.headers)["ce_id"] for r in out}) < len(events):
            out = await read_all(kafka, EVIDENCE, at_least=len(out) + 1, timeout_s=40)
    for run in {e.run for e in events}:
        ids = [dict(r.headers)["ce_id"].decode() for r in out if r.key == f"f/{run}".encode()]
        assert list(dict.fromkeys(ids)) == [str(e.boundary_id) for e in events if e.run == run]


async def _send_until(enough, producer, kafka, events):
    """Send candidates of five runs until it is enough; each is noted once it is confirmed."""
    while not enough.is_set():
        event = candidate(len(events) + 1, run=f"r{len(events) % 5}")
        await producer.send_and_wait(kafka.topic_name(CANDIDATE.name), event.model_dump_json().encode(), key=event.key.encode())
        events.append(event)
        await asyncio.sleep(0.005)


async def _outputs(kafka):
    """Records on the output topic, without reading them: they never end while the test sends."""
    async with LagReader(kafka) as reader:
        [lag] = await reader.read([("nobody", EVIDENCE)])
        return lag.records


async def _more_than(kafka, before):
    return await _outputs(kafka) > before


async def test_a_second_member_takes_its_share_under_load(kafka):
    """Partitions are shared, all events are handled, and each run stays in order over both members."""
    async with running(kafka) as first:
        await first.send(*[candidate(n, run=f"r{n % 9}") for n in range(1, 101)])
        async with running(kafka, topics=False) as second:
            await first.send(*[candidate(n, run=f"r{n % 9}") for n in range(101, 401)])
            await eventually(lambda: len({i for _, i in first.stage.seen + second.stage.seen}) == 400, deadline_s=40)
            await eventually(lambda: second.telemetry.metrics.value(
                "winnow_assigned_partitions", service="retriever", topic=CANDIDATE.name) > 0)  # fmt: skip
        assert first.reasons == second.reasons == []


@pytest.mark.needs("control", "persistence")
@pytest.mark.parametrize("kill", [True, pytest.param(False, marks=pytest.mark.long)])
async def test_a_broker_that_goes_and_comes_back_is_survived(own_broker, kill):
    """Consumers and producers go on by themselves; nothing is lost and nothing is a dead letter."""
    settings = settings_for(own_broker)
    async with running(settings) as world:
        await world.send(*[candidate(n) for n in range(1, 11)])
        await eventually(lambda: len(world.stage.seen) >= 10)
        await asyncio.to_thread(own_broker.kill if kill else own_broker.stop)
        sending = asyncio.create_task(world.send(*[candidate(n) for n in range(11, 21)]))
        await asyncio.to_thread(own_broker.start)
        await asyncio.wait_for(_until_sent(world, sending), 40)
        await eventually(lambda: {i for _, i in world.stage.seen} >= set(range(1, 21)), deadline_s=40)
        assert world.reasons == []
        out = await world.read(EVIDENCE, at_least=20, timeout_s=30)
        assert len({dict(r.headers)["ce_id"] for r in out}) == 20


async def _until_sent(world, sending):
    """The test's own producer gives up after its time-out; then it sends again."""
    while True:
        try:
            await sending
        except Exception:  # noqa: BLE001  whatever the client says while its broker is away
            sending = asyncio.create_task(world.send(*[candidate(n) for n in range(11, 21)]))
        else:
            return


@pytest.mark.needs("control")
async def test_a_bus_stops_though_its_broker_is_dead(own_broker):
    """Shutdown with a dead broker ends within the hard limit of the settings (aiokafka#659, #773)."""
    settings = settings_for(own_broker)
    telemetry, store = Telemetry.plain("retriever"), MemoryDeadLetters()
    await ensure_topics(settings, telemetry)
    bus = await Bus.open(settings, telemetry=telemetry, dead_letters=store, patience=HASTE)
    bus.subscribe(Stage())
    await bus.start()
    await asyncio.to_thread(own_broker.kill)
    await asyncio.wait_for(bus.stop(), 15)


async def test_a_stopped_bus_finishes_its_batch_first(kafka):
    """The handler at work ends, its outputs are published, and nothing comes twice afterwards."""
    async with running(kafka) as world:
        handle, at_work, go_on = world.stage.handle, asyncio.Event(), asyncio.Event()

        async def slow(batch):
            at_work.set()
            await go_on.wait()
            return await handle(batch)

        world.stage.handle = slow
        await world.send(candidate(1))
        await asyncio.wait_for(at_work.wait(), 10)
        stopping = asyncio.create_task(world.bus.stop())
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.wait_for(stopping, 10)
        assert world.stage.seen == [("r", 1)]
    async with running(kafka, topics=False) as second:
        await second.send(candidate(2))
        await eventually(lambda: second.stage.seen)
        assert second.stage.seen == [("r", 2)]
        assert len(await second.read(EVIDENCE, at_least=2)) == 2


async def test_a_bus_stops_quickly_while_it_waits_for_a_database(kafka):
    """A batch that pauses between attempts gives up its pause; the event comes again to the next member."""
    patience = replace(HASTE, first_pause_s=100, most_pause_s=100)
    async with running(kafka, patience=patience) as world:
        called = asyncio.Event()

        def fail(_):
            called.set()
            return ConnectionError()

        world.stage.fail = fail
        await world.send(candidate(1))
        await asyncio.wait_for(called.wait(), 10)
        began = time.monotonic()
        await world.bus.stop()
        assert time.monotonic() - began < 100
    async with running(kafka, topics=False) as second:
        await eventually(lambda: second.stage.seen == [("r", 1)])


async def test_a_running_bus_is_ready_and_alive_and_a_stopped_one_is_not(kafka):
    """Ready means that the broker answers and every consumer is in its group; liveness stays green without traffic."""
    async with running(kafka) as world:
        await eventually(lambda: world.bus.subscriptions[0].member.joined)
        assert (await examine(world.bus.checks())).problems == {
            "kafka": None,
            "publishing": None,
            f"joined {CANDIDATE.name}": None,
            f"consuming {CANDIDATE.name}": None,
            f"progress {CANDIDATE.name}": None,
        }
        first = world.bus.subscriptions[0].progress._polled
        await eventually(lambda: world.bus.subscriptions[0].progress._polled > first)
        await eventually(lambda: world.bus.subscriptions[0].fetch_age_s() is not None)
        assert "winnow_poll_age_seconds" in world.telemetry.metrics.render().decode()
        await world.bus.stop()
        assert (await examine(world.bus.checks())).problems["kafka"] == "not started"


async def test_the_producer_is_where_we_look_for_it(kafka):
    """The framework keeps its producer in a private place; a version that moves it fails here."""
    async with running(kafka) as world:
        producer = producer_of(world.bus.broker)
        assert type(producer).__name__ == "AIOKafkaProducer"
        assert producer._sender._acks == -1


@pytest.mark.needs("idempotence")
async def test_producers_are_idempotent_where_the_broker_can(kafka):
    """`auto` asks the broker; Apache Kafka says yes."""
    async with running(kafka) as world:
        assert producer_of(world.bus.broker)._txn_manager is not None
    async with running(kafka.model_copy(update={"idempotence": "off"}), topics=False) as world:
        assert producer_of(world.bus.broker)._txn_manager is None


async def test_topics_are_created_once_and_checked_ever_after(kafka):
    """Several processes may do it at the same time."""
    telemetry = Telemetry.plain()
    results = await asyncio.gather(*(ensure_topics(kafka, telemetry) for _ in range(3)))
    assert results == [[], [], []]
    other = kafka.model_copy(update={"partitions": 5})
    findings = await ensure_topics(other, telemetry)
    assert {f.severity.value for f in findings} == {"warning"}


async def test_boundary_topics_of_different_size_stop_the_start(kafka):
    """An order-breaking layout is refused with what is wrong."""
    admin = AIOKafkaAdminClient(**kafka.client_options())
    await admin.start()
    try:
        await admin.create_topics([NewTopic(kafka.topic_name(EVIDENCE.name), 5, 1)])
    finally:
        await admin.close()
    with pytest.raises(TopicMismatch, match="same number of partitions"):
        await ensure_topics(kafka, Telemetry.plain())


async def test_missing_topics_are_an_error_where_we_may_not_create_them(kafka):
    """A cluster whose topics are provisioned elsewhere gets a list of what is missing."""
    with pytest.raises(TopicMismatch, match="is missing"):
        await ensure_topics(kafka, Telemetry.plain(), may_create=False)


async def test_the_lag_of_a_group_is_what_it_has_not_committed(kafka):
    """Records of a topic that nobody has read count; what was acknowledged does not."""
    async with running(kafka) as world:
        for n in range(1, 31):
            await world.send(candidate(n))
        await eventually(lambda: world.metric("winnow_records_total", result="handled") == 30)
        async with LagReader(kafka) as reader:
            await eventually(lambda: _lag_is(reader, "retriever", CANDIDATE, 0))
            [unread] = await reader.read([("judge", EVIDENCE)])
            assert 0 < unread.records <= 30
            assert await reader.read([("judge", SCORES)]) != []
        watch = LagWatch(kafka, world.telemetry, [("judge", EVIDENCE)])
        task = asyncio.create_task(watch.run(every_s=0.05))
        await eventually(lambda: watch.records("judge", EVIDENCE) == unread.records == watch.most)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert world.telemetry.metrics.value("winnow_consumer_lag_records", service="judge", topic=EVIDENCE.name) == unread.records


async def _lag_is(reader, service, topic, records):
    [lag] = await reader.read([(service, topic)])
    return lag.records == records


async def test_the_outbox_reaches_the_topic_in_order(kafka):
    """Rows are published with their identity and trace; a second relay has nothing to do."""
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    async with running(kafka) as world:
        store = MemoryOutbox()
        for n in range(40):
            store.put(
                OutboxItem(id=0, topic=OBSERVATION.name, key=f"f/s{n % 3}", body=b"%d" % n, event_id=str(n), time=NOW, traceparent=parent)
            )
        relay = OutboxRelay(store, world.bus.publisher, world.telemetry, rng=random.Random(0), clock=time.monotonic)
        relay.start()
        await eventually(lambda: not store.unsent)
        await relay.stop()
        out = await world.read(OBSERVATION, at_least=40)
    for key in range(3):
        assert [int(r.value) for r in out if r.key == b"f/s%d" % key] == list(range(key, 40, 3))
    assert {dict(r.headers)["traceparent"] for r in out} == {parent.encode()}


async def test_one_trace_spans_three_stages(kafka):
    """send, process, send, process, send: each hangs under the one before, across services and batches."""
    exporters, stages = [], []
    for service, source, target in (("retriever", CANDIDATE, EVIDENCE), ("judge", EVIDENCE, SCORES), ("pruner", SCORES, COMMITTED)):
        exporters.append(InMemorySpanExporter())
        telemetry = replace(Telemetry.plain(service), traces=open_traces(TelemetrySettings(), service, exporters[-1]))
        stage = Stage()
        stage.topic, stage.body, stage.target = source, lambda event: event.model_dump_json().encode(), target
        stages.append((telemetry, stage))
    await ensure_topics(kafka, stages[0][0])
    buses = []
    try:
        for telemetry, stage in stages:
            bus = await Bus.open(kafka, telemetry=telemetry, dead_letters=MemoryDeadLetters(), patience=HASTE)
            bus.subscribe(stage)
            buses.append(bus)
        await asyncio.gather(*(bus.start() for bus in buses))
        async with producer_for(kafka) as producer:
            parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            for n in range(1, 4):
                event = candidate(n)
                headers = [("traceparent", parent.replace("0af7", f"000{n}").encode())]
                await producer.send_and_wait(
                    kafka.topic_name(CANDIDATE.name), event.model_dump_json().encode(), key=event.key.encode(), headers=headers
                )
        out = await read_all(kafka, COMMITTED, at_least=3)
    finally:
        await asyncio.gather(*(bus.stop() for bus in buses))
        for telemetry, _ in stages:
            telemetry.close()
    by_id = {span.context.span_id: span for exporter in exporters for span in exporter.get_finished_spans()}
    for n in range(1, 4):
        record = next(r for r in out if dict(r.headers)["traceparent"].startswith(b"00-000%d" % n))
        at = int(dict(record.headers)["traceparent"].split(b"-")[2], 16)
        names = []
        while at in by_id:
            names.append(by_id[at].name.split()[0])
            at = by_id[at].parent.span_id
        assert names == ["send", "process"] * 3
        assert f"{at:016x}" == "b7ad6b7169203331"
