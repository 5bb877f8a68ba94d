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
    """Units of a stream's current epoch whose fate is decided, in order, without those that were refused as another epoch's.

    A unit that was graded after the monitor had given it up counts with its grade: it was measured, whatever it says.
    """

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
    #: What the epoch's units have in common, where it is known.
    operating_point: int | None
    compressor: str | None


_UNITS = """
SELECT o.seq, o.unit, o.loss, o.lo, o.grader, o.probability FROM observations o
WHERE o.fleet = $1 AND o.stream = $2 AND o.seq >= $3 AND o.fate IN ('folded', 'missing', 'late') ORDER BY o.seq LIMIT $4
"""

_EPOCH = """
SELECT e.from_seq, e.signature FROM streams s LEFT JOIN monitor_epochs e ON e.fleet = s.fleet AND e.stream = s.stream
WHERE s.fleet = $1 AND s.stream = $2 ORDER BY e.epoch DESC NULLS LAST LIMIT 1
"""


async def ledger(tx: AsyncConnection, fleet: str, stream: str) -> Ledger:
    """What is decided of the current epoch. Raise `NotFound` where there is no such stream."""
    epochs = await raw.fetch(tx, _EPOCH, fleet, storable(stream))
    if not epochs:
        raise NotFound(f"fleet {fleet} has no stream {stream[:80]!r}; see `winnow streams list`")
    signature = epochs[0]["signature"] or {}
    rows = await raw.fetch(tx, _UNITS, fleet, storable(stream), epochs[0]["from_seq"] or 1, MOST_UNITS)
    return Ledger(
        units=tuple((row["unit"], row["loss"]) for row in rows),
        lo=min((row["lo"] for row in rows if row["lo"] is not None), default=0.0),
        graders=tuple(sorted({row["grader"] for row in rows if row["grader"] is not None})),
        probabilities=tuple(sorted({row["probability"] for row in rows})),
        first=rows[0]["seq"] if rows else 0,
        last=rows[-1]["seq"] if rows else 0,
        operating_point=signature.get("operating_point"),
        compressor=signature.get("compressor"),
    )
