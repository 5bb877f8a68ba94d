"""What surrounds a boundary: its neighbours in the run, its judge calls, what its runtime reported, what was given back of it."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.storage import raw
from winnow.storage.boundaries import Boundary


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A call of a judge for the boundary. `error` is None for an answer, and while it runs."""

    judge: str
    judge_version: str
    model: str | None
    started_at: datetime
    latency_ms: float | None
    requests: int | None
    input_tokens: int | None
    output_tokens: int | None
    cost_usd: float | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What the agent's runtime said it did."""

    at: datetime
    kind: str
    adopted: str | None
    because: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """Something of the boundary that was given back. `asked_back`: by an agent; else somebody looked at it."""

    at: datetime
    kind: str | None
    part: str | None
    via: str
    asked_back: bool
    #: Number, text and fate of the entry, where it was one.
    n: int | None
    text: str | None
    decision: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """What surrounds a boundary."""

    before: UUID | None
    after: UUID | None
    calls: tuple[Call, ...]
    reports: tuple[Report, ...]
    recoveries: tuple[Recovery, ...]


_NEIGHBOURS = """
SELECT (SELECT b.boundary_id FROM boundaries b WHERE b.fleet = $1 AND b.run = $2 AND (b.boundary_at, b.boundary_id) < ($3, $4)
        ORDER BY b.boundary_at DESC, b.boundary_id DESC LIMIT 1) AS before,
    (SELECT b.boundary_id FROM boundaries b WHERE b.fleet = $1 AND b.run = $2 AND (b.boundary_at, b.boundary_id) > ($3, $4)
        ORDER BY b.boundary_at, b.boundary_id LIMIT 1) AS after
"""

_CALLS = """
SELECT judge, judge_version, model, started_at, latency_ms, requests, input_tokens, output_tokens, cost_usd::float8 AS cost_usd, error
FROM judge_calls WHERE fleet = $1 AND boundary_id = $2 AND boundary_at = $3 ORDER BY started_at LIMIT 50
"""

_REPORTS = """
SELECT at, kind, adopted, because FROM runtime_events WHERE fleet = $1 AND boundary_id = $2 ORDER BY at LIMIT 50
"""

# A run that asked without being `asked_back`: the bytes of a recovery that the runtime had told of before, and that has a row already.
_RECOVERIES = """
SELECT at, kind, part, via, asked_back, n, text, decision FROM recovery_history
WHERE fleet = $1 AND boundary_id = $2 AND (asked_back OR asked_by IS NULL) ORDER BY at DESC LIMIT 50
"""


async def load(tx: AsyncConnection, boundary: Boundary) -> Trail:
    """What surrounds `boundary`; of each list the first (of recoveries the last) fifty."""
    fleet, key = boundary.fleet, boundary.boundary_id
    beside = await raw.fetch_one(tx, _NEIGHBOURS, fleet, boundary.run, boundary.boundary_at, key)
    return Trail(
        before=None if beside is None else beside["before"],
        after=None if beside is None else beside["after"],
        calls=tuple(Call(**dict(r)) for r in await raw.fetch(tx, _CALLS, fleet, key, boundary.boundary_at)),
        reports=tuple(Report(**dict(r)) for r in await raw.fetch(tx, _REPORTS, fleet, key)),
        recoveries=tuple(Recovery(**dict(r)) for r in await raw.fetch(tx, _RECOVERIES, fleet, key)),
    )
