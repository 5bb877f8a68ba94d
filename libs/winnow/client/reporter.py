"""Events that must not delay an agent: a bounded queue with a background task behind it."""

import asyncio
import logging
import random
from collections import deque
from collections.abc import Awaitable, Callable

from winnow.client.backoff import Backoff
from winnow.client.transport import Report
from winnow.contracts.errors import Permanent

log = logging.getLogger("winnow.client")

#: Events kept while Winnow is away: about 1 MB. Beyond it the oldest go, and `dropped` counts them.
CAPACITY = 1_000
#: Deliveries at once. One after another, two hundred events took longer over HTTP than an agent waits at its end.
AT_ONCE = 8
#: Seconds that one delivery may take before it counts as failed.
SEND_S = 10.0


class Reporter:
    """Delivers events at least once, those of one run in order, without ever raising or blocking its caller."""

    def __init__(self, send: Callable[[Report], Awaitable[None]], *, capacity: int = CAPACITY, backoff: Backoff | None = None) -> None:
        """`send` delivers one event; it raises `Permanent` for what will never be taken."""
        self._send = send
        self._backoff = backoff or Backoff(first_s=0.2, most_s=5.0)
        self._waiting: deque[Report] = deque()
        self._under_way: dict[str, asyncio.Task[None]] = {}
        self._capacity = capacity
        self._wake = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._task: asyncio.Task[None] | None = None
        #: Events delivered.
        self.sent = 0
        #: Events given up: refused for good, pushed out of a full queue, or left over at close.
        self.dropped = 0

    def __repr__(self) -> str:
        """Counts, no content."""
        return f"<Reporter(waiting={len(self._waiting) + len(self._under_way)}, sent={self.sent}, dropped={self.dropped})>"

    def publish(self, event: Report) -> None:
        """Queue an event and return at once. A full queue loses its oldest event."""
        if len(self._waiting) >= self._capacity:
            self._waiting.popleft()
            self._drop("queue_full")
        self._waiting.append(event)
        self._idle.clear()
        self._wake.set()
        if self._task is None or self._task.done():  # begun with the first event, and again should it ever have died
            self._task = asyncio.get_running_loop().create_task(self._dispatch(), name="winnow-reporter")

    async def drain(self, seconds: float) -> bool:
        """Wait until everything is delivered or given up, at most `seconds`; tell whether it is."""
        try:
            async with asyncio.timeout(seconds):
                await self._idle.wait()
        except TimeoutError:
            return False
        return True

    async def close(self, seconds: float) -> None:
        """Deliver what waits, for at most `seconds`, then stop; what is left counts as dropped."""
        await self.drain(seconds)
        left = len(self._waiting) + len(self._under_way)
        tasks = [*self._under_way.values(), *([self._task] if self._task is not None else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for _ in range(left):
            self._drop("closed")
        self._waiting.clear()
        self._under_way.clear()
        self._idle.set()

    async def _dispatch(self) -> None:
        """Start deliveries: a few at once, one a run."""
        while True:
            self._wake.clear()
            while len(self._under_way) < AT_ONCE and (event := self._next()) is not None:
                delivery = asyncio.get_running_loop().create_task(self._deliver(event), name="winnow-report")
                self._under_way[event.key] = delivery
                delivery.add_done_callback(lambda _, key=event.key: self._ended(key))  # type: ignore[misc]  # a default is no parameter
            await self._wake.wait()

    def _next(self) -> Report | None:
        """The oldest event whose run has none under way, off the queue."""
        for i, event in enumerate(self._waiting):
            if event.key not in self._under_way:
                del self._waiting[i]
                return event
        return None

    def _ended(self, key: str) -> None:
        self._under_way.pop(key, None)
        if not self._waiting and not self._under_way:
            self._idle.set()
        self._wake.set()

    async def _deliver(self, event: Report) -> None:
        attempt = 0
        while True:
            try:
                async with asyncio.timeout(SEND_S):
                    await self._send(event)
            except Permanent as exc:
                return self._drop(exc.reason)
            except Exception as exc:  # noqa: BLE001  whatever goes wrong, the event must have its next turn
                attempt += 1
                level = logging.WARNING if attempt == 1 else logging.DEBUG
                log.log(level, "report_failed", extra={"error": type(exc).__name__, "attempt": attempt})
            else:
                self.sent += 1
                return None
            await asyncio.sleep(self._backoff.delay(attempt, random.random()))  # noqa: S311  jitter, not a secret

    def _drop(self, reason: str) -> None:
        self.dropped += 1
        log.warning("report_dropped", extra={"reason": reason, "dropped": self.dropped})
