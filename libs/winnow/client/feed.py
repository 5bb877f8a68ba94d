"""The committed topic as one runtime reads it: assigned by hand, without a group, from where it was before the candidate went out.

A group would give each partition to one member only and would begin where its last commit was; a runtime wants the answers to its own
boundaries and nothing else. So one consumer serves all compactions of a process, on just the partitions that their runs hash to.
"""

import asyncio
import contextlib
import logging
import random
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NamedTuple, Protocol
from uuid import UUID

from aiokafka.errors import TopicAuthorizationFailedError
from aiokafka.partitioner import murmur2
from aiokafka.structs import ConsumerRecord, TopicPartition

from winnow.client.backoff import Backoff
from winnow.client.isolation import discarded, isolated
from winnow.contracts import ids
from winnow.contracts.envelope import Envelope, Invalid, check_type, decode, read_headers
from winnow.contracts.errors import SchemaTooNew, WinnowError
from winnow.contracts.events import Candidate, Committed
from winnow.contracts.rights import NotAllowed, Operation, Resource, Right
from winnow.contracts.topics import COMMITTED

log = logging.getLogger("winnow.client")

#: Milliseconds that one poll waits. Bounds how late a closed client notices; records wake it at once.
POLL_MS = 200
#: Milliseconds that the broker may hold a fetch. A request for offsets on the same connection waits behind it, and the embedded broker
#: looks for new records only after half of it (an answer took 250 ms longer at the default of 500).
FETCH_WAIT_MS = 40
#: Seconds between checks that the consumer keeps up with the broker's log, while somebody waits.
CHECK_S = 1.0
#: Seconds that connecting may take.
CONNECT_S = 15.0
#: Seconds that such a check may take before the connection counts as broken.
CHECK_TIMEOUT_S = 3.0
#: Checks in a row that must find a partition wrong. aiokafka's fetcher can stand still after a broker restart without a sign
#: (aiokafka#1154); it is built anew then.
DOUBTFUL_CHECKS = 3
#: Records. The embedded broker states the offset of the last record as the end, one less than Kafka; that is no log that began anew.
END_SLACK = 1
#: Seconds that a partition stays assigned after its last compaction. A new assignment costs two requests, an idle one 25 a second.
IDLE_S = 15.0


class Consumer(Protocol):
    """What the feed needs of `aiokafka.AIOKafkaConsumer`, with its names and meanings."""

    async def start(self) -> None:
        """Connect; raise where no broker answers."""

    async def stop(self) -> None:
        """Disconnect."""

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Replace the assignment; positions are lost."""

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Fetch from `offset` next."""

    async def getmany(self, *, timeout_ms: int) -> dict[TopicPartition, list[ConsumerRecord[bytes, bytes]]]:
        """Records that have arrived, or after `timeout_ms` none."""

    async def end_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset after the last record of each partition."""

    async def beginning_offsets(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset of the first record of each partition."""


def partition_of(key: str, partitions: int) -> int:
    """The partition that aiokafka, as every Java client, gives a record with this key. librdkafka's default differs."""
    return int(murmur2(key.encode()) & 0x7FFFFFFF) % partitions


class Ticket(NamedTuple):
    """What a compaction waits for."""

    boundary_id: UUID
    request_sha256: str


class Waiting:
    """One compaction that waits for its answer."""

    def __init__(self, candidate: Candidate, request_sha256: str, partition: int) -> None:
        """`partition` is where the answer will appear."""
        self.ticket = Ticket(candidate.boundary_id, request_sha256)
        self.event_id = str(ids.event_id(candidate.fleet, candidate.boundary_id, COMMITTED.event_type))
        self.key = candidate.key.encode()
        self.partition = partition
        #: The answer, or the body of a claim check that stands for it.
        self.answer: asyncio.Future[Committed | bytes] = asyncio.get_running_loop().create_future()
        #: Set when an answer may have been lost: the log began anew, or the connection broke. The candidate is then published again.
        self.doubt = asyncio.Event()


