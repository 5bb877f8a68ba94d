"""Boundaries: the anchor of everything that Winnow knows of one compaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Self
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.events import Candidate
from winnow.contracts.vocabulary import Mode, Outcome, Reason, Rules, Trigger
from winnow.storage.keys import Key


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
    def of(cls, candidate: Candidate, *, received_at: datetime, history_sha256: str, traceparent: str | None = None) -> Self:
        """The row of `candidate`. `history_sha256` is the hash of `Messages.content()` (the claim check's, where there is one)."""
        raise NotImplementedError


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


async def insert_new(tx: AsyncConnection, rows: Sequence[NewBoundary]) -> list[Inserted]:
    """Store boundaries that are not there yet; answers stand in the order of `rows`.

    The first insert fixes `boundary_at`: a resubmission, also in another month, finds the stored row. Two rows of one batch with the
    same key are the first and its repetition (or conflict). The fleets must exist (`fleets.ensure`). Missing partitions are created.
    """
    raise NotImplementedError


async def load(tx: AsyncConnection, keys: Sequence[Key]) -> dict[Key, Boundary]:
    """The boundaries that are there; unknown keys are left out."""
    raise NotImplementedError


async def find_parents(tx: AsyncConnection, lookups: Sequence[ParentLookup]) -> list[Parent | None]:
    """The parent of each lookup, in order; None where Winnow has not seen that text.

    Where the host names the previous boundary, it is taken (whatever its run: hosts fork) if one of its texts has the hash. Otherwise, the
    newest other boundary of the same run with that text, committed texts before candidates; never by index.
    """
    raise NotImplementedError


async def page(tx: AsyncConnection, fleet: str, *, run: str | None = None, cursor: str | None = None, limit: int = 50) -> Page:
    """Boundaries of a fleet or of one run, newest first (by `boundary_at`, then id). Raise `BadCursor` for a cursor that is not ours."""
    raise NotImplementedError
