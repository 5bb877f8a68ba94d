"""Originals: exact bytes, stored once a fleet by content, and the random handles that give them back."""

import asyncio
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Self
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts import limits
from winnow.contracts.errors import Gone, HashMismatch, NotFound, TooLarge
from winnow.contracts.events import sha256
from winnow.storage import raw
from winnow.storage.keys import ContentKey, Key
from winnow.storage.values import compress, decompress, storable_or_none

#: Bytes of randomness in a handle: 192 bits, 32 url-safe characters.
HANDLE_BYTES = 24
#: Bytes above which originals are packed and hashed in a thread: 64 MiB take a second, in which nobody else would be served.
THREAD_BYTES = limits.MIB
#: Bytes up to which originals are sent without asking whether they are there: packing them costs less than another round trip.
UNASKED_BYTES = 128 * limits.KIB


class Kind(StrEnum):
    """What a handle's original is."""

    TASK = "task"
    HISTORY = "history"
    CANDIDATE = "candidate"
    PREVIOUS = "previous"
    COMMITTED = "committed"
    EVENT = "event"  # the body of an event above its topic's limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Bytes to keep. Build with `Content.of`, which computes the hash."""

    fleet: str
    sha256: str
    data: bytes

    @classmethod
    def of(cls, fleet: str, data: bytes | str) -> Self:
        """Hash `data` (a text as UTF-8)."""
        exact = data.encode() if isinstance(data, str) else data
        return cls(fleet=fleet, sha256=sha256(exact), data=exact)

    @property
    def key(self) -> ContentKey:
        """Fleet and hash."""
        return ContentKey(self.fleet, self.sha256)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewHandle:
    """A handle to store. `handle` comes from `new_handle()`, so that an event's body can name it before the transaction."""

    handle: str
    fleet: str
    sha256: str
    kind: Kind
    boundary_id: UUID | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """What a handle stands for. `size` is that of the exact bytes."""

    sha256: str
    kind: Kind
    boundary_id: UUID | None
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What a handle gives back: exact bytes, hash checked."""

    handle: str
    fleet: str
    sha256: str
    kind: Kind
    boundary_id: UUID | None
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What was given back of an original."""

    #: Bytes.
    size: int
    #: Part of it (`contracts.places`); None: all.
    part: str | None = None
    #: By which the text is known when it comes back in a history (`compaction.recovered.given_key`); None: no text.
    key: str | None = None
    #: An environment had returned the text; None where there is no key.
    source: bool | None = None


def new_handle() -> str:
    """A random handle of 192 bits, 32 url-safe characters."""
    return secrets.token_urlsafe(HANDLE_BYTES)


# What is there is touched, at most every ten minutes, and so not collected for an hour. A row that collection deletes at this moment is
# not returned: the UPDATE waits for it, and then it is put anew.
_TOUCH = """
WITH k AS (SELECT * FROM unnest($1::text[], $2::text[]) AS k(fleet, sha256)),
stale AS (
    SELECT o.fleet, o.sha256 FROM originals o JOIN k ON k.fleet = o.fleet AND k.sha256 = o.sha256
    WHERE o.touched_at < now() - interval '10 minutes' ORDER BY o.fleet, o.sha256 FOR UPDATE OF o
),
touched AS (
    UPDATE originals o SET touched_at = now() FROM stale s WHERE s.fleet = o.fleet AND s.sha256 = o.sha256 RETURNING o.fleet, o.sha256
)
SELECT fleet, sha256 FROM touched
UNION ALL
SELECT o.fleet, o.sha256 FROM originals o JOIN k ON k.fleet = o.fleet AND k.sha256 = o.sha256
WHERE o.touched_at >= now() - interval '10 minutes'
"""

# What is there is touched in the same statement, and first: a row that collection deletes at this moment is waited for, and put anew.
_PUT = """
WITH k AS (SELECT * FROM unnest($1::text[], $2::text[], $3::bytea[], $4::text[], $5::bigint[]) AS k(fleet, sha256, data, encoding, size)),
stale AS (
    SELECT o.fleet, o.sha256 FROM originals o JOIN k ON k.fleet = o.fleet AND k.sha256 = o.sha256
    WHERE o.touched_at < now() - interval '10 minutes' ORDER BY o.fleet, o.sha256 FOR UPDATE OF o
),
touched AS (
    UPDATE originals o SET touched_at = now() FROM stale s WHERE s.fleet = o.fleet AND s.sha256 = o.sha256 RETURNING 1
),
named AS (
    INSERT INTO handles (handle, fleet, sha256, kind, boundary_id, created_at, expires_at)
    SELECT h.handle, h.fleet, h.sha256, h.kind, h.boundary_id, now(), h.expires_at
    FROM unnest($6::text[], $7::text[], $8::text[], $9::text[], $10::uuid[], $11::timestamptz[])
        AS h(handle, fleet, sha256, kind, boundary_id, expires_at)
    ON CONFLICT (handle) DO NOTHING
)
INSERT INTO originals (fleet, sha256, data, encoding, size, created_at, touched_at)
SELECT k.fleet, k.sha256, k.data, k.encoding, k.size, now(), now() FROM k
WHERE (SELECT count(*) FROM touched) >= 0
ORDER BY k.fleet, k.sha256
ON CONFLICT (fleet, sha256) DO NOTHING
"""

