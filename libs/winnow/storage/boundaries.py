"""Boundaries: the anchor of everything that Winnow knows of one compaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Self
from uuid import UUID

from sqlalchemy import select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.events import Candidate, sha256
from winnow.contracts.vocabulary import Mode, Outcome, Reason, Rules, Trigger
from winnow.storage import cursors, partitions, raw, tables
from winnow.storage.keys import Key
from winnow.storage.values import storable, storable_or_none


class Status(StrEnum):
    """What `insert_new` found."""

    INSERTED = "inserted"
    SAME = "same"  # there already, with the same request hash
    CONFLICT = "conflict"  # there already, with another request hash: `rejected: id_conflict`


@dataclass(frozen=True, slots=True, kw_only=True)
class NewBoundary:
    """A boundary as it is first stored, by the gateway or the retriever. Hashes are lower-case hex SHA-256 of stored originals."""

    fleet: str
    boundary_id: UUID
    run: str
    agent: str
    boundary_index: int
    boundary_at: datetime | None  # the host's clock; None or absurd (see partitions.anchor_time): the receive time is taken
    received_at: datetime
    request_sha256: str
    host: str | None
    profile: str | None
    trigger: Trigger
    mode: Mode
    rules: Rules
    deadline: datetime | None
    task_sha256: str
    history_sha256: str  # of `Messages.content()`: H and R
    previous_sha256: str | None
    candidate_sha256: str
    previous_boundary_id: UUID | None = None
    user_turns_survive: bool | None = None
    compressor: str | None = None
    tokens_before: int | None = None
    tokens_after: int | None = None
    traceparent: str | None = None

    @classmethod
    def of(
        cls,
        candidate: Candidate,
        *,
        received_at: datetime,
        history_sha256: str,
        request_sha256: str | None = None,
        traceparent: str | None = None,
    ) -> Self:
        """The row of `candidate`. `history_sha256` is the hash of `Messages.content()` (the claim check's, where there is one).

        `request_sha256` is computed where the caller does not have it already.
        """
        return cls(
            fleet=candidate.fleet,
            boundary_id=candidate.boundary_id,
            run=candidate.run,
            agent=candidate.agent,
            boundary_index=candidate.index,
            boundary_at=candidate.boundary_at,
            received_at=received_at,
            request_sha256=request_sha256 or candidate.request_sha256(history_sha256),
            host=candidate.host,
            profile=candidate.profile,
            trigger=candidate.trigger,
            mode=candidate.mode,
            rules=candidate.rules,
            deadline=candidate.deadline,
            task_sha256=sha256(candidate.task),
            history_sha256=history_sha256,
            previous_sha256=None if candidate.previous_summary is None else sha256(candidate.previous_summary),
            candidate_sha256=candidate.candidate_sha256,
            previous_boundary_id=candidate.previous_boundary_id,
            user_turns_survive=candidate.user_turns_survive,
            compressor=candidate.compressor,
            tokens_before=candidate.tokens_before,
            tokens_after=candidate.tokens_after,
            traceparent=traceparent,
        )

    @property
    def key(self) -> Key:
        """Fleet and id."""
        return Key(self.fleet, self.boundary_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Boundary:
    """A stored boundary. A stage time is None until that stage's answer is stored."""

    fleet: str
    boundary_id: UUID
    run: str
    agent: str
    boundary_index: int
    boundary_at: datetime
    request_sha256: str
    host: str | None
    profile: str | None
    trigger: Trigger
    mode: Mode
    effective_mode: Mode | None
    rules: Rules
    deadline: datetime | None
    operating_point: int | None
    task_sha256: str
    history_sha256: str
    previous_sha256: str | None
    candidate_sha256: str
    committed_sha256: str | None
    previous_boundary_id: UUID | None
    parent_boundary_id: UUID | None
    user_turns_survive: bool | None
    compressor: str | None
    tokens_before: int | None
    tokens_after: int | None
    outcome: Outcome | None
    reason: Reason | None
    held: bool
    held_because: str | None
    late: bool
    entries: int | None
    pruned: int | None
    tau: float | None
    judge: str | None
    judge_version: str | None
    received_at: datetime
    evidence_at: datetime | None
    scored_at: datetime | None
    committed_at: datetime | None
    fallback_for: str | None
    sweeps: int
    traceparent: str | None
    warnings: tuple[str, ...]

    @property
    def key(self) -> Key:
        """Fleet and id."""
        return Key(self.fleet, self.boundary_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Inserted:
    """What became of one row of `insert_new`: the status and the boundary as it is stored now."""

    status: Status
    boundary: Boundary


@dataclass(frozen=True, slots=True, kw_only=True)
class ParentLookup:
    """Which boundary wrote this previous summary? `boundary_id` is the asking boundary: nobody is his own parent."""

    fleet: str
    run: str
    boundary_id: UUID
    previous_boundary_id: UUID | None
    previous_sha256: str


class Matched(StrEnum):
    """Which text of the parent the previous summary is."""

    COMMITTED = "committed"
    CANDIDATE = "candidate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parent:
    """The boundary that a previous summary came from. Where both of its texts are equal, `committed` is said."""

    boundary: Boundary
    matched: Matched


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Some boundaries, newest first, and the cursor of the next page (None: the end)."""

    boundaries: tuple[Boundary, ...]
    next_cursor: str | None


#: Columns of `Boundary`, in its own order.
_FIELDS = tuple(Boundary.__dataclass_fields__)
_SELECTED = ", ".join(f"b.{name}" for name in _FIELDS)

#: The columns of an insert with their array types; `NewBoundary` has a field for each.
_NEW = {
    "fleet": "text", "boundary_id": "uuid", "run": "text", "agent": "text", "boundary_index": "int", "boundary_at": "timestamptz",
    "received_at": "timestamptz", "request_sha256": "text", "host": "text", "profile": "text", "trigger": "text", "mode": "text",
    "rules": "text", "deadline": "timestamptz", "task_sha256": "text", "history_sha256": "text", "previous_sha256": "text",
    "candidate_sha256": "text", "previous_boundary_id": "uuid", "user_turns_survive": "bool", "compressor": "text",
    "tokens_before": "int", "tokens_after": "int", "traceparent": "text",
}  # fmt: skip
_UNNEST = ", ".join(f"${i}::{kind}[]" for i, kind in enumerate(_NEW.values(), 1))

# Sorted, so that two batches lock rows in one order; DO NOTHING waits for another transaction that inserts the same key.
_INSERT = f"""
WITH stored AS (
    INSERT INTO boundaries AS b ({", ".join(_NEW)})
    SELECT * FROM unnest({_UNNEST}) AS n({", ".join(_NEW)}) ORDER BY n.fleet, n.boundary_id
    ON CONFLICT (fleet, boundary_id) DO NOTHING
    RETURNING {_SELECTED}
), counted AS (
    INSERT INTO runs (fleet, run, agent, host, boundaries, first_at, last_at)
    SELECT fleet, run, max(agent), max(host), count(*), min(boundary_at), max(boundary_at) FROM stored
    GROUP BY fleet, run ORDER BY fleet, run
    ON CONFLICT (fleet, run) DO UPDATE SET agent = excluded.agent, host = coalesce(excluded.host, runs.host),
        boundaries = runs.boundaries + excluded.boundaries, first_at = least(runs.first_at, excluded.first_at),
        last_at = greatest(runs.last_at, excluded.last_at)
)
SELECT * FROM stored
"""  # noqa: S608  built from the constants above

_LOAD = f"""
SELECT {_SELECTED} FROM unnest($1::text[], $2::uuid[]) AS k(fleet, boundary_id)
JOIN boundaries b ON b.fleet = k.fleet AND b.boundary_id = k.boundary_id
"""  # noqa: S608  the same

# Three look-ups by index, the first that finds something wins. A boundary from after the asking one is taken only if there is no other:
# clocks of hosts are no proof, and a late resubmission must not find its own successor.
_PARENTS = f"""
SELECT a.ord, x.matched, {", ".join(f"x.{name}" for name in _FIELDS)}
FROM unnest($1::int[], $2::text[], $3::text[], $4::uuid[], $5::uuid[], $6::text[]) AS a(ord, fleet, run, me, previous, sha)
LEFT JOIN boundaries m ON m.fleet = a.fleet AND m.boundary_id = a.me
CROSS JOIN LATERAL (
    SELECT * FROM (
        (SELECT 0 AS rank, CASE WHEN b.committed_sha256 = a.sha THEN 'committed' ELSE 'candidate' END AS matched, {_SELECTED}
         FROM boundaries b WHERE b.fleet = a.fleet AND b.boundary_id = a.previous AND b.boundary_id <> a.me
             AND (b.committed_sha256 = a.sha OR b.candidate_sha256 = a.sha))
        UNION ALL
        (SELECT 1, 'committed', {_SELECTED}
         FROM boundaries b WHERE b.fleet = a.fleet AND b.run = a.run AND b.committed_sha256 = a.sha AND b.boundary_id <> a.me
         ORDER BY b.boundary_at <= coalesce(m.boundary_at, b.boundary_at) DESC, b.boundary_at DESC, b.boundary_index DESC LIMIT 1)
        UNION ALL
        (SELECT 2, 'candidate', {_SELECTED}
         FROM boundaries b WHERE b.fleet = a.fleet AND b.run = a.run AND b.candidate_sha256 = a.sha AND b.boundary_id <> a.me
         ORDER BY b.boundary_at <= coalesce(m.boundary_at, b.boundary_at) DESC, b.boundary_at DESC, b.boundary_index DESC LIMIT 1)
    ) AS found ORDER BY rank LIMIT 1
) AS x
"""  # noqa: S608  the same


def from_row(row: Any) -> Boundary:  # noqa: ANN401  a driver's record or a SQLAlchemy mapping; both are read by name
    """The boundary of a row that has all of its columns."""
    values = {name: row[name] for name in _FIELDS}
    values["trigger"] = Trigger(values["trigger"])
    values["mode"] = Mode(values["mode"])
    values["rules"] = Rules(values["rules"])
    for name, kind in (("effective_mode", Mode), ("outcome", Outcome), ("reason", Reason)):
        values[name] = None if values[name] is None else kind(values[name])
    values["warnings"] = tuple(values["warnings"])
    return Boundary(**values)


def _values(row: NewBoundary) -> tuple[object, ...]:
    """The columns of an insert, in order."""
    at = partitions.anchor_time(row.boundary_at, row.received_at)
    return (
        row.fleet, row.boundary_id, storable(row.run), storable(row.agent), row.boundary_index, at, row.received_at, row.request_sha256,
        storable_or_none(row.host), storable_or_none(row.profile), row.trigger, row.mode, row.rules, row.deadline, row.task_sha256,
        row.history_sha256, row.previous_sha256, row.candidate_sha256, row.previous_boundary_id, row.user_turns_survive,
        storable_or_none(row.compressor), row.tokens_before, row.tokens_after, row.traceparent,
    )  # fmt: skip


async def insert_new(tx: AsyncConnection, rows: Sequence[NewBoundary]) -> list[Inserted]:
    """Store boundaries that are not there yet; answers stand in the order of `rows`.

    The first insert fixes `boundary_at`: a resubmission, also in another month, finds the stored row. Two rows of one batch with the
    same key are the first and its repetition (or conflict). The fleets must exist (`fleets.ensure`). Missing partitions are created.
    """
    if not rows:
        return []
    first: dict[Key, NewBoundary] = {}
    for row in rows:
        first.setdefault(row.key, row)
    rows_new = await raw.fetch(tx, _INSERT, *raw.columns([_values(first[k]) for k in sorted(first)], len(_NEW)))
    created = {b.key: b for b in map(from_row, rows_new)}
    stored = created | await load(tx, [key for key in first if key not in created])
    await partitions.ensure(tx, [b.boundary_at for b in stored.values()])
    answers = []
    for row in rows:
        boundary = stored[row.key]
        if boundary.request_sha256 != row.request_sha256:
            status = Status.CONFLICT
        elif row.key in created and first[row.key] is row:
            status = Status.INSERTED
        else:
            status = Status.SAME
        answers.append(Inserted(status=status, boundary=boundary))
    return answers


async def load(tx: AsyncConnection, keys: Sequence[Key]) -> dict[Key, Boundary]:
    """The boundaries that are there; unknown keys are left out."""
    if not keys:
        return {}
    rows = await raw.fetch(tx, _LOAD, *raw.columns(sorted(set(keys)), 2))
    return {b.key: b for b in map(from_row, rows)}


async def find_parents(tx: AsyncConnection, lookups: Sequence[ParentLookup]) -> list[Parent | None]:
    """The parent of each lookup, in order; None where Winnow has not seen that text.

    Where the host names the previous boundary, it is taken (whatever its run: hosts fork) if one of its texts has the hash. Otherwise, the
    newest other boundary of the same run with that text, committed texts before candidates; never by index. A parent may still wait in a
    stage: then it has no decisions yet.
    """
    if not lookups:
        return []
    asked = [(i, q.fleet, storable(q.run), q.boundary_id, q.previous_boundary_id, q.previous_sha256) for i, q in enumerate(lookups)]
    found: list[Parent | None] = [None] * len(lookups)
    for row in await raw.fetch(tx, _PARENTS, *raw.columns(asked, 6)):
        found[row["ord"]] = Parent(boundary=from_row(row), matched=Matched(row["matched"]))
    return found


async def page(tx: AsyncConnection, fleet: str, *, run: str | None = None, cursor: str | None = None, limit: int = 50) -> Page:
    """Boundaries of a fleet or of one run, newest first (by `boundary_at`, then id). Raise `BadCursor` for a cursor that is not ours."""
    b = tables.boundaries.c
    most = cursors.limited(limit)
    query = select(*(b[name] for name in _FIELDS)).where(b.fleet == fleet).order_by(b.boundary_at.desc(), b.boundary_id.desc())
    if run is not None:
        query = query.where(b.run == storable(run))
    if cursor is not None:
        at, name = cursors.decode(cursor)
        try:
            last = UUID(name)
        except ValueError as error:
            raise cursors.BadCursor from error
        query = query.where(tuple_(b.boundary_at, b.boundary_id) < (at, last))
    rows = [from_row(r) for r in (await tx.execute(query.limit(most + 1))).mappings()]
    shown = tuple(rows[:most])
    more = cursors.encode(shown[-1].boundary_at, str(shown[-1].boundary_id)) if len(rows) > most else None
    return Page(boundaries=shown, next_cursor=more)
