"""The audit log: who changed what, when and why. Append-only."""

from collections.abc import Mapping
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection


async def add(
    tx: AsyncConnection, *, action: str, by: str, now: datetime, fleet: str | None = None, because: str | None = None,
    details: Mapping[str, object] | None = None,
) -> None:  # fmt: skip
    """Write an audit row in the transaction that makes the change. `details` is JSON without content or secrets."""
    raise NotImplementedError
