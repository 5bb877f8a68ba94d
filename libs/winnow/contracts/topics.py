"""The one registry of topics: names, keys, partitions, retention, sizes. A start-up step creates them and checks the broker against it."""

from dataclasses import dataclass
from datetime import timedelta

from winnow.contracts import limits
from winnow.contracts.events import Alert, Candidate, Committed, Event, Evidence, Observation, RuntimeEvent, Scores

#: Partitions of a production topic. The boundary topics share one fixed number, so that one run's boundaries pass every stage in order.
DEFAULT_PARTITIONS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One topic of the bus."""

    name: str
    #: What the record key is, in words.
    key: str
    #: Body of its records; None for the dead-letter topic, whose bodies are whatever arrived.
    event: type[Event] | None
    produced_by: tuple[str, ...]
    consumed_by: tuple[str, ...]
    description: str
    retention: timedelta = timedelta(days=limits.CONTENT_RETENTION_DAYS)
    #: `max.message.bytes`.
    max_record_bytes: int = limits.EVENT_RECORD_BYTES
    #: Largest body before a claim check must travel instead.
    max_body_bytes: int = limits.EVENT_BODY_BYTES

    @property
    def event_type(self) -> str:
        """CloudEvents type: the topic's own name."""
        return self.name


CANDIDATE = Topic(
    name="winnow.boundary.candidate.v1",
    key="fleet/run",
    event=Candidate,
    produced_by=("agent runtimes", "gateway"),
    consumed_by=("retriever",),
    description="The boundary as the host sees it.",
    max_record_bytes=limits.CANDIDATE_RECORD_BYTES,
    max_body_bytes=limits.CANDIDATE_BODY_BYTES,
)
EVIDENCE = Topic(
    name="winnow.boundary.evidence.v1",
    key="fleet/run",
    event=Evidence,
    produced_by=("retriever",),
    consumed_by=("judge",),
    description="Entries, pooled evidence, provenance and features of each entry; never the whole history.",
)
SCORES = Topic(
    name="winnow.boundary.scores.v1",
    key="fleet/run",
    event=Scores,
    produced_by=("judge",),
    consumed_by=("pruner",),
    description="One probability, verdict and explanation an entry.",
)
COMMITTED = Topic(
    name="winnow.boundary.committed.v1",
    key="fleet/run",
    event=Committed,
    produced_by=("pruner", "retriever"),
    consumed_by=("agent runtimes", "drift_monitor"),
    description="The committed summary, its hash, the decision for each entry, the outcome. The retriever publishes rejections here.",
)
RUNTIME = Topic(
    name="winnow.runtime.v1",
    key="fleet/run",
    event=RuntimeEvent,
    produced_by=("agent runtimes", "gateway"),
    consumed_by=("drift_monitor",),
    description="What the runtime did: adopted, bypassed, recovered, run_ended.",
    retention=timedelta(days=30),
)
OBSERVATION = Topic(
    name="winnow.observation.v1",
    key="fleet/stream",
    event=Observation,
    produced_by=("agent runtimes", "graders", "gateway", "pruner"),
    consumed_by=("drift_monitor",),
    description="Units sampled and graded, for the drift monitor.",
    retention=timedelta(days=30),
)
ALERT = Topic(
    name="winnow.alert.v1",
    key="fleet",
    event=Alert,
    produced_by=("drift_monitor", "judge"),
    consumed_by=("operators",),
    description="Raised, held, released, certificate revoked, judge unpaid or unauthorised.",
    retention=timedelta(days=30),
)
DEAD_LETTER = Topic(
    name="winnow.dead-letter.v1",
    key="source key",
    event=None,
    produced_by=("every service",),
    consumed_by=("operators",),
    description="The original bytes and headers of what could not be handled, and why.",
    max_record_bytes=limits.DEAD_LETTER_RECORD_BYTES,
    max_body_bytes=limits.DEAD_LETTER_RECORD_BYTES - 64 * limits.KIB,
)

TOPICS: tuple[Topic, ...] = (CANDIDATE, EVIDENCE, SCORES, COMMITTED, RUNTIME, OBSERVATION, ALERT, DEAD_LETTER)


def topic_named(name: str, prefix: str = "") -> Topic | None:
    """The topic that `name` (with `prefix`) names, or None."""
    return next((t for t in TOPICS if prefix + t.name == name), None)
