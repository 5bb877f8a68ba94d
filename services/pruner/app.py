"""The pruner, wired: the only place where its objects meet."""

from collections.abc import Sequence

from services.pruner.handlers import PrunerHandler
from services.pruner.settings import PrunerSettings
from winnow.messaging.bus import Bus
from winnow.messaging.settings import KafkaSettings
from winnow.storage.database import Database
from winnow.storage.service import ConsumingService, Loop, utc_now
from winnow.storage.settings import DatabaseSettings
from winnow.telemetry import Telemetry


def build(
    telemetry: Telemetry, kafka: KafkaSettings, database: DatabaseSettings, settings: PrunerSettings | None = None
) -> ConsumingService:
    """The pruner."""
    own = settings or PrunerSettings()

    def wire(db: Database, bus: Bus) -> Sequence[Loop]:
        """Subscribe."""
        bus.subscribe(PrunerHandler(db, clock=utc_now, monitor_stale_after=own.monitor_stale_after, telemetry=telemetry))
        return []

    return ConsumingService("pruner", kafka=kafka, database=database, telemetry=telemetry, wire=wire)
