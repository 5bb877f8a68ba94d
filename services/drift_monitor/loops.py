"""What the monitor does beside its consumers: timers of streams, runs that are over, families, plain thresholds, deliveries.

Any number of monitors run these at once: rows that one of them holds are skipped by the others, and families have one leader at a time.
"""

import asyncio
import random
import time
from collections.abc import Callable
from datetime import datetime, timedelta

from services.drift_monitor.telling import Teller
from winnow.messaging.webhook import Answer, Webhook, pause_s
from winnow.storage import alarms, alerts, closing, families, folding, raw, thresholds, webhooks
from winnow.storage.database import Database
from winnow.storage.policy import Policy
from winnow.storage.thresholds import Limits
from winnow.storage.webhooks import Delivery
from winnow.telemetry.telemetry import Telemetry

Clock = Callable[[], datetime]

#: Streams of one transaction of the timers.
TIMERS_AT_ONCE = 100
#: Runs of one transaction: each becomes up to three units.
RUNS_AT_ONCE = 200
#: Deliveries that are under way at once.
DELIVERIES_AT_ONCE = 8


class Timers:
    """Folds streams whose timer has run out: the unit that holds up the others is missing now."""

    def __init__(self, database: Database, policy: Policy, clock: Clock, tell: Teller) -> None:
        self._database = database
        self._policy = policy
        self._clock = clock
        self._tell = tell

    async def step(self) -> bool:
        """One transaction; True where there is more."""
        now, began = self._clock(), time.perf_counter()
        async with self._database.transaction() as tx:
            keys = await folding.due(tx, limit=TIMERS_AT_ONCE, now=now)
            report = await folding.fold(tx, keys, self._policy, now=now) if keys else None
        if report is None:
            return False
        self._tell.folded(report, seconds=time.perf_counter() - began)
        return len(keys) == TIMERS_AT_ONCE or bool(report.more)


class Closer:
    """Closes runs that ended or fell silent, and folds what they say."""

    def __init__(self, database: Database, policy: Policy, clock: Clock, tell: Teller, coin: random.Random) -> None:
        """`coin` picks the boundary of a run; what it says is recorded."""
        self._database = database
        self._policy = policy
        self._clock = clock
        self._tell = tell
        self._coin = coin

    async def step(self) -> bool:
        """One transaction; True where there is more."""
        now, began = self._clock(), time.perf_counter()
        async with self._database.transaction() as tx:
            closed = await closing.close(tx, coin=self._coin, limit=RUNS_AT_ONCE, now=now)
            units = closed.units
            report = await folding.fold(tx, units.streams, self._policy, now=now, taken=units) if units.streams else None
        self._tell.closed(closed)
        if report is not None:
            self._tell.folded(report, seconds=time.perf_counter() - began)
        return closed.taken == RUNS_AT_ONCE


