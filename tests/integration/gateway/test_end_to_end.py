"""Gateway, broker and client together; the stages between are played."""

import asyncio
import json
import signal
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.harness import eventually
from tests.integration.client.responder import PARTITIONS, create_topics
from tests.integration.gateway.conftest import body, new_key
from tests.unit.client.answers import candidate, pruned
from winnow.client import Because, HttpTransport, IdConflict, SyncWinnowClient, WinnowClient
from winnow.contracts.events import Candidate
from winnow.contracts.topics import CANDIDATE, OBSERVATION, RUNTIME
from winnow.contracts.vocabulary import Adopted
from winnow.messaging.settings import KafkaSettings


@pytest.fixture
async def kafka(broker, topic_prefix):
    """The test broker, with the topics that the gateway writes to."""
    await create_topics(broker.bootstrap, topic_prefix)
    return KafkaSettings(kafka_bootstrap_servers=broker.bootstrap, topic_prefix=topic_prefix)


@asynccontextmanager
async def reading(bootstrap, prefix, topic):
    """A consumer of all partitions of a topic, from their beginnings."""
    from aiokafka import AIOKafkaConsumer
    from aiokafka.structs import TopicPartition

    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, max_partition_fetch_bytes=20_000_000, fetch_max_wait_ms=20)
    await consumer.start()
    try:
        where = [TopicPartition(prefix + topic.name, p) for p in range(PARTITIONS)]
        consumer.assign(where)
        await consumer.seek_to_beginning(*where)
        yield consumer
    finally:
        await consumer.stop()


@asynccontextmanager
async def pipeline(stage, kafka):
    """Commits every candidate of the fleet without its second line, straight into the database."""

    async def run(consumer):
        async for record in consumer:
            asked = Candidate.model_validate_json(record.value)
            if asked.fleet == stage.fleet:
                answer = pruned(asked, asked.request_sha256(), (8, 32))
                said = ("mode", "summary", "committed_sha256", "decisions", "pruned")
                await stage.commit(asked, **{name: getattr(answer, name) for name in said})

    async with reading(kafka.kafka_bootstrap_servers, kafka.topic_prefix, CANDIDATE) as consumer:
        task = asyncio.create_task(run(consumer))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def test_an_agent_compacts_over_http(stage, kafka):
    """From `compact` through HTTP, Postgres, outbox and Kafka and back: the pruned summary, its original, its history."""
    asked = candidate("## Done\n- parsed a.csv: 12 rows\n- kept\n", fleet=stage.fleet, mode="enforce")
    async with pipeline(stage, kafka), WinnowClient(HttpTransport(stage.service.url, stage.key), fleet=stage.fleet) as client:
        result = await client.compact(asked, deadline_s=40)
        assert (result.summary, result.source) == ("## Done\n- kept\n", Adopted.COMMITTED), result
        again = await client.compact(asked, deadline_s=40)
        assert again.summary == result.summary
        other = candidate("- other", fleet=stage.fleet, boundary_id=asked.boundary_id)
        assert (await client.compact(other)).bypassed_because is Because.ID_CONFLICT
        with pytest.raises(IdConflict):
            await client.compact(other, strict=True)
        client.run_ended("r")
        assert await client.drain(20)
        assert [v.index for v in await client.history("r")] == [1]
        assert (await client.boundary(asked.boundary_id)).result.pruned == 1
    kinds = []
    async with reading(kafka.kafka_bootstrap_servers, kafka.topic_prefix, RUNTIME) as consumer, asyncio.timeout(30):
        async for record in consumer:
            event = json.loads(record.value)
            if event["fleet"] == stage.fleet:
                kinds.append(event["kind"])
                assert record.key == f"{stage.fleet}/r".encode()
                assert dict(record.headers)["ce_id"].decode() == event["event_id"]
            if event["kind"] == "run_ended":
                break
    assert kinds == ["adopted", "adopted", "adopted", "adopted", "run_ended"]


async def test_a_candidate_above_the_limit_goes_by_claim_check(stage, kafka):
    """Nine megabytes of messages are uploaded first; the pipeline gets a small event and the same request."""
    history = [{"i": 0, "kind": "environment", "text": "0123456789" * 900_000}]
    asked = candidate("## Done\n- parsed a.csv: 12 rows\n", fleet=stage.fleet, history=history)
    async with pipeline(stage, kafka), WinnowClient(HttpTransport(stage.service.url, stage.key)) as client:
        result = await client.compact(asked, deadline_s=40)
    assert result.source is Adopted.COMMITTED
    assert result.summary == "## Done\n"


