"""The sweeper: publishes again what waits in a stage for too long, so that a lost record never leaves a boundary open for ever."""

import random
from collections import Counter
from collections.abc import Sequence

from winnow.messaging.background import Background
from winnow.messaging.outbox import send_in_order
from winnow.messaging.ports import OutboxItem, StuckStore
from winnow.messaging.publisher import Publisher
from winnow.telemetry import Telemetry

#: Boundaries of one round.
SWEEP_ROWS = 200
#: Seconds in a stage after which a boundary counts as stuck: above the longest judge call with its retries.
STUCK_AFTER_S = 120.0
#: Seconds between rounds.
SWEEP_EVERY_S = 15.0


class Sweeper:
    """Asks a store for stuck boundaries and publishes their last stored event again; consumers drop what they have done before."""

    def __init__(
        self,
        store: StuckStore,
        publisher: Publisher,
        telemetry: Telemetry,
        *,
        rng: random.Random,
        stuck_after_s: float = STUCK_AFTER_S,
        every_s: float = SWEEP_EVERY_S,
    ) -> None:
        self._store = store
        self._publisher = publisher
        self._telemetry = telemetry
        self._stuck_after_s = stuck_after_s
        self._loop = Background("sweeper", self._step, every_s=every_s, telemetry=telemetry, rng=rng, failed=self._failed)

    def start(self) -> None:
        """Begin to sweep."""
        self._loop.start()

    def wake(self) -> None:
        """Sweep now."""
        self._loop.wake()

    async def stop(self) -> None:
        """End."""
        await self._loop.stop()

    async def _step(self) -> bool:
        async def send(items: Sequence[OutboxItem]) -> Sequence[int]:
            done = set(await send_in_order(self._publisher, items, self._telemetry))
            for topic, rows in Counter(item.topic for item in items if item.id in done).items():
                self._telemetry.metrics.count("winnow_swept_total", rows, service=self._telemetry.service, topic=topic)
                self._telemetry.log.warning("sweep_published", topic=topic, rows=rows)
            return sorted(done)

        return await self._store.sweep(older_than_s=self._stuck_after_s, limit=SWEEP_ROWS, send=send) >= SWEEP_ROWS

    def _failed(self, exc: BaseException, pause_s: float) -> None:
        self._telemetry.log.warning("sweep_failed", error=exc, pause_s=round(pause_s, 2))
