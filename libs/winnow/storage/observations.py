"""Observations: units sampled and graded. `seq` is given per stream in the transaction that first stores `sampled`."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.events import Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObservation:
    """A unit of a stream. `seq` is its place in sampling order, from 1."""

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
    folded_at: datetime | None
    fate: str | None


async def store(tx: AsyncConnection, events: Sequence[Observation], *, now: datetime) -> set[UUID]:
    """Store sampled and graded parts once by (fleet, stream, unit); return the event ids that changed something.

    A grade that comes before its sample is kept aside with the event and applied when the sample arrives.
    """
    raise NotImplementedError


async def pending(tx: AsyncConnection, fleet: str, stream: str, *, after_seq: int, limit: int = 1000) -> list[StoredObservation]:
    """Units of a stream in order of `seq`, graded or not."""
    raise NotImplementedError
