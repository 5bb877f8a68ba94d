"""Records that are no events, and events that contradict what is stored."""

import json

import pytest

from tests.benchmarks.boundaries import Factory
from tests.faults.ground import PARTITIONS, Ground
from tests.faults.stages import acknowledged, all_committed, committed, letters, one_body_each, publish, rows, running
from tests.faults.wire import Sender, read_all
from winnow.contracts.events import Committed
from winnow.contracts.topics import CANDIDATE, COMMITTED
from winnow.contracts.vocabulary import Outcome, Reason


async def test_batch_of_poison_only(ground: Ground) -> None:
    """A batch of poison only yields one dead letter a record, at the first attempt, and the partition moves on."""
    [sample] = Factory.load(fleet="poison").run(0, length=1)
    values = [b"{bad", None, b"", b"[]", b"\xff\xfe", b"null", b'{"fleet": 1}']
    async with Sender(ground.settings, idempotent=False) as sender:
        wanted = {await sender.put(CANDIDATE, value, key=b"poison/%d" % number) for number in range(PARTITIONS) for value in values}
    async with running(ground):
        await acknowledged(ground)
        found = await letters(ground)
        await publish(ground, sample)
        await all_committed(ground, sample)
    assert {(row["topic"], row["partition"], row["offset"]) for row in found} == wanted
    assert {row["attempts"] for row in found} == {1}
    assert {row["reason"] for row in found} == {Reason.INVALID, Reason.TOMBSTONE}
    one_body_each(await committed(ground), sample)


@pytest.mark.parametrize("apart", [False, True], ids=["one-batch", "later"])
async def test_id_conflict(apart: bool, ground: Ground) -> None:
    """Other content under a known id is one dead letter and one rejection; the first result stands, whether or not they share a batch."""
    [sample] = Factory.load(fleet=f"conflict{int(apart)}").run(0, length=1)
    other = json.loads(sample.body) | {"task": "another task", "boundary_id": str(sample.event.boundary_id)}
    async with Sender(ground.settings, idempotent=False) as sender:
        await sender.put(CANDIDATE, sample.body, key=sample.key, headers=sample.headers)
        if apart:
            async with running(ground):
                await all_committed(ground, sample)
        at = await sender.put(CANDIDATE, json.dumps(other).encode(), key=sample.key)
    async with running(ground):
        await all_committed(ground, sample)
        await acknowledged(ground)
    found = await letters(ground)
    assert [(row["topic"], row["partition"], row["offset"], row["reason"]) for row in found] == [(*at, Reason.ID_CONFLICT)]
    events = [Committed.model_validate_json(record.value) for record in await read_all(ground.settings, COMMITTED)]
    by_outcome = {event.outcome: event for event in events}
    assert by_outcome.keys() == {Outcome.JUDGED, Outcome.REJECTED}
    assert by_outcome[Outcome.JUDGED].request_sha256 == sample.event.request_sha256()
    assert by_outcome[Outcome.REJECTED].request_sha256 != sample.event.request_sha256()
    [row] = await rows(ground, "SELECT request_sha256 FROM boundaries WHERE boundary_id = $1", sample.event.boundary_id)
    assert row["request_sha256"] == sample.event.request_sha256()
