"""Observations: units sampled and graded. `seq` is given per stream in the transaction that first stores `sampled`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.assurance.ledger import Fate
from winnow.contracts.events import Graded, Observation
from winnow.storage import partitions, raw
from winnow.storage.keys import StreamKey
from winnow.storage.values import jsonb, storable


class Unit(NamedTuple):
    """A unit of a stream."""

    fleet: str
    stream: str
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObservation:
    """A unit of a stream. `seq` is its place in sampling order, from 1; times of hosts and graders are by their own clocks."""

    fleet: str
    stream: str
    unit: str
    seq: int
    boundary_id: UUID | None
    probability: float
    sampled_at: datetime
    loss: float | None
    lo: float | None
    grader: str | None
    graded_at: datetime | None
    observed_at: datetime  # when the sample was stored
    grade_stored_at: datetime | None
    fate: Fate | None
    decided_at: datetime | None
    epoch: int | None = None


_STREAMS = """
INSERT INTO streams (fleet, stream, registered_at)
SELECT DISTINCT s.fleet, s.stream, $3::timestamptz FROM unnest($1::text[], $2::text[]) AS s(fleet, stream) ORDER BY s.fleet, s.stream
ON CONFLICT (fleet, stream) DO NOTHING
"""

# Whoever numbers units of a stream holds its row: `seq` has no gaps and follows the order in which samples were stored.
_LOCK = """
SELECT s.fleet, s.stream, s.last_seq FROM streams s
JOIN (SELECT DISTINCT * FROM unnest($1::text[], $2::text[])) AS k(fleet, stream) ON s.fleet = k.fleet AND s.stream = k.stream
ORDER BY s.fleet, s.stream FOR UPDATE OF s
"""

_KNOWN = """
SELECT k.fleet, k.stream, k.unit, x.seq, x.observed_at, x.early_grade, o.loss IS NOT NULL AS graded
FROM unnest($1::text[], $2::text[], $3::text[]) AS k(fleet, stream, unit)
JOIN observation_keys x ON x.fleet = k.fleet AND x.stream = k.stream AND x.unit = k.unit
LEFT JOIN observations o ON o.fleet = x.fleet AND o.stream = x.stream AND o.seq = x.seq AND o.observed_at = x.observed_at
"""

_PUT_KEYS = """
INSERT INTO observation_keys (fleet, stream, unit, seq, observed_at, early_grade)
SELECT k.fleet, k.stream, k.unit, k.seq, k.observed_at, k.early::jsonb
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::timestamptz[], $6::text[])
    AS k(fleet, stream, unit, seq, observed_at, early)
ON CONFLICT (fleet, stream, unit) DO UPDATE SET seq = excluded.seq, observed_at = excluded.observed_at, early_grade = excluded.early_grade
"""

_PUT = """
INSERT INTO observations (fleet, stream, seq, observed_at, unit, boundary_id, probability, sampled_at)
SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $4::timestamptz[], $5::text[], $6::uuid[], $7::float8[], $8::timestamptz[])
"""

# A grade that comes after its unit was given up changes nothing that was folded; it is counted with the stream, whose row is locked.
_GRADE = """
WITH graded AS (
    UPDATE observations o SET loss = g.loss, lo = g.lo, grader = g.grader, graded_at = g.graded_at, grade_stored_at = $9,
        fate = CASE o.fate WHEN 'missing' THEN 'late' ELSE o.fate END
    FROM unnest($1::text[], $2::text[], $3::bigint[], $4::timestamptz[], $5::float8[], $6::float8[], $7::text[], $8::timestamptz[])
        AS g(fleet, stream, seq, observed_at, loss, lo, grader, graded_at)
    WHERE o.fleet = g.fleet AND o.stream = g.stream AND o.seq = g.seq AND o.observed_at = g.observed_at
    RETURNING o.fleet, o.stream, o.fate
), late AS (
    SELECT fleet, stream, count(*) AS units FROM graded WHERE fate = 'late' GROUP BY fleet, stream
), counted AS (
    UPDATE monitor_states m SET late = m.late + l.units FROM late l WHERE m.fleet = l.fleet AND m.stream = l.stream
)
SELECT coalesce(sum(units), 0)::bigint AS late FROM late
"""

_NUMBERED = """
UPDATE streams s SET last_seq = k.last_seq FROM unnest($1::text[], $2::text[], $3::bigint[]) AS k(fleet, stream, last_seq)
WHERE s.fleet = k.fleet AND s.stream = k.stream
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """What a batch of observations came to."""

    #: Ids of the events that changed something; the others were known.
    changed: frozenset[UUID]
    #: Streams that the batch is about, in order.
    streams: tuple[StreamKey, ...]
    #: Grades that came after their unit had been given up.
    late: int


