"""Certificates: a risk bound for a judge and threshold of a fleet. They expire, and an alarm revokes them."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.storage import audit, tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What was certified, for whom and until when. `record` is the whole of it: p-values, ladder, registration."""

    certificate_id: UUID
    fleet: str
    compressor: str
    judge: str
    judge_version: str
    tau: float
    grader: str
    data_sha256: str
    method: str
    alpha: float
    delta: float
    n: int
    losses: float
    denominator: str
    bound: float
    record: Mapping[str, object]
    issued_at: datetime
    expires_at: datetime
    revoked_at: datetime | None = None
    revoked_because: str | None = None


async def issue(tx: AsyncConnection, certificate: Certificate, *, by: str) -> None:
    """Store a certificate, with an audit row. The fleet must exist."""
    values = {**asdict(certificate), "record": dict(certificate.record)}
    await tx.execute(insert(tables.certificates).values(values))
    details = {"certificate_id": certificate.certificate_id, "bound": certificate.bound, "expires_at": certificate.expires_at}
    await audit.add(tx, action="certificate.issue", by=by, now=certificate.issued_at, fleet=certificate.fleet, details=details)


async def supersede(tx: AsyncConnection, certificate: Certificate, *, by: str) -> list[UUID]:
    """End the live certificates that `certificate` takes the place of; return their ids.

    Those of its fleet, judge and version, threshold and compressor: a fleet with two compressors has a certificate for each.

    Called before `issue`, in the same transaction: at no moment are there two, or none.
    """
    c = tables.certificates
    because = f"superseded by {certificate.certificate_id}"
    query = (
        update(c)
        .where(
            c.c.fleet == certificate.fleet,
            c.c.judge == certificate.judge,
            c.c.judge_version == certificate.judge_version,
            c.c.compressor == certificate.compressor,
            c.c.tau == certificate.tau,
            c.c.revoked_at.is_(None),
            c.c.expires_at > certificate.issued_at,
        )
        .values(revoked_at=certificate.issued_at, revoked_because=because)
        .returning(c.c.certificate_id)
    )
    ids = sorted((await tx.execute(query)).scalars())
    if ids:
        details = {"certificates": ids}
        await audit.add(
            tx,
            action="certificate.supersede",
            by=by,
            now=certificate.issued_at,
            fleet=certificate.fleet,
            because=because,
            details=details,
        )
    return ids


def _certificate(row: Any) -> Certificate:  # noqa: ANN401  a SQLAlchemy mapping, read by name
    """The certificate of a row."""
    return Certificate(**{name: row[name] for name in Certificate.__dataclass_fields__})


async def listed(tx: AsyncConnection, fleet: str) -> list[Certificate]:
    """Certificates of a fleet, newest first, expired and revoked ones included."""
    c = tables.certificates.c
    query = select(tables.certificates).where(c.fleet == fleet).order_by(c.issued_at.desc(), c.certificate_id)
    return [_certificate(row) for row in (await tx.execute(query)).mappings()]


async def revoke(tx: AsyncConnection, fleet: str, *, by: str, because: str, now: datetime) -> list[UUID]:
    """Revoke all live certificates of a fleet, with an audit row where there were any; return their ids."""
    c = tables.certificates
    query = (
        update(c)
        .where(c.c.fleet == fleet, c.c.revoked_at.is_(None), c.c.expires_at > now)
        .values(revoked_at=now, revoked_because=because)
        .returning(c.c.certificate_id)
    )
    ids = sorted((await tx.execute(query)).scalars())
    if ids:
        await audit.add(tx, action="certificate.revoke", by=by, now=now, fleet=fleet, because=because, details={"certificates": ids})
    return ids


async def revoke_resting_on(tx: AsyncConnection, fleet: str, stream: str | None, *, by: str, because: str, now: datetime) -> list[UUID]:
    """Revoke the live certificates that rest on a stream, with an audit row where there were any; return their ids.

    One whose record names a `stream` rests on that one alone; any other rests on the fleet's traffic, which is what drifted.
    """
    c = tables.certificates
    named = c.c.record["stream"].astext
    query = (
        update(c)
        .where(c.c.fleet == fleet, c.c.revoked_at.is_(None), c.c.expires_at > now)
        .where(named.is_(None) if stream is None else (named.is_(None) | (named == stream)))
        .values(revoked_at=now, revoked_because=because)
        .returning(c.c.certificate_id)
    )
    ids = sorted((await tx.execute(query)).scalars())
    if ids:
        details = {"certificates": ids, "stream": stream}
        await audit.add(tx, action="certificate.revoke", by=by, now=now, fleet=fleet, because=because, details=details)
    return ids