class Feed:
    """Reads the committed topic in the background, for all compactions that wait."""

    def __init__(
        self,
        topic: str,
        connect: Callable[[], Consumer],
        *,
        hidden: Callable[[], Awaitable[bool]],
        backoff: Backoff | None = None,
        user: str | None = None,
    ) -> None:
        """`connect` makes a consumer that is not yet started; it is called again whenever the last one broke. `user` signs in with it.

        `hidden` says whether the broker keeps the topic from this client: a consumer that reads such a topic's metadata anew raises nothing
        and waits for a leader. It is asked whenever the reader broke.
        """
        self._topic = topic
        self._hidden = hidden
        self._user = user
        self._connect = connect
        self._backoff = backoff or Backoff(first_s=0.2, most_s=2.0)
        self._consumer: Consumer | None = None
        self._next: dict[int, int] = {}
        self._left_at: dict[int, float] = {}
        self._waiting: defaultdict[int, set[Waiting]] = defaultdict(set)
        self._assigning = asyncio.Lock()
        self._up = asyncio.Event()
        self._work = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        #: Consumers built so far; above 1 the connection broke.
        self.built = 0

    def __repr__(self) -> str:
        """Counts, no content."""
        return (
            f"<Feed({self._topic}, partitions={sorted(self._next)}, waiting={sum(map(len, self._waiting.values()))}, built={self.built})>"
        )

    @property
    def connected(self) -> bool:
        """There is a consumer that answered lately."""
        return self._up.is_set()

    @contextlib.asynccontextmanager
    async def wait_for(self, candidate: Candidate, request_sha256: str, partition: int) -> AsyncIterator[Waiting]:
        """Read `partition` from its present end on, and hand what answers `candidate` to the yielded `Waiting`.

        The partition is positioned before this yields: what is published afterwards is not missed. Waits for a broker as long as it takes;
        the caller sets the limit. Raise `NotAllowed` where the topic is hidden.
        """
        waiting = Waiting(candidate, request_sha256, partition)
        self._waiting[partition].add(waiting)
        try:
            await self._position(waiting)
            yield waiting
        finally:
            self._waiting[partition].discard(waiting)
            self._left_at[partition] = asyncio.get_running_loop().time()
            if not waiting.answer.cancel() and not waiting.answer.cancelled():
                waiting.answer.exception()  # a refusal that nobody looked at any more

    async def close(self) -> None:
        """Stop reading."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._disconnect()

    async def _position(self, waiting: Waiting) -> None:
        """Assign a partition at its end, unless it is read already. Raise what became of `waiting` meanwhile: nothing but a refusal."""
        self._ensure_running()
        partition = waiting.partition
        while partition not in self._next:
            await self._up.wait()
            async with self._assigning:
                if waiting.answer.done():
                    waiting.answer.result()
                consumer = self._consumer
                if partition in self._next or consumer is None:
                    continue
                where = TopicPartition(self._topic, partition)
                try:
                    end = (await isolated(consumer.end_offsets([where]), CHECK_TIMEOUT_S))[where]
                except Exception as exc:  # noqa: BLE001  whatever the client raises, the reader connects anew
                    self._broken(exc)
                    if isinstance(exc, TopicAuthorizationFailedError):
                        self._refuse()
                    await asyncio.sleep(self._backoff.first_s)
                    continue
                if self._consumer is consumer:
                    self._next[partition] = end
                    self._assign(consumer)

    def _assign(self, consumer: Consumer) -> None:
        """Assign all partitions of interest at their positions: `assign` forgets them.

        No await stands between a poll's return and the positions that it moves, so a change here never goes back behind a delivered record.
        """
        consumer.assign([TopicPartition(self._topic, p) for p in self._next])
        for partition, offset in self._next.items():
            consumer.seek(TopicPartition(self._topic, partition), offset)
        self._work.set()

    def _ensure_running(self) -> None:
        """The reader runs; should it ever have ended, it begins anew and says so."""
        if self._closed:
            msg = "the client is closed"
            raise WinnowError(msg)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="winnow-feed")
            self._task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        """The reader ended, which only `close` and the end of the loop may cause; otherwise it begins anew for those who wait."""
        if not self._closed and not task.cancelling():
            log.error("feed_died", extra={"error": repr(task)})
            self._ensure_running()

    async def _run(self) -> None:
        attempt = 0
        while True:
            await self._disconnect()  # also what a reader task that died left behind
            try:
                await self._read()
            except TopicAuthorizationFailedError as exc:
                attempt += 1  # it connects well, so nothing else slows the tries down
                self._refuse()
                self._broken(exc)
            except Exception as exc:  # noqa: BLE001  a broker may fail in any way; an agent must get its answers once it is back
                attempt = 1 if self._up.is_set() else attempt + 1
                self._broken(exc)
                if any(self._waiting.values()) and await self._hidden():
                    self._refuse()
            await asyncio.sleep(self._backoff.delay(attempt, random.random()))  # noqa: S311  jitter, not a secret

    def _broken(self, exc: BaseException) -> None:
        """Note a broken connection; everybody who waits publishes again once it is back."""
        if self._up.is_set():
            log.warning("feed_broken", extra={"error": type(exc).__name__})
        self._up.clear()
        self._work.set()
        self._doubt(self._next)

    def _refuse(self) -> None:
        """Tell everybody who waits that the broker does not let this client read: no answer will come."""
        right = Right(resource=Resource.TOPIC, name=self._topic, operation=Operation.READ)
        for waiting in [one for all_of in self._waiting.values() for one in all_of]:
            if not waiting.answer.done():
                waiting.answer.set_exception(NotAllowed([right], self._user))

    def _doubt(self, partitions: Any) -> None:  # noqa: ANN401  any iterable of partition numbers
        for partition in list(partitions):
            for waiting in self._waiting.get(partition, ()):
                waiting.doubt.set()

    async def _disconnect(self) -> None:
        consumer, self._consumer = self._consumer, None
        self._up.clear()
        if consumer is not None:
            await discarded(consumer.stop(), CHECK_TIMEOUT_S)

    async def _read(self) -> None:
        """Connect and read until something breaks."""
        consumer = self._consumer = self._connect()
        self.built += 1
        await isolated(consumer.start(), CONNECT_S)
        if self._next:
            self._assign(consumer)
        self._up.set()
        clock = asyncio.get_running_loop().time
        checked, moved, doubts = clock(), set[int](), dict[int, int]()
        while self._up.is_set():
            if not self._next:
                self._work.clear()
                await self._work.wait()
                continue
            batches = await isolated(consumer.getmany(timeout_ms=POLL_MS))
            for where, records in batches.items():
                if where.partition in self._next:
                    self._next[where.partition] = records[-1].offset + 1
                    moved.add(where.partition)
                    for record in records:
                        self._offer(where.partition, record)
            if clock() - checked >= CHECK_S:
                self._leave_idle(consumer, clock())
                if any(self._waiting.values()):
                    await self._check(consumer, moved, doubts)
                checked, moved = clock(), set()
        msg = "the consumer was found broken"
        raise WinnowError(msg)

    def _leave_idle(self, consumer: Consumer, now: float) -> None:
        """Let go of partitions that nobody waits on any more."""
        idle = [p for p in self._next if not self._waiting.get(p) and now - self._left_at.get(p, now) > IDLE_S]
        for partition in idle:
            del self._next[partition]
            self._waiting.pop(partition, None)
            self._left_at.pop(partition, None)
        if idle:
            self._assign(consumer)

    async def _check(self, consumer: Consumer, moved: set[int], doubts: dict[int, int]) -> None:
        """Compare our positions with the broker's log: it may have begun anew (a memory broker), or our fetcher may stand still.

        `moved` are the partitions that brought records since the last check: they are well. `doubts` counts the checks in a row at which a
        partition was not: the embedded broker's idea of the end lags behind what it delivers, so one look proves nothing.
        """
        wanted = {TopicPartition(self._topic, p): p for p in self._next}
        if not wanted:
            return
        ends = await isolated(consumer.end_offsets(list(wanted)), CHECK_TIMEOUT_S)
        for where, partition in wanted.items():
            ours = self._next.get(partition)
            if ours is None:
                continue
            behind, ahead = ends[where] > ours, ends[where] < ours - END_SLACK
            doubts[partition] = doubts.get(partition, 0) + 1 if (behind or ahead) and partition not in moved else 0
            if behind and doubts[partition] >= DOUBTFUL_CHECKS:
                msg = f"records of partition {partition} do not arrive"
                raise WinnowError(msg)
            if ahead and doubts[partition] >= DOUBTFUL_CHECKS:
                await self._begin_anew(consumer, where)
                doubts[partition] = 0

    async def _begin_anew(self, consumer: Consumer, where: TopicPartition) -> None:
        """Read a log that began anew from its beginning; who waits publishes again."""
        self._next[where.partition] = (await isolated(consumer.beginning_offsets([where]), CHECK_TIMEOUT_S))[where]
        log.warning("log_began_anew", extra={"partition": where.partition})
        self._assign(consumer)
        self._doubt([where.partition])

    def _offer(self, partition: int, record: ConsumerRecord[bytes, bytes]) -> None:
        """Give a record to those who wait for it. A record that cannot be read is somebody else's, or another version's: it is skipped."""
        candidates = [w for w in self._waiting.get(partition, ()) if w.key == record.key and not w.answer.done()]
        if not candidates:
            return
        try:
            envelope = read_headers(record.headers)
            check_type(COMMITTED, envelope)
            answer = self._answer(envelope, record.value)
        except (Invalid, SchemaTooNew) as exc:
            log.warning("answer_unreadable", extra={"partition": partition, "offset": record.offset, "error": str(exc)})
            return
        for waiting in candidates:
            if isinstance(answer, Committed):
                if waiting.ticket == Ticket(answer.boundary_id, answer.request_sha256):
                    waiting.answer.set_result(answer)
            elif waiting.event_id == envelope.id:  # only its headers say whose it is
                waiting.answer.set_result(answer)

    @staticmethod
    def _answer(envelope: Envelope, value: bytes | None) -> Committed | bytes:
        """The event, or the bytes of the claim check that stands for it."""
        if envelope.claim:
            return value or b""
        return decode(Committed, value)
