"""The baseline of the pipeline: three Kafka hops with one PostgreSQL commit each, and nothing else.

A process of its own, as the services are. Clients, settings, record sizes (bodies of real stage outputs) and batch size are those of the
services; each hop inserts the bodies that it passes on, commits, publishes, and then commits its offsets. Nothing is parsed.

    python -m tests.benchmarks.loop BODIES     BODIES: a pickled list of three lists of bodies, one list a hop
"""

import asyncio
import os
import pickle
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

import asyncpg
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from winnow.contracts import limits
from winnow.messaging.broker import consumer_options, producer_options
from winnow.messaging.settings import KafkaSettings

#: Topic names without prefix, in the order in which a record passes them.
TOPICS = ("loop.0", "loop.1", "loop.2", "loop.3")

TABLE = """
CREATE TABLE IF NOT EXISTS loop_output (
    hop integer NOT NULL, name text NOT NULL, body bytea NOT NULL, at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (hop, name)
)
"""

INSERT = "INSERT INTO loop_output (hop, name, body) SELECT $1, * FROM unnest($2::text[], $3::bytea[]) ON CONFLICT DO NOTHING"


async def prepare(settings: KafkaSettings, database_url: str) -> None:
    """Make the table and the topics."""
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute(TABLE)
    finally:
        await connection.close()
    admin = AIOKafkaAdminClient(**settings.client_options())
    await admin.start()
    try:
        limit = {"max.message.bytes": str(limits.CANDIDATE_RECORD_BYTES)}
        names = map(settings.topic_name, TOPICS)
        await admin.create_topics([NewTopic(n, settings.partitions, settings.replication_factor, topic_configs=limit) for n in names])
    finally:
        await admin.close()


async def hop(settings: KafkaSettings, database_url: str, number: int, bodies: Sequence[bytes]) -> None:
    """Pass records from one topic to the next, for ever."""
    async with AsyncExitStack() as stack:
        connection = await asyncpg.connect(database_url)
        stack.push_async_callback(connection.close)
        producer = AIOKafkaProducer(**producer_options(settings, service=f"loop-{number}", idempotent=False))
        await producer.start()
        stack.push_async_callback(producer.stop)
        limit = limits.CANDIDATE_RECORD_BYTES if number == 0 else limits.EVENT_RECORD_BYTES
        consumer = AIOKafkaConsumer(
            settings.topic_name(TOPICS[number]),
            group_id=f"{settings.topic_prefix}loop-{number}",
            enable_auto_commit=False,
            **settings.client_options(),
            **consumer_options(settings, max_record_bytes=limit),
        )
        await consumer.start()
        stack.push_async_callback(consumer.stop)
        target = settings.topic_name(TOPICS[number + 1])
        passed = 0
        while True:
            batch = await consumer.getmany(timeout_ms=settings.batch_timeout_ms, max_records=settings.batch_max_records)
            records = [record for records in batch.values() for record in records]
            if not records:
                continue
            out = [bodies[(passed + i) % len(bodies)] for i in range(len(records))]
            passed += len(records)
            names = [next(value.decode() for key, value in r.headers if key == "ce_id") for r in records]
            async with connection.transaction():
                await connection.execute(INSERT, number, names, out)
            sends = [await producer.send(target, value=b, key=r.key, headers=list(r.headers)) for r, b in zip(records, out, strict=True)]
            await asyncio.gather(*sends)
            await consumer.commit()


async def main(bodies: Sequence[Sequence[bytes]]) -> None:
    """Run the three hops until one fails or the process is ended."""
    settings = KafkaSettings()
    database_url = os.environ["WINNOW_DATABASE_URL"].replace("+asyncpg", "", 1)
    async with asyncio.TaskGroup() as group:
        for number, outputs in enumerate(bodies):
            group.create_task(hop(settings, database_url, number, outputs))


if __name__ == "__main__":
    asyncio.run(main(pickle.loads(Path(sys.argv[1]).read_bytes())))  # noqa: S301  our own file, written a moment ago
