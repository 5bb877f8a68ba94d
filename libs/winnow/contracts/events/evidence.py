"""Entries with their pooled evidence, provenance and features: `winnow.boundary.evidence.v1`. Never the whole history."""

from pydantic import Field

from winnow.contracts.events.base import BoundaryRef, Model, Moment, Name, Sha256, Text
from winnow.contracts.vocabulary import CanaryKind, FindingKind, Mode, Origin, ProvenanceClass, Reason, Rules, SectionClass


class Passage(Model):
    """A stretch of an environment output, pooled for the judge."""

    id: int = Field(ge=1, description="Number in the pool; entries and explanations cite it as `e{id}`.")
    message: int = Field(ge=0, description="Number `i` of the message it stands in.")
    tool: Name | None = Field(default=None, description="The tool of the output.")
    origin: Origin = Field(default=Origin.OBSERVATION, description="What the output really is.")
    start: int = Field(ge=0, description="Offset in the message text, in characters.")
    end: int = Field(ge=0, description="End offset, exclusive.")
    text: str = Field(description="The text of the passage.")


class EntryEvidence(Model):
    """That a passage was retrieved for an entry."""

    passage: int = Field(ge=1, description="Number in the pool.")
    rank: int = Field(ge=1, description="1 is the best of the entry's passages.")
    bm25: float = Field(description="BM25 score; not comparable between boundaries.")


class ValueOrigin(Model):
    """A value of an entry and where it was first said."""

    value: str = Field(description="The value as the entry writes it.")
    origin: ProvenanceClass = Field(description="Who said it first.")
    message: int | None = Field(default=None, description="Message of the first mention; for `previous` the entry number of M.")
    tool: Name | None = Field(default=None, description="Tool of that output.")


class Finding(Model):
    """Something that the boundary's texts say against an entry, with both sides."""

    kind: FindingKind = Field(description="What it is.")
    claim: str = Field(description="What the entry says, in its words; at most 80 characters.")
    key: str | None = Field(default=None, description="What the claim is about, as the other text names it; at most 80 characters.")
    said: str | None = Field(default=None, description="What the other text says; at most 80 characters. Null for an orphan value.")
    by: ProvenanceClass | None = Field(default=None, description="Who says so; null where nobody says anything.")
    message: int | None = Field(default=None, description="Message that says so; for `previous` the entry number of M.")
    tool: Name | None = Field(default=None, description="Tool of that output.")
    at: int = Field(default=0, ge=0, description="Offset of it in the message text, in characters.")


class Entry(Model):
    """One entry of the candidate, with what the whole span says of it."""

    n: int = Field(ge=1, description="Number in the summary, from 1.")
    key: str = Field(default="", description="Identity of the entry in its summary: section path, text and occurrence, hashed.")
    parent: int | None = Field(default=None, description="Entry it is nested under; a kept child keeps its parent as scaffold.")
    lead_in: int | None = Field(default=None, description="Line that introduces its list; it stays while one of the list is kept.")
    section: str = Field(description="Heading it stands under.")
    section_class: SectionClass = Field(description="What such a section holds in this host's format.")
    text: str = Field(description="The entry's text with its marker.")
    span: tuple[int, int] = Field(description="UTF-8 byte offsets [start, end) in the candidate.")
    pinned_by: str | None = Field(default=None, description="`profile` or `host` where the entry must not be pruned.")
    truncated: bool = Field(default=False, description="Cut by a limit of the compressor or host.")
    evidence: tuple[EntryEvidence, ...] = Field(default=(), description="Retrieved passages, best first.")
    provenance: ProvenanceClass = Field(description="Class of the entry: the best of its values and phrases.")
    values: tuple[ValueOrigin, ...] = Field(default=(), description="Its values and where each was first said; at most 32.")
    previous_entry: int | None = Field(default=None, description="Entry number of M that it rests on.")
    previous_key: str | None = Field(default=None, description="Identity of that entry of M; the pruner finds its root by it.")
    previous_similarity: float = Field(default=0.0, description="How much of it that entry of M covers, 0 to 1.")
    sources: tuple[ProvenanceClass, ...] = Field(
        default=(), description="All classes that support it: environment, previous, derived, user."
    )
    findings: tuple[Finding, ...] = Field(default=(), description="What the span says against the entry; at most 8.")
    features: dict[str, float] = Field(
        default_factory=dict, description="Features that need the whole span; names are versioned by `features_version`."
    )


class Canary(Model):
    """An entry with a known answer: judged like all others, never rendered, never stored as an entry of the boundary."""

    kind: CanaryKind = Field(description="What it was made of, which says its certain answer.")
    entry: Entry = Field(description="The entry, numbered after the boundary's own.")
    passages: tuple[Passage, ...] = Field(
        default=(), description="Evidence of it that the pool does not hold, numbered after the pool's own."
    )
    counts: bool = Field(description="The recorded coin: its outcome may become the run's observation.")
    donor: Name | None = Field(default=None, description="Run that its text was taken from; erasing that run removes the canary.")


class Evidence(BoundaryRef):
    """What the judge needs of a boundary."""

    agent: Name = Field(description="The agent within the fleet.")
    index: int = Field(ge=1, description="Number of this boundary in the run, from 1.")
    boundary_at: Moment = Field(description="Anchor time; the month partitions follow it.")
    mode: Mode = Field(description="The mode that the candidate asked for.")
    rules: Rules = Field(description="Which system judges this boundary.")
    host: Name | None = Field(default=None, description="The agent runtime.")
    profile: Name = Field(description="The summary format that was used to parse.")
    user_turns_survive: bool = Field(description="Whether user turns stay visible after compaction; false makes them a source.")
    not_a_summary: Reason | None = Field(default=None, description="Why the candidate is no summary; then it has no entries.")
    task: Text = Field(description="Task prompt P.")
    previous: Text | None = Field(default=None, description="Previous summary M.")
    retained: Text = Field(description="Retained interaction R as a JSON list of messages.")
    custom_instructions: str | None = Field(
        default=None, description="What the user asked of the compressor; its first 4,000 characters. Context for the judge."
    )
    compressor: Name | None = Field(default=None, description="The compressor model, as the host names it.")
    canaries: tuple[Canary, ...] = Field(default=(), max_length=2, description="Entries with known answers, at most two.")
    passages: tuple[Passage, ...] = Field(default=(), description="Pooled evidence, in order of the span.")
    entries: tuple[Entry, ...] = Field(default=(), description="All entries of the candidate.")
    parser_version: Name = Field(description="Version of the parser that made the entries.")
    features_version: Name = Field(description="Version of the features; a judge of another version rebuilds them from the originals.")
    messages_sha256: Sha256 = Field(description="Hash of the stored original that holds H and R.")
    warnings: tuple[str, ...] = Field(default=(), description="What the parser or retriever had to say.")
