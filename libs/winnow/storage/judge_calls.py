"""Judge calls: an intent row before a judge is asked, its cost and latency afterwards. A crash in between stays visible."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """That a judge is about to be asked. `boundary_at` is the anchor's."""

    call_id: UUID
    fleet: str
    boundary_id: UUID
    boundary_at: datetime
    judge: str
    judge_version: str
    started_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a call ended. `error` is None for an answer; it never quotes content."""

    call_id: UUID
    fleet: str
    boundary_id: UUID
    boundary_at: datetime
    finished_at: datetime
    latency_ms: float
    model: str | None = None
    requests: int = 1
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: Decimal | None = None
    error: str | None = None


async def start(tx: AsyncConnection, intents: Sequence[Intent]) -> None:
    """Store intents, in a transaction of its own that is committed before the judge is asked."""
    raise NotImplementedError


async def finish(tx: AsyncConnection, calls: Sequence[Finished]) -> None:
    """Complete intents."""
    raise NotImplementedError


async def record(tx: AsyncConnection, calls: Sequence[tuple[Intent, Finished]]) -> None:
    """Store calls that are over, without an intent first: for judges that cost nothing and call nobody."""
    raise NotImplementedError
