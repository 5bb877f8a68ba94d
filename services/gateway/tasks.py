"""Background tasks of the gateway that never end silently."""

import asyncio
from collections.abc import Callable, Coroutine

from winnow.telemetry import Telemetry

#: Seconds before a task that ended begins again.
AGAIN_S = 1.0


class Tasks:
    """Keeps endless coroutines running: one that raises, returns, or is cancelled from inside begins again and is told of."""

    def __init__(self, telemetry: Telemetry) -> None:
        """Ends are told to the log of `telemetry`."""
        self._telemetry = telemetry
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, name: str, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """Run `work` for ever."""
        self._tasks.append(asyncio.get_running_loop().create_task(self._keep(name, work), name=f"winnow-{name}"))

    async def stop(self) -> None:
        """End all. May be called twice."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep(self, name: str, work: Callable[[], Coroutine[None, None, None]]) -> None:
        while True:
            # In a task of its own: aiokafka lets the cancellation of its inner tasks out, which must not end this loop.
            inner = asyncio.ensure_future(work())
            try:
                await asyncio.wait({inner})
            finally:
                if not inner.done():
                    inner.cancel()
                    await asyncio.gather(inner, return_exceptions=True)
            error = None if inner.cancelled() else inner.exception()
            how = "cancelled from inside" if inner.cancelled() else "ended"
            self._telemetry.log.warning("background_failed", exc=error, loop=name, error=error or how)
            await asyncio.sleep(AGAIN_S)
