"""A moment on the monotonic clock that several steps share."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

#: Seconds between two looks at a condition: short beside the 10 to 100 ms that a broker or Postgres needs to start.
POLL_S = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadline:
    """A time limit, passed down instead of nested time-outs."""

    at: float  # seconds on `time.monotonic`

    @classmethod
    def after(cls, seconds: float) -> Self:
        """Return the deadline `seconds` from now."""
        return cls(at=time.monotonic() + seconds)

    def remaining(self) -> float:
        """Seconds that are left; 0.0 once it has passed."""
        return max(0.0, self.at - time.monotonic())

    def passed(self) -> bool:
        """Tell whether nothing is left."""
        return self.remaining() <= 0.0

    def wait(self, condition: Callable[[], object], *, poll_s: float = POLL_S) -> bool:
        """Block until `condition()` is true, asking every `poll_s` seconds; return False if the deadline came first."""
        while not condition():
            if self.passed():
                return False
            time.sleep(min(poll_s, self.remaining()))
        return True
