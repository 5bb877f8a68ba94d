"""What pages read: one transaction a page, as the role that sees one fleet, read-only, and with a limit on each query."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.storage.database import Database


class Reading:
    """Transactions of pages."""

    def __init__(self, database: Database, *, timeout_s: float) -> None:
        """`database` is the console's own pool; no query takes longer than `timeout_s` seconds."""
        self._database = database
        self._timeout_ms = round(timeout_s * 1000)

    @asynccontextmanager
    async def of(self, fleet: str, *, writes: bool = False) -> AsyncIterator[AsyncConnection]:
        """A transaction that sees `fleet` and nothing else; it may change something only with `writes`."""
        async with self._database.fleet_transaction(fleet) as tx:
            await tx.execute(
                text("SELECT set_config('statement_timeout', :ms, true), set_config('transaction_read_only', :read_only, true)"),
                {"ms": str(self._timeout_ms), "read_only": "off" if writes else "on"},
            )
            yield tx