class _Ledger:
    """What a batch changes, collected before it is written."""

    def __init__(self, last: Mapping[tuple[str, str], int], known: Sequence[raw.Record], now: datetime) -> None:
        self.last = dict(last)
        self.now = now
        #: Sequence number and partition time of each sampled unit.
        self.placed: dict[Unit, tuple[int, datetime]] = {}
        self.graded: set[Unit] = set()
        self.early: dict[Unit, object] = {}
        self.keys: dict[Unit, tuple[int | None, datetime | None, str | None]] = {}
        self.samples: list[tuple[object, ...]] = []
        self.grades: list[tuple[object, ...]] = []
        for row in known:
            unit = Unit(row["fleet"], row["stream"], row["unit"])
            if row["seq"] is not None:
                self.placed[unit] = (row["seq"], row["observed_at"])
            elif row["early_grade"] is not None:
                self.early[unit] = row["early_grade"]
            if row["graded"]:
                self.graded.add(unit)

    def take(self, event: Observation) -> bool:
        """Note what an event adds; False where all of it was known."""
        unit = Unit(event.fleet, storable(event.stream), storable(event.unit))
        changed = False
        if event.sampled is not None and unit not in self.placed:
            seq = self.last[unit.fleet, unit.stream] + 1
            self.last[unit.fleet, unit.stream] = seq
            self.placed[unit] = (seq, self.now)
            self.keys[unit] = (seq, self.now, None)
            self.samples.append((*unit[:2], seq, self.now, unit.unit, event.boundary_id, event.sampled.probability, event.sampled.at))
            early = self.early.pop(unit, None)
            if early is not None:
                self._grade(unit, Graded.model_validate(early))
            changed = True
        if event.graded is not None and unit not in self.graded:
            if unit in self.placed:
                self._grade(unit, event.graded)
                changed = True
            elif unit not in self.early:
                self.early[unit] = event.graded.model_dump(mode="json")
                self.keys[unit] = (None, self.now, jsonb(self.early[unit]))
                changed = True
        return changed

    def _grade(self, unit: Unit, grade: Graded) -> None:
        """The first grade of a unit counts."""
        self.graded.add(unit)
        self.grades.append((*unit[:2], *self.placed[unit], grade.loss, grade.lo, storable(grade.grader), grade.at))


async def store(tx: AsyncConnection, events: Sequence[Observation], *, now: datetime) -> set[UUID]:
    """`put`; return the event ids that changed something."""
    return set((await put(tx, events, now=now)).changed)


async def put(tx: AsyncConnection, events: Sequence[Observation], *, now: datetime) -> Put:
    """Store sampled and graded parts once by (fleet, stream, unit), in the order given.

    `seq` is given here, under a lock on the stream. A grade that comes before its sample is kept aside and applied when the sample
    arrives. The first sample and the first grade of a unit count. The fleets must exist (`fleets.ensure`).
    """
    if not events:
        return Put(changed=frozenset(), streams=(), late=0)
    units = sorted({Unit(e.fleet, storable(e.stream), storable(e.unit)) for e in events})
    names = sorted({StreamKey(u.fleet, u.stream) for u in units})
    streams = raw.columns(names, 2)
    await partitions.ensure(tx, [now])
    await raw.execute(tx, _STREAMS, *streams, now)
    last = {(r["fleet"], r["stream"]): r["last_seq"] for r in await raw.fetch(tx, _LOCK, *streams)}
    ledger = _Ledger(last, await raw.fetch(tx, _KNOWN, *raw.columns(units, 3)), now)
    changed = {e.event_id for e in events if ledger.take(e)}
    if ledger.keys:
        await raw.execute(tx, _PUT_KEYS, *raw.columns([(*u, *k) for u, k in sorted(ledger.keys.items())], 6))
    if ledger.samples:
        await raw.execute(tx, _PUT, *raw.columns(ledger.samples, 8))
        await raw.execute(tx, _NUMBERED, *raw.columns([(*s, seq) for s, seq in sorted(ledger.last.items())], 3))
    late = 0
    if ledger.grades:
        row = await raw.fetch_one(tx, _GRADE, *raw.columns(ledger.grades, 8), now)
        late = row["late"] if row else 0
    return Put(changed=frozenset(changed), streams=tuple(names), late=late)


async def units(tx: AsyncConnection, fleet: str, stream: str, *, after_seq: int = 0, limit: int = 1000) -> list[StoredObservation]:
    """The ledger of a stream in order of `seq`, graded or not, from `after_seq` (exclusive) on."""
    rows = await raw.fetch(
        tx,
        "SELECT * FROM observations WHERE fleet = $1 AND stream = $2 AND seq > $3 ORDER BY seq LIMIT $4",
        fleet,
        stream,
        after_seq,
        limit,
    )
    return [_observation(row) for row in rows]


def _observation(row: raw.Record) -> StoredObservation:
    """The observation of a row."""
    values = {name: row[name] for name in StoredObservation.__dataclass_fields__}
    return StoredObservation(**{**values, "fate": None if row["fate"] is None else Fate(row["fate"])})


async def decide(tx: AsyncConnection, fates: Sequence[tuple[StoredObservation, Fate]], *, now: datetime) -> int:
    """Write the fate of units that have none yet, in the transaction that writes the stream's state. Return how many were written."""
    if not fates:
        return 0
    rows = [(o.fleet, o.stream, o.seq, o.observed_at, fate) for o, fate in fates]
    return await raw.execute(
        tx,
        "UPDATE observations o SET fate = f.fate, decided_at = $6"
        " FROM unnest($1::text[], $2::text[], $3::bigint[], $4::timestamptz[], $5::text[]) AS f(fleet, stream, seq, observed_at, fate)"
        " WHERE o.fleet = f.fleet AND o.stream = f.stream AND o.seq = f.seq AND o.observed_at = f.observed_at AND o.fate IS NULL",
        *raw.columns(rows, 5),
        now,
    )
