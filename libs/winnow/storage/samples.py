"""New units of a batch: numbered and known to nobody else until the transaction ends, so that they can be folded before they are written.

A unit that is stored first, graded then and decided at last is written three times, and its row moves to another page each time. Most units
come sampled and graded at once and can be decided at once: those are written once, with their fate.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.assurance.ledger import Fate, Signature, Unit
from winnow.contracts.events import Graded, Observation
from winnow.storage import partitions, raw
from winnow.storage.keys import StreamKey
from winnow.storage.values import array_text, jsonb, storable, utc


class Name(NamedTuple):
    """A unit of a stream."""

    fleet: str
    stream: str
    unit: str


class Sample(NamedTuple):
    """A new unit. Its times are by the clocks of hosts and graders; without a grade, the last four are None."""

    fleet: str
    stream: str
    seq: int
    unit: str
    boundary_id: UUID | None
    probability: float
    sampled_at: datetime
    loss: float | None = None
    lo: float | None = None
    grader: str | None = None
    graded_at: datetime | None = None

    def graded(self, grade: Graded) -> "Sample":
        """With its grade."""
        return self._replace(loss=grade.loss, lo=grade.lo, grader=storable(grade.grader), graded_at=grade.at)


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What a batch of observations came to. Its new units are not written yet: whoever took them folds them, or calls `write`."""

    #: Ids of the events that changed something; the others were known.
    changed: frozenset[UUID] = frozenset()
    #: Streams that the batch is about, in order; their rows are locked.
    streams: tuple[StreamKey, ...] = ()
    #: Grades that came after their unit had been given up.
    late: int = 0
    #: New units of each stream in sampling order; they follow one another, behind all that are stored.
    new: Mapping[StreamKey, Sequence[Sample]] = field(default_factory=dict)
    #: Operating point and compressor of the boundaries that new units rest on, by fleet and boundary.
    signed: Mapping[tuple[str, UUID], tuple[int | None, str | None]] = field(default_factory=dict)

    def units(self, key: StreamKey, most: int) -> list[Unit]:
        """The first `most` new units of a stream, as the fold takes them."""
        signatures: dict[tuple[UUID | None, str | None], Signature] = {}
        units: list[Unit] = []
        for _, _, seq, _, boundary_id, probability, _, loss, lo, grader, _ in self.new.get(key, ())[:most]:
            known = signatures.get((boundary_id, grader))
            if known is None:
                point, compressor = self.signed.get((key.fleet, boundary_id), (None, None)) if boundary_id else (None, None)
                known = signatures[boundary_id, grader] = Signature(point, compressor, grader)
            units.append(Unit(seq, loss, lo, probability, known))
        return units


# Whoever numbers units of a stream holds its row: `seq` has no gaps and follows the order in which samples were stored.
_LOCK = """
SELECT s.fleet, s.stream, s.last_seq FROM streams s
JOIN unnest($1::text[], $2::text[]) AS k(fleet, stream) ON s.fleet = k.fleet AND s.stream = k.stream
ORDER BY s.fleet, s.stream FOR UPDATE OF s
"""

# Before any row is locked: who inserts while holding a lock may wait for somebody who waits for that lock.
_STREAMS = """
INSERT INTO streams (fleet, stream, registered_at)
SELECT k.fleet, k.stream, $3::timestamptz FROM unnest($1::text[], $2::text[]) AS k(fleet, stream)
WHERE NOT EXISTS (SELECT FROM streams s WHERE s.fleet = k.fleet AND s.stream = k.stream) ORDER BY k.fleet, k.stream
ON CONFLICT (fleet, stream) DO NOTHING
"""

# Only what is there: nearly always nothing. LATERAL, because a plan made while the table was small must not read all of it later on.
_KNOWN = """
SELECT x.* FROM unnest($1::text::text[], $2::text::text[], $3::text::text[]) AS k(fleet, stream, unit)
CROSS JOIN LATERAL (
    SELECT o.fleet, o.stream, o.unit, o.seq, o.observed_at, o.early_grade FROM observation_keys o
    WHERE o.fleet = k.fleet AND o.stream = k.stream AND o.unit = k.unit LIMIT 1
) AS x
"""

_GRADED = """
SELECT k.fleet, k.stream, k.unit FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::timestamptz[])
    AS k(fleet, stream, unit, seq, observed_at)
CROSS JOIN LATERAL (
    SELECT o.loss FROM observations o
    WHERE o.fleet = k.fleet AND o.stream = k.stream AND o.seq = k.seq AND o.observed_at = k.observed_at LIMIT 1
) AS x WHERE x.loss IS NOT NULL
"""

