"""What runtimes report: adopted, bypassed, recovered, run_ended."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.events import RuntimeEvent


async def store(tx: AsyncConnection, events: Sequence[RuntimeEvent], *, now: datetime) -> set[UUID]:
    """Store events once by (fleet, event id); `adopted` is copied to the boundary, `run_ended` to the run, `recovered` to recoveries.

    Return the ids that were stored by this call.
    """
    raise NotImplementedError
