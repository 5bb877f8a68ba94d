"""What messaging asks of storage (`winnow.messaging.ports`), answered from the tables."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta

from winnow.contracts.envelope import CLAIM_HEADER
from winnow.contracts.errors import Gone, NotFound
from winnow.contracts.events import ClaimCheck
from winnow.contracts.topics import COMMITTED, EVIDENCE, SCORES
from winnow.contracts.vocabulary import Reason
from winnow.messaging import faults
from winnow.messaging.bus import Bus
from winnow.messaging.faults import Fault
from winnow.messaging.outbox import RELAY_BYTES
from winnow.messaging.ports import DeadLetter, OutboxItem
from winnow.messaging.settings import KafkaSettings
from winnow.storage import dead_letters, originals, outbox, stuck
from winnow.storage.database import Database
from winnow.storage.faults import data_error, transient
from winnow.storage.keys import Stage
from winnow.telemetry import Telemetry

Send = Callable[[Sequence[OutboxItem]], Awaitable[Sequence[int]]]
Clock = Callable[[], datetime]

#: The topic that a stage's stored answer travels on.
TOPIC_OF = {Stage.EVIDENCE: EVIDENCE, Stage.SCORES: SCORES, Stage.COMMITTED: COMMITTED}


class DeadLetterTable:
    """`ports.DeadLetterStore`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def add(self, letters: Sequence[DeadLetter]) -> Sequence[tuple[str, int, int]]:
        """Store letters once by position; return the positions that are new."""
        rows = [
            dead_letters.NewDeadLetter(
                topic=letter.topic,
                partition=letter.partition,
                offset=letter.offset,
                key=letter.key,
                value=letter.value,
                headers=letter.headers,
                reason=Reason(letter.reason),
                error=letter.error,
                service=letter.service,
                attempts=letter.attempts,
                fleet=letter.fleet,
                run=letter.run,
                timestamp=datetime.fromtimestamp(letter.timestamp / 1000, UTC) if letter.timestamp >= 0 else None,
            )
            for letter in letters
        ]
        async with self._database.transaction() as tx:
            new = await dead_letters.add(tx, rows, now=self._clock())
        return [(row.letter.topic, row.letter.partition, row.letter.offset) for row in new]


class ClaimedOriginals:
    """`ports.ClaimStore`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def fetch(self, claims: Sequence[ClaimCheck]) -> Sequence[bytes | None]:
        """The bytes of each claim, None where this fleet has no such original (any more)."""
        found: list[bytes | None] = []
        async with self._database.transaction() as tx:
            for claim in claims:
                try:
                    found.append((await originals.resolve(tx, claim.fleet, claim.handle, now=self._clock())).data)
                except (NotFound, Gone):
                    found.append(None)
        return found


class OutboxTable:
    """`ports.OutboxStore`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def relay(self, limit: int, send: Send) -> int:
        """Claim, send and mark in one transaction: a crash before its end sends the rows again."""
        async with self._database.transaction() as tx:
            rows = await outbox.claim(tx, limit, most_bytes=RELAY_BYTES)
            if not rows:
                return 0
            done = await send(
                [
                    OutboxItem(
                        id=row.id,
                        topic=row.message.topic,
                        key=row.message.key,
                        body=row.message.body,
                        event_id=str(row.message.event_id),
                        time=row.created_at,
                        traceparent=row.message.traceparent,
                        claim=row.message.headers.get(CLAIM_HEADER) == "1",
                    )
                    for row in rows
                ]
            )
            await outbox.mark_sent(tx, done, now=self._clock())
            await outbox.mark_failed(tx, sorted({row.id for row in rows} - set(done)), "not confirmed by the broker")
            return len(done)

    async def depth(self) -> tuple[int, float]:
        """Unsent rows and the age of the oldest in seconds."""
        async with self._database.reading() as tx:
            rows, since = await outbox.depth(tx)
        return rows, 0.0 if since is None else max(0.0, (self._clock() - since).total_seconds())


class StuckBoundaries:
    """`ports.StuckStore`."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def sweep(self, *, older_than_s: float, limit: int, send: Send) -> int:
        """Publish again what each stuck boundary waits for: its last stored answer, or its candidate through the outbox."""
        now = self._clock()
        async with self._database.transaction() as tx:
            found = await stuck.find(tx, older_than=timedelta(seconds=older_than_s), now=now, limit=limit)
            if not found:
                return 0
            items = [
                OutboxItem(
                    id=n,
                    topic=TOPIC_OF[s.republish.stage].name,
                    key=s.republish.output.record_key,
                    body=s.republish.output.body,
                    event_id=str(s.republish.output.event_id),
                    time=s.republish.created_at,
                    traceparent=s.republish.output.traceparent,
                    claim=s.republish.output.claim,
                )
                for n, s in enumerate(found)
                if s.republish is not None
            ]
            await outbox.resend(tx, [s.boundary.key for s in found if s.republish is None])
            await send(items)
        return len(found)


def classify(error: BaseException) -> Fault:
    """Whose fault an error is: what the database says comes before what messaging can tell by itself."""
    if transient(error):
        return Fault.TRANSIENT
    return Fault.INPUT if data_error(error) else faults.classify(error)


async def bus_for(database: Database, settings: KafkaSettings, telemetry: Telemetry, clock: Clock) -> Bus:
    """A bus whose dead letters and claim checks live in `database`. Raise `KafkaError` where no broker answers."""
    return await Bus.open(
        settings,
        telemetry=telemetry,
        dead_letters=DeadLetterTable(database, clock),
        claims=ClaimedOriginals(database, clock),
        classify=classify,
    )
