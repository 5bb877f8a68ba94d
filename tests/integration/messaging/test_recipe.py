"""The batch recipe against a broker: whatever arrives, the partition moves on and nothing is lost."""

import pytest
from aiokafka import TopicPartition
from aiokafka.protocol.produce import ProduceRequest

from tests.harness import eventually
from tests.integration.messaging.conftest import Stage, running
from tests.unit.messaging.support import NOW, candidate
from tests.unit.messaging.test_tolerance import BinaryName, batch_of
from winnow.contracts.envelope import headers_for
from winnow.contracts.errors import Conflict
from winnow.contracts.events import ClaimCheck, sha256
from winnow.contracts.limits import MIB
from winnow.contracts.topics import CANDIDATE, DEAD_LETTER, EVIDENCE
from winnow.messaging.broker import FETCHER_LOOK_MS, consumer_of
from winnow.messaging.deadletters import split_headers
from winnow.messaging.faults import Limit
from winnow.messaging.tolerance import MAX_BATCH_BYTES

NEVER = Limit(min_failures=10**6, max_consecutive=10**6)


async def test_a_batch_goes_through_in_the_order_of_each_run(kafka):
    """Every event is handled once, published under its key, and runs keep their order at both ends."""
    async with running(kafka) as world:
        events = [candidate(n, run=f"r{n % 7}") for n in range(1, 201)]
        await world.send(*events)
        await eventually(lambda: len(world.stage.seen) == 200)
        out = await world.read(EVIDENCE, at_least=200)
    assert len(out) == 200
    for run in {e.run for e in events}:
        expected = [e.index for e in events if e.run == run]
        assert [i for r, i in world.stage.seen if r == run] == expected
        assert [r.key for r in out if r.key == f"f/{run}".encode()] == [f"f/{run}".encode()] * len(expected)
        ids = [dict(r.headers)["ce_id"].decode() for r in out if r.key == f"f/{run}".encode()]
        assert ids == [str(e.boundary_id) for e in events if e.run == run]
    assert world.reasons == []


async def test_every_kind_of_poison_is_one_dead_letter_and_its_neighbours_pass(kafka):
    """Bad JSON, tombstones, binary headers, wrong types and keys: a row and a record on the topic each, with the original bytes."""
    async with running(kafka) as world:
        await world.send(candidate(1))
        poison = [
            (b"{bad", b"f/r", []),
            (None, b"f/r", [("x", b"\xff\xfe")]),
            (b"", b"f/r", []),
            (b"{}", b"f/r", [("ce_type", b"\xff")]),
            (b"{}", b"f/r", [("ce_type", b"winnow.alert.v1")]),
            (candidate(5).model_dump_json().encode(), b"f/else", []),
            (candidate(6).model_dump_json().encode(), None, []),
            (b"\x00" * 1000, b"\x00", [("n", b"\x00")]),
        ]
        for value, key, headers in poison:
            await world.raw(value, key=key, headers=headers)
        await world.send(candidate(2))
        await eventually(lambda: len(world.stage.seen) == 2 and len(world.store.rows) == len(poison))
        letters = await world.read(DEAD_LETTER, at_least=len(poison))
    assert world.reasons == sorted(
        ["invalid", "tombstone", "tombstone", "bad_headers", "bad_headers", "key_mismatch", "key_mismatch", "invalid"]
    )
    assert sorted((r.value or b"", r.key or b"") for r in letters) == sorted((v or b"", k or b"") for v, k, _ in poison)
    for letter in letters:
        original, why = split_headers(tuple((n, v or b"") for n, v in letter.headers))
        row = world.store.rows[why.topic, why.partition, why.offset]
        assert original == row.headers
        assert row.value == letter.value
    assert world.metric("winnow_records_total", result="dead") == len(poison)


async def test_a_binary_header_of_another_system_costs_nothing(kafka):
    """A header that is not UTF-8 would make the framework skip the record silently (faststream#2458)."""
    async with running(kafka) as world:
        event = candidate(1)
        await world.raw(event.model_dump_json().encode(), key=event.key.encode(), headers=[("x", b"\xff"), ("correlation_id", b"\xff")])
        await eventually(lambda: world.stage.seen == [("r", 1)])