class Leader:
    """Looks at families and plain thresholds, where no other process does; ends holds where that is allowed; keeps the gauges."""

    def __init__(  # noqa: PLR0913  what it looks at, each by its name
        self,
        database: Database,
        policy: Policy,
        limits: Limits,
        *,
        clock: Clock,
        tell: Teller,
        telemetry: Telemetry,
        fleet_delta: float,
        look_every: timedelta,
        held_for: timedelta,
    ) -> None:
        """`look_every`: time between looks at thresholds and gauges; `held_for`: how long a hold lasts before it may end by itself."""
        self._database = database
        self._policy = policy
        self._limits = limits
        self._clock = clock
        self._tell = tell
        self._metrics = telemetry.metrics
        self._fleet_delta = fleet_delta
        self._look_every = look_every
        self._held_for = held_for
        self._looked_at: datetime | None = None

    async def step(self) -> bool:
        """One look; never asks for another at once."""
        now = self._clock()
        look = self._looked_at is None or now - self._looked_at >= self._look_every
        async with self._database.transaction() as tx:
            if await families.lead(tx):
                told = await families.evaluate(tx, self._policy.acting, fleet_delta=self._fleet_delta, now=now)
                if look:
                    found = await thresholds.look(tx, self._limits, self._policy.acting, now=now)
                    told += await alarms.act(tx, found, self._policy.acting, now=now)
                self._tell.alerts(told)
        if look:
            self._looked_at = now
            await self._gauges(now)
        if self._policy.recertify is not None:
            await self._release(now)
        return False

    async def _release(self, now: datetime) -> None:
        """End holds whose streams were shown to be within their budgets again; each in a transaction of its own, for the order of locks."""
        async with self._database.transaction() as tx:
            fleets = await families.recertified(tx, held_for=self._held_for, now=now)
        for fleet in fleets:
            because = "fresh units show that every stream that had alarmed is within its budget again"
            async with self._database.transaction() as tx:
                await alarms.release(tx, fleet, by=alarms.MONITOR, because=because, webhook=self._policy.acting.webhook, now=now)

    async def _gauges(self, now: datetime) -> None:
        """How the streams of all fleets stand."""
        async with self._database.reading() as tx:
            by_status = await raw.fetch(tx, "SELECT status, count(*) AS streams FROM monitor_states GROUP BY status")
            most = await raw.fetch(
                tx,
                "SELECT s.family, max(m.log_evidence) AS most FROM monitor_states m JOIN streams s ON s.fleet = m.fleet"
                " AND s.stream = m.stream WHERE m.status IN ('ok', 'warn') GROUP BY s.family",
            )
            oldest = await raw.fetch_one(tx, "SELECT min(due_at) AS due FROM monitor_states WHERE due_at <= $1", now)
            waiting = await raw.fetch_one(tx, "SELECT count(*) AS waiting FROM webhook_deliveries WHERE next_at IS NOT NULL")
            self._metrics.set("winnow_fleets_held", await families.held(tx))
        counts = dict.fromkeys(("ok", "warn", "alarm", "held", "recovered", "insufficient"), 0) | {
            r["status"]: r["streams"] for r in by_status
        }
        for status, streams in counts.items():
            self._metrics.set("winnow_monitor_streams", streams, status=status)
        for row in most:
            self._metrics.set("winnow_monitor_evidence_max", row["most"], family=row["family"])
        due = oldest["due"] if oldest else None
        self._metrics.set("winnow_monitor_lag_seconds", 0.0 if due is None else (now - due).total_seconds())
        self._metrics.set("winnow_webhook_waiting", waiting["waiting"] if waiting else 0)


class Deliverer:
    """Sends alerts to the webhook: at least once, later and later, and given up in plain sight."""

    def __init__(
        self,
        database: Database,
        webhook: Webhook,
        *,
        clock: Clock,
        telemetry: Telemetry,
        rng: random.Random,
        timeout_s: float,
        attempts: int,
    ) -> None:
        """`timeout_s` bounds one attempt as a whole; `attempts` is how often it is tried."""
        self._database = database
        self._webhook = webhook
        self._clock = clock
        self._telemetry = telemetry
        self._rng = rng
        self._timeout_s = timeout_s
        self._attempts = attempts

    async def step(self) -> bool:
        """Take what is due, send it, and write down how it went; True where there is more."""
        now = self._clock()
        async with self._database.transaction() as tx:
            missed = await webhooks.without(tx, now=now)
            if missed:
                await webhooks.add(tx, await alerts.by_id(tx, missed), now=now)
            # Longer than an attempt can take: whoever is killed amid one leaves it to the next.
            lease = timedelta(seconds=2 * self._timeout_s + 5)
            due = await webhooks.claim(tx, limit=DELIVERIES_AT_ONCE, lease=lease, now=now)
        await asyncio.gather(*map(self._deliver, due))
        return len(due) == DELIVERIES_AT_ONCE

    async def close(self) -> None:
        """Close the connections."""
        await self._webhook.close()

    async def _deliver(self, delivery: Delivery) -> None:
        """One attempt."""
        timestamp = int(self._clock().timestamp())
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await self._webhook.send(delivery.body.encode(), delivery=delivery.delivery_id, timestamp=timestamp)
        except TimeoutError:
            answer = Answer(status=None, error=f"no answer within {self._timeout_s:g} s")
        now = self._clock()
        async with self._database.transaction() as tx:
            if answer.error is None:
                await webhooks.delivered(tx, delivery.delivery_id, status=answer.status or 0, now=now)
                self._count("delivered")
                return
            gives_up = delivery.attempts >= self._attempts
            seconds = pause_s(delivery.attempts, self._rng.random())
            again_at = None if gives_up else now + timedelta(seconds=seconds)
            await webhooks.failed(tx, delivery.delivery_id, status=answer.status, error=answer.error, again_at=again_at, now=now)
        if gives_up:
            self._count("given_up")
            self._telemetry.log.error("webhook_given_up", delivery=delivery.delivery_id, attempts=delivery.attempts, error=answer.error)
        else:
            self._count("failed")
            self._telemetry.log.warning(
                "webhook_failed", delivery=delivery.delivery_id, status=answer.status, error=answer.error, pause_s=round(seconds, 1)
            )

    def _count(self, result: str) -> None:
        self._telemetry.metrics.count("winnow_webhook_deliveries_total", result=result)
