"""A circuit breaker: an endpoint that fails is left alone for a while, so that it costs neither an agent's time nor money."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from winnow.judging.adapters.failures import HUMAN, Failure


class Circuit(StrEnum):
    """Where a breaker stands."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"  # one request is on trial; the others are refused until it ends


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerPolicy:
    """When a circuit opens and how long it stays so."""

    #: Calls in a row, each with its retries, that fail.
    failures: int = 5
    #: Seconds. A provider's short outage is over by then; a longer one costs one request every so often.
    pause_s: float = 30.0
    #: Seconds after a key or an account was refused: only a person mends that.
    refused_pause_s: float = 300.0


class Breaker:
    """The state of one endpoint. It remembers how the endpoint is, never what was asked; `clock` is monotonic."""

    def __init__(self, policy: BreakerPolicy, clock: Callable[[], float]) -> None:
        self._policy = policy
        self._clock = clock
        self._failures = 0
        self._open_until: float | None = None
        self._trial = False

    @property
    def state(self) -> Circuit:
        """Where it stands now."""
        if self._open_until is None:
            return Circuit.CLOSED
        if self._trial or self._clock() >= self._open_until:
            return Circuit.HALF_OPEN
        return Circuit.OPEN

    def admits(self) -> bool:
        """May a call be made? After True, exactly one of `succeeded`, `failed` and `gave_up` must follow."""
        if self._open_until is None:
            return True
        if self._trial or self._clock() < self._open_until:
            return False
        self._trial = True
        return True

    def succeeded(self) -> None:
        """A call was answered: closed."""
        self._failures, self._open_until, self._trial = 0, None, False

    def failed(self, failure: Failure) -> None:
        """A call failed with all its retries."""
        self._failures += 1
        if failure in HUMAN:
            self._open_until = self._clock() + self._policy.refused_pause_s
        elif self._trial or self._failures >= self._policy.failures:
            self._open_until = self._clock() + self._policy.pause_s
        self._trial = False

    def gave_up(self) -> None:
        """A call was cancelled from outside: it says nothing of the endpoint."""
        self._trial = False
