"""Boundaries that wait in a stage for too long, and what to publish so that they go on."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.storage.boundaries import Boundary
from winnow.storage.stages import StoredOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    """A boundary that is not committed. `republish` is the last stored answer; None: it waits for the retriever, whose input is the
    candidate itself (see `candidate`)."""

    boundary: Boundary
    since: datetime
    republish: StoredOutput | None
    sweeps: int


async def find(tx: AsyncConnection, *, older_than: timedelta, now: datetime, limit: int = 100) -> list[Stuck]:
    """Boundaries whose last stage is older than `older_than`, longest first, each locked (SKIP LOCKED) until the transaction ends.

    Each sweep doubles the wait of its boundary (up to 64 times), so that what cannot be mended is not published for ever.
    """
    raise NotImplementedError


async def candidates(tx: AsyncConnection, boundaries: Sequence[Boundary]) -> list[tuple[Boundary, bytes]]:
    """The body of a candidate event for each boundary, rebuilt from its originals (with a claim check above the topic's limit)."""
    raise NotImplementedError
