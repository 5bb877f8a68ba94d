"""Boundaries that wait in a stage for too long, and what to publish so that they go on."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.storage import boundaries, raw, stages
from winnow.storage.boundaries import Boundary
from winnow.storage.keys import Key, Stage
from winnow.storage.stages import StoredOutput

#: The wait doubles with each sweep, this many times at most: what cannot be mended is published again ever more rarely.
MOST_DOUBLINGS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    """A boundary that is not committed."""

    boundary: Boundary
    since: datetime  # when its last answer was stored
    #: Its last stored answer. None: not even the retriever has answered; let `outbox.resend` publish its candidate again. A candidate that
    #: came over Kafka alone is not stored before the retriever answers, so it never stands here.
    republish: StoredOutput | None
    sweeps: int  # how often it was published again, this time included


_FIND = """
WITH waiting AS (
    SELECT b.fleet, b.boundary_id FROM boundaries b
    WHERE b.committed_at IS NULL AND b.received_at < $1::timestamptz - $2::interval
        AND greatest(b.received_at, b.evidence_at, b.scored_at, b.swept_at) < $1::timestamptz - $2::interval * 2 ^ least(b.sweeps, $4)
    ORDER BY b.received_at, b.fleet, b.boundary_id LIMIT $3 FOR UPDATE SKIP LOCKED
)
UPDATE boundaries b SET swept_at = $1, sweeps = b.sweeps + 1 FROM waiting w WHERE w.fleet = b.fleet AND w.boundary_id = b.boundary_id
RETURNING b.fleet, b.boundary_id
"""


async def find(tx: AsyncConnection, *, older_than: timedelta, now: datetime, limit: int = 100) -> list[Stuck]:
    """Boundaries whose last stage is older than `older_than`, longest first, each locked (SKIP LOCKED) until the transaction ends.

    Counts a sweep for each. Every sweep doubles the wait of its boundary, up to 64 times `older_than`.
    """
    keys = [Key(r["fleet"], r["boundary_id"]) for r in await raw.fetch(tx, _FIND, now, older_than, limit, MOST_DOUBLINGS)]
    found = await boundaries.load(tx, keys)
    scored = await stages.load_outputs(tx, [k for k, b in found.items() if b.scored_at is not None], Stage.SCORES)
    evidence = await stages.load_outputs(tx, [k for k, b in found.items() if b.scored_at is None], Stage.EVIDENCE)
    outputs = evidence | scored
    stuck = [
        Stuck(
            boundary=b,
            since=max(t for t in (b.received_at, b.evidence_at, b.scored_at) if t is not None),
            republish=outputs.get(b.key),
            sweeps=b.sweeps,
        )
        for b in found.values()
    ]
    return sorted(stuck, key=lambda s: (s.since, s.boundary.key))
