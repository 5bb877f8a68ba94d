"""Between FastStream and our recipe: records as they came, whatever is in them."""

import dataclasses
from collections.abc import Awaitable, Callable
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRecord

from winnow.messaging.records import Record
from winnow.messaging.tolerance import Unreadable


@dataclasses.dataclass(frozen=True, slots=True)
class Fetched:
    """What one poll brought, as our decoder hands it over."""

    records: tuple[ConsumerRecord, ...]
    consumer: AIOKafkaConsumer


def clean(record: ConsumerRecord) -> ConsumerRecord:
    """The record with headers that FastStream can decode. It skips a record silently where it cannot (faststream#2458)."""
    headers = tuple((name, (value or b"").decode("utf-8", "replace").encode()) for name, value in record.headers)
    return dataclasses.replace(record, headers=headers)


async def parse(message: Any, original: Callable[[Any], Awaitable[Any]]) -> Any:  # noqa: ANN401  FastStream's custom parser
    """Let FastStream parse a cleaned copy of the first record, for its own bookkeeping; ours are the records as they came.

    It would decode the headers of all of them, one by one, for nobody.
    """
    parsed = await original((clean(message[0]),))
    parsed.raw_message = message
    return parsed


async def keep_raw(message: Any, original: Callable[[Any], Awaitable[Any]]) -> Fetched:  # noqa: ANN401, ARG001  FastStream's custom decoder
    """Never decode here: a poison body is our branch, not FastStream's endless loop."""
    return Fetched(message.raw_message, message.consumer)


def record_of(record: ConsumerRecord) -> Record:
    """The record in our terms; a header without a value becomes empty."""
    return Record(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        key=record.key,
        headers=tuple([(name, value or b"") for name, value in record.headers]) if unreadable(record) is None else (),
        value=record.value,
        timestamp=record.timestamp,
    )


def unreadable(record: ConsumerRecord) -> Unreadable | None:
    """The mark of a record that stands for a batch which the client cannot read."""
    name = record.headers[0][0] if record.headers else None
    return name if isinstance(name, Unreadable) else None
