"""What runtimes report: adopted, bypassed, recovered, run_ended."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.events import RuntimeEvent
from winnow.contracts.vocabulary import Adopted, RuntimeEventKind
from winnow.storage import raw
from winnow.storage.keys import Key
from winnow.storage.values import storable, storable_or_none

_STORE = """
WITH new AS (
    INSERT INTO runtime_events (fleet, event_id, run, kind, at, boundary_id, adopted, handle, because, recovery_tool, part, received_at)
    SELECT e.*, $12 FROM unnest($1::text[], $2::uuid[], $3::text[], $4::text[], $5::timestamptz[], $6::uuid[], $7::text[],
        $8::text[], $9::text[], $10::boolean[], $11::text[])
        AS e(fleet, event_id, run, kind, at, boundary_id, adopted, handle, because, recovery_tool, part)
    ORDER BY e.fleet, e.event_id
    ON CONFLICT (fleet, event_id) DO NOTHING
    RETURNING *
), active AS (  -- a run may report before, or without, any boundary of its own
    INSERT INTO runs (fleet, run, agent, boundaries, first_at, last_at, ended_at)
    SELECT fleet, run, 'agent', 0, min(at), max(at), max(at) FILTER (WHERE kind = 'run_ended') FROM new
    GROUP BY fleet, run ORDER BY fleet, run
    ON CONFLICT (fleet, run) DO UPDATE SET first_at = least(runs.first_at, excluded.first_at),
        last_at = greatest(runs.last_at, excluded.last_at), ended_at = coalesce(greatest(runs.ended_at, excluded.ended_at), runs.ended_at)
), asked AS (  -- a handle that this fleet does not have recovers nothing, whatever is reported
    SELECT n.*, h.kind AS of_kind, h.boundary_id AS of_boundary FROM new n JOIN handles h ON h.handle = n.handle AND h.fleet = n.fleet
    WHERE n.kind = 'recovered'
), given AS (  -- the gateway has noted what it gave itself, under the same event
    INSERT INTO recoveries (fleet, handle, kind, boundary_id, run, via, event_id, at, part)
    SELECT a.fleet, a.handle, a.of_kind, coalesce(a.of_boundary, a.boundary_id), a.run, 'runtime', a.event_id, a.at, a.part FROM asked a
    ON CONFLICT (fleet, event_id) DO NOTHING
), pinned AS (
    INSERT INTO pinned_entries (fleet, run, text_key, boundary_id, n, pinned_at)
    SELECT b.fleet, b.run, e.text_key, e.boundary_id, e.n, $12 FROM asked a
    JOIN boundaries b ON b.fleet = a.fleet AND b.boundary_id = a.of_boundary
    JOIN entries e ON e.fleet = b.fleet AND e.boundary_id = b.boundary_id AND e.boundary_at = b.boundary_at
        AND 'e' || e.n = a.part
    WHERE a.of_kind = 'candidate' ORDER BY b.fleet, b.run, e.text_key
    ON CONFLICT DO NOTHING
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
    """Store events once by (fleet, event id). `run_ended` also ends the run; `recovered` is also a recovery, and pins the entry it names.

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
            e.recovery_tool, e.part,
        )
        for e in first.values()
    ]  # fmt: skip
    return {r["event_id"] for r in await raw.fetch(tx, _STORE, *raw.columns(rows, 11), now)}


async def taken(tx: AsyncConnection, events: Sequence[RuntimeEvent]) -> frozenset[RuntimeEvent]:
    """Which of `events` have an id under which something else is stored: they are not, and a sender must hear of it."""
    rows = await raw.fetch(
        tx,
        "SELECT e.* FROM unnest($1::text[], $2::uuid[]) AS k(fleet, event_id)"
        " JOIN runtime_events e ON e.fleet = k.fleet AND e.event_id = k.event_id",
        *raw.columns(sorted({(e.fleet, e.event_id) for e in events}), 2),
    )
    stored = {(r["fleet"], r["event_id"]): RuntimeEvent.model_validate({name: r[name] for name in RuntimeEvent.model_fields}) for r in rows}
    return frozenset(e for e in events if (found := stored.get((e.fleet, e.event_id))) is not None and found.said != e.said)


async def misses(tx: AsyncConnection, events: Sequence[RuntimeEvent]) -> int:
    """How many of `events` report a recovery by a handle that their fleet does not have."""
    asked = [(e.fleet, e.handle) for e in events if e.kind is RuntimeEventKind.RECOVERED]
    if not asked:
        return 0
    rows = await raw.fetch(
        tx,
        "SELECT FROM unnest($1::text[], $2::text[]) AS k(fleet, handle)"
        " WHERE NOT EXISTS (SELECT FROM handles h WHERE h.handle = k.handle AND h.fleet = k.fleet)",
        *raw.columns(asked, 2),
    )
    return len(rows)


async def adopted(tx: AsyncConnection, keys: Sequence[Key]) -> dict[Key, Adopted]:
    """Which text each boundary's agent went on with, by its last report; boundaries without a report are left out."""
    if not keys:
        return {}
    rows = await raw.fetch(tx, _ADOPTED, *raw.columns(sorted(set(keys)), 2))
    return {Key(r["fleet"], r["boundary_id"]): Adopted(r["adopted"]) for r in rows}
