"""Alerts: what operators were told. An alert is a row, a record on the bus and, where there is a webhook, a delivery: all or none."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import and_, or_, select
from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.envelope import encode
from winnow.contracts.events import Alert, Attribution
from winnow.contracts.topics import ALERT
from winnow.contracts.vocabulary import AlertKind, Guarantee
from winnow.storage import cursors, outbox, raw, tables, webhooks
from winnow.storage.outbox import NewMessage
from winnow.storage.values import jsonb, storable, storable_or_none

_ADD = """
INSERT INTO alerts (alert_id, fleet, stream, kind, at, log_evidence, change_from, change_to, because, done, guarantee, details)
SELECT a.alert_id, a.fleet, a.stream, a.kind, a.at, a.log_evidence, a.change_from, a.change_to, a.because, a.done, a.guarantee,
    a.details::jsonb
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::timestamptz[], $6::float8[], $7::bigint[], $8::bigint[],
    $9::text[], $10::text[], $11::text[], $12::text[])
    AS a(alert_id, fleet, stream, kind, at, log_evidence, change_from, change_to, because, done, guarantee, details)
ON CONFLICT (alert_id) DO NOTHING RETURNING alert_id
"""


async def add(tx: AsyncConnection, alerts: Sequence[Alert], *, details: Mapping[str, object] | None = None) -> set[UUID]:
    """Store alerts once, in the transaction that acts on them; return the ids that are new. `details` go with each of them."""
    rows = [
        (
            a.alert_id, a.fleet, storable_or_none(a.stream), a.kind, a.at, a.log_evidence, *(a.change_window or (None, None)),
            storable(a.because), storable(a.done), a.guarantee,
            jsonb({**(details or {}), **({"attribution": [g.model_dump() for g in a.attribution]} if a.attribution else {})}),
        )
        for a in alerts
    ]  # fmt: skip
    return {r["alert_id"] for r in await raw.fetch(tx, _ADD, *raw.columns(rows, 12))} if rows else set()


async def publish(
    tx: AsyncConnection, alerts: Sequence[Alert], *, webhook: bool, now: datetime, details: Mapping[str, object] | None = None
) -> list[Alert]:
    """Store alerts once, each with its record for the bus and, with `webhook`, its delivery; return those that are new, in order."""
    added = await add(tx, alerts, details=details)
    new = [a for a in alerts if a.alert_id in added]
    await outbox.add(
        tx,
        [NewMessage(fleet=a.fleet, topic=ALERT.name, key=a.key, body=encode(ALERT, a), event_id=a.alert_id, headers={}) for a in new],
    )
    if webhook:
        await webhooks.add(tx, new, now=now)
    return new


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
        guarantee=None if row["guarantee"] is None else Guarantee(row["guarantee"]),
        attribution=tuple(Attribution.model_validate(one) for one in row["details"].get("attribution", ())),
    )


async def page(
    tx: AsyncConnection, fleet: str | None = None, *, before: datetime | None = None, behind: UUID | None = None, limit: int = 50
) -> list[Alert]:
    """Alerts, newest first, of one moment by their ids; `before` is the time of the last one seen, `behind` its id.

    An alarm, its hold and what it revoked are of one moment: without `behind` a page that ends between them would be their last.
    """
    a = tables.alerts.c
    query = select(tables.alerts).order_by(a.at.desc(), a.alert_id).limit(cursors.limited(limit))
    if fleet is not None:
        query = query.where(a.fleet == fleet)
    if before is not None:
        query = query.where(a.at < before if behind is None else or_(a.at < before, and_(a.at == before, a.alert_id > behind)))
    return [_alert(row) for row in (await tx.execute(query)).mappings()]


async def by_id(tx: AsyncConnection, ids: Sequence[UUID]) -> list[Alert]:
    """Alerts by their ids; unknown ones are left out."""
    query = select(tables.alerts).where(tables.alerts.c.alert_id.in_(list(ids)))
    return [_alert(row) for row in (await tx.execute(query)).mappings()]
