"""The values of the HTTP API, used by the gateway that writes them and the client that reads them."""

from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, Field

from winnow.contracts import limits
from winnow.contracts.events import ClaimCheck, Committed, Model
from winnow.contracts.events.base import Name
from winnow.contracts.vocabulary import MessageKind, Mode, Origin, Outcome, Reason

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


class RecoveryRequest(Model):
    """An agent asks for the exact bytes of an original, or of a part of one."""

    handle: str = Field(
        max_length=200, description="A handle of the fleet; `<handle>.e5`: entry 5 of a candidate; `<handle>.m12`: message 12 of a history."
    )
    run: Name | None = Field(default=None, description="The run that asks; left out: the one that the original belongs to.")
    event_id: UUID | None = Field(default=None, description="A repetition with the same id is one recovery; left out: a new one.")
    start: int = Field(default=0, ge=0, le=limits.ORIGINAL_BYTES, description="First byte that is asked for.")
    end: int | None = Field(
        default=None,
        ge=0,
        le=limits.ORIGINAL_BYTES,
        description="Behind the last byte that is asked for; moved back where it would split a character of UTF-8. Left out: to the end.",
    )


class SearchHit(Model):
    """A place in the history that holds words of a query."""

    handle: str = Field(description="Asks for all of it: `POST /v1/recoveries`, or the tool `expand`.")
    what: Literal["entry", "message"] = Field(description="An entry of a summary, or a message of a history.")
    run: str = Field(description="The run that it belongs to.")
    boundary_id: UUID = Field(description="The boundary that it belongs to.")
    index: int = Field(description="Number of that boundary in the run.")
    excerpt: str = Field(description="One line around the first word found, at most 240 characters; control characters are escaped.")
    score: float = Field(description="BM25 score; not comparable between searches.")
    kind: MessageKind | None = Field(default=None, description="For messages: who speaks.")
    origin: Origin | None = Field(default=None, description="For environment messages: what the output really is.")
    tool: str | None = Field(default=None, description="The tool of an output.")
    section: str | None = Field(default=None, description="For entries: the heading they stand under.")
    pruned: bool | None = Field(default=None, description="For entries: it was pruned; null where nothing was pruned at that boundary.")


class SearchPage(Model):
    """One page of places, best first, of at most 100 in all."""

    items: tuple[SearchHit, ...] = Field(default=(), description="Places that were found.")
    next_cursor: str | None = Field(default=None, description="Give it as `cursor` for the next page; null at the end.")
    boundaries: int = Field(description="Boundaries that were searched, the newest ones.")
    complete: bool = Field(description="Everything was searched; false: the history is larger than one search reads, or holds more.")


class PrunedEntry(Model):
    """An entry that was pruned from a summary."""

    handle: str = Field(description="Asks for its exact bytes: `POST /v1/recoveries`, or the tool `expand`.")
    run: str = Field(description="The run that it belongs to.")
    boundary_id: UUID = Field(description="The boundary at which it was pruned.")
    index: int = Field(description="Number of that boundary in the run.")
    n: int = Field(description="Number of the entry in the candidate.")
    section: str = Field(description="Heading it stood under.")
    excerpt: str = Field(description="Its beginning on one line, at most 240 characters; control characters are escaped.")
    reason: str = Field(description="Why it was pruned.")
    score: float | None = Field(default=None, description="Probability of a source, after caps.")
    explanation: str = Field(description="One line that a person can check.")
    asked_back: bool = Field(description="An agent asked for this wording back: it is kept from then on.")


class PrunedPage(Model):
    """One page of pruned entries, the newest boundary first."""

    items: tuple[PrunedEntry, ...] = Field(default=(), description="Pruned entries.")
    next_cursor: str | None = Field(default=None, description="Give it as `cursor` for the next page; null at the end.")


class OperatorRequest(Model):
    """What an operator asks, with his reason."""

    because: str = Field(min_length=1, max_length=500, pattern=r"\S", description="Why; it goes into the audit trail.")


class EraseRequest(OperatorRequest):
    """Erase a run."""

    run: Name = Field(description="The run.")


class HoldView(Model):
    """How the fleet stands."""

    held: bool = Field(description="The fleet is held: nothing is pruned.")
    changed: bool = Field(description="This request changed it; false: it stood so already, with its first reason.")


class ReleaseView(HoldView):
    """How the fleet stands after a release."""

    streams: tuple[str, ...] = Field(default=(), description="Streams that began a new epoch.")


class ErasedView(Model):
    """What was removed. Originals that another run still uses stay."""

    boundaries: int = Field(description="Boundaries with all that belonged to them.")
    originals: int = Field(description="Originals that nothing refers to any more.")
    handles: int = Field(description="Handles that answer 410 from now on.")
    dead_letters: int = Field(description="Dead letters.")
    outbox: int = Field(description="Records that waited to be published.")
    runtime_events: int = Field(description="Runtime events.")
    observations: int = Field(description="Units of the monitor's ledger whose name was replaced by a random one.")


class DeadLetterView(Model):
    """A record that could not be handled, without its body."""

    id: int = Field(description="Its number.")
    topic: str = Field(description="Topic that it came from.")
    partition: int = Field(description="Partition of that topic.")
    offset: int = Field(description="Place in that partition.")
    reason: str = Field(description="Reason code.")
    error: str = Field(description="What went wrong, without content.")
    service: str = Field(description="The service that gave it up.")
    run: str | None = Field(default=None, description="The run, where it is known.")
    created_at: AwareDatetime = Field(description="When it was given up.")
    replayed_at: AwareDatetime | None = Field(default=None, description="When it was last put on its topic again.")
    replays: int = Field(description="How often that was done.")


class DeadLetterPage(Model):
    """One page of dead letters, newest first."""

    items: tuple[DeadLetterView, ...] = Field(default=(), description="Dead letters.")
    next_before: int | None = Field(default=None, description="Give it as `before` for the next page; null at the end.")


class AuditEntry(Model):
    """An action of an operator or a service."""

    id: int = Field(description="Its number; it only grows.")
    at: AwareDatetime = Field(description="When.")
    action: str = Field(description="What was done, for example `fleet.hold` or `erase.run`.")
    actor: str = Field(description="Who did it: `<role>:<id of the API key>`, `cli:<user of the operating system>`, or a service.")
    because: str | None = Field(default=None, description="Why, in the words of who did it.")
    outcome: Literal["done", "failed"] = Field(description="`failed`: it was asked for and took no effect; the details say why.")
    details: dict[str, Any] = Field(default_factory=dict, description="Counts and settings of the action.")


class AuditPage(Model):
    """One page of the audit trail, newest first."""

    items: tuple[AuditEntry, ...] = Field(default=(), description="Entries.")
    next_before: int | None = Field(default=None, description="Give it as `before` for the next page; null at the end.")


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
    "PrunedEntry",
    "PrunedPage",
    "RecoveryRequest",
    "RunPage",
    "RunView",
    "SearchHit",
    "SearchPage",
    "Status",
]