async def test_a_reply_to_header_makes_us_publish_nowhere(kafka):
    """The framework would send its answer to a topic of the sender's choice."""
    async with running(kafka) as world:
        event = candidate(1)
        reply_to = kafka.topic_name(DEAD_LETTER.name).encode()
        await world.raw(event.model_dump_json().encode(), key=event.key.encode(), headers=[("reply_to", reply_to)])
        await world.send(candidate(2))
        await eventually(lambda: len(world.stage.seen) == 2)
        assert await world.read(DEAD_LETTER) == []


async def test_a_batch_of_poison_only_is_acknowledged(kafka):
    """One dead letter a record, no handler call, and nothing comes again."""
    async with running(kafka) as world:
        for n in range(20):
            await world.raw(b"{bad", key=f"f/{n}".encode())
        await eventually(lambda: len(world.store.rows) == 20)
        await world.send(candidate(1))
        await eventually(lambda: len(world.stage.seen) == 1)
        await eventually(lambda: world.metric("winnow_records_total", result="handled") == 1)
        letters = await world.read(DEAD_LETTER, at_least=20)
    assert len(letters) == 20
    assert world.metric("winnow_records_total", result="dead") == 20


async def test_duplicates_in_one_batch_are_handled_once(kafka):
    """The first of a batch wins; the later ones are counted."""
    async with running(kafka) as world:
        event = candidate(1)
        await world.send(event, event, candidate(2), event)
        await eventually(lambda: world.metric("winnow_duplicates_total") + len(world.stage.seen) == 4)
        assert {i for _, i in world.stage.seen} == {1, 2}


async def test_a_restart_goes_on_where_the_last_one_stopped(kafka):
    """What was acknowledged does not come again; what was sent meanwhile does."""
    async with running(kafka) as first:
        await first.send(*[candidate(n) for n in range(1, 11)])
        await eventually(lambda: first.metric("winnow_records_total", result="handled") == 10)
    async with running(kafka, topics=False) as second:
        await second.send(candidate(11))
        await eventually(lambda: second.stage.seen == [("r", 11)])


async def test_a_new_group_reads_what_was_there_before_it(kafka):
    """The library's default would start at the end."""
    async with running(kafka) as world:
        await world.send(candidate(1))
        await eventually(lambda: world.stage.seen == [("r", 1)])
    other = kafka.model_copy(update={"topic_prefix": kafka.topic_prefix})
    from winnow.telemetry import Telemetry

    async with running(other, topics=False, telemetry=Telemetry.plain("another")) as late:
        await eventually(lambda: late.stage.seen == [("r", 1)])


async def test_a_failing_batch_comes_again_until_it_passes(kafka):
    """A transient error loses nothing and kills nothing, through many redeliveries."""
    async with running(kafka) as world:
        failures = iter(range(30))
        world.stage.fail = lambda _: TimeoutError() if next(failures, None) is not None else None
        await world.send(*[candidate(n) for n in range(1, 6)])
        await eventually(lambda: len({i for _, i in world.stage.seen}) == 5)
        assert world.reasons == []
        assert world.metric("winnow_batches_total", result="retried") >= 5


async def test_a_record_that_our_handler_cannot_take_holds_no_neighbour(kafka):
    """Conflicts and defects are dead letters of their own; the others of the batch pass in order."""
    async with running(kafka, limit=NEVER) as world:
        world.stage.fail = lambda batch: next(
            (Conflict() if e.event.index == 3 else KeyError("x") for e in batch if e.event.index in {3, 5}), None
        )
        await world.send(*[candidate(n) for n in range(1, 9)])
        await eventually(lambda: len({i for _, i in world.stage.seen}) == 6 and len(world.store.rows) == 2)
        assert world.reasons == ["handler_error", "id_conflict"]
        firsts = list(dict.fromkeys(i for _, i in world.stage.seen))
        assert firsts == [1, 2, 4, 6, 7, 8]


