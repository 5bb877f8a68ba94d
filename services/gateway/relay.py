"""The outbox relay of the gateway: connects to Kafka when it can, so that HTTP works while it cannot."""

import asyncio
import random
import time

from winnow.client.isolation import discarded, isolated
from winnow.messaging.bus import Bus
from winnow.messaging.lag import LagReader, LagWatch
from winnow.messaging.outbox import OutboxRelay
from winnow.messaging.reach import told
from winnow.messaging.settings import KafkaSettings
from winnow.storage.adapters import OutboxTable, bus_for
from winnow.storage.database import OUTBOX_CHANNEL, Database
from winnow.storage.service import utc_now
from winnow.telemetry import Telemetry

#: Seconds between two tries to reach a broker.
RECONNECT_S = 2.0
#: Seconds that a broker may take to answer.
KNOCK_S = 10.0
#: Seconds between counts of unsent rows.
DEPTH_S = 2.0


class Relay:
    """Publishes the outbox, and knows how many boundaries wait for the pipeline."""

    def __init__(self, database: Database, kafka: KafkaSettings, telemetry: Telemetry) -> None:
        """Nothing connects before `run`."""
        self._database = database
        self._kafka = kafka
        self._telemetry = telemetry
        self._store = OutboxTable(database, utc_now)
        self._lag = LagWatch(kafka, telemetry)
        self._depth = 0
        self._bus: Bus | None = None
        self._relay: OutboxRelay | None = None

    @property
    def backlog(self) -> int:
        """Boundaries that wait: the longest queue of any stage, and what is not published yet, by the last reading."""
        return self._lag.most + self._depth

    @property
    def connected(self) -> bool:
        """The outbox is being published."""
        return self._relay is not None

    async def run(self) -> None:
        """Connect and relay, for ever; while there is no broker, rows wait."""
        await self.stop()  # what an earlier run left behind
        bus = await self._connected()
        relay = OutboxRelay(
            self._store,
            bus.publisher,
            self._telemetry,
            rng=random.Random(),  # noqa: S311  jitter, not a secret
            clock=time.monotonic,
        )
        relay.start()
        self._relay = relay
        await self._database.listen(OUTBOX_CHANNEL, lambda _: relay.wake(), connected=relay.wake)

    async def _connected(self) -> Bus:
        """A bus that is started, however long the broker stays away."""
        while True:
            try:
                await self._knock()
                # Known before it starts: `stop` closes also one that is half open.
                bus = self._bus = await bus_for(self._database, self._kafka, self._telemetry, utc_now)
                await bus.start()
            except Exception as exc:  # noqa: BLE001  whatever it is, boundaries are taken meanwhile, and the next try may succeed
                self._telemetry.log.warning("outbox_failed", error=await told(self._kafka, exc), pause_s=RECONNECT_S)
                await self.stop()
                await asyncio.sleep(RECONNECT_S)
            else:
                return bus

    async def _knock(self) -> None:
        """Raise where no broker answers. FastStream leaves its producer open where it cannot connect; this client does not.

        aiokafka's consumer lets a cancellation of its own out of `stop()` when it is stopped right after its start, hence the isolation.
        """
        reader = LagReader(self._kafka)
        try:
            await isolated(reader.start(), KNOCK_S)
        finally:
            await discarded(reader.close(), KNOCK_S)

    async def watch_lag(self) -> None:
        """Read the lag of the pipeline, for ever."""
        await self._lag.run()

    async def watch_depth(self) -> None:
        """Count unsent rows, for ever."""
        while True:
            self._depth, age = await self._store.depth()
            self._telemetry.metrics.set("winnow_outbox_depth", self._depth, service=self._telemetry.service)
            self._telemetry.metrics.set("winnow_outbox_oldest_age_seconds", age, service=self._telemetry.service)
            await asyncio.sleep(DEPTH_S)

    async def stop(self) -> None:
        """Stop publishing; unsent rows stay for the next process."""
        relay, self._relay = self._relay, None
        bus, self._bus = self._bus, None
        if relay is not None:
            await relay.stop()
        if bus is not None:
            await bus.stop()
