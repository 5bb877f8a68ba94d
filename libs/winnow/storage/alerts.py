"""Alerts: what operators were told."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.events import Alert
from winnow.contracts.vocabulary import AlertKind
from winnow.storage import cursors, raw, tables
from winnow.storage.values import storable, storable_or_none

_ADD = """
INSERT INTO alerts (alert_id, fleet, stream, kind, at, log_evidence, change_from, change_to, because, done)
SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::float8[], $7::bigint[], $8::bigint[],
    $9::text[], $10::text[])
ON CONFLICT (alert_id) DO NOTHING RETURNING alert_id
"""


async def add(tx: AsyncConnection, alerts: Sequence[Alert]) -> set[UUID]:
    """Store alerts once, in the transaction that acts on them; return the ids that are new."""
    rows = [
        (
            a.alert_id, a.fleet, storable_or_none(a.stream), a.kind, a.at, a.log_evidence, *(a.change_window or (None, None)),
            storable(a.because), storable(a.done),
        )
        for a in alerts
    ]  # fmt: skip
    return {r["alert_id"] for r in await raw.fetch(tx, _ADD, *raw.columns(rows, 10))} if rows else set()


def _alert(row: Any) -> Alert:  # noqa: ANN401  a SQLAlchemy mapping, read by name
    """The alert of a row."""
    window = None if row["change_from"] is None else (row["change_from"], row["change_to"])
    return Alert(
        fleet=row["fleet"],
        alert_id=row["alert_id"],
        kind=AlertKind(row["kind"]),
        at=row["at"],
        stream=row["stream"],
        log_evidence=row["log_evidence"],
        change_window=window,
        because=row["because"],
        done=row["done"],
    )


async def page(tx: AsyncConnection, fleet: str | None = None, *, before: datetime | None = None, limit: int = 50) -> list[Alert]:
    """Alerts, newest first; `before` is the time of the last one seen."""
    a = tables.alerts.c
    query = select(tables.alerts).order_by(a.at.desc(), a.alert_id).limit(cursors.limited(limit))
    if fleet is not None:
        query = query.where(a.fleet == fleet)
    if before is not None:
        query = query.where(a.at < before)
    return [_alert(row) for row in (await tx.execute(query)).mappings()]