async def test_plain_code_compacts_too(stage, kafka):
    """The synchronous client from a thread without an event loop."""
    asked = candidate("## Done\n- parsed a.csv: 12 rows\n", fleet=stage.fleet)

    def agent():
        with SyncWinnowClient(HttpTransport(stage.service.url, stage.key)) as client:
            return client.compact(asked, deadline_s=40)

    async with pipeline(stage, kafka):
        assert (await asyncio.to_thread(agent)).source is Adopted.COMMITTED


async def test_records_carry_the_trace_and_their_key(stage, kafka):
    """What leaves the outbox has the trace of its request, so that one trace spans all stages."""
    trace = f"00-{'c' * 32}-{'d' * 16}-01"
    sent = body(run="traced")
    await stage.http.post("/v1/boundaries", json=sent, headers={"traceparent": trace})
    sampled = {"event_id": "0b8f6d2e-6c1b-4a55-9f0e-5b8f2f4f8a10", "stream": "s", "unit": "r"}
    await stage.http.post("/v1/observations", json=sampled | {"sampled": {"probability": 1, "at": "2026-11-30T00:00:00Z"}})
    for topic, key in ((CANDIDATE, f"{stage.fleet}/traced"), (OBSERVATION, f"{stage.fleet}/s")):
        async with reading(kafka.kafka_bootstrap_servers, kafka.topic_prefix, topic) as consumer, asyncio.timeout(30):
            async for record in consumer:
                if record.key == key.encode():
                    break
        headers = dict(record.headers)
        assert headers["ce_type"] == topic.event_type.encode()
        if topic is CANDIDATE:
            assert headers["traceparent"].decode().split("-")[1] == "c" * 32


@pytest.mark.serial
@pytest.mark.timeout(240)  # a broker on a loaded machine takes half a minute to come up
@pytest.mark.needs("persistence")
async def test_without_a_broker_boundaries_are_taken_and_published_later(database, db, own_broker):
    """A gateway that starts while the broker is down answers 202; once it is up, the outbox is published."""
    from services.gateway.app import build
    from services.gateway.settings import GatewaySettings
    from winnow.storage.settings import DatabaseSettings
    from winnow.telemetry import Telemetry

    await create_topics(own_broker.bootstrap, "")
    await asyncio.to_thread(own_broker.kill)
    secret, _ = await new_key(db, "late")
    settings = GatewaySettings(gateway_port=0)
    kafka = KafkaSettings(kafka_bootstrap_servers=own_broker.bootstrap)
    service = build(Telemetry.plain("gateway"), kafka, DatabaseSettings(database_url=database.dsn), settings)
    await service.start()
    try:
        async with httpx.AsyncClient(base_url=service.url, headers={"authorization": f"Bearer {secret}"}) as http:
            said = await http.post("/v1/boundaries", json=body())
            assert said.status_code == 202
            assert (await http.get("/readyz")).status_code == 200
        await asyncio.to_thread(own_broker.start)
        async with reading(own_broker.bootstrap, "", CANDIDATE) as consumer, asyncio.timeout(120):
            record = await consumer.getone()
        assert json.loads(record.value)["boundary_id"] == said.json()["boundary_id"]
    finally:
        await service.stop()


@pytest.mark.serial
async def test_a_terminated_process_answers_who_waits(database, db, kafka, spawn):
    """SIGTERM in the middle of a wait: the submission gets its 202 and the process ends cleanly, soon."""
    from winnow.embedded import ports

    secret, _ = await new_key(db, "term")
    port = ports.pick()
    env = {
        "WINNOW_DATABASE_URL": database.dsn,
        "WINNOW_KAFKA_BOOTSTRAP_SERVERS": kafka.kafka_bootstrap_servers,
        "WINNOW_TOPIC_PREFIX": kafka.topic_prefix,
        "WINNOW_PARTITIONS": str(PARTITIONS),
        "WINNOW_GATEWAY_PORT": str(port),
        "WINNOW_STATUS_PORT": "0",
    }
    program = await asyncio.to_thread(lambda: spawn.services("gateway", env=env))
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", headers={"authorization": f"Bearer {secret}"}, timeout=60) as http:

        async def ready():
            try:
                return (await http.get("/readyz")).status_code == 200
            except httpx.TransportError:
                return False

        await eventually(ready, 40)
        request = asyncio.create_task(http.post("/v1/boundaries?wait_ms=60000", json=body()))

        async def stored():
            return (await http.get("/v1/boundaries")).json()["items"]

        await eventually(stored)
        program.send(signal.SIGTERM)
        assert (await request).status_code == 202
    assert await asyncio.to_thread(program.wait) == 0
