"""Runs: an agent's sessions or trajectories, as the boundaries and runtime events tell of them."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.storage import cursors, tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run. `boundaries` counts what was stored; `ended_at` is set by `run_ended`."""

    fleet: str
    run: str
    agent: str
    host: str | None
    boundaries: int
    first_at: datetime
    last_at: datetime
    ended_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPage:
    """Some runs, the most recently active first, and the cursor of the next page (None: the end)."""

    runs: tuple[Run, ...]
    next_cursor: str | None


async def page(tx: AsyncConnection, fleet: str, *, cursor: str | None = None, limit: int = 50) -> RunPage:
    """Runs of a fleet, the most recently active first. Raise `BadCursor` for a cursor that is not ours."""
    r = tables.runs.c
    most = cursors.limited(limit)
    query = select(tables.runs).where(r.fleet == fleet).order_by(r.last_at.desc(), r.run.desc())
    if cursor is not None:
        query = query.where(tuple_(r.last_at, r.run) < cursors.decode(cursor))
    rows = [Run(**row) for row in (await tx.execute(query.limit(most + 1))).mappings()]
    shown = tuple(rows[:most])
    return RunPage(runs=shown, next_cursor=cursors.encode(shown[-1].last_at, shown[-1].run) if len(rows) > most else None)
