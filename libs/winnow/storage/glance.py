"""A fleet at a glance: what came in lately, how it ended, what was kept, and what is waiting for somebody."""

from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.storage import raw
from winnow.storage.bindings import Standing, standings


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Boundaries of a stretch of time, by how they ended."""

    boundaries: int
    runs: int
    judged: int
    judged_partial: int
    unjudged: int
    not_a_summary: int
    rejected: int
    #: Not committed yet.
    open: int
    #: Committed while the fleet was held.
    held: int
    #: Committed after their deadline.
    late: int
    entries: int
    #: Entries left out of committed summaries.
    pruned: int
    #: Seconds from receipt to commit; None where nothing was committed.
    seconds_p50: float | None
    seconds_p95: float | None

    @property
    def kept_share(self) -> float | None:
        """Share of the entries that stayed in committed summaries; None without entries."""
        return None if not self.entries else 1.0 - self.pruned / self.entries


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """The boundaries of one UTC day."""

    day: date
    counts: Counts


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What somebody should look at."""

    #: Alerts since the moment that was asked for, and the time of the newest of all.
    alerts: int
    last_alert_at: datetime | None
    #: Streams whose last status is `alarm` or `held`.
    alarmed: tuple[str, ...]
    #: Dead letters that were never replayed.
    dead_letters: int
    #: Whether it is certified for what it serves; `because` says in what not.
    certified: Standing
    #: A drift monitor gave a sign of life lately.
    watched: bool


_COUNTS = """
count(*) AS boundaries, count(DISTINCT b.run) AS runs,
    count(*) FILTER (WHERE b.outcome = 'judged') AS judged, count(*) FILTER (WHERE b.outcome = 'judged_partial') AS judged_partial,
    count(*) FILTER (WHERE b.outcome = 'unjudged') AS unjudged, count(*) FILTER (WHERE b.outcome = 'not_a_summary') AS not_a_summary,
    count(*) FILTER (WHERE b.outcome = 'rejected') AS rejected, count(*) FILTER (WHERE b.outcome IS NULL) AS open,
    count(*) FILTER (WHERE b.held) AS held, count(*) FILTER (WHERE b.late) AS late,
    coalesce(sum(b.entries), 0)::bigint AS entries, coalesce(sum(b.pruned), 0)::bigint AS pruned,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM b.committed_at - b.received_at)::float8) AS seconds_p50,
    percentile_cont(0.95) WITHIN GROUP (ORDER BY extract(epoch FROM b.committed_at - b.received_at)::float8) AS seconds_p95
FROM boundaries b WHERE b.fleet = $1 AND b.boundary_at >= $2
"""

_WAITING = """
SELECT (SELECT count(*) FROM alerts a WHERE a.fleet = f.fleet AND a.at >= $2) AS alerts,
    (SELECT max(a.at) FROM alerts a WHERE a.fleet = f.fleet) AS last_alert_at,
    ARRAY(SELECT m.stream FROM monitor_states m WHERE m.fleet = f.fleet AND m.status IN ('alarm', 'held') ORDER BY m.stream) AS alarmed,
    (SELECT count(*) FROM dead_letters d WHERE d.fleet = f.fleet AND d.replays = 0) AS dead_letters,
    EXISTS (SELECT FROM monitor_heartbeats h WHERE h.at >= $3) AS watched
FROM fleets f WHERE f.fleet = $1
"""

# Everything that a page may show has one of these; the look costs five index probes, however many boundaries there are.
_MARKS = """
SELECT concat_ws('/',
    (SELECT concat(r.last_at, r.boundaries) FROM runs r WHERE r.fleet = f.fleet ORDER BY r.last_at DESC, r.run DESC LIMIT 1),
    (SELECT concat(b.boundary_id, b.outcome, b.evidence_at, b.scored_at, b.committed_at) FROM boundaries b WHERE b.fleet = f.fleet
        ORDER BY b.boundary_at DESC, b.boundary_id DESC LIMIT 1),
    (SELECT count(*) FROM boundaries b WHERE b.committed_at IS NULL AND b.fleet = f.fleet AND b.received_at > now() - interval '1 hour'),
    f.held_since, f.operating_point) AS boundaries,
    (SELECT concat(max(m.updated_at), '/', sum(m.late)) FROM monitor_states m WHERE m.fleet = f.fleet) AS streams,
    concat_ws('/', (SELECT max(a.at) FROM alerts a WHERE a.fleet = f.fleet), f.held_since,
        (SELECT concat(count(*), max(c.issued_at), max(c.revoked_at)) FROM certificates c WHERE c.fleet = f.fleet)) AS alerts,
    (SELECT concat(max(d.id), '/', sum(d.replays)) FROM dead_letters d WHERE d.fleet = f.fleet) AS dead_letters
FROM fleets f WHERE f.fleet = $1
"""


async def counts(tx: AsyncConnection, fleet: str, *, since: datetime) -> Counts:
    """The boundaries of a fleet whose anchor time is `since` or later."""
    row = await raw.fetch_one(tx, "SELECT " + _COUNTS, fleet, since)
    if row is None:  # an aggregate without groups has a row
        raise AssertionError
    return Counts(**dict(row))


async def days(tx: AsyncConnection, fleet: str, *, since: datetime) -> list[Day]:
    """The same day by day (UTC), oldest first; days without boundaries are left out."""
    day = "(b.boundary_at AT TIME ZONE 'UTC')::date"
    rows = await raw.fetch(tx, f"SELECT {day} AS day, {_COUNTS} GROUP BY 1 ORDER BY 1", fleet, since)
    return [Day(day=r["day"], counts=Counts(**{k: v for k, v in r.items() if k != "day"})) for r in rows]


async def waiting(tx: AsyncConnection, fleet: str, *, since: datetime, now: datetime, alive_since: datetime) -> Waiting | None:
    """What somebody should look at: alerts since `since`; a monitor that gave a sign since `alive_since` watches. None: no such fleet."""
    row = await raw.fetch_one(tx, _WAITING, fleet, since, alive_since)
    found = await standings(tx, [fleet], now=now)
    return None if row is None or not found else Waiting(**{**dict(row), "alarmed": tuple(row["alarmed"]), "certified": found[0]})


async def marks(tx: AsyncConnection, fleet: str) -> dict[str, str]:
    """A short text for each kind of thing, which changes when something of that kind does. Empty: no such fleet."""
    row = await raw.fetch_one(tx, _MARKS, fleet)
    return {} if row is None else {name: str(value or "") for name, value in row.items()}