_ASIDE = """
INSERT INTO observation_keys (fleet, stream, unit, observed_at, early_grade)
SELECT k.fleet, k.stream, k.unit, $5::timestamptz, k.early::jsonb
FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) AS k(fleet, stream, unit, early)
"""

# A grade came first, and now its sample: the key is written anew, with the unit.
_NO_LONGER_ASIDE = """
DELETE FROM observation_keys x USING unnest($1::text[], $2::text[], $3::text[]) AS k(fleet, stream, unit)
WHERE x.fleet = k.fleet AND x.stream = k.stream AND x.unit = k.unit
"""

_NUMBERED = """
UPDATE streams s SET last_seq = k.last_seq FROM unnest($1::text[], $2::text[], $3::bigint[]) AS k(fleet, stream, last_seq)
WHERE s.fleet = k.fleet AND s.stream = k.stream
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

_SIGNED = """
SELECT b.fleet, b.boundary_id, b.operating_point, b.compressor FROM boundaries b
JOIN unnest($1::text[], $2::uuid[]) AS k(fleet, boundary_id) ON b.fleet = k.fleet AND b.boundary_id = k.boundary_id
"""

# Key and unit in one statement: what both have travels once.
_WRITE = """
WITH new AS MATERIALIZED (
    SELECT * FROM unnest($2::text::text[], $3::text::text[], $4::text::bigint[], $5::text::text[], $6::text::uuid[], $7::text::float8[],
        $8::text::timestamptz[], $9::text::float8[], $10::text::float8[], $11::text::text[], $12::text::timestamptz[], $13::text::text[],
        $14::text::integer[])
        AS s(fleet, stream, seq, unit, boundary_id, probability, sampled_at, loss, lo, grader, graded_at, fate, epoch)
), keys AS (
    INSERT INTO observation_keys (fleet, stream, unit, seq, observed_at)
    SELECT n.fleet, n.stream, n.unit, n.seq, $1::timestamptz FROM new n
)
INSERT INTO observations (fleet, stream, seq, observed_at, unit, boundary_id, probability, sampled_at, loss, lo, grader, graded_at,
    grade_stored_at, fate, decided_at, epoch)
SELECT n.fleet, n.stream, n.seq, $1::timestamptz, n.unit, n.boundary_id, n.probability, n.sampled_at, n.loss, n.lo, n.grader, n.graded_at,
    CASE WHEN n.loss IS NOT NULL THEN $1::timestamptz END, n.fate, CASE WHEN n.fate IS NOT NULL THEN $1::timestamptz END, n.epoch