async def test_an_oversize_output_is_one_dead_letter(kafka):
    """The framework would call the handler for ever."""
    async with running(kafka, limit=NEVER) as world:
        world.stage.body = lambda event: b"x" * (2 * MIB) if event.index == 2 else b"{}"
        await world.send(*[candidate(n) for n in range(1, 4)])
        await eventually(lambda: world.reasons == ["too_large"])
        assert len({dict(r.headers)["ce_id"] for r in await world.read(EVIDENCE, at_least=2)}) == 2


async def test_a_candidate_of_eight_megabytes_travels_whole(kafka):
    """The largest body of the contract passes, and its neighbours with it."""
    async with running(kafka) as world:
        big = candidate(1).model_copy(update={"task": "x" * (8 * MIB - 2000)})
        await world.send(candidate(0 + 2), big, candidate(3))
        await eventually(lambda: len(world.stage.seen) == 3)
        assert world.reasons == []


async def test_an_oversize_poison_record_is_a_dead_letter_too(kafka):
    """Nine megabytes of garbage: the row has all of it."""
    async with running(kafka) as world:
        garbage = b"\x00" * (9 * MIB - 2000)
        await world.raw(garbage, key=b"f/r")
        await eventually(lambda: world.reasons == ["invalid"])
        [row] = world.store.rows.values()
        assert row.value == garbage


async def test_a_claim_check_is_resolved_on_the_way(kafka):
    """The handler sees the event, not the claim; a lost one is a dead letter."""
    async with running(kafka) as world:
        event = candidate(1)
        body = event.model_dump_json().encode()
        claim = ClaimCheck(fleet="f", handle="h" * 32, sha256=sha256(body), size=len(body))
        lost = claim.model_copy(update={"handle": "g" * 32})
        world.claims.originals["f", claim.handle] = body
        headers = headers_for(CANDIDATE, event_id="1", source="t", subject=event.key, time=NOW, claim=True)
        for one in (claim, lost):
            await world.raw(one.model_dump_json().encode(), key=event.key.encode(), headers=headers)
        await eventually(lambda: world.stage.seen == [("r", 1)] and world.reasons == ["claim_lost"])


async def test_errors_of_our_own_stop_consumption_and_a_fix_resumes_it(kafka):
    """A bad deploy drains nothing into the dead letters; the good one goes on where it stopped."""
    async with running(kafka, limit=Limit(max_consecutive=3, min_failures=100)) as world:
        world.stage.fail = lambda _: ZeroDivisionError()
        await world.send(*[candidate(n) for n in range(1, 31)])
        await eventually(lambda: world.metric("winnow_consumption_halted") == 1)
        [consuming] = [c for c in world.bus.checks() if c.name.startswith("consuming")]
        assert "halted" in await consuming.ask()
        assert len(world.store.rows) < 3
        world.stage.fail = lambda _: None
        await eventually(lambda: len({i for _, i in world.stage.seen}) >= 28)
        assert world.metric("winnow_consumption_halted") == 0
        assert await consuming.ask() is None


async def test_a_newer_major_version_pauses_its_partition_only(kafka):
    """It is no dead letter: other partitions go on, what stands before it is handled, and a newer service finds it and all behind it."""
    async with running(kafka) as world:
        newer = [("ce_type", b"winnow.boundary.candidate.v2")]
        await world.send(candidate(1), partition=0)
        await world.raw(b"{}", key=b"f/r", headers=newer, partition=0)
        await world.send(candidate(2), partition=0)
        await eventually(lambda: world.metric("winnow_schema_too_new") == 1)
        await world.send(*[candidate(n, run="q") for n in range(3, 23)], partition=1)
        await eventually(lambda: len(world.stage.seen) == 21)
        assert world.stage.seen.count(("r", 1)) == 1
        assert ("r", 2) not in world.stage.seen
        assert world.reasons == []
        [consuming] = [c for c in world.bus.checks() if c.name.startswith("consuming")]
        assert "newer" in await consuming.ask()

    class Newer(type(world.stage)):
        topic = CANDIDATE

    from unittest.mock import patch

    with patch("winnow.messaging.intake.check_type", lambda *_: None):
        async with running(kafka, topics=False, stage=Newer()) as upgraded:
            await eventually(lambda: ("r", 2) in upgraded.stage.seen)
            assert upgraded.stage.seen == [("r", 2)]