_GET = """
SELECT o.fleet, o.sha256, o.data, o.encoding FROM unnest($1::text[], $2::text[]) AS k(fleet, sha256)
JOIN originals o ON o.fleet = k.fleet AND o.sha256 = k.sha256
"""

_PUT_HANDLES = """
INSERT INTO handles (handle, fleet, sha256, kind, boundary_id, created_at, expires_at)
SELECT h.handle, h.fleet, h.sha256, h.kind, h.boundary_id, now(), h.expires_at
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::uuid[], $6::timestamptz[])
    AS h(handle, fleet, sha256, kind, boundary_id, expires_at)
ON CONFLICT (handle) DO NOTHING
"""


async def put(
    tx: AsyncConnection, contents: Iterable[Content], *, kept: Iterable[ContentKey] = (), handles: Sequence[NewHandle] = ()
) -> None:
    """Store what is not stored yet, and `handles` as `put_handles` does. What is there is touched, and so not collected for an hour.

    `kept` are originals that must be there already: they are touched alike, and nobody needs their bytes. Raise `Gone` where one is not.

    Call it first in a transaction, before boundaries are inserted: everybody, erasure too, locks originals before boundaries, so that two
    transactions with the same content never wait for each other in a circle.

    Raise `TooLarge` above `limits.ORIGINAL_BYTES`.
    """
    wanted = {c.key: c for c in contents}
    must = set(kept) - wanted.keys()
    if not wanted and not must:
        await put_handles(tx, handles)
        return
    if any(len(c.data) > limits.ORIGINAL_BYTES for c in wanted.values()):
        msg = f"an original may have {limits.ORIGINAL_BYTES} bytes; split it"
        raise TooLarge(msg)
    there: set[ContentKey] = set()
    if must or sum(len(c.data) for c in wanted.values()) > UNASKED_BYTES * len(wanted):
        there = {ContentKey(r["fleet"], r["sha256"]) for r in await raw.fetch(tx, _TOUCH, *raw.columns(sorted(wanted.keys() | must), 2))}
        if not must <= there:
            raise Gone
    rows = [(*key, *(await _compressed(wanted[key].data)), len(wanted[key].data)) for key in sorted(wanted) if key not in there]
    if rows:
        await raw.execute(tx, _PUT, *raw.columns(rows, 5), *raw.columns(_named(handles), 6))
    else:
        await put_handles(tx, handles)


async def _compressed(data: bytes) -> tuple[bytes, str]:
    """`compress`, off the event loop where it would hold everybody up."""
    return await asyncio.to_thread(compress, data) if len(data) > THREAD_BYTES else compress(data)


async def get(tx: AsyncConnection, keys: Iterable[ContentKey]) -> dict[ContentKey, bytes]:
    """The exact bytes of originals; unknown keys are left out. Raise `HashMismatch` where stored bytes do not have their hash."""
    wanted = sorted(set(keys))
    if not wanted:
        return {}
    found = {}
    for row in await raw.fetch(tx, _GET, *raw.columns(wanted, 2)):
        key = ContentKey(row["fleet"], row["sha256"])
        found[key] = _checked(row["data"], row["encoding"], key.sha256)
    return found


def _checked(data: bytes, encoding: str, stated: str) -> bytes:
    """Decompress and compare with the hash: a page that rotted must not pass for an original."""
    exact = decompress(data, encoding)
    if sha256(exact) != stated:
        msg = f"the stored bytes of original {stated} are damaged; restore them from a backup"
        raise HashMismatch(msg)
    return exact


async def put_handles(tx: AsyncConnection, handles: Sequence[NewHandle]) -> None:
    """Store handles; a handle that is stored already is left as it is."""
    if handles:
        await raw.execute(tx, _PUT_HANDLES, *raw.columns(_named(handles), 6))


