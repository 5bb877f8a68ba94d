"""What runtimes report: adopted, bypassed, recovered, run_ended."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.events import RuntimeEvent
from winnow.contracts.vocabulary import Adopted
from winnow.storage import raw
from winnow.storage.keys import Key
from winnow.storage.values import storable, storable_or_none

_STORE = """
WITH new AS (
    INSERT INTO runtime_events (fleet, event_id, run, kind, at, boundary_id, adopted, handle, because, recovery_tool, received_at)
    SELECT e.*, $11 FROM unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::timestamptz[], $6::uuid[], $7::text[],
        $8::text[], $9::text[], $10::boolean[])
        AS e(fleet, event_id, run, kind, at, boundary_id, adopted, handle, because, recovery_tool)
    ORDER BY e.fleet, e.event_id
    ON CONFLICT (fleet, event_id) DO NOTHING
    RETURNING *
), active AS (  -- a run may report before, or without, any boundary of its own
    INSERT INTO runs (fleet, run, agent, boundaries, first_at, last_at, ended_at)
    SELECT fleet, run, 'agent', 0, min(at), max(at), max(at) FILTER (WHERE kind = 'run_ended') FROM new
    GROUP BY fleet, run ORDER BY fleet, run
    ON CONFLICT (fleet, run) DO UPDATE SET first_at = least(runs.first_at, excluded.first_at),
        last_at = greatest(runs.last_at, excluded.last_at), ended_at = coalesce(greatest(runs.ended_at, excluded.ended_at), runs.ended_at)
), given AS (
    INSERT INTO recoveries (fleet, handle, kind, boundary_id, run, via, event_id, at)
    SELECT n.fleet, n.handle, h.kind, coalesce(n.boundary_id, h.boundary_id), n.run, 'runtime', n.event_id, n.at
    FROM new n LEFT JOIN handles h ON h.handle = n.handle AND h.fleet = n.fleet WHERE n.kind = 'recovered'
    ON CONFLICT (fleet, event_id) DO NOTHING
)
SELECT event_id FROM new
"""

_ADOPTED = """
SELECT DISTINCT ON (e.fleet, e.boundary_id) e.fleet, e.boundary_id, e.adopted
FROM unnest($1::text[], $2::uuid[]) AS k(fleet, boundary_id)
JOIN runtime_events e ON e.fleet = k.fleet AND e.boundary_id = k.boundary_id AND e.kind = 'adopted'
ORDER BY e.fleet, e.boundary_id, e.at DESC
"""


async def store(tx: AsyncConnection, events: Sequence[RuntimeEvent], *, now: datetime) -> set[UUID]:
    """Store events once by (fleet, event id); `run_ended` also ends the run, `recovered` is also a recovery.

    Return the ids that were stored by this call.
    """
    first: dict[tuple[str, UUID], RuntimeEvent] = {}
    for event in events:
        first.setdefault((event.fleet, event.event_id), event)
    if not first:
        return set()
    rows = [
        (
            e.fleet, e.event_id, storable(e.run), e.kind, e.at, e.boundary_id, e.adopted, e.handle, storable_or_none(e.because),
            e.recovery_tool,
        )
        for e in first.values()
    ]  # fmt: skip
    return {r["event_id"] for r in await raw.fetch(tx, _STORE, *raw.columns(rows, 10), now)}


async def adopted(tx: AsyncConnection, keys: Sequence[Key]) -> dict[Key, Adopted]:
    """Which text each boundary's agent went on with, by its last report; boundaries without a report are left out."""
    if not keys:
        return {}
    rows = await raw.fetch(tx, _ADOPTED, *raw.columns(sorted(set(keys)), 2))
    return {Key(r["fleet"], r["boundary_id"]): Adopted(r["adopted"]) for r in rows}
