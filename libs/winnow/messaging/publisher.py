"""Publishing: exact bytes, in order, confirmed. Never `publish_batch` (it fails whole at its buffer's size), never one by one."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

from aiokafka import AIOKafkaProducer
from aiokafka.errors import TopicAuthorizationFailedError

from winnow.contracts import limits
from winnow.contracts.envelope import headers_for
from winnow.contracts.errors import TooLarge
from winnow.contracts.rights import NotAllowed
from winnow.contracts.topics import Topic
from winnow.messaging.records import Outgoing
from winnow.messaging.rights import refused
from winnow.messaging.settings import KafkaSettings
from winnow.messaging.tracing import context_of, publish_span
from winnow.telemetry import Telemetry
from winnow.telemetry.traces import within

#: Bytes of a record batch around one record: the batch header has 61, the record's varints up to 21, a header's up to 10.
RECORD_OVERHEAD = 61 + 21
HEADER_OVERHEAD = 10

Headers = Sequence[tuple[str, bytes]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRecord:
    """A record to publish as it is: a dead letter or its replay."""

    #: Name on the broker.
    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    partition: int | None = None


def record_bytes(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """Bytes that a broker counts for a record alone in its batch, uncompressed; never less than what is sent."""
    named = sum(len(name.encode()) + len(data) + HEADER_OVERHEAD for name, data in headers)
    return RECORD_OVERHEAD + len(key or b"") + len(value or b"") + named


def check_size(topic: Topic, body: bytes, key: str) -> None:
    """Raise `TooLarge` where `body` cannot travel on `topic`. Call it before the commit: afterwards it is too late."""
    size = RECORD_OVERHEAD + limits.KIB + 2 * len(key.encode()) + len(body)  # headers: the key as `ce_subject`, and 1 KiB for the rest
    if len(body) > topic.max_body_bytes or size > topic.max_record_bytes:
        msg = f"the body has {len(body)} bytes, {topic.name} takes {topic.max_body_bytes}; send a claim check"
        raise TooLarge(msg)


class Publisher:
    """Sends for one service. Safe for concurrent use; order is kept within one call, per key."""

    def __init__(self, producer: Callable[[], AIOKafkaProducer], settings: KafkaSettings, telemetry: Telemetry) -> None:
        """`producer` gives the started producer: it is asked at each call, since a broker has none before its start."""
        self._producer = producer
        self._settings = settings
        self._telemetry = telemetry
        #: What the broker does not let this service write, by topic on the broker; gone once it is written again.
        self.refused: dict[str, NotAllowed] = {}

    async def send(self, outgoing: Sequence[Outgoing]) -> None:
        """Publish in order and wait until the broker has confirmed all.

        Raises `TooLarge` before anything is sent; where a confirmation fails, raises the first error after all others are settled.
        """
        for item in outgoing:
            check_size(item.topic, item.body, item.key)
        errors = await self.send_each(outgoing)
        first = next((error for error in errors if error is not None), None)
        if first is not None:
            raise first

    async def send_each(self, outgoing: Sequence[Outgoing]) -> list[Exception | None]:
        """Publish in order; return for each item None or why it was not confirmed. After an error in queueing, the rest is not sent."""
        service, metrics = self._telemetry.service, self._telemetry.metrics
        results = await self._send_all([(self._settings.topic_name(item.topic.name), self._enqueue(item)) for item in outgoing])
        for item, error in zip(outgoing, results, strict=True):
            if error is None:
                metrics.count("winnow_published_total", service=service, topic=item.topic.name)
            else:
                metrics.count("winnow_publish_errors_total", service=service, topic=item.topic.name)
                with within(context_of(self._telemetry.traces, item)):
                    self._telemetry.log.warning("publish_failed", topic=item.topic.name, error=error)
        return results

    async def send_raw(self, records: Iterable[RawRecord]) -> list[Exception | None]:
        """Publish records as they are; return for each None or why it was not confirmed."""
        return await self._send_all([(record.topic, self._enqueue_raw(record)) for record in records])

    def _enqueue(self, item: Outgoing) -> Callable[[], Awaitable[asyncio.Future[object]]]:
        async def enqueue() -> asyncio.Future[object]:
            topic = self._settings.topic_name(item.topic.name)
            with publish_span(self._telemetry.traces, item, topic) as trace_headers:
                headers = headers_for(
                    item.topic,
                    event_id=item.event_id,
                    source=f"winnow/{self._telemetry.service}",
                    subject=item.key,
                    time=item.time,
                    claim=item.claim,
                )
                future: asyncio.Future[object] = await self._producer().send(
                    topic, value=item.body, key=item.key.encode(), headers=headers + trace_headers
                )
                return future

        return enqueue

    def _enqueue_raw(self, record: RawRecord) -> Callable[[], Awaitable[asyncio.Future[object]]]:
        async def enqueue() -> asyncio.Future[object]:
            future: asyncio.Future[object] = await self._producer().send(
                record.topic, value=record.value, key=record.key, headers=list(record.headers), partition=record.partition
            )
            return future

        return enqueue

    async def _send_all(self, enqueues: Sequence[tuple[str, Callable[[], Awaitable[asyncio.Future[object]]]]]) -> list[Exception | None]:
        """Queue one after another (that is the order), then wait for all confirmations. Each has the topic that it goes to.

        What cannot be queued ends the queueing, but for a topic that the broker hides: that holds up its own records alone.
        """
        futures: dict[int, asyncio.Future[object]] = {}
        errors: dict[int, Exception] = {}
        hidden: dict[str, Exception] = {}
        failed: Exception | None = None
        for n, (topic, enqueue) in enumerate(enqueues):
            if (known := failed or hidden.get(topic)) is not None:
                errors[n] = known
                continue
            try:
                futures[n] = await enqueue()
            except TopicAuthorizationFailedError as exc:
                errors[n] = hidden[topic] = exc
            except Exception as exc:  # noqa: BLE001  whatever it is, the confirmations that are under way must be awaited first
                errors[n] = failed = exc
        for n, outcome in zip(futures, await asyncio.gather(*futures.values(), return_exceptions=True), strict=True):
            if isinstance(outcome, Exception):
                errors[n] = outcome
            elif isinstance(outcome, BaseException):
                raise outcome
        return [self._explained(topic, errors.get(n)) for n, (topic, _) in enumerate(enqueues)]

    def _explained(self, topic: str, error: Exception | None) -> Exception | None:
        """`error`, or what the broker's rules forbid where that is what it says; remembered until the topic is written again."""
        if error is None:
            self.refused.pop(topic, None)
            return None
        found = refused(error, self._settings, writing=True)
        if found is None:
            return error
        self.refused[topic] = found
        return found
