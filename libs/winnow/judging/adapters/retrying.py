"""When a request is tried again, and after how long."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime

#: Seconds that a Retry-After may ask for and be believed: beyond it no boundary waits anyway.
_MOST_ASKED_S = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Attempts of one request, inside the deadline of the whole."""

    #: Attempts after the first. More than two outlast any agent's patience.
    further: int = 2
    #: Seconds before the second attempt; doubled for the third.
    first_s: float = 0.5
    most_s: float = 5.0
    #: Share of a pause that jitter may take away, so that clients do not come back all at once.
    jitter: float = 0.25

    def pause(self, attempt: int, jitter: float, asked_s: float | None = None) -> float:
        """Seconds to wait after attempt `attempt` (from 1); `jitter` in [0, 1). Never less than the server asks for."""
        pause = min(self.most_s, self.first_s * 2.0 ** min(attempt - 1, 32))
        return max(pause * (1.0 - self.jitter * jitter), asked_s or 0.0)


def retry_after(headers: Mapping[str, str], now: Callable[[], datetime]) -> float | None:
    """Seconds that the server asks for: `retry-after-ms`, else `retry-after` (seconds or an HTTP date); None where neither can be read.

    `headers` has lower-case names; `now` is the wall clock, with its zone.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return min(milliseconds / 1000.0, _MOST_ASKED_S)
    asked = headers.get("retry-after")
    seconds = _number(asked)
    if seconds is not None or asked is None:
        return None if seconds is None else min(seconds, _MOST_ASKED_S)
    try:
        at = parsedate_to_datetime(asked.strip())
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if at.tzinfo is None:
        return None
    return min(max(0.0, (at - now()).total_seconds()), _MOST_ASKED_S)


def _number(text: str | None) -> float | None:
    """A plain number that is not negative; None for anything else."""
    if text is None or len(text) > 20 or not text.isascii():  # noqa: PLR2004  longer than any number of seconds
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None
