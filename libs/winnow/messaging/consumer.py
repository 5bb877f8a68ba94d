"""The batch recipe of Winnow, in one place that all services use.

The order, which a test checks:

1. clean the headers, keep the bytes (FastStream skips a record with a header that is not UTF-8, and loops on a body that it cannot decode);
2. read the envelope: an event of a newer major version pauses its partition, it is never a dead letter;
3. resolve claim checks; 4. validate each body and its key; 5. drop duplicates within the batch, the first wins;
6. the handler: work, one transaction, commit; 7. publish what is stored, and wait for the broker;
8. dead letters: rows first, then the topic; 9. acknowledge.

A crash anywhere brings the batch again. A batch that fails on data runs again record by record; a transient error is repeated with
pauses and then sent back to the broker after a longer one; errors of our own that pile up stop consumption instead of emptying a topic
into its dead letters.
"""

import asyncio
import contextlib
import gc
from collections.abc import Hashable, Iterator, Sequence
from typing import Generic, NoReturn

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.errors import IllegalStateError
from faststream.exceptions import NackMessage
from faststream.kafka import KafkaBroker
from faststream.kafka.subscriber.usecase import BatchSubscriber
from faststream.middlewares import AckPolicy
from opentelemetry.context import Context, get_current

from winnow.contracts import limits
from winnow.contracts.errors import SchemaTooNew
from winnow.contracts.vocabulary import Reason
from winnow.messaging.broker import consumer_options
from winnow.messaging.codec import Fetched, keep_raw, parse, record_of, unreadable
from winnow.messaging.faults import Fault, pause
from winnow.messaging.intake import Opened, open_record, resolve, validate
from winnow.messaging.records import Dead, E, Handler, Received
from winnow.messaging.settings import KafkaSettings
from winnow.messaging.surroundings import Surroundings
from winnow.messaging.tracing import RecordSpans, batch_span
from winnow.messaging.work import GoingAway, Halted, Worker
from winnow.telemetry.traces import within

#: Generation of the garbage collector.
YOUNGEST = 0
#: Bytes that are validated in one go, about a millisecond: more would starve heartbeats and the other services of the process.
UNBROKEN_BYTES = 128 * limits.KIB


def chunks(arrived: Sequence[Opened | Dead], most_bytes: int) -> Iterator[list[Opened | Dead]]:
    """Cut a fetch where its bodies exceed `most_bytes`: a hundred records of 8 MiB would not fit into memory as objects."""
    chunk: list[Opened | Dead] = []
    size = 0
    for one in arrived:
        # What a claim check stands for will be in memory too.
        more = len(one.record.value or b"") + (one.claim.size if isinstance(one, Opened) and one.claim is not None else 0)
        if chunk and size + more > most_bytes:
            yield chunk
            chunk, size = [], 0
        chunk.append(one)
        size += more
    if chunk:
        yield chunk


