"""SQL readers: one login role a fleet, which sees the views and of them its own fleet's rows."""

import base64
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import delete, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.errors import Conflict, NotFound, Permanent
from winnow.storage import audit, fleets, raw, tables
from winnow.storage.values import storable

#: Iterations of PostgreSQL's own scram verifiers.
SCRAM_ITERATIONS = 4096
SCRAM_SALT_BYTES = 16
#: Characters of a reader's password. Readers are reachable from outside; short ones are guessed.
PASSWORD_LEAST = 12

_ROLE = re.compile(r"(?!pg_|winnow_)[a-z][a-z0-9_]{0,62}")
_PASSWORD = re.compile(rf"[\x21-\x7e]{{{PASSWORD_LEAST},200}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """A reader's role and the fleet that it sees."""

    role: str
    fleet: str
    created_at: datetime


def scram_verifier(password: str, salt: bytes) -> str:
    """What PostgreSQL stores for an ASCII password (RFC 5803). Made here, so that the password is in no statement, log or history."""
    salted = hashlib.pbkdf2_hmac("sha256", password.encode("ascii"), salt, SCRAM_ITERATIONS)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    server_key = hmac.digest(salted, b"Server Key", "sha256")
    stored, server, mark = (base64.b64encode(x).decode() for x in (hashlib.sha256(client_key).digest(), server_key, salt))
    return f"SCRAM-SHA-256${SCRAM_ITERATIONS}:{mark}${stored}:{server}"


async def create(tx: AsyncConnection, fleet: str, role: str, password: str, *, by: str, now: datetime) -> Reader:
    """Create login role `role` for `fleet`, or give an existing reader of that fleet a new password.

    The connected role must be a superuser, or have CREATEROLE and the right to grant `winnow_reader`. Raise `NotFound` for an unknown
    fleet, `Conflict` where the role exists for anything else, `Permanent` for a name or password that will not do.
    """
    if not _ROLE.fullmatch(role):
        msg = "a reader's role starts with a letter, has lower-case letters, digits and _, and does not begin with pg_ or winnow_"
        raise Permanent(msg)
    if not _PASSWORD.fullmatch(password):
        msg = f"a reader's password has {PASSWORD_LEAST} to 200 printable ASCII characters without spaces"
        raise Permanent(msg)
    if fleet not in await fleets.load(tx, [fleet]):
        msg = f"there is no fleet {fleet!r}"
        raise NotFound(msg)
    readers = tables.reader_roles
    known = (await tx.execute(select(readers).where(readers.c.role == role))).mappings().first()
    exists = await raw.fetch_one(tx, "SELECT 1 FROM pg_roles WHERE rolname = $1", role)
    if (known is None and exists is not None) or (known is not None and known["fleet"] != fleet):
        msg = f"role {role} exists in this cluster and is no reader of {fleet}; choose another name"
        raise Conflict(msg, reason="conflict")
    # Role and verifier hold no quote: the patterns above and base64 see to it. DDL takes no parameters.
    verifier = scram_verifier(password, secrets.token_bytes(SCRAM_SALT_BYTES))
    options = "LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION NOBYPASSRLS CONNECTION LIMIT 20"
    if exists is None:
        await raw.execute(tx, f"CREATE ROLE {role} {options}")
    await raw.execute(tx, f"ALTER ROLE {role} PASSWORD '{verifier}'")
    await raw.execute(tx, f"GRANT winnow_reader TO {role}")
    # A courtesy to the pipeline, not a limit: the reader may set both.
    await raw.execute(tx, f"ALTER ROLE {role} SET default_transaction_read_only = on")
    await raw.execute(tx, f"ALTER ROLE {role} SET statement_timeout = '60s'")
    if known is None:
        await tx.execute(insert(readers).values(role=role, fleet=fleet, created_at=now, created_by=storable(by)))
    await audit.add(tx, action="reader.create", by=by, now=now, fleet=fleet, details={"role": role})
    return Reader(role=role, fleet=fleet, created_at=now if known is None else known["created_at"])


async def drop(tx: AsyncConnection, role: str, *, by: str, now: datetime) -> None:
    """Drop a reader's role; sessions that are open end when they ask for rows, for they see none any more. Raise `NotFound`."""
    readers = tables.reader_roles
    row = (await tx.execute(delete(readers).where(readers.c.role == role).returning(readers.c.fleet))).first()
    if row is None:
        msg = f"there is no reader {role!r}"
        raise NotFound(msg)
    if _ROLE.fullmatch(role):
        await raw.execute(tx, f"DROP ROLE IF EXISTS {role}")
    await audit.add(tx, action="reader.drop", by=by, now=now, fleet=row.fleet, details={"role": role})


async def listed(tx: AsyncConnection) -> list[Reader]:
    """All readers, by role."""
    readers = tables.reader_roles
    query = select(readers.c.role, readers.c.fleet, readers.c.created_at).order_by(readers.c.role)
    return [Reader(**row) for row in (await tx.execute(query)).mappings()]
