"""Losses that a stream's ledger holds, in sampling order: what certificates and calibrations are computed from."""

from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.errors import NotFound
from winnow.storage import raw
from winnow.storage.values import storable

#: Units of one stream that are read at once; a certificate needs a few thousand.
MOST_UNITS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Units of a stream's current epoch whose fate is decided, in order."""

    #: Name of each unit and its loss; None where it was never graded.
    units: tuple[tuple[str, float | None], ...]
    #: Smallest loss that the graders declared: 0, or -1 for paired ones.
    lo: float
    graders: tuple[str, ...]
    #: Distinct sampling probabilities.
    probabilities: tuple[float, ...]
    #: First and last sequence number; 0 where there is none.
    first: int
    last: int


_UNITS = """
SELECT o.seq, o.unit, o.loss, o.lo, o.grader, o.probability FROM observations o
WHERE o.fleet = $1 AND o.stream = $2 AND o.fate IS NOT NULL
    AND o.seq >= coalesce((SELECT max(e.from_seq) FROM monitor_epochs e WHERE e.fleet = $1 AND e.stream = $2), 1)
ORDER BY o.seq LIMIT $3
"""


async def ledger(tx: AsyncConnection, fleet: str, stream: str) -> Ledger:
    """What is decided of the current epoch. Raise `NotFound` where there is no such stream."""
    known = await raw.fetch(tx, "SELECT FROM streams WHERE fleet = $1 AND stream = $2", fleet, storable(stream))
    if not known:
        raise NotFound(f"fleet {fleet} has no stream {stream[:80]!r}; see `winnow streams list`")
    rows = await raw.fetch(tx, _UNITS, fleet, storable(stream), MOST_UNITS)
    return Ledger(
        units=tuple((row["unit"], row["loss"]) for row in rows),
        lo=min((row["lo"] for row in rows if row["lo"] is not None), default=0.0),
        graders=tuple(sorted({row["grader"] for row in rows if row["grader"] is not None})),
        probabilities=tuple(sorted({row["probability"] for row in rows})),
        first=rows[0]["seq"] if rows else 0,
        last=rows[-1]["seq"] if rows else 0,
    )
