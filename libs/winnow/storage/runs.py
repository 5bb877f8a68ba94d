"""Runs: an agent's sessions or trajectories, as the boundaries and runtime events tell of them."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection


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
    raise NotImplementedError
