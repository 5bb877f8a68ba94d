"""The outbox relay: what starts from HTTP, the CLI or a timer is stored with its cause and sent from here, in order, at least once."""

import random
from collections.abc import Awaitable, Callable, Iterator, Sequence

from winnow.contracts import limits
from winnow.contracts.errors import TooLarge
from winnow.contracts.topics import topic_named
from winnow.messaging.background import Background
from winnow.messaging.ports import OutboxItem, OutboxStore
from winnow.messaging.publisher import Publisher, check_size
from winnow.messaging.records import Outgoing
from winnow.telemetry import Telemetry
from winnow.telemetry.traces import within

#: Rows of one transaction: 5,500 to 7,100 events a second were measured with it.
RELAY_ROWS = 500
#: Bytes of bodies of one transaction, which are in memory at once; the row that reaches it is the last.
RELAY_BYTES = 32 * limits.MIB
#: Seconds between looks where no notification comes. One that is lost while the listening connection is down is made up for when it is
#: made anew; what is left is a row that is written in the moment in which another relay claims in vain.
POLL_S = 5.0
#: Seconds between counts of the unsent rows.
DEPTH_EVERY_S = 5.0


def outgoing_of(item: OutboxItem) -> Outgoing | None:
    """The event of a row; None where the registry has no such topic."""
    topic = topic_named(item.topic)
    if topic is None:
        return None
    return Outgoing(
        topic=topic, key=item.key, body=item.body, event_id=item.event_id, time=item.time, traceparent=item.traceparent, claim=item.claim
    )


def waves(items: Sequence[OutboxItem]) -> Iterator[list[OutboxItem]]:
    """Cut rows so that no wave has two of one key: the second waits until the broker has confirmed the first."""
    turns: dict[tuple[str, str], int] = {}
    cut: list[list[OutboxItem]] = []
    for item in items:
        key = (item.topic, item.key)
        turn = turns.get(key, 0)
        turns[key] = turn + 1
        if turn == len(cut):
            cut.append([])
        cut[turn].append(item)
    yield from cut


async def send_in_order(publisher: Publisher, items: Sequence[OutboxItem], telemetry: Telemetry) -> list[int]:
    """Publish rows; return the ids that are done with. After a failure the later rows of its key stay unsent, so keys keep their order.

    A row that can never be sent (unknown topic, too large) is told of and done with: it must not hold the rows behind it.
    """
    done: list[int] = []
    broken: set[tuple[str, str]] = set()
    for wave in waves(items):
        ready: list[tuple[OutboxItem, Outgoing]] = []
        for item in wave:
            if (item.topic, item.key) in broken:
                continue
            outgoing = outgoing_of(item)
            if outgoing is None:
                _tell(telemetry, item, "the registry has no such topic")
                done.append(item.id)
                continue
            try:
                check_size(outgoing.topic, outgoing.body, outgoing.key)
            except TooLarge as exc:
                _tell(telemetry, item, str(exc))
                done.append(item.id)
                continue
            ready.append((item, outgoing))
        errors = await publisher.send_each([outgoing for _, outgoing in ready])
        for (item, _), error in zip(ready, errors, strict=True):
            if error is None:
                done.append(item.id)
            else:
                broken.add((item.topic, item.key))
    return done


def _tell(telemetry: Telemetry, item: OutboxItem, why: str) -> None:
    """Tell that a row can never be sent, within its trace."""
    telemetry.metrics.count("winnow_publish_errors_total", service=telemetry.service, topic=item.topic)
    with within(telemetry.traces.from_carrier({"traceparent": item.traceparent} if item.traceparent else {})):
        telemetry.log.error("publish_failed", topic=item.topic, row=item.id, error=why)


class OutboxRelay:
    """Sends the outbox. One a process is enough; several never reorder a key, because the store lets only one have it at a time."""

    def __init__(
        self,
        store: OutboxStore,
        publisher: Publisher,
        telemetry: Telemetry,
        *,
        rng: random.Random,
        clock: Callable[[], float],
        poll_s: float = POLL_S,
        on_sent: Callable[[int], Awaitable[None]] | None = None,
    ) -> None:
        """`clock` is monotonic; `on_sent` is told how many rows a round sent."""
        self._store = store
        self._publisher = publisher
        self._telemetry = telemetry
        self._clock = clock
        self._counted_at = -DEPTH_EVERY_S
        self._on_sent = on_sent
        self._loop = Background("outbox", self._step, every_s=poll_s, telemetry=telemetry, rng=rng, failed=self._failed)

    def start(self) -> None:
        """Begin to send."""
        self._loop.start()

    def wake(self) -> None:
        """There are new rows: call it on each notification, and after each (re)connection of the listener."""
        self._loop.wake()

    async def stop(self) -> None:
        """End; rows at work are sent again by whoever comes next."""
        await self._loop.stop()

    async def _step(self) -> bool:
        failures = taken = 0

        async def send(items: Sequence[OutboxItem]) -> Sequence[int]:
            nonlocal failures, taken
            taken = sum(len(item.body) for item in items)
            done = await send_in_order(self._publisher, items, self._telemetry)
            failures = len(items) - len(done)
            return done

        sent = await self._store.relay(RELAY_ROWS, send)
        if sent:
            self._telemetry.metrics.count("winnow_outbox_sent_total", sent, service=self._telemetry.service)
            self._telemetry.log.debug("outbox_sent", rows=sent)
            if self._on_sent is not None:
                await self._on_sent(sent)
        if failures:
            msg = f"{failures} rows were not confirmed and stay in the outbox"
            raise ConnectionError(msg)
        await self._count(force=sent > 0)
        return sent >= RELAY_ROWS or taken >= RELAY_BYTES

    async def _count(self, *, force: bool) -> None:
        now = self._clock()
        if now - self._counted_at < (DEPTH_EVERY_S / 5 if force else DEPTH_EVERY_S):
            return
        self._counted_at = now
        rows, age = await self._store.depth()
        self._telemetry.metrics.set("winnow_outbox_depth", rows, service=self._telemetry.service)
        self._telemetry.metrics.set("winnow_outbox_oldest_age_seconds", age, service=self._telemetry.service)

    def _failed(self, exc: BaseException, pause_s: float) -> None:
        self._telemetry.log.warning("outbox_failed", error=exc, pause_s=round(pause_s, 2))
