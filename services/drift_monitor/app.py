"""The drift monitor, wired: the only place where its objects meet."""

import random
import socket
from collections.abc import Sequence

from services.drift_monitor.handlers import ObservationHandler, RuntimeHandler
from services.drift_monitor.settings import DriftMonitorSettings
from winnow.messaging.background import Background
from winnow.messaging.bus import Bus
from winnow.messaging.settings import KafkaSettings
from winnow.storage import fleets
from winnow.storage.database import Database
from winnow.storage.service import ConsumingService, Loop, utc_now
from winnow.storage.settings import DatabaseSettings
from winnow.telemetry import Telemetry


def build(
    telemetry: Telemetry, kafka: KafkaSettings, database: DatabaseSettings, settings: DriftMonitorSettings | None = None
) -> ConsumingService:
    """The drift monitor: stores what is reported, and tells that it is alive."""
    own = settings or DriftMonitorSettings()
    point = fleets.Point(mode=own.default_mode, tau=own.default_tau, judge=own.default_judge)

    def wire(db: Database, bus: Bus) -> Sequence[Loop]:
        """Subscribe to both topics, and beat."""
        bus.subscribe(RuntimeHandler(db, default_point=point, clock=utc_now, telemetry=telemetry))
        bus.subscribe(ObservationHandler(db, default_point=point, clock=utc_now))

        async def beat() -> bool:
            """One heartbeat."""
            async with db.transaction() as tx:
                await fleets.heartbeat(tx, f"drift_monitor@{socket.gethostname()}", now=utc_now())
            return False

        # While the database is away, fleets that demand a live monitor are held, which is what they asked for.
        return [
            Background(
                "heartbeat",
                beat,
                every_s=own.heartbeat_interval_s,
                telemetry=telemetry,
                rng=random.Random(),  # noqa: S311  jitter, not a secret
            )
        ]

    return ConsumingService("drift_monitor", kafka=kafka, database=database, telemetry=telemetry, wire=wire)
