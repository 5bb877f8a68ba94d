"""The audit trail: who did what, when, why, and how it ended. No role of Winnow can change what is written."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.storage import cursors, raw, tables
from winnow.storage.values import storable, storable_or_none


class Outcome(StrEnum):
    """How an action ended."""

    DONE = "done"
    FAILED = "failed"  # asked for, and without effect; the details say why


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A row of the trail. `fleet` is None for what concerns the installation."""

    id: int
    at: datetime
    fleet: str | None
    action: str
    actor: str
    because: str | None
    outcome: Outcome
    details: Mapping[str, Any]


async def add(
    tx: AsyncConnection, *, action: str, by: str, now: datetime, fleet: str | None = None, because: str | None = None,
    outcome: Outcome = Outcome.DONE, details: Mapping[str, object] | None = None,
) -> None:  # fmt: skip
    """Write an audit row in the transaction that makes the change. `details` is JSON without content or secrets.

    `by` is `<role>:<id of the API key>`, `cli:<user>` or the name of a service.
    """
    row = {
        "at": now,
        "fleet": fleet,
        "action": action,
        "actor": storable(by),
        "because": storable_or_none(because),
        "outcome": outcome.value,
        "details": dict(details or {}),
    }
    # Inline: nothing is read back, for the gateway may add to the trail and read it through the view alone.
    await tx.execute(insert(tables.audit_log).inline().values(row))


# Through the view, so that it works in the gateway's role too, which may not read the table.
_PAGE = """
SELECT id, at, fleet, action, actor, because, outcome, details FROM audit_trail
WHERE ($1::text IS NULL OR fleet = $1) AND ($2::text IS NULL OR action = $2 OR starts_with(action, $2 || '.'))
    AND ($3::bigint IS NULL OR id < $3)
ORDER BY id DESC LIMIT $4
"""


async def page(
    tx: AsyncConnection, *, fleet: str | None = None, action: str | None = None, before_id: int | None = None, limit: int = 50
) -> list[Entry]:
    """Entries, newest first: of a fleet, of an action (`fleet.hold`) or a kind of them (`fleet`); `before_id` is the last one seen."""
    wanted = None if action is None else storable(action)
    rows = await raw.fetch(tx, _PAGE, None if fleet is None else storable(fleet), wanted, before_id, cursors.limited(limit))
    return [Entry(**dict(row) | {"outcome": Outcome(row["outcome"])}) for row in rows]
