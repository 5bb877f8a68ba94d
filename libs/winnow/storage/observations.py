"""Observations: units sampled and graded. `seq` is given per stream in the transaction that first stores `sampled`."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.assurance.ledger import Fate
from winnow.contracts.events import Observation
from winnow.storage import raw, samples
from winnow.storage.samples import Taken


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


async def store(tx: AsyncConnection, events: Sequence[Observation], *, now: datetime) -> set[UUID]:
    """`put`; return the event ids that changed something."""
    return set((await put(tx, events, now=now)).changed)


async def put(tx: AsyncConnection, events: Sequence[Observation], *, now: datetime) -> Taken:
    """Store sampled and graded parts once by (fleet, stream, unit), in the order given; `samples.take` says how. Nothing is folded."""
    taken = await samples.take(tx, events, now=now)
    await samples.write(tx, taken, now=now)
    return taken


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
