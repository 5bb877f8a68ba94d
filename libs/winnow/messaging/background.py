"""A loop beside the consumers that never dies silently: an error is logged, waited for, and the loop goes on."""

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable

from winnow.messaging.faults import pause
from winnow.telemetry import Telemetry

#: Seconds of the first pause after an error, and of the longest.
FIRST_PAUSE_S = 0.2
MOST_PAUSE_S = 15.0


class Background:
    """Calls `step` again and again: at once while it says that there is more, else after `every_s` or when woken."""

    def __init__(
        self,
        name: str,
        step: Callable[[], Awaitable[bool]],
        *,
        every_s: float,
        telemetry: Telemetry,
        rng: random.Random,
        failed: Callable[[BaseException, float], None] | None = None,
    ) -> None:
        """`step` returns whether it should be called again at once; `failed` is told of errors instead of the log."""
        self.name = name
        self._step = step
        self._every_s = every_s
        self._telemetry = telemetry
        self._rng = rng
        self._failed = failed or self._log
        self._woken = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._errors = 0

    def __repr__(self) -> str:
        return f"<Background({self.name}, running={self._task is not None}, errors={self._errors})>"

    @property
    def errors(self) -> int:
        """Steps that failed in a row."""
        return self._errors

    def wake(self) -> None:
        """Call the step now instead of at the next turn."""
        self._woken.set()

    def start(self) -> None:
        """Begin; a second call changes nothing."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name=f"winnow-{self.name}")

    async def stop(self) -> None:
        """End after the step at work was cancelled; may be called twice."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def _run(self) -> None:
        while True:
            # Cleared before the step: what is told while it works makes it work again.
            self._woken.clear()
            seconds = self._every_s
            try:
                if await self._step():
                    seconds = 0.0
                self._errors = 0
            except Exception as exc:  # noqa: BLE001  the loop must outlive every error; each one is reported
                self._errors += 1
                seconds = pause(self._errors, FIRST_PAUSE_S, MOST_PAUSE_S, self._rng)
                self._failed(exc, seconds)
                await asyncio.sleep(seconds)  # not cut short: notifications must not turn a broken step into a hot loop
                continue
            if seconds <= 0:
                await asyncio.sleep(0)
                continue
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), seconds)

    def _log(self, exc: BaseException, pause_s: float) -> None:
        self._telemetry.log.warning("background_failed", exc=exc, loop=self.name, error=exc, pause_s=round(pause_s, 2))
