"""Wait for a condition instead of sleeping."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeVar

from winnow.embedded import Deadline

T = TypeVar("T")

#: Seconds. Long enough for two loaded cores that run at a quarter of their speed, and within pytest's own limit of a test; one that
#: passes never waits for it.
DEFAULT_DEADLINE_S = 45.0

#: Seconds between two looks.
POLL_S = 0.02


def wait_for(condition: Callable[[], T], deadline_s: float = DEFAULT_DEADLINE_S, *, what: str = "") -> T:
    """Call `condition` until it returns something true and return that.

    Raises:
        AssertionError: it did not within `deadline_s` seconds; the text says `what` was waited for.
    """
    found: list[T] = []

    def look() -> bool:
        found[:] = [condition()]
        return bool(found[0])

    assert Deadline.after(deadline_s).wait(look, poll_s=POLL_S), (
        f"not within {deadline_s} s: {what or inspect.getsource(condition).strip()}"
    )
    return found[0]


async def eventually(condition: Callable[[], T | Awaitable[T]], deadline_s: float = DEFAULT_DEADLINE_S, *, what: str = "") -> T:
    """As `wait_for`, for a condition that may be a coroutine function, without blocking the event loop."""
    deadline = Deadline.after(deadline_s)
    while True:
        answer = condition()
        value = await answer if inspect.isawaitable(answer) else answer
        if value:
            return value
        assert not deadline.passed, f"not within {deadline_s} s: {what or inspect.getsource(condition).strip()}"
        await asyncio.sleep(POLL_S)
