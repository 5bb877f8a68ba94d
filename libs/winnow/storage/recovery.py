"""Recover on demand: a place gives back its exact bytes; that an agent asked for them is noted, told, and pins an entry for its run."""

import asyncio
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pydantic import ValidationError
from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.compaction.recovered import given_key, keys_of, relabelled
from winnow.compaction.roles import origin_of
from winnow.contracts.errors import EventIdTaken, Gone, NotFound
from winnow.contracts.events import Message, Messages
from winnow.contracts.places import Part, Place
from winnow.contracts.vocabulary import MessageKind, Origin, Rules, RuntimeEventKind
from winnow.storage import originals, raw
from winnow.storage.keys import Key
from winnow.storage.originals import THREAD_BYTES, Given, Kind, Resolved
from winnow.storage.values import storable

#: Bytes that a cut is moved back at most, so that no character of UTF-8 is split.
_CHARACTER_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a place stands for. `data` are its exact bytes, `[start, end)` of the `size` that it has."""

    place: Place
    original: Resolved
    data: bytes
    start: int
    size: int
    #: The run that the original belongs to; None for an upload that no boundary claimed.
    run: str | None
    #: The bytes are what an environment returned: a source when they come back in a history.
    source: bool
    #: Identity of the wording, where the place is an entry.
    text_key: str | None = None

    @property
    def end(self) -> int:
        """Where `data` ends in the whole."""
        return self.start + len(self.data)

    def cut(self, start: int, end: int | None) -> "Found":
        """The bytes `[start, end)` of it. An end inside a character of UTF-8 is moved back to where the character begins."""
        begin = min(start, self.size)
        stop = self.size if end is None else max(begin, min(end, self.size))
        if stop < self.size:
            for back in range(min(_CHARACTER_BYTES, stop - begin)):
                if self.data[stop - back] & 0xC0 != 0x80:  # noqa: PLR2004  a continuation byte is 10xxxxxx
                    stop -= back
                    break
        return Found(
            place=self.place, original=self.original, data=self.data[begin:stop], start=begin, size=self.size, run=self.run,
            source=self.source, text_key=self.text_key,
        )  # fmt: skip

    def given(self) -> Given:
        """What is noted of it."""
        try:
            text = self.data.decode()
        except UnicodeDecodeError:  # it cannot come back as a text, so nothing need be known of it
            return Given(size=len(self.data), part=self.place.suffix)
        key = given_key(text) if text.strip() else None
        return Given(size=len(self.data), part=self.place.suffix, key=key, source=None if key is None else self.source)


async def find(tx: AsyncConnection, fleet: str, place: Place, *, now: datetime) -> Found:
    """The exact bytes of a place. Raise `NotFound` (also for another fleet's), `Gone` where it is expired or erased."""
    original = await originals.resolve(tx, fleet, place.handle, now=now)
    run = await _run_of(tx, fleet, original.boundary_id)
    if place.part is Part.ENTRY:
        data, text_key = await _entry(tx, original, place)
        source = False
    elif place.part is Part.MESSAGE:
        text_key = None
        data, source = await _message(tx, original, place)
    else:
        data, text_key, source = original.data, None, False
    return Found(place=place, original=original, data=data, start=0, size=len(data), run=run, source=source, text_key=text_key)


async def _run_of(tx: AsyncConnection, fleet: str, boundary_id: UUID | None) -> str | None:
    row = await raw.fetch_one(tx, "SELECT run FROM boundaries WHERE fleet = $1 AND boundary_id = $2", fleet, boundary_id)
    return None if row is None else row["run"]


async def _entry(tx: AsyncConnection, original: Resolved, place: Place) -> tuple[bytes, str]:
    """An entry's bytes in its candidate, and its wording's identity."""
    if original.kind is not Kind.CANDIDATE or original.boundary_id is None:
        raise NotFound("only a candidate has entries: ask for the handle alone, or take a place from pruned_entries")
    row = await raw.fetch_one(
        tx,
        "SELECT b.entries, e.span_start, e.span_end, e.text_key FROM boundaries b LEFT JOIN entries e ON e.fleet = b.fleet"
        " AND e.boundary_id = b.boundary_id AND e.boundary_at = b.boundary_at AND e.n = $3 WHERE b.fleet = $1 AND b.boundary_id = $2",
        original.fleet,
        original.boundary_id,
        place.n,
    )
    if row is None:
        raise Gone
    if row["text_key"] is None:
        raise NotFound(f"the candidate has no entry {place.n}; pruned_entries lists what was pruned")
    return original.data[row["span_start"] : row["span_end"]], row["text_key"]


async def _message(tx: AsyncConnection, original: Resolved, place: Place) -> tuple[bytes, bool]:
    """A message's text, and whether an environment said it."""
    if original.kind is not Kind.HISTORY or original.boundary_id is None:  # what nobody compacted, nobody vouches for
        raise NotFound("only the history of a boundary has messages: ask for the handle alone, or take a place from search_history")
    large = len(original.data) > THREAD_BYTES
    messages = await asyncio.to_thread(messages_of, original.data) if large else messages_of(original.data)
    message = next((m for m in messages if m.i == place.n), None)
    if message is None:
        raise NotFound(f"the history has no message {place.n}; search_history finds those that it has")
    return message.text.encode("utf-8", "surrogatepass"), await _said_by_environment(tx, original.fleet, message)


def messages_of(history: bytes) -> tuple[Message, ...]:
    """H and R of a stored history. Raise `NotFound` where the original holds no messages."""
    try:
        found = Messages.model_validate_json(history)
    except ValidationError:
        raise NotFound("the original holds no messages; ask for the handle alone") from None
    return (*found.history, *found.retained)


async def _said_by_environment(tx: AsyncConnection, fleet: str, message: Message) -> bool:
    """Whether a message is what an environment returned: no echo, and nothing that was itself recovered."""
    if message.kind is not MessageKind.ENVIRONMENT:
        return False
    (known,) = relabelled([message], await given(tx, fleet, keys_of([message])))
    return origin_of(known, Rules.WINNOW) is Origin.OBSERVATION


async def asked_back(tx: AsyncConnection, found: Found, *, run: str | None, event_id: UUID, now: datetime) -> bool:
    """Note that an agent of `run` asked for this (once by `event_id`), and pin an entry for the rest of the run that it belongs to.

    Return whether it was noted now. Raise `EventIdTaken` where `event_id` is another recovery's, or another event's: this one would be
    neither noted nor told.
    """
    what, fleet = found.given(), found.original.fleet
    place = (found.place.handle, found.place.suffix)
    new = await originals.record_recovery(tx, found.original, via="gateway", now=now, run=run, event_id=event_id, given=what)
    if new:
        sql = "SELECT kind, handle, part FROM runtime_events WHERE fleet = $1 AND event_id = $2"
        told = await raw.fetch_one(tx, sql, fleet, event_id)
        if told is not None and tuple(told) != (RuntimeEventKind.RECOVERED, *place):
            raise EventIdTaken
    else:
        sql = "SELECT handle, part, via, given_key FROM recoveries WHERE fleet = $1 AND event_id = $2"
        noted = await raw.fetch_one(tx, sql, fleet, event_id)
        reported = noted is not None and noted["via"] == "runtime"
        if noted is None or (noted["handle"], noted["part"]) != place or (noted["given_key"] != what.key and not reported):
            raise EventIdTaken
        if reported and what.key is not None and what.key not in await given(tx, fleet, [what.key]):
            # The runtime told of it before it asked, and no row knows the bytes: without one they would be evidence when they come back.
            await originals.record_recovery(tx, found.original, via="gateway", now=now, run=run, given=what)
    if found.text_key is not None and found.original.boundary_id is not None and found.place.n is not None:
        await raw.execute(
            tx,
            "INSERT INTO pinned_entries (fleet, run, text_key, boundary_id, n, pinned_at) VALUES ($1, $2, $3, $4, $5, $6)"
            " ON CONFLICT DO NOTHING",
            fleet,
            found.run,
            found.text_key,
            found.original.boundary_id,
            found.place.n,
            now,
        )
    return new


async def given(tx: AsyncConnection, fleet: str, keys: Collection[str]) -> dict[str, bool]:
    """Of texts (by `given_key`) that Winnow gave somebody of the fleet: whether an environment had returned them."""
    if not keys:
        return {}
    return (await given_of_many(tx, {fleet: keys})).get(fleet, {})


async def given_of_many(tx: AsyncConnection, keys: Mapping[str, Iterable[str]]) -> dict[str, dict[str, bool]]:
    """`given` for several fleets at once; a fleet of which nothing is known is left out."""
    asked = sorted({(fleet, key) for fleet, of_fleet in keys.items() for key in of_fleet})
    if not asked:
        return {}
    # The same bytes given as an output and as something else: an environment did return them.
    rows = await raw.fetch(
        tx,
        "SELECT r.fleet, r.given_key, bool_or(r.source) AS source FROM unnest($1::text[], $2::text[]) AS k(fleet, given_key)"
        " JOIN recoveries r ON r.fleet = k.fleet AND r.given_key = k.given_key GROUP BY r.fleet, r.given_key",
        *raw.columns(asked, 2),
    )
    found: dict[str, dict[str, bool]] = {}
    for row in rows:
        found.setdefault(row["fleet"], {})[row["given_key"]] = row["source"]
    return found


async def pins_of(tx: AsyncConnection, runs: Collection[tuple[str, str]]) -> dict[tuple[str, str], frozenset[str]]:
    """Wordings (`text_key`) that are pinned in runs (fleet, run); a run without any is left out."""
    if not runs:
        return {}
    asked = sorted({(fleet, storable(run)): (fleet, run) for fleet, run in runs}.items())
    rows = await raw.fetch(
        tx,
        "SELECT p.fleet, p.run, array_agg(p.text_key) AS keys FROM unnest($1::text[], $2::text[]) AS k(fleet, run)"
        " JOIN pinned_entries p ON p.fleet = k.fleet AND p.run = k.run GROUP BY p.fleet, p.run",
        *raw.columns([stored for stored, _ in asked], 2),
    )
    named = dict(asked)
    return {named[row["fleet"], row["run"]]: frozenset(row["keys"]) for row in rows}


async def wordings_of(tx: AsyncConnection, keys: Sequence[Key]) -> dict[Key, dict[int, str]]:
    """`text_key` of each entry of boundaries, by its number."""
    if not keys:
        return {}
    rows = await raw.fetch(
        tx,
        "SELECT c.fleet, c.boundary_id, c.n, c.text_key FROM unnest($1::text[], $2::uuid[]) AS k(fleet, boundary_id)"
        " JOIN boundaries b ON b.fleet = k.fleet AND b.boundary_id = k.boundary_id"
        " JOIN entries c ON c.fleet = b.fleet AND c.boundary_id = b.boundary_id AND c.boundary_at = b.boundary_at",
        *raw.columns(sorted(set(keys)), 2),
    )
    found: dict[Key, dict[int, str]] = {}
    for row in rows:
        found.setdefault(Key(row["fleet"], row["boundary_id"]), {})[row["n"]] = row["text_key"]
    return found