def _named(handles: Sequence[NewHandle]) -> list[tuple[object, ...]]:
    """Rows of handles, in the order in which all transactions lock them."""
    return [(h.handle, h.fleet, h.sha256, h.kind, h.boundary_id, h.expires_at) for h in sorted(handles, key=lambda h: h.handle)]


async def handles_of(tx: AsyncConnection, fleet: str, boundary_id: UUID) -> dict[Kind, str]:
    """The handles of a boundary that are not erased, one a kind (no expiry is looked at)."""
    rows = await raw.fetch(
        tx,
        "SELECT kind, handle FROM handles WHERE fleet = $1 AND boundary_id = $2 AND erased_at IS NULL ORDER BY created_at, handle",
        fleet,
        boundary_id,
    )
    return {Kind(r["kind"]): r["handle"] for r in rows}


async def handles_of_many(tx: AsyncConnection, keys: Sequence[Key]) -> dict[Key, dict[Kind, str]]:
    """`handles_of` for a batch. A boundary without handles is left out."""
    if not keys:
        return {}
    rows = await raw.fetch(
        tx,
        "SELECT h.fleet, h.boundary_id, h.kind, h.handle FROM unnest($1::text[], $2::uuid[]) AS k(fleet, boundary_id)"
        " JOIN handles h ON h.fleet = k.fleet AND h.boundary_id = k.boundary_id"
        " WHERE h.erased_at IS NULL ORDER BY h.created_at, h.handle",
        *raw.columns(sorted(set(keys)), 2),
    )
    found: dict[Key, dict[Kind, str]] = {}
    for row in rows:
        found.setdefault(Key(row["fleet"], row["boundary_id"]), {})[Kind(row["kind"])] = row["handle"]
    return found


async def describe(tx: AsyncConnection, fleet: str, handle: str, *, now: datetime) -> Described:
    """What a handle stands for, without its bytes. Raise `NotFound` (also for another fleet's), `Gone` where it is expired or erased."""
    if not handle.isascii() or "\x00" in handle:
        raise NotFound
    row = await raw.fetch_one(
        tx,
        "SELECT h.sha256, h.kind, h.boundary_id, h.expires_at, h.erased_at, o.size FROM handles h"
        " LEFT JOIN originals o ON o.fleet = h.fleet AND o.sha256 = h.sha256 WHERE h.handle = $1 AND h.fleet = $2",
        handle,
        fleet,
    )
    if row is None:
        raise NotFound
    if row["erased_at"] is not None or row["size"] is None or (row["expires_at"] is not None and row["expires_at"] <= now):
        raise Gone
    return Described(sha256=row["sha256"], kind=Kind(row["kind"]), boundary_id=row["boundary_id"], size=row["size"])


async def resolve(tx: AsyncConnection, fleet: str, handle: str, *, now: datetime) -> Resolved:
    """Give back the bytes of a handle. Raise `NotFound` (also for another fleet's handle), `Gone` where it is expired or erased."""
    found = await describe(tx, fleet, handle, now=now)
    row = await raw.fetch_one(tx, "SELECT data, encoding FROM originals WHERE fleet = $1 AND sha256 = $2", fleet, found.sha256)
    if row is None:
        raise Gone
    if found.size > THREAD_BYTES:
        data = await asyncio.to_thread(_checked, row["data"], row["encoding"], found.sha256)
    else:
        data = _checked(row["data"], row["encoding"], found.sha256)
    return Resolved(handle=handle, fleet=fleet, sha256=found.sha256, kind=found.kind, boundary_id=found.boundary_id, data=data)


async def record_recovery(
    tx: AsyncConnection,
    resolved: Resolved,
    *,
    via: str,
    now: datetime,
    run: str | None = None,
    event_id: UUID | None = None,
    given: Given | None = None,
) -> bool:
    """Note that an original, or the part of it that `given` says, was given back. `via` is gateway or cli.

    With `event_id` an agent asked for it, and the same event is noted once; what runtimes report comes through `runtime_events`.
    Return whether it was noted now.
    """
    what = given or Given(size=len(resolved.data))
    noted = await raw.execute(
        tx,
        "INSERT INTO recoveries (fleet, handle, kind, boundary_id, run, via, event_id, at, part, bytes, given_key, source)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (fleet, event_id) DO NOTHING",
        resolved.fleet,
        resolved.handle,
        resolved.kind,
        resolved.boundary_id,
        storable_or_none(run),
        via,
        event_id,
        now,
        what.part,
        what.size,
        what.key,
        what.source,
    )
    return noted > 0
