"""The deadline of whoever may block: processes are waited for in threads and scripts, not in an event loop."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from winnow.contracts import deadline

#: Seconds between two looks at a condition: short beside the 10 to 100 ms that a broker or Postgres needs to start.
POLL_S = 0.01


@dataclass(frozen=True, slots=True)
class Deadline(deadline.Deadline):
    """A time limit, passed down instead of nested time-outs, that can be waited on."""

    @classmethod
    def after(cls, seconds: float, clock: Callable[[], float] = time.monotonic) -> Self:
        """Return the deadline `seconds` from now."""
        return cls(clock() + seconds, clock)

    def wait(self, condition: Callable[[], object], *, poll_s: float = POLL_S) -> bool:
        """Block until `condition()` is true, asking every `poll_s` seconds; return False if the deadline came first."""
        while not condition():
            if self.passed:
                return False
            time.sleep(min(poll_s, self.remaining()))
        return True