class BatchConsumer(Generic[E]):
    """Runs the recipe for one handler. FastStream calls it with each fetch; returning acknowledges, `NackMessage` brings it again."""

    def __init__(self, handler: Handler[E], around: Surroundings) -> None:
        self._handler = handler
        self._around = around
        self._worker = Worker(handler, around)
        self._nacks = 0
        #: The trace of the batch at work: the record's own where it is alone.
        self._context: Context | None = None
        self._too_new: set[int] = set()
        self._resuming: set[asyncio.Task[None]] = set()
        self._labels = {"service": around.telemetry.service, "topic": handler.topic.name}
        self._group = around.settings.group(around.telemetry.service, handler.topic.name)
        self._gather_s = gather_ms(handler) / 1000

    def __repr__(self) -> str:
        return f"<BatchConsumer({self._handler.topic.name}, {self._worker!r})>"

    @property
    def halted(self) -> bool:
        """Consumption is stopped by errors of our own."""
        return self._worker.halted

    @property
    def waits_for_newer(self) -> bool:
        """A partition is paused at an event of a newer major version."""
        return bool(self._too_new)

    def rebalanced(self) -> None:
        """Partitions may have gone to others; whoever has one with a newer event finds it again."""
        self._too_new.clear()
        self._around.telemetry.metrics.set("winnow_schema_too_new", 0, **self._labels)

    async def __call__(self, fetched: Fetched) -> None:
        """One fetch: all of it, or `NackMessage`."""
        around = self._around
        around.progress.working()
        self._context = None
        try:
            arrived = self._open(fetched)
            for chunk in chunks(arrived, around.settings.batch_max_bytes):
                around.progress.working()
                await self._batch(chunk)
        except GoingAway:
            raise NackMessage from None
        except Halted:
            self._count_batch("halted")
            await self._pause(around.patience.halted_pause_s)
            raise NackMessage from None
        except Exception as exc:  # noqa: BLE001  an unforeseen error must take the slow road too: NACK alone is a hot loop
            await self._send_back(exc)
        finally:
            around.progress.idle()
        self._nacks = 0
        around.progress.committed()
        if self._gather_s and len(fetched.records) < most_records(self._handler, around.settings):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(around.stopping.wait(), self._gather_s)

    def close(self) -> None:
        """Forget partitions that wait to be resumed."""
        for task in self._resuming:
            task.cancel()

    # Steps 2 to 5.

    def _open(self, fetched: Fetched) -> list[Opened | Dead]:
        """Read the envelopes, up to the first event of a newer major version in each partition; such a partition is paused at it."""
        ahead: dict[int, int] = {}
        arrived: list[Opened | Dead] = []
        for raw in fetched.records:
            if raw.partition in ahead:
                continue
            record = record_of(raw)
            mark = unreadable(raw)
            if mark is not None:
                error = "the client cannot read this batch of records (its text, compression or form is broken); the body is the raw batch"
                arrived.append(Dead(record=record, reason=mark.reason, error=error))
                continue
            try:
                arrived.append(open_record(self._handler.topic, record))
            except SchemaTooNew as exc:
                ahead[record.partition] = record.offset
                with within(self._around.telemetry.traces.extract(record.headers)):
                    self._around.telemetry.log.warning(
                        "schema_too_new", topic=self._handler.topic.name, partition=record.partition, offset=record.offset, error=exc
                    )
            else:
                self._too_new.discard(record.partition)
        if ahead:
            self._count_batch("paused")
            self._pause_partitions(fetched, ahead)
        self._around.telemetry.metrics.set("winnow_schema_too_new", float(bool(self._too_new)), **self._labels)
        return arrived

    def _pause_partitions(self, fetched: Fetched, ahead: dict[int, int]) -> None:
        """Stand still before the newer events; the other partitions go on, and the acknowledgement commits exactly up to here."""
        paused: list[TopicPartition] = []
        for partition, offset in ahead.items():
            place = TopicPartition(fetched.records[0].topic, partition)
            try:
                fetched.consumer.seek(place, offset)
                fetched.consumer.pause(place)
            except (IllegalStateError, AssertionError):  # a rebalance took it; its next owner meets the same event
                continue
            self._too_new.add(partition)
            paused.append(place)
        task = asyncio.create_task(self._resume(fetched.consumer, paused))
        self._resuming.add(task)
        task.add_done_callback(self._resuming.discard)

    async def _resume(self, consumer: AIOKafkaConsumer, paused: Sequence[TopicPartition]) -> None:
        await asyncio.sleep(self._around.patience.too_new_pause_s)
        consumer.resume(*(place for place in paused if place in consumer.assignment()))

    async def _admit(self, arrived: Sequence[Opened | Dead], spans: RecordSpans) -> tuple[list[Received[E]], list[Dead]]:
        """Valid events without duplicates, and dead letters; both in the order of the fetch."""
        telemetry = self._around.telemetry
        opened = [one for one in arrived if isinstance(one, Opened)]
        bodies = await self._worker.patiently(lambda: resolve(opened, self._around.claims))
        batch: list[Received[E]] = []
        dead: list[Dead] = []
        known: set[Hashable] = set()
        unbroken = 0
        sizes = [one.record.size for one in arrived]
        telemetry.metrics.observe_all("winnow_record_bytes", sizes, topic=self._handler.topic.name)
        for one, size in zip(arrived, sizes, strict=True):
            unbroken += size
            if unbroken >= UNBROKEN_BYTES:
                unbroken = 0
                await asyncio.sleep(0)
            if isinstance(one, Dead):
                dead.append(one)
                continue
            event = self._event(one, bodies.get(one.record.position, one.record.value))
            if isinstance(event, Dead):
                dead.append(event)
                continue
            identity = self._handler.identity(event)
            if identity in known:
                continue
            known.add(identity)
            batch.append(Received(event=event, record=one.record, envelope=one.envelope, context=spans.start(one.record)))
        return batch, dead

    def _event(self, opened: Opened, body: bytes | Dead | None) -> E | Dead:
        """The event of a body, where there is one; claim checks are counted."""
        if opened.claim is not None:
            result = "resolved" if not isinstance(body, Dead) else "mismatched" if body.reason == Reason.HASH_MISMATCH else "lost"
            self._around.telemetry.metrics.count("winnow_claim_checks_total", service=self._around.telemetry.service, result=result)
        return body if isinstance(body, Dead) else validate(self._handler.model, opened, body)

    # Steps 6 to 8.

    async def _batch(self, arrived: Sequence[Opened | Dead]) -> None:
        around, labels = self._around, self._labels
        metrics, began = around.telemetry.metrics, around.clock()
        metrics.observe("winnow_batch_records", len(arrived), **labels)
        with batch_span(around.telemetry.traces, self._handler.topic.name, self._group, len(arrived)) as parent:
            spans = RecordSpans(around.telemetry.traces, self._group, parent)
            self._context = get_current()
            try:
                batch, dead = await self._admit(arrived, spans)
                if len(arrived) == 1:
                    self._context = batch[0].context if batch else spans.of(arrived[0].record)
                duplicates = len(arrived) - len(batch) - len(dead)
                if batch:
                    dead += await self._worker.run(batch, failed_fetches=self._nacks)
                for one in dead:
                    spans.fail(one.record, one.reason)
                if dead:
                    await self._worker.patiently(lambda: around.dead_letters.bury(dead, context_of=spans.of))
            finally:
                spans.close()
        self._count_batch("done")
        self._count_records("duplicate", duplicates)
        self._count_records("dead", len(dead))
        self._count_records("handled", len(arrived) - duplicates - len(dead))
        now = around.wall()
        latencies = [max(0.0, now - received.record.timestamp / 1000) for received in batch]
        metrics.observe_all("winnow_stage_latency_seconds", latencies, **labels)
        with within(self._context):
            around.telemetry.log.debug(
                "batch_handled",
                topic=self._handler.topic.name,
                records=len(arrived),
                duplicates=duplicates,
                dead=len(dead),
                ms=round(1000 * (around.clock() - began), 1),
            )

    async def _send_back(self, exc: Exception) -> NoReturn:
        """Wait, then let the fetch come again: what may pass is never a dead letter."""
        patience = self._around.patience
        self._nacks += 1
        seconds = pause(self._nacks, patience.nack_pause_s, patience.most_nack_pause_s, self._around.rng)
        self._count_batch("retried")
        unforeseen = None if self._worker.fault(exc) is Fault.TRANSIENT else exc
        with within(self._context):
            self._around.telemetry.log.warning(
                "batch_retried", exc=unforeseen, topic=self._handler.topic.name, error=exc, pause_s=round(seconds, 2)
            )
        await self._pause(seconds)
        raise NackMessage from None

    async def _pause(self, seconds: float) -> None:
        """Wait before the fetch comes again, or until the process stops."""
        with contextlib.suppress(GoingAway):
            await self._worker.sleep(seconds)

    def _count_batch(self, result: str) -> None:
        self._around.telemetry.metrics.count("winnow_batches_total", result=result, **self._labels)

    def _count_records(self, result: str, records: int) -> None:
        if records:
            self._around.telemetry.metrics.count("winnow_records_total", records, result=result, **self._labels)
            if result == "duplicate":
                self._around.telemetry.metrics.count("winnow_duplicates_total", records, **self._labels)


