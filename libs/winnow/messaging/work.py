"""The handler's part of the recipe: the batch as a whole, or record by record; patience with what passes, and an end to it."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from winnow.contracts.deadline import Deadline
from winnow.contracts.errors import TooLarge, WinnowError
from winnow.contracts.vocabulary import Reason
from winnow.messaging.faults import Breaker, Fault, pause
from winnow.messaging.intake import dead_of
from winnow.messaging.publisher import check_size
from winnow.messaging.records import Dead, E, Handled, Handler, Outgoing, Received
from winnow.messaging.surroundings import Surroundings
from winnow.telemetry.redaction import describe_without_content
from winnow.telemetry.traces import within

T = TypeVar("T")

#: Fetches in a row that end in a transient error before the records are looked at one by one.
SUSPECT_AFTER = 3


class Halted(WinnowError):
    """Too many records failed by errors of our own; nothing is dead-lettered until a trial succeeds."""


class GoingAway(WinnowError):
    """The process stops; the batch comes again elsewhere."""


class Worker(Generic[E]):
    """Calls one handler, publishes what it returns, and decides the road of what fails."""

    def __init__(self, handler: Handler[E], around: Surroundings) -> None:
        self._handler = handler
        self._around = around
        self._breaker = Breaker(around.limit)
        self._suspects: Counter[tuple[str, int, int]] = Counter()
        self._given_up: dict[tuple[str, int, int], Dead] = {}
        self._labels = {"service": around.telemetry.service, "topic": handler.topic.name}

    def __repr__(self) -> str:
        return f"<Worker({self._handler.topic.name}, {self._breaker!r})>"

    @property
    def halted(self) -> bool:
        """Consumption is stopped by errors of our own."""
        return self._breaker.open

    async def run(self, batch: Sequence[Received[E]], *, failed_fetches: int = 0) -> list[Dead]:
        """Handle and publish a batch that is not empty; return what is dead.

        Raises a transient error, `Halted` or `GoingAway` where the fetch must come again; then nothing of it may be acknowledged.
        `failed_fetches`: how often in a row the fetch ended in a transient error.
        """
        if self._breaker.open:
            await self._trial(batch)
        if failed_fetches >= SUSPECT_AFTER and len(batch) > 1:
            return await self._among_suspects(batch)
        try:
            handled = await self._handled(batch)
            for item in handled.outgoing:
                check_size(item.topic, item.body, item.key)
        except Exception as exc:
            if self.fault(exc) is Fault.TRANSIENT:
                raise
            self._around.telemetry.metrics.count("winnow_batches_total", result="split", **self._labels)
            self._around.telemetry.log.warning(
                "batch_split", topic=self._handler.topic.name, records=len(batch), error=describe_without_content(exc)
            )
        else:
            for fleet, records in Counter(received.event.fleet for received in batch).items():
                self._breaker.succeeded(fleet, records)
            self._suspects.clear()
            self._given_up.clear()
            await self._publish(handled.outgoing)
            return list(handled.dead)
        dead: list[Dead] = []
        for received in batch:
            dead += await self._alone(received)
        return dead

    async def patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """Await `call`, again and again with growing pauses while it meets transient errors, within the time that a batch has."""
        around, patience = self._around, self._around.patience
        deadline = Deadline.after(around.settings.batch_deadline_s, around.clock)
        attempt = 0
        while True:
            attempt += 1
            try:
                return await call()
            except (GoingAway, Halted):
                raise
            except Exception as exc:
                if self.fault(exc) is not Fault.TRANSIENT:
                    raise
                around.telemetry.metrics.count("winnow_transient_errors_total", **self._labels)
                seconds = pause(attempt, patience.first_pause_s, patience.most_pause_s, around.rng)
                if attempt >= patience.transient_attempts or seconds >= deadline.remaining():
                    raise
                around.telemetry.log.warning(
                    "attempt_failed", topic=self._handler.topic.name, error=exc, attempt=attempt, pause_s=round(seconds, 2)
                )
                await self.sleep(seconds)

    async def sleep(self, seconds: float) -> None:
        """Wait; raise `GoingAway` as soon as the process stops. A pause counts as progress: whoever waits on purpose is not stuck."""
        self._around.progress.working()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._around.stopping.wait(), seconds)
            raise GoingAway
        self._around.progress.working()

    def fault(self, exc: BaseException) -> Fault:
        """Whose fault an error is; our own signals go the way of what passes."""
        if isinstance(exc, GoingAway | Halted):
            return Fault.TRANSIENT
        return self._around.classify(exc)

    async def _handled(self, batch: Sequence[Received[E]]) -> Handled:
        """The handler's call, repeated where it meets transient errors."""
        began = self._around.clock()
        try:
            # Alone, every line that is written on the way is the record's own; in a batch, handlers say whose a line is.
            with within(batch[0].context if len(batch) == 1 else None):
                return await self.patiently(lambda: self._handler.handle(batch))
        finally:
            self._around.telemetry.metrics.observe("winnow_handler_seconds", self._around.clock() - began, **self._labels)

    async def _publish(self, outgoing: Sequence[Outgoing]) -> None:
        """Publish. Not repeated here: the fetch comes again, and its handling is a repetition that publishes the same bodies."""
        if outgoing:
            await self._around.publisher.send(outgoing)

    async def _alone(self, received: Received[E]) -> list[Dead]:
        """One record by itself, in a transaction of its own: its neighbours are not held by it."""
        patience = self._around.patience
        attempt = 0
        while True:
            attempt += 1
            try:
                handled = await self._handled([received])
            except Exception as exc:
                match self.fault(exc):
                    case Fault.TRANSIENT:
                        raise
                    case Fault.INPUT:
                        return [dead_of(received.record, exc)]
                    case Fault.OWN if attempt < patience.own_attempts:
                        await self.sleep(pause(attempt, patience.first_pause_s, patience.most_pause_s, self._around.rng))
                    case Fault.OWN:
                        return [self._give_up(received, exc)]
            else:
                self._breaker.succeeded(received.event.fleet)
                return await self._publish_fitting(received, handled)

    async def _publish_fitting(self, received: Received[E], handled: Handled) -> list[Dead]:
        """Publish what fits its topic; what does not makes its record a dead letter, for its size never changes."""
        dead = list(handled.dead)
        fitting: list[Outgoing] = []
        for item in handled.outgoing:
            try:
                check_size(item.topic, item.body, item.key)
            except TooLarge as exc:
                dead.append(dead_of(received.record, exc))
            else:
                fitting.append(item)
        await self._publish(fitting)
        return dead

    async def _among_suspects(self, batch: Sequence[Received[E]]) -> list[Dead]:
        """Look for the record whose errors only seem to pass: it fails while its neighbours succeed, fetch after fetch.

        Where all fail, the world is down and the first error is raised. The records of a key behind a suspect wait for it: order is kept.
        """
        dead: list[Dead] = []
        failed: dict[bytes | None, tuple[Received[E], Exception]] = {}
        behind: list[Received[E]] = []
        for received in batch:
            if received.record.key in failed:
                behind.append(received)
                continue
            try:
                dead += await self._alone(received)
            except (GoingAway, Halted):
                raise
            except Exception as exc:  # noqa: BLE001  `_alone` raises what is transient
                failed[received.record.key] = (received, exc)
        if len(failed) + len(behind) == len(batch):
            raise next(error for _, error in failed.values())
        for key, (received, error) in list(failed.items()):
            position = received.record.position
            self._suspects[position] += 1
            if self._suspects[position] >= self._around.patience.own_attempts:
                dead.append(self._given_up.get(position) or self._give_up(received, error))
                self._given_up[position] = dead[-1]
                del failed[key]
        if failed:
            raise next(error for _, error in failed.values())
        for received in behind:
            dead += await self._alone(received)
        self._suspects.clear()
        self._given_up.clear()
        return dead

    def _give_up(self, received: Received[E], exc: Exception) -> Dead:
        """A record that our handler cannot take: a dead letter, unless there are so many that it is the handler that is broken."""
        telemetry, record = self._around.telemetry, received.record
        if self._breaker.failed(received.event.fleet):
            telemetry.metrics.set("winnow_consumption_halted", 1, **self._labels)
            with within(received.context):
                telemetry.log.error(
                    "consumption_halted",
                    exc=exc,
                    topic=self._handler.topic.name,
                    failures=self._breaker.failures,
                    ratio=self._breaker.ratio,
                )
            raise Halted
        telemetry.metrics.count("winnow_handler_errors_total", **self._labels)
        with within(received.context):
            telemetry.log.error("handler_error", exc=exc, topic=self._handler.topic.name, partition=record.partition, offset=record.offset)
        return Dead(record=record, reason=Reason.HANDLER_ERROR, error=describe_without_content(exc))

    async def _trial(self, batch: Sequence[Received[E]]) -> None:
        """While consumption is halted: go on only where our handler takes at least one record. Nothing is dead-lettered here."""
        for received in batch:
            try:
                await self._handled([received])
            except Exception as exc:
                if self.fault(exc) is Fault.TRANSIENT:
                    raise
                continue
            self._breaker.succeeded(received.event.fleet)
            self._around.telemetry.metrics.set("winnow_consumption_halted", 0, **self._labels)
            self._around.telemetry.log.warning("consumption_resumed", topic=self._handler.topic.name)
            return
        raise Halted
