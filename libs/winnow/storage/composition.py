"""Entries with a judge's scores, run by run: what the composition report reads."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.vocabulary import RootSource, SectionClass
from winnow.judging.evaluation.composition import EntryRow
from winnow.storage import raw

#: Runs that are read at once: a few thousand entries.
RUNS_AT_ONCE: Final = 50

#: Runs, with any boundary in the period: a run is counted whole or not at all, or its summaries would lose their places.
#: $1 fleets, $2 since, $3 until, $4 runs, $5 rules; NULL: no matter.
_RUNS: Final = (
    "SELECT DISTINCT b.fleet, b.run FROM boundaries b WHERE b.entries > 0 AND ($1::text[] IS NULL OR b.fleet = ANY ($1))"
    " AND ($2::timestamptz IS NULL OR b.boundary_at >= $2) AND ($3::timestamptz IS NULL OR b.boundary_at < $3)"
    " AND ($4::text[] IS NULL OR b.run = ANY ($4)) AND ($5::text IS NULL OR b.rules = $5) ORDER BY 1, 2"
)
#: $1 fleets, $2 runs: pairs by place.
_VERSIONS: Final = (
    "SELECT s.judge, s.judge_version, count(DISTINCT (s.fleet, s.boundary_id)) AS boundaries, max(s.boundary_at) AS last"
    " FROM unnest($1::text[], $2::text[]) AS r (fleet, run) JOIN boundaries b ON b.fleet = r.fleet AND b.run = r.run"
    " JOIN scores s ON s.fleet = b.fleet AND s.boundary_id = b.boundary_id AND s.boundary_at = b.boundary_at"
    " GROUP BY s.judge, s.judge_version ORDER BY boundaries DESC, last DESC, s.judge, s.judge_version"
)
_ROWS: Final = (
    "SELECT c.fleet, c.run, c.summary, c.boundary_index, c.enforced, c.n, c.section, c.section_class, c.text, c.score, c.root_source,"
    " c.decision FROM composition_entries c JOIN unnest($1::text[], $2::text[]) AS r (fleet, run) ON r.fleet = c.fleet AND r.run = c.run"
    " WHERE c.judge = $3 AND c.judge_version = $4 AND c.fleet = ANY ($1) AND c.run = ANY ($2) AND ($5::text IS NULL OR c.rules = $5)"
    " ORDER BY c.fleet, c.run, c.summary, c.n"
)
_UNSCORED: Final = (
    "SELECT count(*) AS n FROM unnest($1::text[], $2::text[]) AS r (fleet, run) JOIN boundaries b ON b.fleet = r.fleet AND b.run = r.run"
    " WHERE b.entries > 0 AND ($5::text IS NULL OR b.rules = $5) AND NOT EXISTS (SELECT FROM scores s WHERE s.fleet = b.fleet"
    " AND s.boundary_id = b.boundary_id AND s.boundary_at = b.boundary_at AND s.judge = $3 AND s.judge_version = $4)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Which boundaries are meant; None: no matter."""

    fleets: Sequence[str] | None = None
    since: datetime | None = None
    until: datetime | None = None
    runs: Sequence[str] | None = None
    rules: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeVersion:
    """A judge that scored some of the boundaries."""

    judge: str
    version: str
    boundaries: int


async def runs(tx: AsyncConnection, wanted: Wanted) -> list[tuple[str, str]]:
    """Fleet and run of every run that has a boundary with entries in the period, in order."""
    rows = await raw.fetch(
        tx,
        _RUNS,
        None if wanted.fleets is None else list(wanted.fleets),
        wanted.since,
        wanted.until,
        None if wanted.runs is None else list(wanted.runs),
        wanted.rules,
    )
    return [(row["fleet"], row["run"]) for row in rows]


async def judges(tx: AsyncConnection, of: Sequence[tuple[str, str]]) -> list[JudgeVersion]:
    """Judges that scored these runs, the one with most boundaries first, the later one where they are equal."""
    rows = await raw.fetch(tx, _VERSIONS, *_columns(of))
    return [JudgeVersion(judge=row["judge"], version=row["judge_version"], boundaries=row["boundaries"]) for row in rows]


async def entries(
    tx: AsyncConnection, of: Sequence[tuple[str, str]], judge: JudgeVersion, rules: str | None = None
) -> AsyncIterator[list[EntryRow]]:
    """Entries of these runs that the judge was asked about, some runs at a time, ordered by fleet, run, summary and n."""
    for at in range(0, len(of), RUNS_AT_ONCE):
        rows = await raw.fetch(tx, _ROWS, *_columns(of[at : at + RUNS_AT_ONCE]), judge.judge, judge.version, rules)
        yield [_entry(row) for row in rows]


async def unscored(tx: AsyncConnection, of: Sequence[tuple[str, str]], judge: JudgeVersion, rules: str | None = None) -> int:
    """Boundaries of these runs that the judge was not asked about."""
    row = await raw.fetch_one(tx, _UNSCORED, *_columns(of), judge.judge, judge.version, rules)
    return 0 if row is None else int(row["n"])


def _entry(row: raw.Record) -> EntryRow:
    """One row as the analysis takes it."""
    return EntryRow(
        fleet=row["fleet"],
        run=row["run"],
        summary=row["summary"],
        boundary_index=row["boundary_index"],
        enforced=row["enforced"],
        n=row["n"],
        section=row["section"],
        section_class=SectionClass(row["section_class"]),
        text=row["text"],
        score=row["score"],
        root=None if row["root_source"] is None else RootSource(row["root_source"]),
        decision=row["decision"],
    )


def _columns(of: Sequence[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Pairs as two columns."""
    return [fleet for fleet, _ in of], [run for _, run in of]
