"""The judge, wired: the only place where its objects meet."""

from collections.abc import Sequence

from services.judge.handlers import JudgeHandler
from services.judge.settings import JudgeSettings
from winnow.judging.adapters import registry
from winnow.messaging.bus import Bus
from winnow.messaging.settings import KafkaSettings
from winnow.storage.database import Database
from winnow.storage.service import ConsumingService, Loop, utc_now
from winnow.storage.settings import DatabaseSettings
from winnow.telemetry import Telemetry


def build(
    telemetry: Telemetry, kafka: KafkaSettings, database: DatabaseSettings, settings: JudgeSettings | None = None
) -> ConsumingService:
    """The judge with every adapter that is configured; the local one always is."""
    own = settings or JudgeSettings()
    judges = registry.build(own)

    def wire(db: Database, bus: Bus) -> Sequence[Loop]:
        """Subscribe."""
        bus.subscribe(JudgeHandler(db, judges.by_name, fallback=own.fallback_judge, clock=utc_now, telemetry=telemetry))
        return []

    return ConsumingService("judge", kafka=kafka, database=database, telemetry=telemetry, wire=wire, closing=judges.close)
