"""Stores in memory that keep the promises of `winnow.messaging.ports`: for tests and for a look at one stage without a database."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from winnow.contracts.events import ClaimCheck
from winnow.messaging.ports import DeadLetter, OutboxItem

Send = Callable[[Sequence[OutboxItem]], Awaitable[Sequence[int]]]


class MemoryDeadLetters:
    """`ports.DeadLetterStore` in a dictionary."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, int, int], DeadLetter] = {}

    async def add(self, letters: Sequence[DeadLetter]) -> Sequence[tuple[str, int, int]]:
        """Store what is new."""
        new: list[tuple[str, int, int]] = []
        for letter in letters:
            position = (letter.topic, letter.partition, letter.offset)
            if position not in self.rows:
                self.rows[position] = letter
                new.append(position)
        return new


class MemoryClaims:
    """`ports.ClaimStore` in a dictionary by fleet and handle."""

    def __init__(self) -> None:
        self.originals: dict[tuple[str, str], bytes] = {}

    async def fetch(self, claims: Sequence[ClaimCheck]) -> Sequence[bytes | None]:
        """What is there."""
        return [self.originals.get((claim.fleet, claim.handle)) for claim in claims]


class MemoryOutbox:
    """`ports.OutboxStore` and `ports.StuckStore` in lists."""

    def __init__(self) -> None:
        self.unsent: list[OutboxItem] = []
        self.sent: list[OutboxItem] = []
        self.stuck: list[OutboxItem] = []

    def put(self, item: OutboxItem) -> None:
        """Owe an event; ids are given in order."""
        self.unsent.append(replace(item, id=len(self.unsent) + len(self.sent) + 1))

    async def relay(self, limit: int, send: Send) -> int:
        """Send the oldest rows."""
        items = self.unsent[:limit]
        if not items:
            return 0
        done = set(await send(items))
        self.sent += [item for item in items if item.id in done]
        self.unsent = [item for item in self.unsent if item.id not in done]
        return len(done)

    async def depth(self) -> tuple[int, float]:
        """Rows that wait; their age is not kept."""
        return len(self.unsent), 0.0

    async def sweep(self, *, older_than_s: float, limit: int, send: Send) -> int:  # noqa: ARG002  nothing has an age here
        """Publish what was put into `stuck`, once."""
        items, self.stuck = self.stuck[:limit], self.stuck[limit:]
        if items:
            await send(items)
        return len(items)
