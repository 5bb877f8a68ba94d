"""What a handler gets from the bus and what it gives back."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, Protocol, TypeVar

from opentelemetry.context import Context

from winnow.contracts.envelope import Envelope
from winnow.contracts.events import Event
from winnow.contracts.topics import Topic

E = TypeVar("E", bound=Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A record as it came: bytes, and where it stood."""

    #: Name on the broker, prefix included.
    topic: str
    partition: int
    offset: int
    key: bytes | None
    #: In order and with repetitions; values are whatever the producer wrote.
    headers: tuple[tuple[str, bytes], ...]
    value: bytes | None
    #: Milliseconds since the epoch, by the producer's or the broker's clock.
    timestamp: int

    @property
    def position(self) -> tuple[str, int, int]:
        """Topic, partition, offset: the identity of a dead letter."""
        return self.topic, self.partition, self.offset

    @property
    def size(self) -> int:
        """Bytes of key, headers and value."""
        size = len(self.key or b"") + len(self.value or b"")
        for name, value in self.headers:  # asked of every record: a generator would take twice the time
            size += len(name) + len(value)
        return size


@dataclass(frozen=True, slots=True, kw_only=True)
class Received(Generic[E]):
    """A valid event with the record it came in."""

    event: E
    record: Record
    envelope: Envelope = field(default_factory=Envelope)
    #: Trace context of this record's processing; hand it to `Outgoing` so that one trace spans all stages.
    context: Context = field(default_factory=Context)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """An event to publish: the exact stored bytes, so that a repetition is the same body."""

    topic: Topic
    key: str
    body: bytes
    #: `ce_id`: the same for every publication of one stored result.
    event_id: str
    #: `ce_time`: when the result was stored.
    time: datetime
    #: Trace to continue: the `context` of the `Received` that it answers.
    context: Context | None = None
    #: W3C trace parent to continue, for rows that outlive the process (outbox, sweeper); `context` wins.
    traceparent: str | None = None
    #: `body` is a claim check.
    claim: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Dead:
    """A record that cannot be handled, and why."""

    record: Record
    #: A `winnow.contracts.vocabulary.Reason`.
    reason: str
    #: What is wrong, in words that quote no content.
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Handled:
    """What a batch came to. Outgoing events are published in this order, so per key order is the handler's."""

    outgoing: Sequence[Outgoing] = ()
    dead: Sequence[Dead] = ()


class Handler(Protocol[E]):
    """One service's work on one topic.

    A handler of small records may have `records_at_once`: how many one call may get where the settings say fewer. One whose work nobody
    waits for may have `gather_ms`: a poll waits that long, and so does the next one after a batch that was not full; what comes meanwhile
    shares a transaction, and an idle consumer asks the broker a few times a second only.
    """

    @property
    def topic(self) -> Topic:
        """The topic that is consumed."""
        ...

    @property
    def model(self) -> type[E]:
        """The model that bodies are validated with."""
        ...

    def identity(self, event: E) -> Hashable:
        """What makes two events the same; the first of a batch wins, later ones are dropped as duplicates."""
        ...

    async def handle(self, batch: Sequence[Received[E]]) -> Handled:
        """Work, one transaction, commit; return what to publish.

        The batch is never empty, holds no duplicate identity, and keeps the order of each partition. The call must be idempotent: it comes
        again after any crash, and again for each record alone where the batch failed. Raise `Retryable` for what may pass (it is
        called again with back-off), `Permanent` for a record that can never be handled (alone, it becomes a dead letter with that
        reason); any other error counts as this service's own and becomes `handler_error` after some attempts alone.
        """
        ...
