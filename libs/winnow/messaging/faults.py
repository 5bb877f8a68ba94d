"""What an error means for a record, how long to be patient, and when to stop rather than to dead-letter everything."""

import random
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from aiokafka.errors import KafkaError, MessageSizeTooLargeError

from winnow.contracts.errors import Permanent, Retryable
from winnow.contracts.rights import NotAllowed


class Fault(Enum):
    """Whose fault an error is; it decides the road of a record."""

    #: May pass: repeat with back-off, never a dead letter.
    TRANSIENT = "transient"
    #: The input's: alone, the record becomes a dead letter at once. Never counts towards the limit, or one tenant could stop all.
    INPUT = "input"
    #: Ours: alone, the record is tried some times, becomes `handler_error`, and counts towards the limit.
    OWN = "own"


#: Tells the fault of an error. Services put storage's knowledge of its driver in front of `classify`.
Classify = Callable[[BaseException], Fault]


def classify(exc: BaseException) -> Fault:
    """The fault of an error as far as messaging can tell without knowing a database driver."""
    if isinstance(exc, BaseExceptionGroup):
        faults = {classify(inner) for inner in exc.exceptions}
        return next(fault for fault in (Fault.OWN, Fault.TRANSIENT, Fault.INPUT) if fault in faults)
    if isinstance(exc, Permanent):
        return Fault.INPUT
    if isinstance(exc, Retryable | NotAllowed | OSError | TimeoutError):  # what is not allowed may be granted at any moment
        return Fault.TRANSIENT
    # A record above the broker's limit never gets smaller; everything else of the client may pass (leader elections, time-outs).
    if isinstance(exc, KafkaError) and not isinstance(exc, MessageSizeTooLargeError):
        return Fault.TRANSIENT
    return Fault.OWN


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often, and with what pauses, something is repeated. All times in seconds."""

    #: Attempts of a batch that meets transient errors, before it goes back to the broker.
    transient_attempts: int = 5
    #: Attempts of a single record that meets errors of our own, before it is a dead letter.
    own_attempts: int = 3
    first_pause_s: float = 0.05
    most_pause_s: float = 5.0
    #: Pause before a batch goes back to the broker: NACK alone is a hot loop (3,435 calls in 3 s were measured).
    nack_pause_s: float = 1.0
    #: The pause grows to this while batches keep failing.
    most_nack_pause_s: float = 30.0
    #: Pause between looks at an event of a newer major version.
    too_new_pause_s: float = 10.0
    #: Pause between trials while consumption is halted.
    halted_pause_s: float = 15.0


def pause(attempt: int, first_s: float, most_s: float, rng: random.Random) -> float:
    """Seconds of the pause after attempt `attempt`, from 1: doubled each time, at most `most_s`, half of it at random."""
    full = min(most_s, first_s * 2.0 ** min(attempt - 1, 30))
    return full * (0.5 + 0.5 * rng.random())


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """When our own errors are so many that a bad deploy is likelier than bad luck (getsentry/arroyo has the same idea as `DlqLimit`)."""

    #: Mean share of failed records over the fleets seen lately; a fleet has one vote, however much it sends.
    max_ratio: float = 0.5
    #: Failures below this number say nothing.
    min_failures: int = 10
    #: Failures in a row, over more than half of the fleets seen lately.
    max_consecutive: int = 20
    #: Records of a fleet that are remembered.
    window: int = 50
    #: Fleets that are remembered, the latest seen.
    fleets: int = 256


class Breaker:
    """State of a `Limit`: counts what our own handler did with records, and says when to stop.

    Invalid input is never told to it. While it is open nothing is dead-lettered for errors of ours; the first success closes it.
    """

    def __init__(self, limit: Limit) -> None:
        self._limit = limit
        self._seen: OrderedDict[str, deque[bool]] = OrderedDict()
        self._streak = 0
        self._streak_fleets: set[str] = set()
        self.open = False

    def __repr__(self) -> str:
        return f"<Breaker(open={self.open}, ratio={self.ratio:.2f}, streak={self._streak})>"

    @property
    def ratio(self) -> float:
        """Mean share of failed records over the fleets seen lately, 0 to 1."""
        if not self._seen:
            return 0.0
        return sum(sum(marks) / len(marks) for marks in self._seen.values()) / len(self._seen)

    @property
    def failures(self) -> int:
        """Failed records that are remembered."""
        return sum(sum(marks) for marks in self._seen.values())

    def succeeded(self, fleet: str, records: int = 1) -> None:
        """Our handler handled `records` records of `fleet`."""
        marks = self._marks(fleet)
        marks.extend([False] * min(records, self._limit.window))
        self._streak = 0
        self._streak_fleets.clear()
        if self.open:  # what was remembered belongs to the code or database that was broken then
            self.open = False
            self._seen.clear()

    def failed(self, fleet: str) -> bool:
        """Our handler failed on a record of `fleet` alone. True when the limit is passed now or was before."""
        self._marks(fleet).append(True)
        self._streak += 1
        if len(self._streak_fleets) < self._limit.fleets:
            self._streak_fleets.add(fleet)
        many = self.failures >= self._limit.min_failures and self.ratio > self._limit.max_ratio
        row = self._streak >= self._limit.max_consecutive and 2 * len(self._streak_fleets) > len(self._seen)
        self.open = self.open or many or row
        return self.open

    def _marks(self, fleet: str) -> deque[bool]:
        marks = self._seen.pop(fleet, None)
        if marks is None:
            marks = deque(maxlen=self._limit.window)
        self._seen[fleet] = marks
        while len(self._seen) > self._limit.fleets:
            self._seen.popitem(last=False)
        return marks
