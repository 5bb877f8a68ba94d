"""The driver's own connection inside a transaction: arrays in, one statement a batch, no per-row round trips."""

from collections.abc import Sequence
from typing import Any

import asyncpg
from sqlalchemy.ext.asyncio import AsyncConnection

Record = asyncpg.Record


async def driver(tx: AsyncConnection) -> "asyncpg.Connection[Record]":
    """The asyncpg connection of `tx`."""
    # `get_raw_connection` would do the same through a greenlet, which costs more than a short statement.
    pooled = tx.sync_connection.connection if tx.sync_connection is not None and not tx.invalidated else await tx.get_raw_connection()
    connection: asyncpg.Connection[Record] = pooled.driver_connection  # type: ignore[assignment]  # typed as Any | None by SQLAlchemy
    return connection


async def fetch(tx: AsyncConnection, sql: str, *arguments: object) -> list[Record]:
    """Run one statement with `$1`-style parameters and return its rows."""
    connection = await driver(tx)
    return await connection.fetch(sql, *arguments)


async def fetch_one(tx: AsyncConnection, sql: str, *arguments: object) -> Record | None:
    """The first row, or None."""
    connection = await driver(tx)
    return await connection.fetchrow(sql, *arguments)


async def execute(tx: AsyncConnection, sql: str, *arguments: object) -> int:
    """Run one statement and return how many rows it changed."""
    connection = await driver(tx)
    status = await connection.execute(sql, *arguments)
    count = status.rpartition(" ")[2]
    return int(count) if count.isdigit() else 0


def columns(rows: Sequence[Sequence[Any]], width: int) -> tuple[list[Any], ...]:
    """Rows as columns, for `unnest`; `width` empty ones where there is no row."""
    return tuple([list(c) for c in zip(*rows, strict=True)] if rows else [[] for _ in range(width)])
