"""Dead letters: the original bytes and headers of what could not be handled, and why. Unique on (topic, partition, offset) of a log."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.errors import NotFound
from winnow.contracts.vocabulary import Reason
from winnow.storage import cursors, raw, tables
from winnow.storage.values import compress, decompress, jsonb, storable, storable_or_none


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDeadLetter:
    """A record as it arrived. `error` names fields and never quotes content. `fleet` and `run` where they could be read."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    reason: Reason
    error: str
    service: str
    attempts: int = 1
    fleet: str | None = None
    run: str | None = None
    timestamp: datetime | None = None  # of the record


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadLetter:
    """A stored dead letter."""

    id: int
    letter: NewDeadLetter
    created_at: datetime
    replayed_at: datetime | None
    replays: int


_ADD = """
INSERT INTO dead_letters (topic, partition, "offset", key, value, encoding, headers, reason, error, service, attempts, fleet, run,
    record_at, created_at)
SELECT d.topic, d.part, d.pos, d.key, d.value, d.encoding, d.headers::jsonb, d.reason, d.error, d.service, d.attempts, d.fleet, d.run,
    d.record_at, $15
FROM unnest($1::text[], $2::int[], $3::bigint[], $4::bytea[], $5::bytea[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[],
    $11::int[], $12::text[], $13::text[], $14::timestamptz[])
    AS d(topic, part, pos, key, value, encoding, headers, reason, error, service, attempts, fleet, run, record_at)
ORDER BY d.topic, d.part, d.pos
ON CONFLICT ON CONSTRAINT dead_letters_record DO NOTHING
RETURNING id, topic, partition, "offset"
"""


def _row(letter: NewDeadLetter) -> tuple[object, ...]:
    """The columns of an insert, in order."""
    value, encoding = (None, "raw") if letter.value is None else compress(letter.value)
    headers = jsonb([(name, base64.b64encode(data).decode()) for name, data in letter.headers])
    return (
        storable(letter.topic), letter.partition, letter.offset, letter.key, value, encoding, headers, letter.reason,
        storable(letter.error), letter.service, letter.attempts, storable_or_none(letter.fleet), storable_or_none(letter.run),
        letter.timestamp,
    )  # fmt: skip


def _letter(row: Any) -> DeadLetter:  # noqa: ANN401  a SQLAlchemy mapping, read by name
    """The dead letter of a row."""
    return DeadLetter(
        id=row["id"],
        letter=NewDeadLetter(
            topic=row["topic"],
            partition=row["partition"],
            offset=row["offset"],
            key=row["key"],
            value=None if row.get("value") is None else decompress(row["value"], row["encoding"]),
            headers=tuple((name, base64.b64decode(data)) for name, data in row["headers"]),
            reason=Reason(row["reason"]),
            error=row["error"],
            service=row["service"],
            attempts=row["attempts"],
            fleet=row["fleet"],
            run=row["run"],
            timestamp=row["record_at"],
        ),
        created_at=row["created_at"],
        replayed_at=row["replayed_at"],
        replays=row["replays"],
    )


async def add(tx: AsyncConnection, letters: Sequence[NewDeadLetter], *, now: datetime) -> list[DeadLetter]:
    """Store what is not stored yet; return the new ones, in the order given. A redelivered poison record is stored once."""
    first: dict[tuple[str, int, int], NewDeadLetter] = {}
    for letter in letters:
        first.setdefault((letter.topic, letter.partition, letter.offset), letter)
    if not first:
        return []
    rows = await raw.fetch(tx, _ADD, *raw.columns([_row(x) for x in first.values()], 14), now)
    ids = {(r["topic"], r["partition"], r["offset"]): r["id"] for r in rows}
    return [
        DeadLetter(id=ids[place], letter=letter, created_at=now, replayed_at=None, replays=0)
        for place, letter in first.items()
        if place in ids
    ]


async def page(
    tx: AsyncConnection,
    *,
    topic: str | None = None,
    reason: Reason | None = None,
    fleet: str | None = None,
    before_id: int | None = None,
    limit: int = 50,
    bodies: bool = True,
) -> list[DeadLetter]:
    """Dead letters, newest first; `before_id` is the id of the last one seen.

    Without `bodies` their `value` is None and is not read: a page of bodies may be gigabytes.
    """
    d = tables.dead_letters.c
    query = select(*(column for column in d if bodies or column is not d.value)).order_by(d.id.desc()).limit(cursors.limited(limit))
    for column, wanted in ((d.topic, topic), (d.reason, reason), (d.fleet, fleet)):
        if wanted is not None:
            query = query.where(column == str(wanted))
    if before_id is not None:
        query = query.where(d.id < before_id)
    return [_letter(row) for row in (await tx.execute(query)).mappings()]


async def get(tx: AsyncConnection, letter_id: int) -> DeadLetter:
    """One dead letter. Raise `NotFound`."""
    row = (await tx.execute(select(tables.dead_letters).where(tables.dead_letters.c.id == letter_id))).mappings().first()
    if row is None:
        msg = f"there is no dead letter {letter_id}"
        raise NotFound(msg)
    return _letter(row)


async def mark_replayed(tx: AsyncConnection, ids: Sequence[int], *, now: datetime) -> None:
    """The original bytes were published to their topic again."""
    if ids:
        await raw.execute(
            tx, "UPDATE dead_letters SET replayed_at = $2, replays = replays + 1 WHERE id = ANY($1::bigint[])", sorted(set(ids)), now
        )
