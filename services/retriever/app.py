"""The retriever, wired: the only place where its objects meet."""

import random
from collections.abc import Sequence

from services.retriever.handlers import RetrieverHandler
from services.retriever.settings import RetrieverSettings
from winnow.messaging.bus import Bus
from winnow.messaging.settings import KafkaSettings
from winnow.messaging.sweeper import Sweeper
from winnow.storage.adapters import StuckBoundaries
from winnow.storage.database import Database
from winnow.storage.fleets import Point
from winnow.storage.service import ConsumingService, Loop, utc_now
from winnow.storage.settings import DatabaseSettings
from winnow.telemetry import Telemetry


def build(
    telemetry: Telemetry, kafka: KafkaSettings, database: DatabaseSettings, settings: RetrieverSettings | None = None
) -> ConsumingService:
    """The retriever. It also sweeps: it is the stage that every boundary passes first."""
    own = settings or RetrieverSettings()
    point = Point(mode=own.default_mode, tau=own.default_tau, judge=own.default_judge)

    def wire(db: Database, bus: Bus) -> Sequence[Loop]:
        """Subscribe, and sweep."""
        bus.subscribe(RetrieverHandler(db, default_point=point, clock=utc_now))
        sweeper = Sweeper(
            StuckBoundaries(db, utc_now),
            bus.publisher,
            telemetry,
            rng=random.Random(),  # noqa: S311  jitter, not a secret
            stuck_after_s=own.stuck_after_s,
            every_s=own.sweep_interval_s,
        )
        return [sweeper]

    return ConsumingService("retriever", kafka=kafka, database=database, telemetry=telemetry, wire=wire)