@pytest.mark.parametrize("service", ["retriever"])
async def test_every_subscriber_has_our_defaults(kafka, service):
    """One batch subscriber a topic, NACK on error, from the earliest record, committed reads only, no replies, no workers."""
    from faststream.middlewares import AckPolicy

    async with running(kafka) as world:
        [subscription] = world.bus.subscriptions
        subscriber = subscription.subscriber
        assert list(world.bus.broker.subscribers) == [subscriber]
        assert subscriber.ack_policy is AckPolicy.NACK_ON_ERROR
        assert world.bus.broker.config.ack_policy is AckPolicy.NACK_ON_ERROR
        assert subscriber.topic_names_for_subscribe == [kafka.topic_name(CANDIDATE.name)]
        assert subscriber.group_id == kafka.group(service, CANDIDATE.name)
        assert type(subscriber).__name__ == "BatchSubscriber"
        assert subscriber._no_reply
        options = subscriber._connection_args
        assert options["auto_offset_reset"] == "earliest"
        assert options["isolation_level"] == "read_committed"
        assert options["enable_auto_commit"] is False
        assert options["max_partition_fetch_bytes"] >= CANDIDATE.max_record_bytes
        fetcher = consumer_of(subscriber)._fetcher  # `Subscription` sets its wait
        assert (fetcher._fetch_max_wait_ms, fetcher._fetcher_timeout) == (kafka.busy_wait_ms, FETCHER_LOOK_MS / 1000)


async def test_a_batch_that_the_client_cannot_read_is_passed_by(kafka):
    """A header name that is no text and a decompression bomb: the neighbours pass, the bomb is one dead letter with its raw bytes."""
    event = candidate(2)
    binary = batch_of([event.model_dump_json().encode()], headers=[(BinaryName("x"), b"v")], key=event.key.encode())
    bomb = batch_of([b"\0" * (MAX_BATCH_BYTES + MIB)], codec="zstd")
    async with running(kafka) as world:
        await world.send(candidate(1), partition=0)
        for batch in (binary, bomb):
            leader = world.producer.client.cluster.leader_for_partition(TopicPartition(kafka.topic_name(CANDIDATE.name), 0))
            request = ProduceRequest(None, -1, 5000, [(kafka.topic_name(CANDIDATE.name), [(0, batch)])])
            [(_, [(_, code, *_)])] = (await world.producer.client.send(leader, request)).topics
            assert code == 0
        await world.send(candidate(3), partition=0)
        await eventually(lambda: len(world.stage.seen) == 3)
        assert world.stage.seen == [("r", 1), ("r", 2), ("r", 3)]
        await eventually(lambda: world.reasons == ["too_large"])
        [row] = world.store.rows.values()
        assert row.value[17:] == bomb[17:]  # the broker writes offset and epoch into the head


async def test_small_records_come_in_larger_batches(kafka):
    """A handler may ask for more records at once than the settings give; never for fewer."""
    for wanted, got in ((300, 300), (1, kafka.batch_max_records)):
        stage = Stage()
        stage.records_at_once = wanted
        async with running(kafka, stage=stage) as world:
            assert world.bus.subscriptions[0].subscriber.max_records == got


async def test_what_nobody_waits_for_gathers(kafka):
    """Records that come one by one share calls where the handler lets them gather, and a stop does not wait for more to come."""
    stage = Stage()
    stage.gather_ms = 400
    async with running(kafka, stage=stage) as world:
        for index in range(1, 21):
            await world.send(candidate(index))
        await eventually(lambda: len(world.stage.seen) == 20)
        assert len(world.stage.batches) <= 10
