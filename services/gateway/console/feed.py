"""News for open pages: that something of a fleet changed, never what. Bounded, and one look at the tables a second however many listen."""

import asyncio
import hashlib
import json
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager

from services.gateway.console.reading import Reading
from winnow.storage import glance
from winnow.storage.database import transient

#: Seconds between looks. A page that shows a boundary a second later is still live, and a look costs a few index probes a fleet.
LOOK_S = 1.0
#: Times its own duration that a look waits for the next: a slow database is not asked more often because of it.
REST = 4.0
#: Seconds between signs of life on a quiet stream: proxies cut what says nothing for a minute.
BEAT_S = 15.0
#: Seconds that one stream lasts; the page then asks anew, and whoever lost the right to is told so.
LIFE_S = 600.0
#: Hexadecimal digits of a mark.
MARK_DIGITS = 12

#: Fleet -> kind of thing -> a mark that changes when something of the kind does.
Marks = dict[str, dict[str, str]]


class Feed:
    """Looks at the fleets that somebody listens to, and wakes listeners."""

    def __init__(self, reading: Reading, *, most: int) -> None:
        """`most` listeners at once. Nothing runs before `run`."""
        self._reading = reading
        self._most = most
        self._listeners: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        self._marks: Marks = {}
        self._count = 0
        self._first = asyncio.Event()
        self._drained = False

    @contextmanager
    def seat(self) -> Iterator[bool]:
        """A place among the listeners until the block ends; false where there is none left. Taken at once, so that a burst is bounded."""
        given = not self._drained and self._count < self._most
        self._count += given
        try:
            yield given
        finally:
            self._count -= given

    def drain(self) -> None:
        """End all streams: the gateway stops."""
        self._drained = True
        for events in self._listeners.values():
            for event in events:
                event.set()

    async def marks(self, fleets: tuple[str, ...]) -> Marks:
        """The marks of fleets now. A fleet that is not there has none."""
        found: Marks = {}
        for fleet in fleets:
            async with self._reading.of(fleet) as tx:
                found[fleet] = marked(await glance.marks(tx, fleet))
        return found

    async def run(self) -> None:
        """Look, for ever, as long as anybody listens."""
        while True:
            if not self._listeners:
                self._first.clear()
                await self._first.wait()
            begun = time.monotonic()
            for fleet in tuple(self._listeners):
                await self._look(fleet)
            await asyncio.sleep(max(LOOK_S, REST * (time.monotonic() - begun)))

    async def _look(self, fleet: str) -> None:
        try:
            found = (await self.marks((fleet,)))[fleet]
        except Exception as exc:
            if not transient(exc):
                raise
            return  # the next look may succeed; pages keep what they show
        if self._marks.get(fleet) != found:
            self._marks[fleet] = found
            for event in self._listeners.get(fleet, ()):
                event.set()

    async def stream(self, fleets: tuple[str, ...], told: Marks) -> AsyncIterator[str]:
        """Server-sent events: `told`, the marks of `fleets` as they were, again whenever they change, and a comment now and then."""
        ends = time.monotonic() + LIFE_S
        with self._listening(fleets) as changed:
            yield _event(told)
            while not self._drained and time.monotonic() < ends:
                try:
                    await asyncio.wait_for(changed.wait(), BEAT_S)
                except TimeoutError:
                    yield ": beat\n\n"
                    continue
                changed.clear()
                news = told | {f: self._marks[f] for f in fleets if f in self._marks}
                if news != told and not self._drained:
                    told = news
                    yield _event(told)

    @contextmanager
    def _listening(self, fleets: tuple[str, ...]) -> Iterator[asyncio.Event]:
        event = asyncio.Event()
        event.set()  # a look may have come between the marks that the listener was told and this
        for fleet in fleets:
            self._listeners[fleet].add(event)
        self._first.set()
        try:
            yield event
        finally:
            for fleet in fleets:
                self._listeners[fleet].discard(event)
                if not self._listeners[fleet]:
                    del self._listeners[fleet]
                    self._marks.pop(fleet, None)


def marked(said: Mapping[str, str]) -> dict[str, str]:
    """What a page may know of what `glance.marks` says: that it is another, and nothing of what it was made from."""
    return {kind: hashlib.sha256(value.encode()).hexdigest()[:MARK_DIGITS] for kind, value in said.items()}


def _event(marks: Marks) -> str:
    return f"event: marks\nretry: 3000\ndata: {json.dumps(marks)}\n\n"
