"""The monitor's ledger in the tables: units that wait to be decided, what was decided, and all of it again for a replay."""

from collections.abc import AsyncIterator, Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.assurance.ledger import Fate, Signature, Unit
from winnow.storage import raw
from winnow.storage.keys import StreamKey

#: Units that a replay reads at once.
REPLAY_PAGE = 5_000


class Waiting(NamedTuple):
    """A unit that is not decided, and when its sample was stored."""

    unit: Unit
    observed_at: datetime


# For each stream the next units in sampling order. A row a stream, as arrays: the driver then makes one record a stream and not one a unit.
_PENDING = """
SELECT k.fleet, k.stream, u.seqs, u.times, u.losses, u.los, u.probabilities, u.graders, u.points, u.compressors
FROM unnest($1::text[], $2::text[], $3::bigint[]) AS k(fleet, stream, after)
CROSS JOIN LATERAL (
    SELECT array_agg(x.seq) AS seqs, array_agg(x.observed_at) AS times, array_agg(x.loss) AS losses, array_agg(x.lo) AS los,
        array_agg(x.probability) AS probabilities, array_agg(x.grader) AS graders, array_agg(b.operating_point) AS points,
        array_agg(b.compressor) AS compressors
    FROM (
        SELECT o.seq, o.observed_at, o.loss, o.lo, o.probability, o.grader, o.boundary_id FROM observations o
        WHERE o.fleet = k.fleet AND o.stream = k.stream AND o.seq > k.after ORDER BY o.seq LIMIT $4
    ) AS x LEFT JOIN boundaries b ON b.fleet = k.fleet AND b.boundary_id = x.boundary_id
) AS u WHERE u.seqs IS NOT NULL
"""


async def pending(tx: AsyncConnection, after: Sequence[tuple[StreamKey, int]], *, limit: int) -> dict[StreamKey, list[Waiting]]:
    """The undecided units of streams, in sampling order, at most `limit` of each. `after`: the last unit that was decided."""
    rows = await raw.fetch(tx, _PENDING, *raw.columns([(*key, seq) for key, seq in after], 3), limit)
    found: dict[StreamKey, list[Waiting]] = {}
    for r in rows:
        columns = zip(
            r["seqs"], r["times"], r["losses"], r["los"], r["probabilities"], r["graders"], r["points"], r["compressors"], strict=True
        )
        units = [
            Waiting(Unit(seq, loss, lo, probability, Signature(point, compressor, grader)), at)
            for seq, at, loss, lo, probability, grader, point, compressor in columns
        ]
        # The join may have moved them.
        units.sort(key=lambda w: w.unit.seq)
        found[StreamKey(r["fleet"], r["stream"])] = units
    return found


class Decided(NamedTuple):
    """A unit's fate, to be written."""

    key: StreamKey
    seq: int
    observed_at: datetime
    fate: Fate
    epoch: int


_DECIDE = """
UPDATE observations o SET fate = f.fate, decided_at = $7, epoch = f.epoch
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::timestamptz[], $5::text[], $6::integer[])
    AS f(fleet, stream, seq, observed_at, fate, epoch)
WHERE o.fleet = f.fleet AND o.stream = f.stream AND o.seq = f.seq AND o.observed_at = f.observed_at AND o.fate IS NULL
"""


async def decide(tx: AsyncConnection, decided: Sequence[Decided], *, now: datetime) -> int:
    """Write fates, in the transaction that writes the states that they went into; return how many were written."""
    rows = [(*d.key, d.seq, d.observed_at, d.fate, d.epoch) for d in decided]
    return await raw.execute(tx, _DECIDE, *raw.columns(rows, 6), now) if rows else 0


async def decisions(tx: AsyncConnection, key: StreamKey, *, through: int) -> AsyncIterator[tuple[Unit, Fate]]:
    """What was decided for the units of a stream up to `through`, in sampling order."""
    after = 0
    while True:
        rows = await raw.fetch(
            tx,
            "SELECT seq, loss, lo, probability, fate FROM observations WHERE fleet = $1 AND stream = $2 AND seq > $3 AND seq <= $4"
            " AND fate IS NOT NULL ORDER BY seq LIMIT $5",
            *key,
            after,
            through,
            REPLAY_PAGE,
        )
        for r in rows:
            yield Unit(r["seq"], r["loss"], r["lo"], r["probability"], Signature()), Fate(r["fate"])
        if len(rows) < REPLAY_PAGE:
            return
        after = rows[-1]["seq"]
