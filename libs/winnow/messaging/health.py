"""Alive, ready, stuck: told by progress, not by a ping. A ping stays green while a consumer is dead (aiokafka#604, #1154)."""

import asyncio
import sys
import threading
import traceback
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from winnow.telemetry.redaction import describe

#: Seconds without a poll, and without a batch at work, after which a consumer counts as stuck. Polls come every `batch_timeout_ms`.
STUCK_POLL_S = 60.0
#: Seconds without any answer to a fetch, while the broker answers pings (aiokafka#1154: the fetcher is dead and says nothing).
STUCK_FETCH_S = 90.0
#: Seconds that one readiness check may take.
CHECK_S = 3.0


class Progress:
    """What one consumer last did, on a monotonic clock. Written by the consumer, read by checks and metrics."""

    def __init__(self, clock: Callable[[], float], *, busy_limit_s: float) -> None:
        """`busy_limit_s`: seconds that one batch may be at work without telling of progress."""
        self._clock = clock
        self._busy_limit_s = busy_limit_s
        now = clock()
        self._polled = now
        self._committed = now
        self._idle = now
        self._busy_since: float | None = None

    def __repr__(self) -> str:
        return f"<Progress(poll_age={self.poll_age_s:.1f}, busy={self._busy_since is not None})>"

    def polled(self) -> None:
        """The consumer asked for records."""
        self._polled = self._clock()

    def working(self) -> None:
        """A batch is at work, or pauses on purpose."""
        self._busy_since = self._polled = self._clock()

    def idle(self) -> None:
        """The batch is over, whatever came of it."""
        self._busy_since = None
        self._idle = self._polled = self._clock()

    def committed(self) -> None:
        """A batch was handled to its end."""
        self._committed = self._clock()

    @property
    def poll_age_s(self) -> float:
        """Seconds since the last sign of life; 0 while a batch is at work within its limit: it may take minutes, and nobody polls then."""
        return 0.0 if self.busy else self._clock() - self._polled

    @property
    def commit_age_s(self) -> float:
        """Seconds since a batch was last handled to its end."""
        return self._clock() - self._committed

    @property
    def busy(self) -> bool:
        """A batch is at work, or pauses on purpose, within its limit."""
        return self._busy_since is not None and self._clock() - self._busy_since <= self._busy_limit_s

    @property
    def idle_s(self) -> float:
        """Seconds since the last batch; 0 while one is at work."""
        return 0.0 if self._busy_since is not None else self._clock() - self._idle

    @property
    def problem(self) -> str | None:
        """Why this consumer counts as stuck; None while it is idle and polls, or works within its limit."""
        if self._busy_since is not None:
            busy = self._clock() - self._busy_since
            return f"a batch has been at work for {busy:.0f} s without progress" if busy > self._busy_limit_s else None
        if self.poll_age_s > STUCK_POLL_S:
            return f"the last poll was {self.poll_age_s:.0f} s ago"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that must be well. `ask` returns None, or what is wrong; what it raises is wrong too."""

    name: str
    ask: Callable[[], Awaitable[str | None]]
    #: The process cannot mend it and must be restarted; without it, the process is only not ready.
    vital: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The answers of all checks: name to problem, None where it is well."""

    problems: dict[str, str | None]

    @property
    def well(self) -> bool:
        """Nothing is wrong."""
        return not any(self.problems.values())


async def examine(checks: Sequence[Check], timeout_s: float = CHECK_S) -> Health:
    """Ask all checks at once; one that takes longer than `timeout_s` is a problem. Never raises but on cancellation."""

    async def ask(check: Check) -> str | None:
        try:
            return await asyncio.wait_for(check.ask(), timeout_s)
        except TimeoutError:
            return f"no answer within {timeout_s:g} s"
        except Exception as exc:  # noqa: BLE001  a check that fails is what the caller wants to know
            return describe(exc)

    answers = await asyncio.gather(*(ask(check) for check in checks))
    return Health(problems={check.name: answer for check, answer in zip(checks, answers, strict=True)})


def vital(checks: Sequence[Check]) -> list[Check]:
    """The checks of liveness; all of them together are readiness."""
    return [check for check in checks if check.vital]


def stacks() -> str:
    """The stacks of all threads and tasks, without local values: what a stuck process was doing."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = [
        f"thread {names.get(ident, ident)}\n{''.join(traceback.format_stack(frame))}"
        for ident, frame in sys._current_frames().items()  # noqa: SLF001  documented, and the only way
    ]
    try:
        tasks = asyncio.all_tasks()
    except RuntimeError:
        tasks = set()
    for task in tasks:
        frames = task.get_stack(limit=20)
        lines = "".join(f'  File "{f.f_code.co_filename}", line {f.f_lineno}, in {f.f_code.co_name}\n' for f in frames)
        parts.append(f"task {task.get_name()}\n{lines}")
    return "\n".join(parts)
