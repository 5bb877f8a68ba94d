"""Events that must not delay an agent: a bounded queue with one background task behind it."""

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
#: Seconds that one delivery may take before it counts as failed.
SEND_S = 10.0


class Reporter:
    """Delivers events in order, at least once, without ever raising or blocking its caller."""

    def __init__(self, send: Callable[[Report], Awaitable[None]], *, capacity: int = CAPACITY, backoff: Backoff | None = None) -> None:
        """`send` delivers one event; it raises `Permanent` for what will never be taken."""
        self._send = send
        self._backoff = backoff or Backoff(first_s=0.2, most_s=5.0)
        self._waiting: deque[Report] = deque()
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
        return f"<Reporter(waiting={len(self._waiting)}, sent={self.sent}, dropped={self.dropped})>"

    def publish(self, event: Report) -> None:
        """Queue an event and return at once. A full queue loses its oldest event."""
        if len(self._waiting) >= self._capacity:
            self._waiting.popleft()
            self._drop("queue_full")
        self._waiting.append(event)
        self._idle.clear()
        self._wake.set()
        if self._task is None or self._task.done():  # begun with the first event, and again should it ever have died
            self._task = asyncio.get_running_loop().create_task(self._run(), name="winnow-reporter")

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
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        for _ in self._waiting:
            self._drop("closed")
        self._waiting.clear()
        self._idle.set()

    async def _run(self) -> None:
        attempt = 0
        while True:
            if not self._waiting:
                self._idle.set()
                self._wake.clear()
                await self._wake.wait()
            event = self._waiting[0]
            try:
                async with asyncio.timeout(SEND_S):
                    await self._send(event)
            except Permanent as exc:
                self._done(event)
                self._drop(exc.reason)
                attempt = 0
            except Exception as exc:  # noqa: BLE001  whatever goes wrong, the next event must still have its turn
                attempt += 1
                log.log(
                    logging.WARNING if attempt == 1 else logging.DEBUG,
                    "report_failed",
                    extra={"error": type(exc).__name__, "attempt": attempt},
                )
                await asyncio.sleep(self._backoff.delay(attempt, random.random()))  # noqa: S311  jitter, not a secret
            else:
                self._done(event)
                self.sent += 1
                attempt = 0

    def _done(self, event: Report) -> None:
        """Take `event` off the queue, unless a full queue has pushed it out meanwhile."""
        if self._waiting and self._waiting[0] is event:
            self._waiting.popleft()

    def _drop(self, reason: str) -> None:
        self.dropped += 1
        log.warning("report_dropped", extra={"reason": reason, "dropped": self.dropped})
