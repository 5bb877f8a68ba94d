"""The values of the HTTP API, used by the gateway that writes them and the client that reads them."""

from enum import StrEnum
from typing import Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from winnow.contracts.events import ClaimCheck, Committed, Model
from winnow.contracts.vocabulary import Mode, Outcome, Reason

#: Media type of RFC 9457.
PROBLEM_TYPE = "application/problem+json"


class Status(StrEnum):
    """How far a boundary has come."""

    RECEIVED = "received"  # stored; not retrieved yet
    EVIDENCE = "evidence"  # entries and evidence are stored
    SCORED = "scored"  # the judge has answered
    COMMITTED = "committed"  # the end: there is a result


class BoundaryView(Model):
    """A boundary as the gateway tells of it."""

    boundary_id: UUID = Field(description="The boundary's id within the fleet.")
    fleet: str = Field(description="The fleet of the API key.")
    run: str = Field(description="The run it belongs to.")
    agent: str = Field(description="The agent within the fleet.")
    index: int = Field(description="Number of the boundary in the run.")
    status: Status = Field(description="How far it has come; `committed` is the end.")
    mode: Mode | None = Field(default=None, description="The effective mode, once committed.")
    outcome: Outcome | None = Field(default=None, description="How it ended, once committed.")
    reason: Reason | None = Field(default=None, description="Set for every outcome but `judged`.")
    held: bool = Field(default=False, description="The fleet was held when it was committed.")
    late: bool = Field(default=False, description="The deadline had passed: the agent went on with its own candidate.")
    entries: int | None = Field(default=None, description="Entries of the candidate, once committed.")
    pruned: int | None = Field(default=None, description="Entries left out of the committed summary, once committed.")
    candidate_sha256: str = Field(description="Hash of the candidate.")
    committed_sha256: str | None = Field(default=None, description="Hash of the committed summary.")
    parent_boundary_id: UUID | None = Field(default=None, description="The boundary whose text the previous summary was.")
    boundary_at: AwareDatetime | None = Field(default=None, description="When the boundary was reached.")
    received_at: AwareDatetime | None = Field(default=None, description="When Winnow stored it.")
    committed_at: AwareDatetime | None = Field(default=None, description="When its result was committed.")
    result: Committed | None = Field(
        default=None, description="The committed event, where one boundary was asked for. Without decisions in shadow mode."
    )


class BoundaryPage(Model):
    """One page of boundaries, newest first."""

    items: tuple[BoundaryView, ...] = Field(default=(), description="Boundaries without their results.")
    next_cursor: str | None = Field(default=None, description="Give it as `cursor` for the next page; null at the end.")


class RunView(Model):
    """A run of an agent."""

    run: str = Field(description="The agent's session or trajectory.")
    agent: str = Field(description="The agent within the fleet.")
    boundaries: int = Field(description="Boundaries stored for it.")
    first_at: AwareDatetime | None = Field(default=None, description="When its first boundary was stored.")
    last_at: AwareDatetime | None = Field(default=None, description="When its last boundary was stored.")
    ended_at: AwareDatetime | None = Field(default=None, description="When the runtime said that it ended.")


class RunPage(Model):
    """One page of the fleet's runs, the most recent first."""

    items: tuple[RunView, ...] = Field(default=(), description="Runs.")
    next_cursor: str | None = Field(default=None, description="Give it as `cursor` for the next page; null at the end.")


class PassageView(Model):
    """A stretch of an environment output that was retrieved for an entry."""

    rank: int = Field(description="1 is the best.")
    bm25: float = Field(description="BM25 score; not comparable between boundaries.")
    message: int = Field(description="Number of the message it stands in.")
    tool: str | None = Field(default=None, description="The tool of the output.")
    text: str = Field(description="The text.")


class EntryView(Model):
    """One entry of a candidate: what it says, how it was judged, and on what evidence."""

    n: int = Field(description="Number in the summary, from 1.")
    section: str = Field(description="Heading it stands under.")
    section_class: str = Field(description="What such a section holds.")
    text: str = Field(description="The entry's text.")
    span: tuple[int, int] = Field(description="UTF-8 byte offsets [start, end) in the candidate.")
    provenance: str | None = Field(default=None, description="Where its information was first said.")
    score: float | None = Field(default=None, description="Probability of a source, after caps.")
    verdict: str | None = Field(default=None, description="What the judge says of it.")
    explanation: str | None = Field(default=None, description="One line that a person can check.")
    decision: str | None = Field(default=None, description="`kept` or `pruned`; in shadow and annotate mode what would have been.")
    decision_reason: str | None = Field(default=None, description="Why.")
    root_source: str | None = Field(default=None, description="Where its support entered the run.")
    evidence: tuple[PassageView, ...] = Field(default=(), description="Retrieved passages, best first.")


class EntryList(Model):
    """All entries of one boundary, in order."""

    boundary_id: UUID = Field(description="The boundary.")
    items: tuple[EntryView, ...] = Field(default=(), description="Its entries.")


class Accepted(Model):
    """An event that is stored and on its way to the bus."""

    event_id: UUID = Field(description="The event's id; a repetition is stored once.")
    status: Literal["accepted"] = Field(default="accepted", description="Always `accepted`.")


class ProblemReason(StrEnum):
    """Why a request failed. Within v1 the list only grows."""

    # the caller's
    INVALID = "invalid"  # not JSON, or not the schema
    HASH_MISMATCH = "hash_mismatch"  # a stated hash is not that of its text
    CLAIM_LOST = "claim_lost"  # the claim check names no original of this fleet
    TOO_LARGE = "too_large"
    ID_CONFLICT = "id_conflict"  # the boundary id was submitted before with other content
    BAD_CURSOR = "bad_cursor"  # not a cursor that this gateway gave out
    UNAUTHORISED = "unauthorised"  # no key, or one that is unknown or revoked
    FORBIDDEN = "forbidden"  # the key's role may not do this
    OTHER_FLEET = "other_fleet"  # the body names another fleet than the key's
    NOT_FOUND = "not_found"
    GONE = "gone"  # expired or erased
    METHOD_NOT_ALLOWED = "method_not_allowed"
    UNSUPPORTED_ENCODING = "unsupported_encoding"  # compressed bodies are not taken
    BODY_TIMEOUT = "body_timeout"  # the body did not arrive in time
    # ours, and passing
    OVERLOADED = "overloaded"
    RATE_LIMITED = "rate_limited"  # the key, or who sends without one, has asked too much
    UNAVAILABLE = "unavailable"  # the database is away, or the gateway stops
    # ours
    INTERNAL = "internal"


class Problem(Model):
    """What went wrong (RFC 9457). Never holds content of a request."""

    type: str = Field(default="about:blank", description="URI of the kind of problem.")
    title: str = Field(description="The kind of problem, in words.")
    status: int = Field(description="HTTP status.")
    reason: str = Field(description="Reason code, one of `ProblemReason`: for programs.")
    detail: str = Field(description="What happened here, and what to do.")
    instance: str | None = Field(default=None, description="Request id, as in the gateway's log and the header `x-request-id`.")


__all__ = [
    "PROBLEM_TYPE",
    "Accepted",
    "BoundaryPage",
    "BoundaryView",
    "ClaimCheck",
    "EntryList",
    "EntryView",
    "PassageView",
    "Problem",
    "ProblemReason",
    "RunPage",
    "RunView",
    "Status",
]
