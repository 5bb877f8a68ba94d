"""Progress lines: on stderr, so that the table on stdout stays clean."""

import sys
import time

_START = time.monotonic()


def say(text: str) -> None:
    """Print a line with the seconds since the start."""
    print(f"[{time.monotonic() - _START:6.1f} s] {text}", file=sys.stderr, flush=True)