def most_records(handler: Handler[E], settings: KafkaSettings) -> int:
    """Records that one call of a handler may get."""
    return max(settings.batch_max_records, getattr(handler, "records_at_once", 0))


def gather_ms(handler: Handler[E]) -> int:
    """Milliseconds that a handler leaves records to gather in, see `Handler`."""
    return getattr(handler, "gather_ms", 0)


def subscribe(
    broker: KafkaBroker, handler: Handler[E], around: Surroundings, listener: ConsumerRebalanceListener | None = None
) -> tuple[BatchSubscriber, BatchConsumer[E]]:
    """Let `handler` consume its topic: one batch subscriber, in a group of its own. `Bus.subscribe` calls it."""
    settings = around.settings
    consumer = BatchConsumer(handler, around)
    subscriber = broker.subscriber(
        settings.topic_name(handler.topic.name),
        group_id=settings.group(around.telemetry.service, handler.topic.name),
        batch=True,
        max_records=most_records(handler, settings),
        batch_timeout_ms=max(settings.batch_timeout_ms, gather_ms(handler)),
        parser=parse,
        decoder=keep_raw,
        ack_policy=AckPolicy.NACK_ON_ERROR,
        listener=listener,
        no_reply=True,  # a record's `reply_to` header would make FastStream publish to a topic of the sender's choice
        **consumer_options(settings, max_record_bytes=handler.topic.max_record_bytes)
        | {"fetch_max_wait_ms": max(settings.busy_wait_ms, gather_ms(handler))},  # `Waits.busy`: who begins expects records
    )

    async def receive(fetched: Fetched) -> None:
        await consumer(fetched)
        # Now hardly anything young is alive, so this takes microseconds; in the midst of a batch it would look at all of it. What a batch
        # leaves behind in cycles would stay for as long as it takes to fill a generation: thousands of batches.
        gc.collect(YOUNGEST)

    subscriber(receive)
    return subscriber, consumer
