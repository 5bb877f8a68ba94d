"""A consuming service: pool, bus, handlers and background loops, started and stopped in one order that is written down once.

start: pool -> bus (broker answers, groups joined) -> loops.   stop: loops -> bus (running batches end, groups left) -> closing -> pool.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Protocol

from winnow.messaging.bus import Bus
from winnow.messaging.faults import Fault
from winnow.messaging.health import Check
from winnow.messaging.rights import refused
from winnow.messaging.settings import KafkaSettings
from winnow.storage.adapters import bus_for, classify
from winnow.storage.database import Database
from winnow.storage.faults import untrusted
from winnow.storage.settings import DatabaseSettings
from winnow.telemetry import Telemetry

#: Seconds that a start waits for a broker or a database that is still coming up, before it gives up and says why.
START_PATIENCE_S = 60.0
#: Seconds of the first pause between two attempts; it doubles up to `MOST_PAUSE_S`.
FIRST_PAUSE_S, MOST_PAUSE_S = 0.2, 5.0


class Loop(Protocol):
    """Something that works beside the consumers: relay, sweeper, heartbeat."""

    def start(self) -> None:
        """Begin."""
        ...

    async def stop(self) -> None:
        """End; may be called without a start."""
        ...


#: Subscribes a service's handlers and returns its loops; called once, before the bus starts.
Wire = Callable[[Database, Bus], Sequence[Loop]]


def utc_now() -> datetime:
    """The wall clock, as every service gets it."""
    return datetime.now(UTC)


class ConsumingService:
    """`messaging.runtime.Service` of a stage."""

    def __init__(
        self,
        name: str,
        *,
        kafka: KafkaSettings,
        database: DatabaseSettings,
        telemetry: Telemetry,
        wire: Wire,
        closing: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Nothing is opened before `start`. `closing` lets go of what running batches may need to their end; may be called twice."""
        self.name = name
        self._kafka = kafka
        self._settings = database
        self._telemetry = telemetry
        self._wire = wire
        self._closing = closing
        self._database: Database | None = None
        self._bus: Bus | None = None
        self._loops: Sequence[Loop] = ()

    async def start(self) -> None:
        """Open everything; waits a while for a broker or database that is not up yet, then raises what stands in the way."""
        deadline, pause = asyncio.get_running_loop().time() + START_PATIENCE_S, FIRST_PAUSE_S
        while True:
            try:
                await self._open()
            except Exception as error:
                await self.stop()
                if (found := untrusted(error) or refused(error, self._kafka)) is not None:
                    raise found from error  # waiting does not make a certificate right, nor grants what the broker's rules forbid
                if classify(error) is not Fault.TRANSIENT or asyncio.get_running_loop().time() > deadline:
                    raise
                self._telemetry.log.warning("attempt_failed", error=error, pause_s=round(pause, 2))
                await asyncio.sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311  jitter, not a secret
                pause = min(pause * 2, MOST_PAUSE_S)
            else:
                return

    async def _open(self) -> None:
        """One attempt."""
        database = self._database = Database(
            self._settings.database_url.get_secret_value(),
            pool_size=self._settings.database_pool_size,
            application_name=f"winnow-{self.name}",
        )
        await database.ping()
        bus = self._bus = await bus_for(database, self._kafka, self._telemetry, utc_now)
        self._loops = self._wire(database, bus)
        await bus.start()
        for loop in self._loops:
            loop.start()

    async def stop(self) -> None:
        """Close everything that is open, in the order of the module's docstring. May be called twice."""
        loops, self._loops = self._loops, ()
        bus, self._bus = self._bus, None
        database, self._database = self._database, None
        for loop in loops:
            await loop.stop()
        if bus is not None:
            await bus.stop()
        if self._closing is not None:
            await self._closing()
        if database is not None:
            await database.close()

    def checks(self) -> Sequence[Check]:
        """The bus's checks, and that the database answers."""
        return [*(self._bus.checks() if self._bus is not None else ()), Check(name="database", ask=self._answers)]

    async def _answers(self) -> str | None:
        """None while the database answers."""
        if self._database is None:
            return "not started"
        try:
            await self._database.ping()
        except Exception as error:  # noqa: BLE001  whatever is wrong is what the check is for
            return f"the database does not answer: {type(error).__name__}"
        return None
