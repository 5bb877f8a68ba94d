"""The retriever, wired: the only place where its objects meet."""

import random
from collections.abc import Sequence

from services.retriever.handlers import RetrieverHandler
from services.retriever.settings import RetrieverSettings
from winnow.messaging.background import Background
from winnow.messaging.bus import Bus
from winnow.messaging.settings import KafkaSettings
from winnow.messaging.sweeper import Sweeper
from winnow.storage import partitions
from winnow.storage.adapters import StuckBoundaries
from winnow.storage.database import Database
from winnow.storage.fleets import Point
from winnow.storage.service import ConsumingService, Loop, utc_now
from winnow.storage.settings import DatabaseSettings
from winnow.telemetry import Telemetry

#: Seconds between looks at the partitions of the months to come.
PARTITIONS_EVERY_S = 6 * 3600.0


def build(
    telemetry: Telemetry, kafka: KafkaSettings, database: DatabaseSettings, settings: RetrieverSettings | None = None
) -> ConsumingService:
    """The retriever. It also sweeps: it is the stage that every boundary passes first."""
    own = settings or RetrieverSettings()
    point = Point(mode=own.default_mode, tau=own.default_tau, judge=own.default_judge)

    def wire(db: Database, bus: Bus) -> Sequence[Loop]:
        """Subscribe, and sweep."""
        bus.subscribe(RetrieverHandler(db, default_point=point, clock=utc_now, canary_share=own.canary_share))
        sweeper = Sweeper(
            StuckBoundaries(db, utc_now),
            bus.publisher,
            telemetry,
            rng=random.Random(),  # noqa: S311  jitter, not a secret
            stuck_after_s=own.stuck_after_s,
            every_s=own.sweep_interval_s,
        )

        async def ahead() -> bool:
            """The months to come have their partitions before a boundary needs them: on demand works, and locks while it does."""
            async with db.transaction() as tx:
                await partitions.ensure_ahead(tx, now=utc_now())
            return False

        rng = random.Random()  # noqa: S311  jitter, not a secret
        return [sweeper, Background("partitions", ahead, every_s=PARTITIONS_EVERY_S, telemetry=telemetry, rng=rng)]

    return ConsumingService("retriever", kafka=kafka, database=database, telemetry=telemetry, wire=wire)
