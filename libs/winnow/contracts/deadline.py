"""A time limit as a value that is handed down: each step asks what remains, and no step has a literal timeout of its own."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point on a monotonic clock."""

    at: float
    clock: Callable[[], float]

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float]) -> Self:
        """A deadline `seconds` from now by `clock` (`time.monotonic` outside tests)."""
        return cls(clock() + seconds, clock)

    def remaining(self) -> float:
        """Seconds left, never below zero."""
        return max(0.0, self.at - self.clock())

    @property
    def passed(self) -> bool:
        """Nothing is left."""
        return self.remaining() <= 0.0

    def at_most(self, seconds: float) -> "Deadline":
        """The earlier of this deadline and `seconds` from now."""
        return Deadline(min(self.at, self.clock() + seconds), self.clock)
