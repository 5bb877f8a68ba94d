"""Deliveries to the webhook: written with their alert, claimed for a while by whoever sends, given up in plain sight."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.events import Alert
from winnow.storage import raw
from winnow.storage.values import storable, storable_or_none

#: Alerts of other services (a judge that is not paid) younger than this are delivered too; older ones were told of otherwise by then.
ADOPT_WITHIN = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A delivery that is due. `attempts` counts the one that it was claimed for."""

    delivery_id: int
    fleet: str
    body: str
    attempts: int


_ADD = """
INSERT INTO webhook_deliveries (alert_id, fleet, body, created_at, next_at)
SELECT d.alert_id, d.fleet, d.body, $4, $4 FROM unnest($1::uuid[], $2::text[], $3::text[]) AS d(alert_id, fleet, body)
ON CONFLICT (alert_id) DO NOTHING
"""


async def add(tx: AsyncConnection, alerts: Sequence[Alert], *, now: datetime) -> int:
    """Write a delivery for each alert that has none, due at once; return how many."""
    rows = [(a.alert_id, a.fleet, storable(a.model_dump_json())) for a in alerts]
    return await raw.execute(tx, _ADD, *raw.columns(rows, 3), now) if rows else 0


async def without(tx: AsyncConnection, *, now: datetime) -> list[UUID]:
    """Alerts of the last hour, by id, that have no delivery."""
    rows = await raw.fetch(
        tx,
        "SELECT a.alert_id FROM alerts a WHERE a.at > $1 AND NOT EXISTS (SELECT FROM webhook_deliveries d WHERE d.alert_id = a.alert_id)",
        now - ADOPT_WITHIN,
    )
    return [UUID(str(r["alert_id"])) for r in rows]


_CLAIM = """
WITH due AS (
    SELECT delivery_id FROM webhook_deliveries WHERE next_at <= $1 ORDER BY next_at LIMIT $2 FOR UPDATE SKIP LOCKED
)
UPDATE webhook_deliveries d SET next_at = $3, attempts = d.attempts + 1 FROM due WHERE d.delivery_id = due.delivery_id
RETURNING d.delivery_id, d.fleet, d.body, d.attempts
"""


async def claim(tx: AsyncConnection, *, limit: int, lease: timedelta, now: datetime) -> list[Delivery]:
    """Take deliveries that are due, for the time of `lease`: who dies meanwhile leaves them to the next, so they may come twice."""
    rows = await raw.fetch(tx, _CLAIM, now, limit, now + lease)
    return [Delivery(**dict(r)) for r in sorted(rows, key=lambda r: r["delivery_id"])]


async def delivered(tx: AsyncConnection, delivery_id: int, *, status: int, now: datetime) -> None:
    """The other side took it."""
    await raw.execute(
        tx,
        "UPDATE webhook_deliveries SET delivered_at = $2, next_at = NULL, last_status = $3, last_error = NULL WHERE delivery_id = $1",
        delivery_id,
        now,
        status,
    )


async def failed(
    tx: AsyncConnection, delivery_id: int, *, status: int | None, error: str, again_at: datetime | None, now: datetime
) -> None:
    """An attempt failed; try again at `again_at`, or give it up where that is None. A delivery that came through meanwhile stays so."""
    await raw.execute(
        tx,
        "UPDATE webhook_deliveries SET next_at = $2, dead_at = CASE WHEN $2::timestamptz IS NULL THEN $3::timestamptz END,"
        " last_status = $4, last_error = $5 WHERE delivery_id = $1 AND delivered_at IS NULL",
        delivery_id,
        again_at,
        now,
        status,
        storable_or_none(error[:500]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How a delivery stands."""

    attempts: int
    delivered: bool
    dead: bool
    last_status: int | None
    last_error: str | None

    @property
    def word(self) -> str:
        """delivered, given up, or waiting."""
        return "delivered" if self.delivered else "given up" if self.dead else "waiting"


async def standing(tx: AsyncConnection, alert_ids: Sequence[UUID]) -> dict[str, Standing]:
    """How the deliveries of alerts stand, by the alert's id as text; alerts without one are left out."""
    rows = await raw.fetch(tx, "SELECT * FROM webhook_deliveries WHERE alert_id = ANY($1::uuid[])", list(alert_ids))
    return {
        str(r["alert_id"]): Standing(
            attempts=r["attempts"],
            delivered=r["delivered_at"] is not None,
            dead=r["dead_at"] is not None,
            last_status=r["last_status"],
            last_error=r["last_error"],
        )
        for r in rows
    }
