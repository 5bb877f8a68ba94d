"""What each stage answers, stored whole in one statement: the first stored answer wins."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.events import Committed, Evidence, Scores
from winnow.storage.keys import Key, Stage


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The exact record of a stage's answer. `body` is what is published (a claim check's body where `claim`)."""

    event_type: str
    record_key: str
    event_id: UUID
    body: bytes
    claim: bool = False
    traceparent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredOutput:
    """An output as it was stored first; `created_at` is its event time, so that a repetition has the same headers."""

    fleet: str
    boundary_id: UUID
    stage: Stage
    output: Output
    created_at: datetime

    @property
    def key(self) -> Key:
        """The boundary."""
        return Key(self.fleet, self.boundary_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceAnswer:
    """What the retriever answers."""

    event: Evidence
    output: Output


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoresAnswer:
    """What the judge answers. `extra` holds scores of further judges of an ensemble, for the record only."""

    event: Scores
    output: Output
    extra: tuple[Scores, ...] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedAnswer:
    """What the pruner answers, or the retriever for a rejection."""

    event: Committed
    output: Output


async def store_evidence(tx: AsyncConnection, answers: Sequence[EvidenceAnswer], *, now: datetime) -> set[Key]:
    """Store entries, passages, their links and the output; stamp `operating_point`, `profile` and `evidence_at`.

    Return the keys that were stored by this call. A key that is left out has a stored answer already, or no boundary at all.
    """
    raise NotImplementedError


async def store_scores(tx: AsyncConnection, answers: Sequence[ScoresAnswer], *, now: datetime) -> set[Key]:
    """Store scores and the output; stamp judge and `scored_at`. Return the keys that were stored by this call."""
    raise NotImplementedError


async def store_committed(tx: AsyncConnection, answers: Sequence[CommittedAnswer], *, now: datetime) -> set[Key]:
    """Store decisions and the output; stamp outcome, mode, counts, parent and `committed_at`; NOTIFY `winnow_committed` with `fleet/id`.

    The committed text must be stored as an original in the same transaction. Return the keys that were stored by this call.
    """
    raise NotImplementedError


async def load_outputs(tx: AsyncConnection, keys: Sequence[Key], stage: Stage) -> dict[Key, StoredOutput]:
    """The stored outputs of a stage: what is published, now and on every redelivery. Unknown keys are left out."""
    raise NotImplementedError
