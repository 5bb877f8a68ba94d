"""An event from the future stands before a service that cannot read it."""

from aiokafka import AIOKafkaConsumer, TopicPartition

from tests.benchmarks.boundaries import Factory
from tests.faults.ground import Ground
from tests.faults.stages import all_committed, committed, letters, one_body_each, publish, rows, running
from tests.faults.wire import Sender, read_all
from tests.harness.waiting import eventually
from winnow.contracts.events import Candidate
from winnow.contracts.topics import CANDIDATE


async def test_newer_major_version(ground: Ground) -> None:
    """A newer event pauses its partition without a dead letter, the others go on, and all behind it comes once it is handled."""
    factory = Factory.load(fleet="newer")
    runs = [factory.run(number, length=1)[0] for number in range(24)]
    async with Sender(ground.settings, idempotent=False) as sender:
        topic, partition, offset = await sender.put(
            CANDIDATE, b'{"shape": "unknown"}', key=runs[0].key, headers=[("ce_type", b"winnow.boundary.candidate.v2")]
        )
    await publish(ground, *runs)
    async with running(ground) as stages:
        before = {r.event.boundary_id for r in runs} - await behind(ground, partition)
        await all_committed(ground, *[r for r in runs if r.event.boundary_id in before])
        await eventually(
            lambda: stages.says("consuming", "newer major version"), what="the retriever says that it waits for a newer service"
        )
        stuck = await rows(ground, "SELECT 1 FROM boundaries WHERE fleet = 'newer' AND NOT boundary_id = ANY($1)", list(before))
    assert len(before) < len(runs), "no run shares the partition of the newer event"
    assert stuck == []
    assert await letters(ground) == []
    await handle_elsewhere(ground, TopicPartition(topic, partition), offset)
    async with running(ground):
        await all_committed(ground, *runs)
    one_body_each(await committed(ground), *runs)
    assert await letters(ground) == []


async def behind(ground: Ground, partition: int) -> set[object]:
    """Return the boundaries whose candidates stand in a partition."""
    records = [r for r in await read_all(ground.settings, CANDIDATE) if r.partition == partition and b'"candidate"' in r.value]
    return {Candidate.model_validate_json(r.value).boundary_id for r in records}


async def handle_elsewhere(ground: Ground, place: TopicPartition, offset: int) -> None:
    """Do as a newer service would that handles the event: a member of the same group commits the offset behind it."""
    group = ground.settings.group("retriever", CANDIDATE.name)
    consumer = AIOKafkaConsumer(**ground.settings.client_options(), group_id=group, enable_auto_commit=False)
    await consumer.start()
    try:
        consumer.assign([place])
        assert await consumer.committed(place) == offset, "the group stands exactly before the newer event"
        await consumer.commit({place: offset + 1})
    finally:
        await consumer.stop()
