"""What operators do and auditors read over HTTP. Every action leaves a row in the audit trail, also where it fails."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from typing import TypeVar
from uuid import uuid4

from sqlalchemy.ext.asyncio import AsyncConnection

from services.gateway.problems import ProblemError
from winnow.client.api import ProblemReason
from winnow.contracts.envelope import CLAIM_HEADER
from winnow.contracts.topics import topic_named
from winnow.storage import alarms, audit, dead_letters, erase, fleets, outbox
from winnow.storage.alarms import Released
from winnow.storage.api_keys import ApiKey
from winnow.storage.database import Database
from winnow.storage.dead_letters import DeadLetter
from winnow.storage.erase import Erased
from winnow.storage.outbox import NewMessage

T = TypeVar("T")


class Operating:
    """Actions on the fleet of a key. That the key's role may act is the routes' to check (`keys.require`)."""

    def __init__(self, database: Database, *, topic_prefix: str, now: Callable[[], datetime]) -> None:
        """`topic_prefix` stands before topic names, `now` is the wall clock."""
        self._database = database
        self._prefix = topic_prefix
        self._now = now

    async def hold(self, key: ApiKey, because: str) -> bool:
        """Hold the fleet: nothing is pruned. False where it was held already."""
        return await self._act(
            key, "fleet.hold", because, lambda tx: fleets.hold(tx, key.fleet, by=key.actor, because=because, now=self._now())
        )

    async def release(self, key: ApiKey, because: str) -> Released:
        """End the hold; streams that had alarmed begin a new epoch."""

        async def work(tx: AsyncConnection) -> Released:
            return await alarms.release(tx, key.fleet, by=key.actor, because=because, webhook=False, now=self._now())

        return await self._act(key, "fleet.release", because, work)

    async def erase(self, key: ApiKey, run: str, because: str) -> Erased:
        """Erase a run for good."""

        async def work(tx: AsyncConnection) -> Erased:
            return await erase.erase_run(tx, key.fleet, run, by=key.actor, because=because, now=self._now())

        return await self._act(key, "erase.run", because, work)

    async def replay(self, key: ApiKey, letter_id: int, because: str) -> None:
        """Put the body of a dead letter on its topic again, through the outbox. Raise `NotFound`, `ProblemError`."""

        async def work(tx: AsyncConnection) -> None:
            await replay(tx, key.fleet, letter_id, by=key.actor, because=because, topic_prefix=self._prefix, now=self._now())

        await self._act(key, "dead_letter.replay", because, work)

    async def letters(self, fleet: str, before_id: int | None, limit: int) -> list[DeadLetter]:
        """Dead letters of the fleet, newest first, without their bodies."""
        async with self._database.fleet_transaction(fleet) as tx:
            return await dead_letters.page(tx, fleet=fleet, before_id=before_id, limit=limit, bodies=False)

    async def trail(self, fleet: str, action: str | None, before_id: int | None, limit: int) -> list[audit.Entry]:
        """The audit trail of the fleet, newest first."""
        async with self._database.fleet_transaction(fleet) as tx:
            return await audit.page(tx, fleet=fleet, action=action, before_id=before_id, limit=limit)

    async def _act(self, key: ApiKey, action: str, because: str, work: Callable[[AsyncConnection], Awaitable[T]]) -> T:
        """Run `work` in one transaction as the pipeline, for it reaches tables that the gateway's role does not; tell of a failure."""
        try:
            async with self._database.transaction() as tx:
                return await work(tx)
        except Exception as error:
            # The error is what matters; where the database is away, nothing can be written about it.
            with suppress(Exception):
                async with self._database.transaction() as tx:
                    await failed(tx, key, action, because, error, now=self._now())
            raise


async def failed(tx: AsyncConnection, key: ApiKey, action: str, because: str, error: Exception, *, now: datetime) -> None:
    """Write down that an operator asked for something that took no effect. The transaction is another than the one that failed."""
    details = {"error": type(error).__name__}
    await audit.add(
        tx, action=action, by=key.actor, now=now, fleet=key.fleet, because=because, outcome=audit.Outcome.FAILED, details=details
    )


async def replay(tx: AsyncConnection, fleet: str, letter_id: int, *, by: str, because: str, topic_prefix: str, now: datetime) -> DeadLetter:
    """Put a dead letter of `fleet` into the outbox, with an audit row. Raise `ProblemError`; another fleet's letter is not there."""
    found = await letter_of(tx, fleet, letter_id)
    problem = obstacle(found, topic_prefix)
    topic = topic_named(found.letter.topic, topic_prefix)
    if problem is not None or topic is None:
        raise ProblemError(ProblemReason.INVALID, problem or "the registry has no such topic")
    # All other headers are made anew from topic and body; this one says that the body is a claim check.
    claimed = any(name == CLAIM_HEADER and value == b"1" for name, value in found.letter.headers)
    message = NewMessage(
        fleet=fleet,
        topic=topic.name,
        key=(found.letter.key or b"").decode(),
        body=found.letter.value or b"",
        # Another id than the original's: within a day the outbox takes an id once, and a second replay must be one.
        event_id=uuid4(),
        headers={CLAIM_HEADER: "1"} if claimed else {},
        run=found.letter.run,
    )
    await outbox.add(tx, [message])
    await dead_letters.mark_replayed(tx, [letter_id], now=now)
    details = {"dead_letter": letter_id, "topic": topic.name, "reason": found.letter.reason}
    await audit.add(tx, action="dead_letter.replay", by=by, now=now, fleet=fleet, because=because, details=details)
    return found


async def letter_of(tx: AsyncConnection, fleet: str, letter_id: int) -> DeadLetter:
    """A dead letter of the fleet. Raise `ProblemError`, for another fleet's as if it were not there."""
    found = await dead_letters.get(tx, letter_id)
    if found.letter.fleet != fleet:  # bytes of another tenant are at stake, whatever role asks
        raise ProblemError(ProblemReason.NOT_FOUND, f"there is no dead letter {letter_id}")
    return found


def obstacle(letter: DeadLetter, topic_prefix: str) -> str | None:
    """Why the letter cannot be played again through the outbox; None: it can."""
    new = letter.letter
    topic = topic_named(new.topic, topic_prefix)
    if topic is None or topic.event is None:
        return "its topic is none of the registry's; see `winnow dead-letters replay`"
    if not new.value:
        return "it has no body"
    if len(new.value) > topic.max_body_bytes:
        return "it is larger than its topic takes"
    try:
        (new.key or b"").decode()
    except UnicodeDecodeError:
        return "its key is not UTF-8; see `winnow dead-letters replay`"
    return None
