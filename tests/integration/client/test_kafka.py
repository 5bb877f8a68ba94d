"""The client over a real broker."""

import asyncio
from contextlib import asynccontextmanager

import httpx
import pytest

from tests.harness import eventually
from tests.integration.client.responder import Responder, create_topics
from tests.unit.client.answers import LINES, candidate, line_span, pruned
from winnow.client import Because, KafkaTransport, Unheard, WinnowClient
from winnow.client.feed import partition_of
from winnow.client.testing import unpruned
from winnow.contracts import ids
from winnow.contracts.envelope import headers_for
from winnow.contracts.events import ClaimCheck, sha256
from winnow.contracts.topics import CANDIDATE, COMMITTED, RUNTIME
from winnow.contracts.vocabulary import Adopted


@asynccontextmanager
async def connected(broker, prefix, **options):
    async with WinnowClient(KafkaTransport(broker.bootstrap, topic_prefix=prefix), **options) as client:
        yield client


@pytest.fixture(autouse=True)
async def topics(request):
    """Topics exist before a client looks for them."""
    if "own_broker" not in request.fixturenames:
        await create_topics(request.getfixturevalue("broker").bootstrap, request.getfixturevalue("topic_prefix"))


async def _reported(broker, prefix, run):
    from aiokafka import AIOKafkaConsumer
    from aiokafka.structs import TopicPartition

    consumer = AIOKafkaConsumer(bootstrap_servers=broker.bootstrap)
    await consumer.start()
    try:
        where = [TopicPartition(prefix + RUNTIME.name, p) for p in range(4)]
        consumer.assign(where)
        await consumer.seek_to_beginning(*where)
        batches = await consumer.getmany(timeout_ms=2000)
        return [r for records in batches.values() for r in records if r.key == f"f/{run}".encode()]
    finally:
        await consumer.stop()


async def test_a_boundary_goes_out_and_its_answer_comes_back(broker, topic_prefix):
    """The committed text is adopted; candidate and report carry CloudEvents headers, key and trace."""
    trace = f"00-{'a' * 32}-{'b' * 16}-01"
    async with (
        Responder(broker.bootstrap, topic_prefix, lambda c, sha: pruned(c, sha, line_span(2))) as pipeline,
        connected(broker, topic_prefix, traceparent=lambda: trace) as client,
    ):
        asked = candidate(run="one")
        result = await client.compact(asked)
        assert await client.drain(10)
    assert (result.summary, result.source) == (LINES[0] + LINES[1] + LINES[3], Adopted.COMMITTED)
    assert [c.boundary_id for c in pipeline.candidates] == [asked.boundary_id]
    headers = pipeline.headers[0]
    assert headers["ce_type"] == CANDIDATE.event_type.encode()
    assert headers["traceparent"] == trace.encode()
    (report,) = await _reported(broker, topic_prefix, "one")
    assert b'"adopted":"committed"' in report.value


async def test_many_runs_at_once_share_one_reader(broker, topic_prefix):
    """A hundred compactions over all partitions each get their own answer."""
    async with Responder(broker.bootstrap, topic_prefix), connected(broker, topic_prefix) as client:
        asked = [candidate(f"- {n}", run=f"many{n}") for n in range(100)]
        results = await asyncio.gather(*(client.compact(c, deadline_s=30) for c in asked))
        assert "built=1" in repr(client)
    assert {partition_of(c.key, 4) for c in asked} == {0, 1, 2, 3}
    assert [r.summary for r in results] == [c.candidate for c in asked]
    assert {r.source for r in results} == {Adopted.COMMITTED}


async def test_poison_on_the_committed_topic_costs_nothing(broker, topic_prefix):
    """Tombstones, binary headers and foreign bodies with the run's own key are passed over."""
    async with Responder(broker.bootstrap, topic_prefix) as pipeline, connected(broker, topic_prefix) as client:

        async def poison(asked):
            key = asked.key.encode()
            for value, headers in [(None, []), (b"{bad", []), (b"\xff\x00", [("x", b"\xff")]), (b"{}", [("ce_type", b"\xff")])]:
                await pipeline.raw(key, value, headers)
            await pipeline.publish(unpruned(asked, "0" * 64))

        pipeline.before_answer = poison
        result = await client.compact(candidate(run="poison"))
    assert result.source is Adopted.COMMITTED


async def test_without_an_answer_it_asks_once_more_and_goes_on(broker, topic_prefix):
    """Half way to the deadline the candidate is published again, byte for byte; then the agent keeps its own."""
    async with Responder(broker.bootstrap, topic_prefix, lambda c, sha: None) as pipeline, connected(broker, topic_prefix) as client:
        result = await client.compact(candidate(run="silent"), deadline_s=6)
        await eventually(lambda: len(pipeline.candidates) == 2)
    assert result.bypassed_because is Because.DEADLINE
    assert pipeline.candidates[0] == pipeline.candidates[1]


