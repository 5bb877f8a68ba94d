"""The bus as a service sees it: one broker, its subscribers, its publisher, its dead letters."""

import asyncio
import random
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from aiokafka.errors import KafkaError
from faststream.kafka import KafkaBroker

from winnow.contracts.rights import NotAllowed
from winnow.messaging.background import Background
from winnow.messaging.broker import make_broker, probe_idempotence, producer_of
from winnow.messaging.consumer import gather_ms, subscribe
from winnow.messaging.deadletters import DeadLetters
from winnow.messaging.faults import Classify, Limit, Patience, classify
from winnow.messaging.health import STUCK_FETCH_S, Check, Progress
from winnow.messaging.lag import LagReader
from winnow.messaging.ports import ClaimStore, DeadLetterStore
from winnow.messaging.publisher import Publisher
from winnow.messaging.records import E, Handler
from winnow.messaging.rights import refused
from winnow.messaging.settings import KafkaSettings
from winnow.messaging.subscription import Membership, Subscription, Waits
from winnow.messaging.surroundings import Surroundings
from winnow.messaging.watchdog import Watchdog
from winnow.telemetry import Telemetry

#: Seconds that the broker may take to answer a ping.
PING_S = 2.0


class Bus:
    """Kafka for one service.

    ```python
    bus = await Bus.open(settings, telemetry=telemetry, dead_letters=store, claims=store, classify=classify)
    bus.subscribe(handler)  # a `records.Handler`; before `start`
    await bus.start()  # consumes from here on
    await bus.publisher.send([outgoing])
    await bus.stop()
    ```
    """

    def __init__(
        self,
        broker: KafkaBroker,
        settings: KafkaSettings,
        telemetry: Telemetry,
        *,
        dead_letters: DeadLetterStore,
        claims: ClaimStore | None,
        classify: Classify = classify,
        patience: Patience | None = None,
        limit: Limit | None = None,
    ) -> None:
        self.broker = broker
        self.settings = settings
        self.telemetry = telemetry
        self.publisher = Publisher(lambda: producer_of(broker), settings, telemetry)
        self.dead_letters = DeadLetters(dead_letters, self.publisher, settings, telemetry, lambda: datetime.now(UTC), classify)
        self.subscriptions: list[Subscription] = []
        self._claims = claims
        self._classify = classify
        self._patience = patience or Patience()
        self._limit = limit or Limit()
        self._rng = random.Random()  # noqa: S311  jitter, not a secret
        self._stopping = asyncio.Event()
        self._started = False
        self._watchdog: Watchdog | None = None
        self._looking: Background | None = None

    def __repr__(self) -> str:
        return f"<Bus({self.telemetry.service}, subscriptions={len(self.subscriptions)}, started={self._started})>"

    @classmethod
    async def open(
        cls,
        settings: KafkaSettings,
        *,
        telemetry: Telemetry,
        dead_letters: DeadLetterStore,
        claims: ClaimStore | None = None,
        classify: Classify = classify,
        patience: Patience | None = None,
        limit: Limit | None = None,
    ) -> "Bus":
        """Ask the broker what it can do, and make a bus that is not started. Raises `KafkaError` where no broker answers."""
        idempotent = await probe_idempotence(settings, telemetry)
        broker = make_broker(settings, service=telemetry.service, telemetry=telemetry, idempotent=idempotent)
        return cls(
            broker,
            settings,
            telemetry,
            dead_letters=dead_letters,
            claims=claims,
            classify=classify,
            patience=patience,
            limit=limit,
        )

    def subscribe(self, handler: Handler[E]) -> Subscription:
        """Let `handler` consume its topic. Call it before `start`."""
        service, topic = self.telemetry.service, handler.topic.name
        progress = Progress(time.monotonic, busy_limit_s=self.settings.max_poll_interval_ms / 1000)
        metrics = self.telemetry.metrics

        def rebalanced(count: int) -> None:
            metrics.set("winnow_assigned_partitions", count, service=service, topic=topic)
            consumer.rebalanced()

        member = Membership(rebalanced)
        around = Surroundings(
            settings=self.settings,
            publisher=self.publisher,
            dead_letters=self.dead_letters,
            claims=self._claims,
            telemetry=self.telemetry,
            progress=progress,
            clock=time.monotonic,
            wall=time.time,
            rng=self._rng,
            stopping=self._stopping,
            classify=self._classify,
            patience=self._patience,
            limit=self._limit,
        )
        subscriber, consumer = subscribe(self.broker, handler, around, listener=member)

        def explain(error: KafkaError) -> NotAllowed | None:
            found = refused(error, self.settings)
            if found is not None:
                self.telemetry.log.error("not_allowed", topic=topic, error=found)
            return found

        waits = Waits.of(self.settings, gather_ms(handler))
        group = self.settings.group(service, topic)
        subscription = Subscription(handler.topic, group, subscriber, consumer, progress, member, waits, explain)
        self.subscriptions.append(subscription)
        metrics.set("winnow_consumption_halted", 0, service=service, topic=topic)
        metrics.set("winnow_schema_too_new", 0, service=service, topic=topic)
        metrics.before_scrape(lambda: self._ages(subscription))
        return subscription

    async def start(self) -> None:
        """Connect the producer and join the groups; returns when consumption begins."""
        self._started = True
        await self.broker.start()
        for subscription in self.subscriptions:
            subscription.watch_polls()
        if self.subscriptions:
            dog = self._watchdog = Watchdog(
                self.telemetry.service, self.subscriptions, LagReader(self.settings), stall_s=self.settings.stall_s,
                clock=time.monotonic, telemetry=self.telemetry,
            )  # fmt: skip
            self._looking = Background("watchdog", dog.step, every_s=dog.every_s, telemetry=self.telemetry, rng=self._rng)
            self._looking.start()

    async def stop(self) -> None:
        """Let the running batches finish (up to the grace of the settings), leave the groups, send what is queued. May be called twice."""
        if not self._started:
            return
        self._started = False
        self._stopping.set()
        if self._looking is not None:
            await self._looking.stop()
        if self._watchdog is not None:
            await self._watchdog.close()
        for subscription in self.subscriptions:
            subscription.consumer.close()
        await self.broker.stop()

    def checks(self) -> list[Check]:
        """Readiness of this bus, and for each consumer whether it still makes progress."""
        checks = [Check(name="kafka", ask=self._ping), Check(name="publishing", ask=self._publishing)]
        for subscription in self.subscriptions:
            checks += [
                Check(name=f"joined {subscription.topic.name}", ask=self._asking(subscription, self._joined)),
                Check(name=f"consuming {subscription.topic.name}", ask=self._asking(subscription, self._consuming)),
                Check(name=f"progress {subscription.topic.name}", ask=self._asking(subscription, self._stuck), vital=True),
            ]
        return checks

    async def _ping(self) -> str | None:
        if not self._started:
            return "not started"
        return None if await self.broker.ping(PING_S) else f"the broker does not answer within {PING_S:g} s"

    async def _publishing(self) -> str | None:
        return next((str(found) for found in self.publisher.refused.values()), None)

    @staticmethod
    def _asking(subscription: Subscription, ask: Callable[[Subscription], Any]) -> Callable[[], Any]:
        return lambda: ask(subscription)

    async def _joined(self, subscription: Subscription) -> str | None:
        return None if subscription.member.joined else "not a member of its group (yet, or a rebalance is under way)"

    async def _consuming(self, subscription: Subscription) -> str | None:
        if subscription.refused is not None:
            return str(subscription.refused)
        if subscription.consumer.halted:
            return "halted: this service's own errors pile up; read `consumption_halted` in the log"
        if subscription.consumer.waits_for_newer:
            return "an event of a newer major version stands at the head of a partition; deploy a service that reads it"
        return None

    async def _stuck(self, subscription: Subscription) -> str | None:
        """Stuck: no polls, an endless batch, records that nobody takes, or a fetcher that hears nothing while others are answered."""
        problem = subscription.progress.problem or subscription.standing_still
        if problem is not None:
            return problem
        if subscription.progress.idle_s < STUCK_FETCH_S:
            return None
        age = subscription.fetch_age_s()
        if age is not None and age > STUCK_FETCH_S and await self.broker.ping(PING_S):
            return f"no fetch was answered for {age:.0f} s, though the broker answers"
        return None

    def _ages(self, subscription: Subscription) -> None:
        labels = {"service": self.telemetry.service, "topic": subscription.topic.name}
        self.telemetry.metrics.set("winnow_poll_age_seconds", subscription.progress.poll_age_s, **labels)
        self.telemetry.metrics.set("winnow_commit_age_seconds", subscription.progress.commit_age_s, **labels)
        self.telemetry.metrics.set("winnow_not_allowed", float(subscription.refused is not None), **labels)
