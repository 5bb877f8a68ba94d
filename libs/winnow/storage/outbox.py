"""The outbox: what starts from HTTP, the CLI or a timer is written here with its effects, and a relay publishes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.limits import MIB
from winnow.contracts.topics import CANDIDATE
from winnow.storage import raw
from winnow.storage.keys import Key
from winnow.storage.values import compress, decompress, jsonb, storable, storable_or_none


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMessage:
    """A record to publish. `topic` is the registry's name, without prefix; `headers` are UTF-8 texts."""

    fleet: str
    topic: str
    key: str
    body: bytes
    event_id: UUID
    headers: Mapping[str, str]
    run: str | None = None  # so that erasing a run finds it
    boundary_id: UUID | None = None  # so that the sweeper finds a candidate's record
    traceparent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxMessage:
    """A record that waits. `id` grows in the order of insertion."""

    id: int
    message: NewMessage
    created_at: datetime
    attempts: int


_ADD = """
WITH added AS (
    INSERT INTO outbox (fleet, run, boundary_id, topic, key, body, encoding, event_id, headers, traceparent, created_at)
    SELECT m.fleet, m.run, m.boundary_id, m.topic, m.key, m.body, m.encoding, m.event_id, m.headers::jsonb, m.traceparent, now()
    FROM unnest($1::text[], $2::text[], $3::uuid[], $4::text[], $5::text[], $6::bytea[], $7::text[], $8::uuid[], $9::text[], $10::text[])
        WITH ORDINALITY AS m(fleet, run, boundary_id, topic, key, body, encoding, event_id, headers, traceparent, i)
    ORDER BY m.i
    ON CONFLICT (fleet, topic, event_id) DO NOTHING
    RETURNING id
)
SELECT count(*) AS added, pg_notify('winnow_outbox', '') FROM added HAVING count(*) > 0
"""

# The lock comes first and once: one relays at a time, or two of them would interleave the records of a run. It is a row and no advisory
# lock, which any SQL reader could hold for ever. A relay that waits for nothing gets nothing; rows that the last relay marked sent after
# this statement's snapshot are checked again when they are locked, and left out.
_CLAIM = """
WITH mine AS MATERIALIZED (SELECT FROM locks WHERE name = 'relay' FOR UPDATE SKIP LOCKED),
oldest AS MATERIALIZED (
    SELECT o.id, octet_length(o.body) AS bytes FROM outbox o WHERE o.sent_at IS NULL AND EXISTS (SELECT FROM mine) ORDER BY o.id LIMIT $1
),
fitting AS (SELECT id FROM (SELECT id, sum(bytes) OVER (ORDER BY id) - bytes AS before FROM oldest) AS w WHERE before < $2)
SELECT o.* FROM outbox o WHERE o.id IN (SELECT id FROM fitting) AND o.sent_at IS NULL ORDER BY o.id FOR UPDATE SKIP LOCKED
"""


async def add(tx: AsyncConnection, messages: Sequence[NewMessage]) -> int:
    """Write records with the caller's effects; NOTIFY `winnow_outbox` on commit. The same (fleet, topic, event id) is written once.

    Return how many were written now.
    """
    rows = []
    for m in messages:
        body, encoding = compress(m.body)
        rows.append((
            m.fleet, storable_or_none(m.run), m.boundary_id, m.topic, storable(m.key), body, encoding, m.event_id, jsonb(dict(m.headers)),
            m.traceparent,
        ))  # fmt: skip
    written = await raw.fetch(tx, _ADD, *raw.columns(rows, 10)) if rows else []
    return int(written[0]["added"]) if written else 0


async def body(tx: AsyncConnection, fleet: str, topic: str, event_id: UUID) -> bytes | None:
    """The body of a record that waits, or that was sent and not purged yet; None where there is none."""
    sql = "SELECT body, encoding FROM outbox WHERE fleet = $1 AND topic = $2 AND event_id = $3"
    row = await raw.fetch_one(tx, sql, fleet, topic, event_id)
    return None if row is None else decompress(row["body"], row["encoding"])


