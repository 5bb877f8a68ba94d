"""How long to wait between tries: bounded, jittered, and never against what the server asked."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Exponential delays with jitter."""

    #: Seconds before the second try. A restarting gateway is back in about a second; three tries fit into it.
    first_s: float = 0.1
    factor: float = 2.0
    #: Seconds at most. Above it a client would notice a recovery late.
    most_s: float = 2.0

    def delay(self, attempt: int, jitter: float) -> float:
        """Seconds before try `attempt` + 1 (from 1); `jitter` in [0, 1) spreads clients over the upper half of the delay."""
        full = min(self.most_s, self.first_s * self.factor ** min(attempt - 1, 32))
        return full * (0.5 + 0.5 * jitter)


def retry_after(value: str | None, now: Callable[[], datetime]) -> float | None:
    """Seconds that a `Retry-After` header asks for (a number or an HTTP date); None where it is missing or unreadable."""
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        at = parsedate_to_datetime(value)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if at.tzinfo is None:
        return None
    return max(0.0, (at - now()).total_seconds())
