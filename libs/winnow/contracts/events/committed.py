"""The committed summary and the decision for each entry: `winnow.boundary.committed.v1`."""

from uuid import UUID

from pydantic import Field

from winnow.contracts.events.base import BoundaryRef, Handle, JudgeId, Model, Moment, Name, Sha256, Text
from winnow.contracts.vocabulary import (
    Decision,
    DecisionReason,
    FindingKind,
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

    n: int = Field(ge=1, description="Number of the entry in the candidate, from 1.")
    section: str = Field(description="Heading it stands under.")
    section_class: SectionClass = Field(description="What such a section holds in this host's format.")
    span: tuple[int, int] = Field(description="UTF-8 byte offsets [start, end) in the candidate.")
    decision: Decision = Field(description="Kept, or pruned.")
    reason: DecisionReason = Field(description="Why.")
    score: float | None = Field(default=None, description="What was compared with tau; null where there was no usable answer.")
    verdict: Verdict = Field(description="What the judge said.")
    provenance: ProvenanceClass = Field(description="Where its information was first said.")
    root_source: RootSource = Field(description="Where its support entered the run, followed through previous summaries.")
    explanation: str = Field(description="One line that a person can check.")
    flags: tuple[FindingKind, ...] = Field(default=(), description="Kinds of what speaks against the entry; the verdict names one at most.")
    pinned_by: str | None = Field(default=None, description="`profile`, `host` or `recovery` where the entry must not be pruned.")


class Committed(BoundaryRef):
    """The end of a boundary: what the agent may go on with, and why."""

    agent: Name = Field(description="The agent within the fleet.")
    index: int = Field(ge=1, description="Number of this boundary in the run, from 1.")
    outcome: Outcome = Field(description="How the boundary ended.")
    reason: Reason | None = Field(default=None, description="Set for every outcome but judged.")
    mode: Mode = Field(description="The effective mode: the mildest of the event's, the fleet's, and annotate while the fleet is held.")
    held: bool = Field(default=False, description="The fleet was held when this boundary was committed.")
    held_because: str | None = Field(default=None, description="Why it was held.")
    rules: Rules = Field(description="Which system judged.")
    profile: Name = Field(description="The summary format that was used to parse; `unknown` where nothing was parsed.")
    tau: float = Field(ge=0, le=1, description="Keep iff score >= tau.")
    judge: JudgeId | None = Field(default=None, description="Null where no judge was asked.")
    fallback_for: Name | None = Field(default=None, description="The judge that should have answered and did not.")
    summary: Text | None = Field(description="The committed summary; null where the outcome is rejected.")
    committed_sha256: Sha256 | None = Field(description="Hash of the committed summary; null where the outcome is rejected.")
    pruned: int = Field(default=0, ge=0, description="Entries left out of the committed summary.")
    decisions: tuple[EntryDecision, ...] = Field(default=(), description="One for each entry of the candidate, in order.")
    parent_boundary_id: UUID | None = Field(default=None, description="The boundary whose committed or candidate text M is.")
    candidate_handle: Handle | None = Field(default=None, description="Recovers the candidate.")
    history_handle: Handle | None = Field(default=None, description="Recovers H and R.")
    committed_at: Moment = Field(description="When it was decided.")
    late: bool = Field(default=False, description="The deadline had passed: the agent went on with its own candidate; apply nothing.")
    warnings: tuple[str, ...] = Field(default=(), description="What the parser or retriever had to say.")
