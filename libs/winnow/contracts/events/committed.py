"""The committed summary and the decision for each entry: `winnow.boundary.committed.v1`."""

from uuid import UUID

from pydantic import AwareDatetime, Field

from winnow.contracts.events.base import BoundaryRef, Handle, JudgeId, Model, Name, Sha256, Text
from winnow.contracts.vocabulary import (
    Decision,
    DecisionReason,
    Mode,
    Outcome,
    ProvenanceClass,
    Reason,
    RootSource,
    Rules,
    SectionClass,
    Verdict,
)


class EntryDecision(Model):
    """What became of one entry. In shadow and annotate mode `pruned` means: would have been."""

    n: int = Field(ge=1)
    section: str
    section_class: SectionClass
    span: tuple[int, int] = Field(description="UTF-8 byte offsets [start, end) in the candidate.")
    decision: Decision
    reason: DecisionReason
    score: float | None = None
    verdict: Verdict
    provenance: ProvenanceClass
    root_source: RootSource
    explanation: str
    pinned_by: str | None = None


class Committed(BoundaryRef):
    """The end of a boundary: what the agent may go on with, and why."""

    agent: Name
    index: int = Field(ge=1)
    outcome: Outcome
    reason: Reason | None = Field(default=None, description="Set for every outcome but judged.")
    mode: Mode = Field(description="The effective mode: the mildest of the event's, the fleet's, and annotate while the fleet is held.")
    held: bool = Field(default=False, description="The fleet was held when this boundary was committed.")
    held_because: str | None = None
    rules: Rules
    profile: Name
    tau: float = Field(ge=0, le=1, description="Keep iff score >= tau.")
    judge: JudgeId | None = Field(default=None, description="Null where no judge was asked.")
    fallback_for: Name | None = None
    summary: Text | None = Field(description="The committed summary; null where the outcome is rejected.")
    committed_sha256: Sha256 | None
    pruned: int = Field(default=0, ge=0, description="Entries left out of the committed summary.")
    decisions: tuple[EntryDecision, ...] = ()
    parent_boundary_id: UUID | None = Field(default=None, description="The boundary whose committed or candidate text M is.")
    candidate_handle: Handle | None = Field(default=None, description="Recovers the candidate.")
    history_handle: Handle | None = Field(default=None, description="Recovers H and R.")
    committed_at: AwareDatetime
    late: bool = Field(default=False, description="The deadline had passed: the agent went on with its own candidate; apply nothing.")
    warnings: tuple[str, ...] = ()
