"""What an agent runtime gets back, and why it is not always the committed text."""

from dataclasses import dataclass, field
from enum import StrEnum
from uuid import UUID

from winnow.contracts.errors import Conflict, WinnowError
from winnow.contracts.events import Candidate, EntryDecision
from winnow.contracts.vocabulary import Adopted, Mode, Outcome, Reason

#: The same boundary id with other content; raised by `compact` only with `strict=True`.
IdConflict = Conflict


class Because(StrEnum):
    """Why the agent goes on with its own candidate."""

    # Winnow was asked
    DEADLINE = "deadline"  # no answer in time
    LATE = "late"  # the answer says of itself that it came too late
    REJECTED = "rejected"  # the outcome is `rejected`; `reason` says why
    HASH_MISMATCH = "hash_mismatch"  # the answer's bytes are not the candidate minus whole entries, or not those that its hash names
    INVALID_ANSWER = "invalid_answer"  # the answer is not one that this client can read, or is about something else
    ID_CONFLICT = "id_conflict"  # the same boundary id was submitted before with other content
    # Winnow was not asked, or not heard
    UNREACHABLE = "unreachable"  # no connection, or nothing but failures
    OVERLOADED = "overloaded"  # Winnow asked to come back after the deadline
    UNAUTHORISED = "unauthorised"  # the API key is unknown, revoked, or of another fleet; or the broker's access rules forbid it
    TOO_LARGE = "too_large"  # above a limit also with its messages stored apart
    NO_GATEWAY = "no_gateway"  # messages or result travel as stored originals, and this transport knows no gateway
    INVALID_BOUNDARY = "invalid_boundary"  # Winnow refused the boundary as invalid
    CLOSED = "closed"  # the client is closed or was not entered
    INTERNAL = "internal"  # a defect of this client; the log has the traceback

    @property
    def bypassed(self) -> bool:
        """Winnow was not asked or not heard: a `bypassed` event is due besides `adopted`."""
        return self not in _ASKED


_ASKED = frozenset(
    {Because.DEADLINE, Because.LATE, Because.REJECTED, Because.HASH_MISMATCH, Because.INVALID_ANSWER, Because.ID_CONFLICT},
)


class Unheard(WinnowError):
    """There is no answer that the agent may use."""

    def __init__(self, because: Because, message: str | None = None) -> None:
        """Say why, as a code and where useful in words."""
        super().__init__(message or because.value)
        self.because = because


@dataclass(frozen=True, slots=True, kw_only=True)
class Compaction:
    """The end of one compaction. `summary` is what the agent goes on with, whatever happened."""

    #: The committed text, or the agent's own candidate.
    summary: str
    #: Which of the two it is.
    source: Adopted
    boundary_id: UUID
    #: How Winnow says the boundary ended; None where no answer was heard.
    outcome: Outcome | None = None
    #: Reason code of the outcome.
    reason: Reason | None = None
    #: The effective mode.
    mode: Mode | None = None
    #: What became of each entry; empty in shadow mode and where no answer was heard. In annotate mode `pruned` means: would have been.
    decisions: tuple[EntryDecision, ...] = ()
    #: Entries left out of `summary`.
    pruned: int = 0
    committed_sha256: str | None = None
    #: The answer came after the deadline; nothing of it was applied.
    late: bool = False
    #: Why the agent goes on with its own candidate; None where it has the committed text.
    bypassed_because: Because | None = None
    #: Recovers the candidate, byte for byte.
    candidate_handle: str | None = None
    #: Recovers the messages that the summary replaced.
    history_handle: str | None = None
    warnings: tuple[str, ...] = field(default=())
    #: Seconds that the agent waited.
    elapsed_s: float = 0.0

    @property
    def unsupported(self) -> tuple[EntryDecision, ...]:
        """The entries without a source, for a runtime that annotates rather than prunes."""
        return tuple(d for d in self.decisions if d.decision == "pruned")


def own(candidate: Candidate, because: Because, **said: object) -> Compaction:
    """The compaction in which the agent keeps its own candidate."""
    return Compaction(
        summary=candidate.candidate,
        source=Adopted.CANDIDATE,
        boundary_id=candidate.boundary_id,
        bypassed_because=because,
        **said,  # type: ignore[arg-type]  # fields of Compaction, given by `settle` alone
    )
