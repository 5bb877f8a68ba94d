"""Erasure of a run or a fleet: rows, originals, handles, dead letters and queued events. The bus forgets within its retention."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """What was removed. Originals that another run still uses stay."""

    boundaries: int
    originals: int
    handles: int
    dead_letters: int
    outbox: int
    runtime_events: int
    observations: int


async def erase_run(tx: AsyncConnection, fleet: str, run: str, *, by: str, now: datetime) -> Erased:
    """Erase a run, with an audit row. Its handles answer `Gone` from then on. An unknown run erases nothing and is no error."""
    raise NotImplementedError


async def erase_fleet(tx: AsyncConnection, fleet: str, *, by: str, now: datetime) -> Erased:
    """Erase all runs, keys and observations of a fleet, with an audit row. The fleet's row, operating points and audit rows stay."""
    raise NotImplementedError
