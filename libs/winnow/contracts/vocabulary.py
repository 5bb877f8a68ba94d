"""The closed word lists that events, tables, API and metrics share. Within v1 they only grow."""

from enum import StrEnum


class Mode(StrEnum):
    """What may happen to a candidate, mildest first. The effective mode is the mildest of all that apply."""

    SHADOW = "shadow"  # score and record; commit the candidate; verdicts are not returned to the runtime
    ANNOTATE = "annotate"  # commit the candidate; return the verdicts
    ENFORCE = "enforce"  # commit the candidate without its unsupported entries

    @property
    def strength(self) -> int:
        """Position on the scale from mild (0) to strong (2)."""
        return list(Mode).index(self)


def mildest(*modes: Mode) -> Mode:
    """Return the mildest of `modes`."""
    return min(modes, key=lambda m: m.strength)


class Rules(StrEnum):
    """Which system judges a boundary; stored with it, so that both can be compared on one history."""

    WINNOW = "winnow"  # the whole design
    PUBLISHED = "published"  # Source-Judged Compaction to the letter: bullets under the five OpenClaw headings only


class Outcome(StrEnum):
    """How a boundary ended. Everything but `judged` carries a reason."""

    JUDGED = "judged"
    JUDGED_PARTIAL = "judged_partial"  # some entries had no usable answer and were kept
    UNJUDGED = "unjudged"  # no judge in time: the candidate is committed as it was written
    NOT_A_SUMMARY = "not_a_summary"  # error text, tool-call markup, refusal, loop: nothing is pruned
    REJECTED = "rejected"  # invalid, conflicting or too large: the host keeps its own behaviour


class Reason(StrEnum):
    """Why an outcome is not plainly `judged`, or why a record is a dead letter."""

    # unjudged, judged_partial
    DEADLINE = "deadline"  # the boundary's deadline had passed before a judge was asked
    JUDGE_FAILED = "judge_failed"  # the judge gave no usable answer at all
    UNSCORED_ENTRIES = "unscored_entries"  # some entries had no usable answer
    NO_ENTRIES = "no_entries"  # nothing to judge in the candidate
    # not_a_summary
    EMPTY = "empty"
    ERROR_TEXT = "error_text"
    PLACEHOLDER = "placeholder"
    TOOL_CALL = "tool_call"
    REFUSAL = "refusal"
    LOOP = "loop"
    # rejected, dead letters
    INVALID = "invalid"  # not JSON, or not the event's schema
    TOMBSTONE = "tombstone"  # a record without a body
    BAD_HEADERS = "bad_headers"  # CloudEvents headers missing, not UTF-8, or of another type than the topic's
    ID_CONFLICT = "id_conflict"
    HASH_MISMATCH = "hash_mismatch"
    TOO_LARGE = "too_large"
    CLAIM_LOST = "claim_lost"  # the claim check points at nothing that this fleet has
    UNKNOWN_BOUNDARY = "unknown_boundary"  # a later stage's event names a boundary that was never stored
    HANDLER_ERROR = "handler_error"  # our own handler failed on this record alone, again and again
    KEY_MISMATCH = "key_mismatch"  # the record key is not fleet/run of the body
    GONE = "gone"
    NOT_FOUND = "not_found"


class MessageKind(StrEnum):
    """Who speaks in a message of H or R."""

    ACTION = "action"  # the agent: text and tool calls
    ENVIRONMENT = "environment"  # a tool's output
    USER = "user"
    NOTICE = "notice"  # the host's own words: reminders, injected context


class Origin(StrEnum):
    """What an environment message really is. Only `observation` is a source; see hosts' evidence map in docs."""

    OBSERVATION = "observation"
    ECHO = "echo"  # a tool that gives back the agent's own words: todo and plan tools, write confirmations, think tools
    SUBAGENT = "subagent"  # another model's text, delivered as a tool output
    HOST_NOTICE = "host_notice"
    RECOVERY = "recovery"  # bytes that the agent asked back from Winnow


class ProvenanceClass(StrEnum):
    """Where an entry's information was first said; the best class that holds, in this order."""

    ENVIRONMENT = "environment"
    PREVIOUS = "previous"
    DERIVED = "derived"
    USER = "user"
    TASK = "task"
    AGENT = "agent"
    NOWHERE = "nowhere"


class Verdict(StrEnum):
    """What the judge says of an entry."""

    SOURCED = "sourced"
    UNSOURCED = "unsourced"
    USER_SOURCED = "user_sourced"  # only a user turn of the span says it, and user turns do not survive
    CONTRADICTED = "contradicted"
    STALE = "stale"
    UNSCORED = "unscored"  # no usable answer: kept


class FindingKind(StrEnum):
    """What the boundary's texts say against an entry. The first two cap its score, the others are told and cap nothing."""

    CONTRADICTED = "contradicted"  # an output, or the previous summary, gives another value for the same key
    ORPHAN = "orphan"  # a value that nobody says and that cannot be computed
    STALE = "stale"  # listed as open, and an output of the span shows it done
    REWRITTEN_CONSTRAINT = "rewritten_constraint"  # restates a condition of user or task with another action, recipient, amount or scope
    INVENTED_DELIVERABLE = "invented_deliverable"  # asks for an output artefact that neither task nor user asked for


