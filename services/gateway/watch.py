"""Who waits for a boundary: woken by Postgres when it is committed, and by a look at the table where that word was lost."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from winnow.storage import boundaries
from winnow.storage.database import COMMITTED_CHANNEL, Database
from winnow.storage.keys import Key

#: Seconds between looks at the table. Finds what was said while the listening connection was down; one query, and only if somebody waits.
LOOK_S = 1.0


class CommitWatch:
    """Wakes waiting requests. One listening connection and one query every few seconds, however many wait."""

    def __init__(self, database: Database) -> None:
        """Nothing runs before `run`."""
        self._database = database
        self._waiting: defaultdict[Key, set[asyncio.Event]] = defaultdict(set)
        self._tokens: dict[str, Key] = {}  # how the channel names those that are waited for
        self._listening = False
        self.draining = False

    @property
    def listening(self) -> bool:
        """The listening connection was made at least once."""
        return self._listening

    @property
    def waiting(self) -> int:
        """Requests that wait."""
        return sum(len(events) for events in self._waiting.values())

    @contextmanager
    def interest(self, key: Key) -> Iterator[asyncio.Event]:
        """An event that is set when `key` may have been committed. Take it before looking at the table: then nothing is missed."""
        event = asyncio.Event()
        self._waiting[key].add(event)
        self._tokens[key.token] = key
        if self.draining:
            event.set()
        try:
            yield event
        finally:
            self._waiting[key].discard(event)
            if not self._waiting[key]:
                del self._waiting[key], self._tokens[key.token]

    def drain(self) -> None:
        """Wake everybody: the gateway stops, and who waits is told how far the boundary has come."""
        self.draining = True
        self._wake(list(self._waiting))

    async def listen(self) -> None:
        """Hear of commits, for ever."""
        await self._database.listen(COMMITTED_CHANNEL, self._notified, connected=self._connected)

    async def look(self) -> None:
        """Look at the table now and then, for ever."""
        while True:
            await asyncio.sleep(LOOK_S)
            await self.look_once()

    async def look_once(self) -> None:
        """Wake those whose boundary is committed, whoever told so or not."""
        keys = list(self._waiting)
        if not keys:
            return
        async with self._database.transaction() as tx:
            found = await boundaries.load(tx, keys)
        self._wake([key for key, boundary in found.items() if boundary.committed_at is not None])

    def _notified(self, payload: str) -> None:
        key = self._tokens.get(payload)
        if key is not None:
            self._wake([key])

    def _connected(self) -> None:
        """What was said while the connection was down is lost: everybody looks for himself."""
        self._listening = True
        self._wake(list(self._waiting))

    def _wake(self, keys: list[Key]) -> None:
        for key in keys:
            for event in self._waiting.get(key, ()):
                event.set()
