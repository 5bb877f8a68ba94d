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
    """The units of a stream that are not decided, in sampling order, and when the sample of each was stored."""

    units: list[Unit]
    times: list[datetime]


# For each stream the next units in sampling order. A row a stream, as arrays: the driver then makes one record a stream and not one a unit.
_PENDING = """
SELECT k.fleet, k.stream, u.seqs, u.times, u.losses, u.los, u.probabilities, u.graders, u.points, u.compressors
FROM unnest($1::text[], $2::text[], $3::bigint[]) AS k(fleet, stream, after)
CROSS JOIN LATERAL (
    SELECT array_agg(x.seq ORDER BY x.seq) AS seqs, array_agg(x.observed_at ORDER BY x.seq) AS times,
        array_agg(x.loss ORDER BY x.seq) AS losses, array_agg(x.lo ORDER BY x.seq) AS los,
        array_agg(x.probability ORDER BY x.seq) AS probabilities, array_agg(x.grader ORDER BY x.seq) AS graders,
        array_agg(b.operating_point ORDER BY x.seq) AS points, array_agg(b.compressor ORDER BY x.seq) AS compressors
    FROM (
        SELECT o.seq, o.observed_at, o.loss, o.lo, o.probability, o.grader, o.boundary_id FROM observations o
        WHERE o.fleet = k.fleet AND o.stream = k.stream AND o.seq > k.after ORDER BY o.seq LIMIT $4
    ) AS x LEFT JOIN boundaries b ON b.fleet = k.fleet AND b.boundary_id = x.boundary_id
) AS u WHERE u.seqs IS NOT NULL
"""


async def pending(tx: AsyncConnection, after: Sequence[tuple[StreamKey, int]], *, limit: int) -> dict[StreamKey, Waiting]:
    """The undecided units of streams, in sampling order, at most `limit` of each. `after`: the last unit that was decided."""
    rows = await raw.fetch(tx, _PENDING, *raw.columns([(*key, seq) for key, seq in after], 3), limit)
    return {StreamKey(r["fleet"], r["stream"]): _waiting(r) for r in rows}


def _waiting(row: raw.Record) -> Waiting:
    """The units of one row. Most have one signature, which is made once."""
    signatures: dict[tuple[int | None, str | None, str | None], Signature] = {}
    units: list[Unit] = []
    columns = (row[name] for name in ("seqs", "losses", "los", "probabilities", "points", "compressors", "graders"))
    for seq, loss, lo, probability, *said in zip(*columns, strict=True):
        known = (said[0], said[1], said[2])
        signature = signatures.get(known) or signatures.setdefault(known, Signature(*known))
        units.append(Unit(seq, loss, lo, probability, signature))
    return Waiting(units, row["times"])


def extended(waiting: Waiting, new: Sequence[Unit], *, now: datetime) -> Waiting:
    """With the units of this very transaction behind those that are stored."""
    return Waiting([*waiting.units, *new], [*waiting.times, *[now] * len(new)])


class Decided(NamedTuple):
    """The fate of units that follow one another, to be written."""

    key: StreamKey
    first: int
    last: int
    #: When the samples of the first and the last were stored: where their partitions are.
    since: datetime
    until: datetime
    fate: Fate
    epoch: int


def stretches(key: StreamKey, fates: Sequence[tuple[Unit, Fate, int]], times: Sequence[datetime]) -> list[Decided]:
    """Units of one stream, in order, as stretches of one fate and epoch: a row each in the statement; a row a unit took ten times as long.

    `times`: when the sample of each unit was stored. Those of one stretch may not be in order: several monitors' clocks gave them.
    """
    found: list[Decided] = []
    start = 0
    for i in range(1, len(fates) + 1):
        if i < len(fates) and fates[i][1:] == fates[start][1:] and fates[i][0].seq == fates[i - 1][0].seq + 1:
            continue
        (first, fate, epoch), (last, _, _) = fates[start], fates[i - 1]
        some = times[start:i]
        found.append(Decided(key, first.seq, last.seq, min(some), max(some), fate, epoch))
        start = i
    return found


_DECIDE = """
UPDATE observations o SET fate = f.fate, decided_at = $8, epoch = f.epoch
FROM unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::timestamptz[], $6::timestamptz[], $7::text[], $9::integer[])
    AS f(fleet, stream, first, last, since, until, fate, epoch)
WHERE o.fleet = f.fleet AND o.stream = f.stream AND o.seq BETWEEN f.first AND f.last AND o.observed_at BETWEEN f.since AND f.until
    AND o.fate IS NULL
"""


async def decide(tx: AsyncConnection, decided: Sequence[Decided], *, now: datetime) -> int:
    """Write fates, in the transaction that writes the states that they went into; return how many were written."""
    if not decided:
        return 0
    *columns, epochs = raw.columns([(*d.key, d.first, d.last, d.since, d.until, d.fate, d.epoch) for d in decided], 8)
    return await raw.execute(tx, _DECIDE, *columns, now, epochs)


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