class Decision(StrEnum):
    """What the pruner decided for an entry. In shadow and annotate mode `pruned` means: would have been."""

    KEPT = "kept"
    PRUNED = "pruned"


class DecisionReason(StrEnum):
    """Why an entry was kept or pruned."""

    SCORE = "score"  # score >= tau, or below it
    PINNED = "pinned"
    RECOVERED = "recovered"  # the agent asked it back: pinned for the rest of the run
    SCAFFOLD = "scaffold"  # a child of it is kept
    UNSCORED = "unscored"
    USER_SOURCED = "user_sourced"
    STALE = "stale"  # listed as open although it is done, and the operating point says that such entries go
    INHERITED_UNSOURCED = "inherited_unsourced"  # rests only on an entry of the previous summary that had no source
    NOT_JUDGED = "not_judged"  # the boundary's outcome was unjudged or not_a_summary


class RootSource(StrEnum):
    """The root of an entry's support, followed through previous summaries to where it entered the run."""

    ENVIRONMENT = "environment"
    DERIVED = "derived"
    USER = "user"
    NONE = "none"
    PREVIOUS_UNKNOWN = "previous_unknown"  # rests on a previous summary that Winnow has not seen


class SegmentKind(StrEnum):
    """What a stretch of a summary is. The texts of all segments, joined, are the summary."""

    ENTRY = "entry"
    HEADING = "heading"
    BLANK = "blank"
    PLACEHOLDER = "placeholder"  # "None.", "(none)": not an entry
    PINNED = "pinned"  # a line the host audits for: never judged, never removed
    HOST = "host"  # host-written wrapper or suffix
    OUTSIDE = "outside"  # analysis or thinking before the summary proper
    PROSE = "prose"  # preamble, trailer, rules: kept, not judged
    TABLE_HEAD = "table_head"
    OPAQUE = "opaque"  # the rest after a fence that is never closed


class SectionClass(StrEnum):
    """What a section of a host's summary format holds; for reports and thresholds, never a reason to prune."""

    OBSERVATION = "observation"
    FORWARD = "forward"
    MIXED = "mixed"
    INTENT = "intent"
    VERBATIM = "verbatim"
    HOST_SUFFIX = "host_suffix"
    UNKNOWN = "unknown"


class Trigger(StrEnum):
    """Why the host compacts."""

    THRESHOLD = "threshold"
    OVERFLOW = "overflow"
    MANUAL = "manual"
    API = "api"


class RuntimeEventKind(StrEnum):
    """What an agent runtime reports about its use of a boundary."""

    ADOPTED = "adopted"
    BYPASSED = "bypassed"
    RECOVERED = "recovered"
    RUN_ENDED = "run_ended"


class Adopted(StrEnum):
    """Which text the agent went on with."""

    COMMITTED = "committed"
    CANDIDATE = "candidate"


class AlertKind(StrEnum):
    """What an alert tells."""

    RAISED = "raised"
    WARNED = "warned"  # the warn level of a stream; nothing is held
    HELD = "held"
    RELEASED = "released"
    CERTIFICATE_REVOKED = "certificate_revoked"
    JUDGE_UNPAID = "judge_unpaid"
    JUDGE_UNAUTHORISED = "judge_unauthorised"


class Family(StrEnum):
    """Streams that share an error budget. One of each kind a fleet: no tenant moves another's level, and cheap streams no dear one's."""

    RISK = "risk"  # graded units: harm, divergence, decision change
    LABEL_FREE = "label_free"  # what nobody has to grade


class Missing(StrEnum):
    """What becomes of a unit whose grade does not come in time. Either way it is counted, and its rate is a stream of its own."""

    FOLD = "fold"  # as a loss of 1: fail closed, biased upwards
    SKIP = "skip"  # left out


class Guarantee(StrEnum):
    """How far a number may be trusted; it stands beside every number that is shown."""

    FIXED_N = "fixed-n"  # one computation at an n that was fixed beforehand
    ANYTIME = "anytime"  # at every look and every stopping time
    ARL = "arl"  # only the mean time to a false alarm is bounded
    EXPECTATION = "expectation"  # in the mean over calibration sets
    NONE = "none"  # an estimate, or a plain threshold


class LabelFree(StrEnum):
    """Streams that Winnow fills by itself, one value a closed run."""

    RECOVERY = "recovery"  # the agent asked back what was pruned; only runs that have the recovery tool
    UNJUDGED = "unjudged"  # the boundary was not judged
    FALLBACK = "fallback"  # another judge than the one that should have answered did, or the runtime went past Winnow
    CANARY_KEPT = "canary-kept"  # an entry that is certainly unsupported was kept
    CANARY_DROPPED = "canary-dropped"  # an entry that is certainly supported was dropped


class CanaryKind(StrEnum):
    """What an entry with a known answer, which a judge is asked about beside the real ones, was made of."""

    DONOR = "donor"  # an entry of another run of the fleet, of whose values none occurs here: certainly without a source
    OUTPUT = "output"  # a key with its value, word for word from an output: certainly with one
    PREVIOUS = "previous"  # an entry of the previous summary, word for word: certainly with one

    @property
    def supported(self) -> bool:
        """The answer that is certain."""
        return self is not CanaryKind.DONOR
