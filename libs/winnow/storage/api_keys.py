"""API keys: 256 random bits, shown once, kept as a hash, bound to a fleet, or to some where people look after several."""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from sqlalchemy import insert, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.access import Right, Role
from winnow.contracts.errors import NotFound, Permanent
from winnow.contracts.events import sha256
from winnow.storage import audit, fleets, raw, tables
from winnow.storage.values import storable

#: Bytes of randomness in a secret. With 256 bits a plain hash is enough: there is nothing to guess, so nothing to slow down.
SECRET_BYTES = 32
PREFIX = "wnw_"
#: Fleets of one key at most: they travel with each verification and are shown in one line.
MOST_FLEETS = 200

_SECRET = re.compile(r"wnw_[A-Za-z0-9_-]{43}")


class DeadKey(Permanent):
    """The key is revoked or has expired; make a new one with `winnow keys create`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A stored key, without its secret.

    Attributes:
        fleet: The fleet that is meant where a request names none.
        also: Further fleets that it covers; empty for runtimes and graders.
        expires_at: From when on it is refused; None: it does not expire.
        replaces: The key that it was made to replace.
    """

    key_id: UUID
    fleet: str
    also: tuple[str, ...] = ()
    name: str
    role: Role
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None
    last_used_at: datetime | None
    replaces: UUID | None = None

    @property
    def fleets(self) -> tuple[str, ...]:
        """All fleets that it covers, the first one first."""
        return (self.fleet, *self.also)

    @property
    def actor(self) -> str:
        """How the audit trail names whoever uses it."""
        return f"{self.role}:{self.key_id}"

    def may(self, right: Right) -> bool:
        """Whether its role has `right`."""
        return self.role.may(right)

    def alive(self, now: datetime) -> bool:
        """Neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or self.expires_at > now)


def _key(row: Any) -> ApiKey:  # noqa: ANN401  a driver's record or a SQLAlchemy mapping; both are read by name
    """The key of a row."""
    said = {name: row[name] for name in ApiKey.__dataclass_fields__}
    return ApiKey(**said | {"role": Role(said["role"]), "also": tuple(said["also"])})


async def create(
    tx: AsyncConnection, fleet: str, *, name: str, role: str = Role.RUNTIME, also: Sequence[str] = (), expires_at: datetime | None = None,
    by: str, now: datetime,
) -> tuple[str, ApiKey]:  # fmt: skip
    """Make a key for existing fleets; the secret (`wnw_...`) is returned here and never again.

    Raise `NotFound` for a fleet that is not there, `Permanent` for a role, a list of fleets or an expiry that will not do.
    """
    try:
        known = Role(role)
    except ValueError:
        msg = f"a key's role is one of {', '.join(Role)}, not {role!r}"
        raise Permanent(msg) from None
    more = tuple(dict.fromkeys(f for f in also if f != fleet))
    if more and not known.spans_fleets:
        msg = f"a key of a {known} covers one fleet: make one for each; only keys of auditors and operators cover several"
        raise Permanent(msg)
    if len(more) >= MOST_FLEETS:
        msg = f"a key covers at most {MOST_FLEETS} fleets"
        raise Permanent(msg)
    if expires_at is not None and expires_at <= now:
        msg = "the key would have expired already; name a time that is still to come"
        raise Permanent(msg)
    there = await fleets.load(tx, [fleet, *more])
    for wanted in (fleet, *more):
        if wanted not in there:
            msg = f"there is no fleet {wanted!r}"
            raise NotFound(msg)
    secret = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    key = ApiKey(
        key_id=uuid4(), fleet=fleet, also=more, name=storable(name), role=known, created_at=now, expires_at=expires_at, revoked_at=None,
        last_used_at=None,
    )  # fmt: skip
    await tx.execute(
        insert(tables.api_keys).values(
            key_id=key.key_id, fleet=fleet, also=list(more), secret_sha256=sha256(secret), name=key.name, role=known.value, created_at=now,
            created_by=storable(by), expires_at=expires_at,
        )
    )  # fmt: skip
    details = {"key_id": key.key_id, "name": name, "role": known.value, "also": list(more), "expires_at": expires_at}
    await audit.add(tx, action="key.create", by=by, now=now, fleet=fleet, details=details)
    return secret, key


def well_formed(secret: str) -> bool:
    """Whether `secret` looks like one of ours; what does not need not be looked up."""
    return _SECRET.fullmatch(secret) is not None


async def verify(tx: AsyncConnection, secret: str, *, now: datetime) -> ApiKey | None:
    """The key that `secret` is, or None (unknown, malformed, revoked or expired). `last_used_at` moves at most once a minute.

    Looked up by hash, so the time it takes tells nothing of any stored secret. Works in the gateway's role before a fleet is known.
    """
    if not well_formed(secret):
        return None
    return await verify_hash(tx, sha256(secret), now=now)


async def verify_hash(tx: AsyncConnection, secret_sha256: str, *, now: datetime) -> ApiKey | None:
    """The key whose secret has this SHA-256, or None, as `verify`."""
    row = await raw.fetch_one(tx, "SELECT * FROM winnow_verify_key($1, $2)", secret_sha256, now)
    return None if row is None else _key(row)


async def listed(tx: AsyncConnection, fleet: str | None = None) -> list[ApiKey]:
    """Keys by fleet and age, revoked and expired ones included; with `fleet` those that cover it."""
    k = tables.api_keys.c
    query = select(tables.api_keys).order_by(k.fleet, k.created_at, k.key_id)
    if fleet is not None:
        query = query.where(or_(k.fleet == fleet, k.also.contains([fleet])))
    return [_key(row) for row in (await tx.execute(query)).mappings()]


async def revoke(tx: AsyncConnection, key_id: UUID, *, by: str, because: str | None = None, now: datetime) -> ApiKey:
    """Revoke a key; it stays revoked, since when it first was. Raise `NotFound`."""
    found = await _locked(tx, key_id)
    if found.revoked_at is not None:
        return found
    await tx.execute(update(tables.api_keys).where(tables.api_keys.c.key_id == key_id).values(revoked_at=now))
    await audit.add(tx, action="key.revoke", by=by, now=now, fleet=found.fleet, because=because, details={"key_id": key_id})
    return await _locked(tx, key_id)


async def rotate(
    tx: AsyncConnection, key_id: UUID, *, overlap: timedelta, expires_at: datetime | None = None, by: str, now: datetime
) -> tuple[str, ApiKey]:
    """Make a key that may do what `key_id` may, which itself expires after `overlap`; until then both work.

    Returns the secret and the new key. Raise `NotFound`, and `DeadKey` where there is nothing left to replace.
    """
    old = await _locked(tx, key_id)
    if not old.alive(now):
        msg = f"key {key_id} is revoked or has expired; make a new one with `winnow keys create`"
        raise DeadKey(msg)
    secret, made = await create(tx, old.fleet, name=old.name, role=old.role, also=old.also, expires_at=expires_at, by=by, now=now)
    until = min(old.expires_at or now + overlap, now + overlap)
    k = tables.api_keys
    await tx.execute(update(k).where(k.c.key_id == made.key_id).values(replaces=key_id))
    await tx.execute(update(k).where(k.c.key_id == key_id).values(expires_at=until))
    details = {"key_id": key_id, "replaced_by": made.key_id, "expires_at": until}
    await audit.add(tx, action="key.rotate", by=by, now=now, fleet=old.fleet, details=details)
    return secret, replace(made, replaces=key_id)


async def _locked(tx: AsyncConnection, key_id: UUID) -> ApiKey:
    """A key, locked for a change. Raise `NotFound`."""
    query = select(tables.api_keys).where(tables.api_keys.c.key_id == key_id).with_for_update()
    row = (await tx.execute(query)).mappings().first()
    if row is None:
        msg = f"there is no key {key_id}; `winnow keys list` shows them"
        raise NotFound(msg)
    return _key(row)
