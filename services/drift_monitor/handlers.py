"""What runtimes and graders report, stored once: runtime events, and observations in sampling order.

`seq` is given in the transaction that first stores `sampled`, so that what is folded later is folded in the order of sampling.
"""

from collections.abc import Callable, Hashable, Sequence
from datetime import datetime

from winnow.contracts.events import Observation, RuntimeEvent
from winnow.contracts.topics import OBSERVATION, RUNTIME, Topic
from winnow.messaging.records import Handled, Received
from winnow.storage import fleets, observations, runtime_events
from winnow.storage.database import Database
from winnow.telemetry.telemetry import Telemetry


class RuntimeHandler:
    """Consumes runtime events."""

    topic: Topic = RUNTIME
    model = RuntimeEvent

    def __init__(self, database: Database, *, default_point: fleets.Point, clock: Callable[[], datetime], telemetry: Telemetry) -> None:
        """`default_point` is the first operating point of a fleet that is seen for the first time."""
        self._database = database
        self._default_point = default_point
        self._clock = clock
        self._telemetry = telemetry

    def identity(self, event: RuntimeEvent) -> Hashable:
        """The event's own id within its fleet."""
        return event.fleet, event.event_id

    async def handle(self, batch: Sequence[Received[RuntimeEvent]]) -> Handled:
        """Store a batch in one transaction."""
        now = self._clock()
        events = [r.event for r in batch]
        async with self._database.transaction() as tx:
            await fleets.ensure(tx, {e.fleet for e in events}, default=self._default_point, now=now)
            new = await runtime_events.store(tx, events, now=now)
        for event in events:
            if event.event_id in new:
                self._telemetry.metrics.count("winnow_runtime_events_total", kind=event.kind.value)
        return Handled()


class ObservationHandler:
    """Consumes observations."""

    topic: Topic = OBSERVATION
    model = Observation

    def __init__(self, database: Database, *, default_point: fleets.Point, clock: Callable[[], datetime]) -> None:
        """`default_point` is the first operating point of a fleet that is seen for the first time."""
        self._database = database
        self._default_point = default_point
        self._clock = clock

    def identity(self, event: Observation) -> Hashable:
        """The event's own id within its fleet."""
        return event.fleet, event.event_id

    async def handle(self, batch: Sequence[Received[Observation]]) -> Handled:
        """Store a batch in one transaction, in the order of the stream."""
        now = self._clock()
        async with self._database.transaction() as tx:
            await fleets.ensure(tx, {r.event.fleet for r in batch}, default=self._default_point, now=now)
            await observations.store(tx, [r.event for r in batch], now=now)
        return Handled()