async def claim(tx: AsyncConnection, limit: int = 500, *, most_bytes: int = 32 * MIB) -> list[OutboxMessage]:
    """Lock the oldest unsent records until the transaction ends, in order. Empty while another relay holds its own.

    One relay works at a time, whichever process it is in, so the records of a key are published in the order they were written. The record
    whose body reaches `most_bytes` is the last: 500 candidates of 8 MiB, piled up while a broker was away, would be 4 GB.
    """
    claimed: list[OutboxMessage] = []
    size = 0
    for row in await raw.fetch(tx, _CLAIM, limit, most_bytes):
        if size >= most_bytes:  # the statement counts compressed bytes, which may be a thousandth
            break
        body = decompress(row["body"], row["encoding"])
        size += len(body)
        message = NewMessage(
            fleet=row["fleet"],
            topic=row["topic"],
            key=row["key"],
            body=body,
            event_id=row["event_id"],
            headers=row["headers"],
            run=row["run"],
            boundary_id=row["boundary_id"],
            traceparent=row["traceparent"],
        )
        claimed.append(OutboxMessage(id=row["id"], message=message, created_at=row["created_at"], attempts=row["attempts"]))
    return claimed


async def mark_sent(tx: AsyncConnection, ids: Sequence[int], *, now: datetime) -> None:
    """The records were acknowledged by the broker."""
    if ids:
        await raw.execute(tx, "UPDATE outbox SET sent_at = $2, last_error = NULL WHERE id = ANY($1::bigint[])", list(ids), now)


async def mark_failed(tx: AsyncConnection, ids: Sequence[int], error: str) -> None:
    """Count an attempt that failed; the records stay unsent. `error` never quotes content."""
    if ids:
        await raw.execute(
            tx, "UPDATE outbox SET attempts = attempts + 1, last_error = $2 WHERE id = ANY($1::bigint[])", list(ids), storable(error[:500])
        )


async def resend(tx: AsyncConnection, keys: Sequence[Key]) -> set[Key]:
    """Let the candidates of these boundaries be published again, byte for byte; NOTIFY. Return those whose record is still there."""
    if not keys:
        return set()
    rows = await raw.fetch(
        tx,
        "WITH again AS (UPDATE outbox o SET sent_at = NULL FROM unnest($1::text[], $2::uuid[]) AS k(fleet, boundary_id)"
        " WHERE o.fleet = k.fleet AND o.boundary_id = k.boundary_id AND o.topic = $3 RETURNING o.fleet, o.boundary_id)"
        " SELECT fleet, boundary_id, pg_notify('winnow_outbox', '') FROM again",
        *raw.columns(sorted(set(keys)), 2),
        CANDIDATE.name,
    )
    return {Key(r["fleet"], r["boundary_id"]) for r in rows}


async def depth(tx: AsyncConnection) -> tuple[int, datetime | None]:
    """How many records wait, and since when the oldest does."""
    row = await raw.fetch_one(tx, "SELECT count(*) AS waiting, min(created_at) AS oldest FROM outbox WHERE sent_at IS NULL")
    return (row["waiting"], row["oldest"]) if row else (0, None)


async def purge(tx: AsyncConnection, *, older_than: timedelta, now: datetime) -> int:
    """Delete what was sent longer ago, but not the candidate of a boundary that is not committed: the sweeper may need it."""
    return await raw.execute(
        tx,
        "DELETE FROM outbox o WHERE o.sent_at < $1 AND NOT EXISTS (SELECT FROM boundaries b WHERE b.fleet = o.fleet"
        " AND b.boundary_id = o.boundary_id AND b.committed_at IS NULL AND b.received_at >= $1 - interval '30 days')",
        now - older_than,
    )
