"""Committed boundaries as the monitor sees them: each counted once, its run kept open, its fleet's activity and profile brought up."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.assurance import profile
from winnow.assurance.profile import Profile
from winnow.storage import raw
from winnow.storage.keys import Key
from winnow.storage.values import storable

#: Length of a slot of `fleet_activity`.
SLOT = timedelta(minutes=10)


def slot_of(moment: datetime) -> datetime:
    """Begin of the ten minutes that a moment lies in."""
    utc = moment.astimezone(UTC)
    return utc - timedelta(minutes=utc.minute % 10, seconds=utc.second, microseconds=utc.microsecond)


class Ended(NamedTuple):
    """A committed boundary, as far as the monitor needs it."""

    key: Key
    #: Entries that were pruned, or would have been; None where nothing was judged.
    unsupported: int | None
    entries: int
    judge: str | None
    judge_version: str | None
    #: Not the first of its run.
    later: bool
    judged: bool


class Loop(NamedTuple):
    """A run that had many boundaries in a few minutes."""

    fleet: str
    run: str
    boundaries: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """What a batch of committed boundaries came to."""

    #: Boundaries that were counted by this call.
    counted: frozenset[Key]
    #: Runs by how many boundaries they had in this slot.
    loops: tuple[Loop, ...]


# One statement: which boundaries nobody counted yet, the runs and the activity of their fleets. Locked in key order, as everywhere.
_COUNT = """
WITH wanted AS MATERIALIZED (
    SELECT b.fleet, b.boundary_id, b.run, k.judged
    FROM unnest($1::text[], $2::uuid[], $3::boolean[]) AS k(fleet, boundary_id, judged)
    JOIN boundaries b ON b.fleet = k.fleet AND b.boundary_id = k.boundary_id
    WHERE b.watched_at IS NULL AND b.committed_at IS NOT NULL ORDER BY b.fleet, b.boundary_id FOR NO KEY UPDATE OF b
), counted AS (
    UPDATE boundaries b SET watched_at = $4 FROM wanted w WHERE b.fleet = w.fleet AND b.boundary_id = w.boundary_id
    RETURNING b.fleet, b.boundary_id, w.run, w.judged
), active AS (
    INSERT INTO fleet_activity (fleet, slot, boundaries, not_judged)
    SELECT fleet, $5, count(*), count(*) FILTER (WHERE NOT judged) FROM counted GROUP BY fleet ORDER BY fleet
    ON CONFLICT (fleet, slot) DO UPDATE SET boundaries = fleet_activity.boundaries + excluded.boundaries,
        not_judged = fleet_activity.not_judged + excluded.not_judged
), opened AS (
    INSERT INTO open_runs (fleet, run, seen_at, due_at, slot, in_slot)
    SELECT fleet, run, $4, $4::timestamptz + $6::interval, $5, count(*) FROM counted GROUP BY fleet, run ORDER BY fleet, run
    ON CONFLICT (fleet, run) DO UPDATE SET seen_at = greatest(open_runs.seen_at, excluded.seen_at),
        due_at = CASE WHEN open_runs.ended_at IS NULL THEN greatest(open_runs.due_at, excluded.due_at) ELSE open_runs.due_at END,
        in_slot = CASE WHEN open_runs.slot = excluded.slot THEN open_runs.in_slot ELSE 0 END + excluded.in_slot, slot = excluded.slot
    RETURNING fleet, run, in_slot
)
SELECT c.fleet, c.boundary_id, o.run, o.in_slot FROM counted c LEFT JOIN opened o ON o.fleet = c.fleet AND o.run = c.run
"""


async def count(tx: AsyncConnection, boundaries: Sequence[Ended], *, idle: timedelta, now: datetime) -> Watched:
    """Count boundaries once, however often they come; a run is closed `idle` after the last thing that is heard of it."""
    rows = [(*b.key, b.judged) for b in sorted(set(boundaries), key=lambda b: b.key)]
    if not rows:
        return Watched(counted=frozenset(), loops=())
    found = await raw.fetch(tx, _COUNT, *raw.columns(rows, 3), now, slot_of(now), idle)
    loops = sorted({Loop(r["fleet"], r["run"], r["in_slot"]) for r in found})
    return Watched(counted=frozenset(Key(r["fleet"], UUID(str(r["boundary_id"]))) for r in found), loops=tuple(loops))


_TOUCH = """
INSERT INTO open_runs (fleet, run, seen_at, ended_at, due_at, slot)
SELECT r.fleet, r.run, $4, CASE WHEN r.ended THEN $4::timestamptz END,
    $4::timestamptz + CASE WHEN r.ended THEN $5::interval ELSE $6::interval END, $7
