"""Runs that are over: a coin picks one boundary of each, and what it says becomes one unit of each stream that nobody grades."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID, uuid5

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts import ids
from winnow.contracts.events import Graded, Observation, Sampled
from winnow.contracts.vocabulary import LabelFree
from winnow.storage import raw, samples
from winnow.storage.samples import Taken

#: Who says what the streams that nobody grades are made of.
GRADER = "winnow"

_TAKE = """
WITH due AS (SELECT fleet, run FROM open_runs WHERE due_at <= $1 ORDER BY due_at LIMIT $2 FOR UPDATE SKIP LOCKED)
DELETE FROM open_runs o USING due d WHERE o.fleet = d.fleet AND o.run = d.run RETURNING o.fleet, o.run, o.ended_at
"""

_BOUNDARIES = """
SELECT b.fleet, b.run, array_agg(b.boundary_id ORDER BY b.boundary_at, b.boundary_id) AS boundaries
FROM unnest($1::text[], $2::text[]) AS k(fleet, run)
JOIN boundaries b ON b.fleet = k.fleet AND b.run = k.run AND b.committed_at IS NOT NULL AND b.outcome <> 'rejected'
GROUP BY b.fleet, b.run
"""

# What the picked boundary says. A recovery counts where something was pruned there, the runtime said that its agent can ask it back, and
# an agent did: a person who looks at an original says nothing of what agents miss.
_SAID = """
SELECT k.fleet, k.run, b.outcome = 'unjudged' AS unjudged,
    b.fallback_for IS NOT NULL OR EXISTS (
        SELECT FROM runtime_events e WHERE e.fleet = k.fleet AND e.boundary_id = k.boundary_id AND e.kind = 'bypassed') AS fallback,
    CASE WHEN (SELECT bool_or(e.recovery_tool) FROM runtime_events e WHERE e.fleet = k.fleet AND e.run = k.run) THEN
        coalesce(b.pruned, 0) > 0 AND EXISTS (
            SELECT FROM recoveries r WHERE r.fleet = k.fleet AND r.boundary_id = k.boundary_id AND r.kind IS DISTINCT FROM 'committed'
                AND r.event_id IS NOT NULL) END
        AS recovered
FROM unnest($1::text[], $2::text[], $3::uuid[]) AS k(fleet, run, boundary_id)
JOIN boundaries b ON b.fleet = k.fleet AND b.boundary_id = k.boundary_id
"""

_PUT = """
INSERT INTO run_units (fleet, run, closed_at, because, boundaries, boundary_id, coin, probability, unjudged, fallback, recovered)
SELECT u.fleet, u.run, $11, u.because, u.boundaries, u.boundary_id, u.coin, u.probability, u.unjudged, u.fallback, u.recovered
FROM unnest($1::text[], $2::text[], $3::text[], $4::integer[], $5::uuid[], $6::float8[], $7::float8[], $8::boolean[], $9::boolean[],
    $10::boolean[]) AS u(fleet, run, because, boundaries, boundary_id, coin, probability, unjudged, fallback, recovered)
ORDER BY u.fleet, u.run ON CONFLICT (fleet, run) DO NOTHING RETURNING fleet, run
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """What a call closed."""

    #: Runs that were taken, those that were closed before and heard of again included.
    taken: int
    #: Runs that became units, by why they were closed.
    because: Mapping[str, int]
    #: Their units, taken and not yet written.
    units: Taken


async def close(tx: AsyncConnection, *, coin: random.Random, limit: int, now: datetime) -> Closed:
    """Close runs whose time has come, longest first, and take their units, which the caller folds (`folding.fold` writes them).

    A run is a unit once: one that is heard of after it was closed is dropped when it is due again.
    """
    due = {(r["fleet"], r["run"]): r["ended_at"] for r in await raw.fetch(tx, _TAKE, now, limit)}
    if not due:
        return Closed(taken=0, because={}, units=Taken())
    of = {(r["fleet"], r["run"]): r["boundaries"] for r in await raw.fetch(tx, _BOUNDARIES, *raw.columns(sorted(due), 2))}
    # A coin for each, boundaries or none: it is thrown before anything of them is looked at.
    coins = {run: coin.random() for run in sorted(due)}
    picked = {run: UUID(str(some[int(coins[run] * len(some))])) for run, some in of.items()}
    asked = [(*run, boundary) for run, boundary in sorted(picked.items())]
    said = {(r["fleet"], r["run"]): r for r in await raw.fetch(tx, _SAID, *raw.columns(asked, 3))}
    rows = []
    for run, ended_at in sorted(due.items()):
        some, what = of.get(run, ()), said.get(run)
        rows.append((
            *run, _why(ended_at), len(some), picked.get(run), coins[run], 1.0 / len(some) if some else None,
            what and what["unjudged"], what and what["fallback"], what and what["recovered"],
        ))  # fmt: skip
    new = {(r["fleet"], r["run"]) for r in await raw.fetch(tx, _PUT, *raw.columns(rows, 10), now)}
    events = [event for run in sorted(new) if run in said for event in _units(run, picked[run], said[run], now)]
    because = Counter(_why(due[run]) for run in new)
    return Closed(taken=len(due), because=because, units=await samples.take(tx, events, now=now))


def _why(ended_at: datetime | None) -> str:
    """Why a run is closed."""
    return "idle" if ended_at is None else "run_ended"


def _units(run: tuple[str, str], boundary_id: UUID, said: raw.Record, now: datetime) -> Sequence[Observation]:
    """A unit for each stream that this run says something of."""
    values = {LabelFree.UNJUDGED: said["unjudged"], LabelFree.FALLBACK: said["fallback"], LabelFree.RECOVERY: said["recovered"]}
    return [
        Observation(
            fleet=run[0],
            event_id=uuid5(ids.NAMESPACE, "\x1f".join(("unit", *run, stream))),
            stream=stream,
            unit=run[1],
            boundary_id=boundary_id,
            # Every closed run is a unit; the coin that picked its boundary is in run_units.
            sampled=Sampled(probability=1.0, at=now),
            graded=Graded(loss=float(value), grader=GRADER, at=now),
        )
        for stream, value in values.items()
        if value is not None
    ]
