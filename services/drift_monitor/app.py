"""The drift monitor, wired: the only place where its objects meet."""

import random
import socket
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta

from services.drift_monitor.handlers import CommittedHandler, ObservationHandler, Patience, RuntimeHandler
from services.drift_monitor.loops import Closer, Deliverer, Leader, Timers
from services.drift_monitor.settings import DriftMonitorSettings
from services.drift_monitor.telling import Teller
from winnow.messaging.background import Background
from winnow.messaging.bus import Bus
from winnow.messaging.outbox import OutboxRelay
from winnow.messaging.settings import KafkaSettings
from winnow.messaging.webhook import Webhook
from winnow.storage import fleets
from winnow.storage.adapters import OutboxTable
from winnow.storage.database import Database
from winnow.storage.service import ConsumingService, Loop, utc_now
from winnow.storage.settings import DatabaseSettings
from winnow.telemetry import Telemetry


def build(
    telemetry: Telemetry, kafka: KafkaSettings, database: DatabaseSettings, settings: DriftMonitorSettings | None = None
) -> ConsumingService:
    """The drift monitor: stores what is reported, folds it, acts on alarms, and tells that it is alive."""
    own = settings or DriftMonitorSettings()
    point = fleets.Point(mode=own.default_mode, tau=own.default_tau, judge=own.default_judge)
    policy, tell = own.policy, Teller(telemetry)
    patience = Patience(idle=timedelta(seconds=own.run_idle_s), settle=timedelta(seconds=own.run_settle_s))

    def wire(db: Database, bus: Bus) -> Sequence[Loop]:
        """Subscribe to the three topics; beat, and work beside them."""
        bus.subscribe(RuntimeHandler(db, default_point=point, patience=patience, clock=utc_now, tell=tell))
        bus.subscribe(ObservationHandler(db, default_point=point, policy=policy, clock=utc_now, tell=tell))
        bus.subscribe(CommittedHandler(db, policy=policy, limits=own.limits, patience=patience, clock=utc_now, tell=tell))
        rng = random.Random()  # noqa: S311  jitter, not a secret

        async def beat() -> bool:
            """One heartbeat. While the database is away, fleets that demand a live monitor are held, which is what they asked for."""
            async with db.transaction() as tx:
                await fleets.heartbeat(tx, f"drift_monitor@{socket.gethostname()}", now=utc_now())
            return False

        def loop(name: str, step: Callable[[], Awaitable[bool]], every_s: float) -> Background:
            return Background(name, step, every_s=every_s, telemetry=telemetry, rng=rng)

        leader = Leader(
            db, policy, own.limits, clock=utc_now, tell=tell, telemetry=telemetry, fleet_delta=own.fleet_delta,
            look_every=timedelta(seconds=own.look_interval_s), held_for=timedelta(seconds=own.release_after_s),
        )  # fmt: skip
        loops: list[Loop] = [
            loop("heartbeat", beat, own.heartbeat_interval_s),
            loop("timers", Timers(db, policy, utc_now, tell).step, own.fold_interval_s),
            loop("closing", Closer(db, policy, utc_now, tell, random.SystemRandom()).step, own.fold_interval_s),
            loop("families", leader.step, own.fold_interval_s),
            # Alerts leave by the outbox. The gateway empties it too; one relays at a time, and alerts must not wait for a gateway.
            OutboxRelay(OutboxTable(db, utc_now), bus.publisher, telemetry, rng=rng, clock=time.monotonic, poll_s=2 * own.fold_interval_s),
        ]
        if own.webhook_url is not None:
            loops.append(_delivering(db, own, telemetry, rng))
        return loops

    return ConsumingService("drift_monitor", kafka=kafka, database=database, telemetry=telemetry, wire=wire)


class _Delivering:
    """The loop of deliveries, which closes its connections when it stops."""

    def __init__(self, loop: Background, deliverer: Deliverer) -> None:
        self._loop = loop
        self._deliverer = deliverer

    def start(self) -> None:
        """Begin."""
        self._loop.start()

    async def stop(self) -> None:
        """End."""
        await self._loop.stop()
        await self._deliverer.close()


def _delivering(db: Database, own: DriftMonitorSettings, telemetry: Telemetry, rng: random.Random) -> _Delivering:
    """Deliveries to the webhook."""
    secret = own.webhook_secret.get_secret_value() if own.webhook_secret else ""
    deliverer = Deliverer(
        db,
        Webhook(own.webhook_url or "", secret, timeout_s=own.webhook_timeout_s),
        clock=utc_now,
        telemetry=telemetry,
        rng=rng,
        timeout_s=own.webhook_timeout_s,
        attempts=own.webhook_attempts,
    )
    return _Delivering(Background("webhook", deliverer.step, every_s=own.fold_interval_s, telemetry=telemetry, rng=rng), deliverer)