FROM unnest($1::text[], $2::text[], $3::boolean[]) AS r(fleet, run, ended) ORDER BY r.fleet, r.run
ON CONFLICT (fleet, run) DO UPDATE SET seen_at = greatest(open_runs.seen_at, excluded.seen_at),
    ended_at = coalesce(open_runs.ended_at, excluded.ended_at),
    due_at = CASE WHEN open_runs.ended_at IS NOT NULL THEN open_runs.due_at WHEN excluded.ended_at IS NOT NULL THEN excluded.due_at
        ELSE greatest(open_runs.due_at, excluded.due_at) END
"""


async def touch(tx: AsyncConnection, runs: dict[tuple[str, str], bool], *, settle: timedelta, idle: timedelta, now: datetime) -> None:
    """Something was heard of runs, that they ended (True) or anything else; one that ended is closed after `settle`."""
    rows = [(fleet, storable(run), ended) for (fleet, run), ended in sorted(runs.items())]
    if rows:
        await raw.execute(tx, _TOUCH, *raw.columns(rows, 3), now, settle, idle, slot_of(now))


class ProfileKey(NamedTuple):
    """Whose profile: a judge and version of a fleet, first and later boundaries apart."""

    fleet: str
    judge: str
    judge_version: str
    later: bool


_PROFILES = """
SELECT p.* FROM prune_profiles p JOIN unnest($1::text[], $2::text[], $3::text[], $4::boolean[]) AS k(fleet, judge, judge_version, later)
    ON p.fleet = k.fleet AND p.judge = k.judge AND p.judge_version = k.judge_version AND p.later = k.later
ORDER BY p.fleet, p.judge, p.judge_version, p.later FOR NO KEY UPDATE OF p
"""
_BLANK = """
INSERT INTO prune_profiles (fleet, judge, judge_version, later, updated_at)
SELECT k.*, $5 FROM unnest($1::text[], $2::text[], $3::text[], $4::boolean[]) AS k ORDER BY 1, 2, 3, 4 ON CONFLICT DO NOTHING
"""
_PROFILED = """
UPDATE prune_profiles p SET learned_boundaries = n.learned, learned_rate = n.rate, learned_spread = n.spread, recent_boundaries = n.recent,
    recent_rate = n.recent_rate, updated_at = $10
FROM unnest($1::text[], $2::text[], $3::text[], $4::boolean[], $5::bigint[], $6::float8[], $7::float8[], $8::bigint[], $9::float8[])
    AS n(fleet, judge, judge_version, later, learned, rate, spread, recent, recent_rate)
WHERE p.fleet = n.fleet AND p.judge = n.judge AND p.judge_version = n.judge_version AND p.later = n.later
"""


async def learn(tx: AsyncConnection, boundaries: Sequence[Ended], *, now: datetime) -> dict[ProfileKey, Profile]:
    """Take boundaries into the profiles of their fleets; return the profiles that changed."""
    shares: dict[ProfileKey, list[float]] = {}
    for b in boundaries:
        if b.unsupported is not None and b.entries and b.judge is not None and b.judge_version is not None:
            key = ProfileKey(b.key.fleet, storable(b.judge), storable(b.judge_version), b.later)
            shares.setdefault(key, []).append(b.unsupported / b.entries)
    if not shares:
        return {}
    keys = raw.columns(sorted(shares), 4)
    rows = await raw.fetch(tx, _PROFILES, *keys)
    if len(rows) < len(shares):
        await raw.execute(tx, _BLANK, *keys, now)
        rows = await raw.fetch(tx, _PROFILES, *keys)
    found: dict[ProfileKey, Profile] = {}
    for r in rows:
        key = ProfileKey(r["fleet"], r["judge"], r["judge_version"], r["later"])
        before = Profile(
            learned=r["learned_boundaries"], rate=r["learned_rate"], spread=r["learned_spread"], recent=r["recent_boundaries"],
            recent_rate=r["recent_rate"],
        )  # fmt: skip
        found[key] = profile.seen(before, shares[key])
    changed = [(*k, p.learned, p.rate, p.spread, p.recent, p.recent_rate) for k, p in sorted(found.items())]
    await raw.execute(tx, _PROFILED, *raw.columns(changed, 9), now)
    return found