FROM new n
"""


class _Batch:
    """What a batch changes, collected before it is written."""

    def __init__(self, last: Mapping[StreamKey, int], known: Sequence[raw.Record], graded: set[Name]) -> None:
        self.last = dict(last)
        self.graded = graded
        #: Number and partition time of the units that were stored before.
        self.stored: dict[Name, tuple[int, datetime]] = {}
        self.new: dict[Name, Sample] = {}
        #: Grades whose sample has not come; True: the row is there.
        self.early: dict[Name, tuple[object, bool]] = {}
        #: Units whose grade was kept aside, and whose sample came now.
        self.placed: list[Name] = []
        self.late_grades: list[tuple[object, ...]] = []
        for row in known:
            name = Name(row["fleet"], row["stream"], row["unit"])
            if row["seq"] is not None:
                self.stored[name] = (row["seq"], row["observed_at"])
            elif row["early_grade"] is not None:
                self.early[name] = (row["early_grade"], True)

    def take(self, name: Name, event: Observation) -> bool:
        """Note what an event adds; False where all of it was known."""
        sampled, grade = event.sampled, event.graded
        if sampled is not None and name not in self.stored and name not in self.new:
            if name in self.early:
                # The first grade of a unit counts.
                early, is_stored = self.early.pop(name)
                grade = Graded.model_validate(early)
                if is_stored:
                    self.placed.append(name)
            fleet, stream, unit = name
            key = StreamKey(fleet, stream)
            seq = self.last[key] = self.last[key] + 1
            if grade is None:
                self.new[name] = Sample(fleet, stream, seq, unit, event.boundary_id, sampled.probability, sampled.at)
            else:
                self.graded.add(name)
                self.new[name] = Sample(
                    fleet, stream, seq, unit, event.boundary_id, sampled.probability, sampled.at,
                    grade.loss, grade.lo, storable(grade.grader), grade.at,
                )  # fmt: skip
            return True
        return grade is not None and name not in self.graded and self._grade(name, grade)

    def _grade(self, name: Name, grade: Graded) -> bool:
        """The first grade of a unit that was sampled before, or will be."""
        if name in self.new:
            self.new[name] = self.new[name].graded(grade)
        elif name in self.stored:
            self.late_grades.append((*name[:2], *self.stored[name], grade.loss, grade.lo, storable(grade.grader), grade.at))
        elif name in self.early:
            return False
        else:
            self.early[name] = (grade.model_dump(mode="json"), False)
            return True
        self.graded.add(name)
        return True

    def aside(self) -> list[tuple[object, ...]]:
        """Grades to be kept until their sample comes, in order."""
        return sorted((*name, jsonb(grade)) for name, (grade, is_stored) in self.early.items() if not is_stored)


async def take(tx: AsyncConnection, events: Sequence[Observation], *, now: datetime) -> Taken:
    """Number what is new, in the order given, and store grades of what was stored before. The new units are the caller's to write.

    `seq` is given under a lock on the stream. A grade that comes before its sample is kept aside and applied when the sample arrives. The
    first sample and the first grade of a unit count. The fleets must exist (`fleets.ensure`). What is not written until the transaction
    ends leaves a gap: end it with `write`, or `folding.fold`, which does.
    """
    if not events:
        return Taken()
    named = [(Name(e.fleet, storable(e.stream), storable(e.unit)), e) for e in events]
    names = list(dict.fromkeys(name for name, _ in named))
    keys = sorted({StreamKey(fleet, stream) for fleet, stream, _ in names})
    await partitions.ensure(tx, [now])
    streams = raw.columns(keys, 2)
    await raw.execute(tx, _STREAMS, *streams, now)
    last = {StreamKey(r["fleet"], r["stream"]): r["last_seq"] for r in await raw.fetch(tx, _LOCK, *streams)}
    known = await raw.fetch(tx, _KNOWN, *map(array_text, raw.columns(names, 3)))
    placed = [(r["fleet"], r["stream"], r["unit"], r["seq"], r["observed_at"]) for r in known if r["seq"] is not None]
    graded = {Name(*r) for r in await raw.fetch(tx, _GRADED, *raw.columns(placed, 5))} if placed else set()
    batch = _Batch(last, known, graded)
    changed = frozenset([event.event_id for name, event in named if batch.take(name, event)])
    if rows := batch.aside():
        await raw.execute(tx, _ASIDE, *raw.columns(rows, 4), now)
    if batch.placed:
        await raw.execute(tx, _NO_LONGER_ASIDE, *raw.columns(batch.placed, 3))
    late = 0
    if batch.late_grades:
        row = await raw.fetch_one(tx, _GRADE, *raw.columns(batch.late_grades, 8), now)
        late = row["late"] if row else 0
    new: dict[StreamKey, list[Sample]] = {}
    for sample in batch.new.values():
        new.setdefault(StreamKey(sample.fleet, sample.stream), []).append(sample)
    if new:
        await raw.execute(tx, _NUMBERED, *raw.columns([(*key, some[-1].seq) for key, some in sorted(new.items())], 3))
    return Taken(changed=changed, streams=tuple(keys), late=late, new=new, signed=await _signed(tx, batch.new.values()))


async def _signed(tx: AsyncConnection, samples: Iterable[Sample]) -> dict[tuple[str, UUID], tuple[int | None, str | None]]:
    """Operating point and compressor of the boundaries that units rest on, where they are known."""
    wanted = sorted({(s.fleet, s.boundary_id) for s in samples if s.boundary_id is not None})
    if not wanted:
        return {}
    rows = await raw.fetch(tx, _SIGNED, *raw.columns(wanted, 2))
    return {(r["fleet"], UUID(str(r["boundary_id"]))): (r["operating_point"], r["compressor"]) for r in rows}


async def write(
    tx: AsyncConnection, taken: Taken, fates: Mapping[StreamKey, Sequence[tuple[Fate, int]]] | None = None, *, now: datetime
) -> None:
    """Write the new units of a batch, in the transaction that took them.

    `fates`: what was decided of the first units of a stream, and in which epoch. The state that they went into is written with them.
    """
    rows: list[tuple[object, ...]] = []
    for key, some in taken.new.items():
        decided = (fates or {}).get(key, ())
        rows += [sample + fate for sample, fate in zip(some, decided, strict=False)]
        rows += [(*sample, None, None) for sample in some[len(decided) :]]
    if rows:
        *texts, sampled_at, loss, lo, grader, graded_at, fate, epoch = raw.columns(rows, 13)
        columns = (*texts, utc(sampled_at), loss, lo, grader, utc(graded_at), fate, epoch)
        await raw.execute(tx, _WRITE, now, *map(array_text, columns))
