"""API keys: 256 random bits, shown once, kept as a hash, bound to one fleet."""

import re
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.errors import NotFound
from winnow.contracts.events import sha256
from winnow.storage import audit, fleets, raw, tables
from winnow.storage.values import storable

#: Bytes of randomness in a secret. With 256 bits a plain hash is enough: there is nothing to guess, so nothing to slow down.
SECRET_BYTES = 32
PREFIX = "wnw_"
ROLES = ("runtime", "grader", "operator")

_SECRET = re.compile(r"wnw_[A-Za-z0-9_-]{43}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A stored key, without its secret. `role` is `runtime`, `grader` or `operator`."""

    key_id: UUID
    fleet: str
    name: str
    role: str
    created_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None


def _key(row: Any) -> ApiKey:  # noqa: ANN401  a driver's record or a SQLAlchemy mapping; both are read by name
    """The key of a row."""
    return ApiKey(**{name: row[name] for name in ApiKey.__dataclass_fields__})


async def create(tx: AsyncConnection, fleet: str, *, name: str, role: str = "runtime", by: str, now: datetime) -> tuple[str, ApiKey]:
    """Make a key for an existing fleet; the secret (`wnw_...`) is returned here and never again. Raise `NotFound`, `ValueError`."""
    if role not in ROLES:
        msg = f"a key's role is one of {', '.join(ROLES)}, not {role!r}"
        raise ValueError(msg)
    if fleet not in await fleets.load(tx, [fleet]):
        msg = f"there is no fleet {fleet!r}"
        raise NotFound(msg)
    secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    key = ApiKey(key_id=uuid4(), fleet=fleet, name=storable(name), role=role, created_at=now, revoked_at=None, last_used_at=None)
    await tx.execute(
        insert(tables.api_keys).values(
            key_id=key.key_id, fleet=fleet, secret_sha256=sha256(secret), name=key.name, role=role, created_at=now, created_by=storable(by)
        )
    )
    await audit.add(tx, action="key.create", by=by, now=now, fleet=fleet, details={"key_id": key.key_id, "name": name, "role": role})
    return secret, key


async def verify(tx: AsyncConnection, secret: str, *, now: datetime) -> ApiKey | None:
    """The key that `secret` is, or None (unknown, malformed or revoked). `last_used_at` moves at most once a minute.

    Looked up by hash, so the time it takes tells nothing of any stored secret. Works in the gateway's role before a fleet is known.
    """
    if not _SECRET.fullmatch(secret):
        return None
    row = await raw.fetch_one(tx, "SELECT * FROM winnow_verify_key($1, $2)", sha256(secret), now)
    return None if row is None else _key(row)


async def listed(tx: AsyncConnection, fleet: str | None = None) -> list[ApiKey]:
    """Keys by fleet and age, revoked ones included."""
    k = tables.api_keys.c
    query = select(tables.api_keys).order_by(k.fleet, k.created_at, k.key_id)
    if fleet is not None:
        query = query.where(k.fleet == fleet)
    return [_key(row) for row in (await tx.execute(query)).mappings()]


async def revoke(tx: AsyncConnection, key_id: UUID, *, by: str, now: datetime) -> ApiKey:
    """Revoke a key; it stays revoked, since when it first was. Raise `NotFound`."""
    k = tables.api_keys
    query = select(k).where(k.c.key_id == key_id).with_for_update()
    row = (await tx.execute(query)).mappings().first()
    if row is None:
        msg = f"there is no key {key_id}"
        raise NotFound(msg)
    if row["revoked_at"] is None:
        await tx.execute(update(k).where(k.c.key_id == key_id).values(revoked_at=now))
        await audit.add(tx, action="key.revoke", by=by, now=now, fleet=row["fleet"], details={"key_id": key_id})
        row = (await tx.execute(query)).mappings().one()
    return _key(row)
