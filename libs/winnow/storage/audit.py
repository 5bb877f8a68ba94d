"""The audit log: who changed what, when and why. Append-only."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum

from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.storage import tables
from winnow.storage.values import storable, storable_or_none


class Outcome(StrEnum):
    """How an action ended."""

    DONE = "done"
    FAILED = "failed"  # asked for, and without effect; the details say why


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
    await tx.execute(insert(tables.audit_log).values(row))
