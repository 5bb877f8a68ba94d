"""Stored boundaries for a judge that has not scored them, and its scores beside those that are there. Nothing committed changes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.events import JudgeId, Score
from winnow.storage import raw
from winnow.storage.boundaries import Boundary, from_row
from winnow.storage.keys import Key
from winnow.storage.values import storable, storable_or_none

#: Boundaries with entries that have no score by judge $6 of version $7. $1 fleets, $2 since, $3 until, $4 runs, $5 rules; NULL: no matter.
_PENDING: Final = (
    " FROM boundaries b WHERE b.entries > 0 AND ($1::text[] IS NULL OR b.fleet = ANY ($1))"
    " AND ($2::timestamptz IS NULL OR b.boundary_at >= $2) AND ($3::timestamptz IS NULL OR b.boundary_at < $3)"
    " AND ($4::text[] IS NULL OR b.run = ANY ($4)) AND ($5::text IS NULL OR b.rules = $5)"
    " AND NOT EXISTS (SELECT FROM scores s WHERE s.fleet = b.fleet AND s.boundary_id = b.boundary_id AND s.boundary_at = b.boundary_at"
    " AND s.judge = $6 AND s.judge_version = $7)"
)
_PAGE: Final = (
    "SELECT b.*" + _PENDING + " AND ($8::text IS NULL OR (b.fleet, b.boundary_at, b.boundary_id) > ($8, $9::timestamptz, $10::uuid))"
    " ORDER BY b.fleet, b.boundary_at, b.boundary_id LIMIT $11"
)
#: Bytes that a request may hold: task, previous summary, candidate, and of the messages what three widened passages an entry can show.
_SIZE: Final = "coalesce((SELECT o.size FROM originals o WHERE o.fleet = b.fleet AND o.sha256 = b.{0}_sha256), 0)"
_COUNT: Final = (
    "SELECT count(*) AS boundaries, coalesce(sum(b.entries), 0)::bigint AS entries, coalesce(sum("
    + " + ".join(_SIZE.format(name) for name in ("task", "previous", "candidate"))
    + f" + least({_SIZE.format('history')}, b.entries * 6000)), 0)::bigint AS bytes"
    + _PENDING
)
_WORDINGS: Final = "SELECT e.n, e.text_key FROM entries e WHERE e.fleet = $1 AND e.boundary_id = $2 AND e.boundary_at = $3 ORDER BY e.n"
#: The boundary is locked against an erasure in between: scores must not outlive what they explain.
_STORE: Final = """
WITH there AS (
    SELECT b.fleet, b.boundary_id, b.boundary_at FROM boundaries b WHERE b.fleet = $1 AND b.boundary_id = $2 FOR SHARE
)
INSERT INTO scores (fleet, boundary_id, boundary_at, n, judge, judge_version, model, p, score, verdict, provenance, explanation, passages,
    flags)
SELECT t.fleet, t.boundary_id, t.boundary_at, s.n, $3, $4, $5, s.p, s.score, s.verdict, s.provenance, s.explanation, s.passages::int[],
    s.flags::text[]
FROM there t
CROSS JOIN unnest($6::int[], $7::float8[], $8::float8[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[])
    AS s(n, p, score, verdict, provenance, explanation, passages, flags)
JOIN entries e ON e.fleet = t.fleet AND e.boundary_id = t.boundary_id AND e.boundary_at = t.boundary_at AND e.n = s.n
ON CONFLICT DO NOTHING
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Which boundaries are meant; None: no matter."""

    fleets: Sequence[str] | None = None
    since: datetime | None = None
    until: datetime | None = None
    runs: Sequence[str] | None = None
    rules: str | None = None

    def arguments_of_boundaries(self) -> tuple[object, ...]:
        """The first five parameters of the statements above."""
        fleets = None if self.fleets is None else list(self.fleets)
        runs = None if self.runs is None else list(self.runs)
        return fleets, self.since, self.until, runs, self.rules

    def arguments(self, judge: JudgeId) -> tuple[object, ...]:
        """The first seven parameters of the statements above."""
        return *self.arguments_of_boundaries(), storable(judge.name), storable(judge.version)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """How much there is to judge. `request_bytes` is an upper estimate of what requests would hold."""

    boundaries: int
    entries: int
    request_bytes: int


async def count(tx: AsyncConnection, where: Where, judge: JudgeId) -> Pending:
    """Boundaries that this version of the judge has not scored."""
    row = await raw.fetch_one(tx, _COUNT, *where.arguments(judge))
    if row is None:
        return Pending(boundaries=0, entries=0, request_bytes=0)
    return Pending(boundaries=row["boundaries"], entries=row["entries"], request_bytes=row["bytes"])


async def page(tx: AsyncConnection, where: Where, judge: JudgeId, after: Boundary | None, limit: int) -> list[Boundary]:
    """The next boundaries that this version of the judge has not scored, by fleet and time."""
    mark = (None, None, None) if after is None else (after.fleet, after.boundary_at, after.boundary_id)
    return [from_row(row) for row in await raw.fetch(tx, _PAGE, *where.arguments(judge), *mark, limit)]


async def wordings(tx: AsyncConnection, boundary: Boundary) -> list[tuple[int, str]]:
    """Number and `text_key` of the entries that were stored for a boundary."""
    rows = await raw.fetch(tx, _WORDINGS, boundary.fleet, boundary.boundary_id, boundary.boundary_at)
    return [(row["n"], row["text_key"]) for row in rows]


async def store(tx: AsyncConnection, key: Key, judge: JudgeId, scores: Sequence[Score]) -> int:
    """Store scores of a boundary beside those that are there; return how many were new.

    Nothing is stored for a boundary that was erased, and nothing twice for one judge and version.
    """
    rows = [
        (
            s.n,
            s.p,
            s.score,
            s.verdict.value,
            s.provenance.value,
            storable(s.explanation),
            "{" + ",".join(map(str, s.passages)) + "}",
            "{" + ",".join(s.flags) + "}",
        )
        for s in scores
    ]
    who = (storable(judge.name), storable(judge.version), storable_or_none(judge.model))
    return await raw.execute(tx, _STORE, key.fleet, key.boundary_id, *who, *raw.columns(rows, 8))