async def test_an_answer_that_was_lost_comes_with_the_second_try(broker, topic_prefix):
    """A pipeline that forgot its first answer gives it at the resubmission."""
    seen = []

    def forgetful(asked, request_sha256):
        seen.append(asked)
        return unpruned(asked, request_sha256) if len(seen) > 1 else None

    async with Responder(broker.bootstrap, topic_prefix, forgetful), connected(broker, topic_prefix) as client:
        result = await client.compact(candidate(run="lost"), deadline_s=12)
    assert result.source is Adopted.COMMITTED
    assert result.elapsed_s < 12


async def test_a_large_candidate_travels_whole(broker, topic_prefix):
    """Messages up to 8 MiB need no gateway."""
    asked = candidate(run="large", history=[{"i": 0, "kind": "environment", "text": "0123456789abcdef" * 500_000}])
    async with Responder(broker.bootstrap, topic_prefix) as pipeline, connected(broker, topic_prefix) as client:
        result = await client.compact(asked, deadline_s=30)
    assert result.source is Adopted.COMMITTED
    assert pipeline.candidates[0].history == asked.history


async def test_above_the_limit_a_gateway_is_needed(broker, topic_prefix):
    """Without a gateway a candidate above 8 MiB is a bypass with that reason; reads say what to configure."""
    asked = candidate(run="huge", history=[{"i": 0, "kind": "environment", "text": "x" * 9_000_000}])
    async with connected(broker, topic_prefix) as client:
        result = await client.compact(asked)
        assert result.bypassed_because is Because.NO_GATEWAY
        with pytest.raises(Unheard, match="gateway_url"):
            await client.original("h" * 32)


@pytest.fixture
def store(monkeypatch):
    """A gateway that keeps originals in memory, in place of every HTTP connection."""
    kept: dict[str, bytes] = {}

    def answer(request: httpx.Request) -> httpx.Response:
        if request.method == "POST":
            handle = f"handle{len(kept):026d}"
            kept[handle] = request.content
            claim = {"fleet": "f", "handle": handle, "sha256": sha256(request.content), "size": len(request.content)}
            return httpx.Response(201, json=claim)
        return httpx.Response(200, content=kept[request.url.path.rsplit("/", 1)[1]])

    real = httpx.AsyncClient
    monkeypatch.setattr(httpx, "AsyncClient", lambda **_: real(transport=httpx.MockTransport(answer)))
    return kept


async def test_claim_checks_in_both_directions(broker, topic_prefix, store):
    """Messages above the limit go to the gateway first; a committed event above its own limit is fetched from there."""
    asked = candidate(run="claims", history=[{"i": 0, "kind": "environment", "text": "x" * 9_000_000}])
    transport = KafkaTransport(broker.bootstrap, topic_prefix=topic_prefix, gateway_url="http://gateway", api_key="wnw_k")
    async with Responder(broker.bootstrap, topic_prefix, lambda c, sha: None) as pipeline, WinnowClient(transport) as client:

        async def by_claim(received):
            assert received.messages is not None
            content = unpruned(received, received.request_sha256()).model_dump_json().encode()
            store["c" * 32] = content
            claim = ClaimCheck(fleet="f", handle="c" * 32, sha256=sha256(content), size=len(content))
            event_id = str(ids.event_id("f", received.boundary_id, COMMITTED.event_type))
            from datetime import UTC, datetime

            headers = headers_for(COMMITTED, event_id=event_id, source="t", subject=received.key, time=datetime.now(UTC), claim=True)
            await pipeline.raw(received.key.encode(), claim.model_dump_json().encode(), headers)

        pipeline.before_answer = by_claim
        result = await client.compact(asked, deadline_s=30)
    assert result.source is Adopted.COMMITTED


async def test_no_broker_is_a_bypass_within_the_deadline():
    """Nothing listens: the agent has its candidate in time, and starting the client did not fail."""
    async with WinnowClient(KafkaTransport("127.0.0.1:1"), drain_s=0.1) as client:
        result = await client.compact(candidate(), deadline_s=0.5)
    assert result.bypassed_because is Because.UNREACHABLE
    assert result.elapsed_s < 5


@pytest.mark.serial
@pytest.mark.timeout(240)  # a broker on a loaded machine takes half a minute to come back
@pytest.mark.needs("persistence")
async def test_a_broker_restart_is_survived(own_broker):
    """Killed and restarted in the middle of a compaction, the broker still carries the answer; so do later compactions."""
    async with Responder(own_broker.bootstrap, "", lambda c, sha: None) as pipeline, connected(own_broker, "") as client:
        await client.compact(candidate(run="warm"), deadline_s=0.5)
        asked = candidate(run="bounced")
        compaction = asyncio.create_task(client.compact(asked, deadline_s=150))
        await eventually(lambda: any(c.run == "bounced" for c in pipeline.candidates))
        await asyncio.to_thread(own_broker.kill)
        await asyncio.to_thread(own_broker.start)
        await pipeline.publish(unpruned(asked, asked.request_sha256()))
        assert (await compaction).source is Adopted.COMMITTED
        pipeline.answer = unpruned
        assert (await client.compact(candidate("- after", run="bounced", index=2), deadline_s=20)).source is Adopted.COMMITTED
