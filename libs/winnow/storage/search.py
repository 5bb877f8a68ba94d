"""Search of a fleet's or a run's history, and what was pruned of a run: places and short excerpts, never whole contents.

Searched are the newest boundaries, as far as their originals fit the budget; the answer says whether that was all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.compaction import search as ranking
from winnow.compaction.recovered import relabelled
from winnow.compaction.roles import origin_of
from winnow.contracts import limits
from winnow.contracts.errors import NotFound
from winnow.contracts.events import Message
from winnow.contracts.places import Part, Place
from winnow.contracts.vocabulary import MessageKind, Mode, Origin, Rules
from winnow.storage import cursors, originals, raw
from winnow.storage.keys import ContentKey, Key
from winnow.storage.recovery import messages_of
from winnow.storage.values import storable

#: Boundaries that are searched at most, the newest first.
MOST_BOUNDARIES: Final = 200
#: Bytes of histories that are searched at most: a quarter of a second of work, and about four times as much memory.
MOST_BYTES: Final = 8 * limits.MIB
#: Entries that are searched at most, and bytes of the summaries that they stand in: two hundred summaries may have four million of them.
MOST_ENTRIES: Final = 2 * limits.MAX_ENTRIES
MOST_ENTRY_BYTES: Final = 8 * limits.MIB
#: Places that a search finds at most, over all pages.
MOST_HITS: Final = 100
#: Rows of a page at most: what an agent reads costs its context.
MOST_ROWS: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A place that was found."""

    place: Place
    run: str
    boundary_id: UUID
    boundary_index: int
    score: float
    excerpt: str
    #: For messages: who speaks, what an output really is, its tool.
    kind: MessageKind | None = None
    origin: Origin | None = None
    tool: str | None = None
    #: For entries: the heading, and whether it was pruned (None where nothing was pruned at the boundary, whatever the verdicts).
    section: str | None = None
    pruned: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HitPage:
    """One page of hits, best first."""

    hits: tuple[Hit, ...]
    next_cursor: str | None
    #: Boundaries that were searched, and whether there is nothing behind them that was not.
    boundaries: int
    complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """An entry that was pruned."""

    place: Place
    run: str
    boundary_id: UUID
    boundary_index: int
    n: int
    section: str
    excerpt: str
    reason: str
    score: float | None
    explanation: str
    #: An agent asked for this wording back: it is pinned from then on.
    asked_back: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunedPage:
    """One page of pruned entries, the newest boundary first."""

    entries: tuple[Pruned, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stretch:
    """A text that is searched, and where it stands."""

    text: str
    boundary: raw.Record
    place: Place
    message: Message | None = None
    origin: Origin | None = None
    section: str | None = None
    pruned: bool | None = None


_BOUNDARIES = """
SELECT b.boundary_id, b.run, b.boundary_index, b.boundary_at, b.effective_mode, b.history_sha256, o.size,
    b.entries, c.size AS candidate_size,
    (SELECT h.handle FROM handles h WHERE h.fleet = b.fleet AND h.boundary_id = b.boundary_id AND h.kind = 'history'
        AND h.erased_at IS NULL AND (h.expires_at IS NULL OR h.expires_at > $5) ORDER BY h.created_at, h.handle LIMIT 1) AS history,
    (SELECT h.handle FROM handles h WHERE h.fleet = b.fleet AND h.boundary_id = b.boundary_id AND h.kind = 'candidate'
        AND h.erased_at IS NULL AND (h.expires_at IS NULL OR h.expires_at > $5) ORDER BY h.created_at, h.handle LIMIT 1) AS candidate
FROM boundaries b LEFT JOIN originals o ON o.fleet = b.fleet AND o.sha256 = b.history_sha256
LEFT JOIN originals c ON c.fleet = b.fleet AND c.sha256 = b.candidate_sha256
WHERE b.fleet = $1 AND ($2::text IS NULL OR b.run = $2) AND ($3::timestamptz IS NULL OR b.boundary_at <= $3) AND b.evidence_at IS NOT NULL
ORDER BY b.boundary_at DESC, b.boundary_id DESC LIMIT $4
"""

_ENTRIES = """
SELECT e.boundary_id, e.n, e.section, e.text, e.text_key, d.decision
FROM unnest($1::text[], $2::uuid[]) AS k(fleet, boundary_id)
JOIN boundaries b ON b.fleet = k.fleet AND b.boundary_id = k.boundary_id
JOIN entries e ON e.fleet = b.fleet AND e.boundary_id = b.boundary_id AND e.boundary_at = b.boundary_at
LEFT JOIN decisions d ON d.fleet = e.fleet AND d.boundary_id = e.boundary_id AND d.boundary_at = e.boundary_at AND d.n = e.n
ORDER BY e.boundary_id, e.n
"""

# Only where the mode was enforce was anything pruned: what annotate and shadow would have pruned, the agent still has.
_PRUNED = """
SELECT b.boundary_id, b.run, b.boundary_index, b.boundary_at, e.n, e.section, e.text, d.reason, d.score, d.explanation, h.handle,
    EXISTS (SELECT FROM pinned_entries p WHERE p.fleet = b.fleet AND p.run = b.run AND p.text_key = e.text_key) AS asked_back
FROM boundaries b
JOIN decisions d ON d.fleet = b.fleet AND d.boundary_id = b.boundary_id AND d.boundary_at = b.boundary_at AND d.decision = 'pruned'
JOIN entries e ON e.fleet = d.fleet AND e.boundary_id = d.boundary_id AND e.boundary_at = d.boundary_at AND e.n = d.n
CROSS JOIN LATERAL (
    SELECT h.handle FROM handles h WHERE h.fleet = b.fleet AND h.boundary_id = b.boundary_id AND h.kind = 'candidate'
        AND h.erased_at IS NULL AND (h.expires_at IS NULL OR h.expires_at > $6) ORDER BY h.created_at, h.handle LIMIT 1) h
WHERE b.fleet = $1 AND b.run = $2 AND b.effective_mode = 'enforce'
    AND ($3::timestamptz IS NULL OR (b.boundary_at, b.boundary_id) < ($3, $4::uuid)
        OR (b.boundary_at, b.boundary_id) = ($3, $4::uuid) AND e.n > $5)
ORDER BY b.boundary_at DESC, b.boundary_id DESC, e.n LIMIT $7
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathered:
    """What a search reads: ranked outside of the transaction, since it takes longer than reading."""

    boundaries: Sequence[raw.Record]
    entries: Sequence[raw.Record]
    #: Histories by hash.
    histories: Mapping[str, bytes]
    #: Nothing was left out.
    complete: bool
    #: Newest boundary of the first page, and how many hits earlier pages showed.
    anchor: datetime
    shown: int


async def gather(tx: AsyncConnection, fleet: str, *, run: str | None, cursor: str | None, now: datetime) -> Gathered:
    """Read the newest boundaries of a fleet, or of one run. Raise `BadCursor`, and `NotFound` for a run that is not there."""
    before, shown = (None, 0) if cursor is None else _after(cursor)
    named = None if run is None else storable(run)
    rows = await raw.fetch(tx, _BOUNDARIES, fleet, named, before, MOST_BOUNDARIES + 1, now)
    if run is not None and not rows:
        raise NotFound("there is no such run in this fleet, or none of its boundaries is read yet; leave the run out to search all of them")
    searched = rows[:MOST_BOUNDARIES]
    hashes, fit = _fitting(searched)
    histories = await originals.get(tx, {ContentKey(fleet, sha256) for sha256 in hashes})
    listed, all_listed = _listed(searched)
    entries = await raw.fetch(tx, _ENTRIES, *raw.columns(sorted(Key(fleet, row["boundary_id"]) for row in listed), 2))
    return Gathered(
        boundaries=searched,
        entries=entries,
        histories={key.sha256: data for key, data in histories.items()},
        complete=fit and all_listed and len(rows) <= MOST_BOUNDARIES,
        anchor=before or (searched[0]["boundary_at"] if searched else now),
        shown=shown,
    )


def find(gathered: Gathered, query: str, limit: int) -> HitPage:
    """The page of hits that a query has in what was read, best first; the same text found twice is shown where it stands last. Pure."""
    stretches = _stretches(gathered)
    matches = ranking.search(query, [stretch.text for stretch in stretches])
    found = matches.found[:MOST_HITS]
    end = gathered.shown + max(1, min(limit, MOST_ROWS))
    return HitPage(
        hits=tuple(_hit(stretches[match.text], match) for match in found[gathered.shown : end]),
        next_cursor=cursors.encode(gathered.anchor, str(end)) if end < len(found) else None,
        boundaries=len(gathered.boundaries),
        complete=gathered.complete and matches.complete and len(matches.found) <= MOST_HITS,
    )


def _after(cursor: str) -> tuple[datetime, int]:
    """The newest boundary of the first page, so that all pages rank the same texts, and how many hits were shown."""
    at, shown = cursors.decode(cursor)
    if not (shown.isascii() and shown.isdigit() and len(shown) <= len(str(MOST_HITS))):
        raise cursors.BadCursor
    return at, int(shown)


def _fitting(rows: Sequence[raw.Record]) -> tuple[set[str], bool]:
    """Hashes of the histories that fit the budget together, the newest first, and whether all do."""
    left = MOST_BYTES
    fitting: set[str] = set()
    fit = True
    for row in rows:
        if row["history"] is None or row["size"] is None or row["history_sha256"] in fitting:
            continue
        if row["size"] > left:
            fit = False
            continue
        left -= row["size"]
        fitting.add(row["history_sha256"])
    return fitting, fit


def _listed(rows: Sequence[raw.Record]) -> tuple[list[raw.Record], bool]:
    """Boundaries whose entries fit the budget together, the newest first, and whether all do."""
    entries, size = MOST_ENTRIES, MOST_ENTRY_BYTES
    fitting: list[raw.Record] = []
    for row in rows:
        count, of_candidate = row["entries"] or 0, row["candidate_size"] or 0
        if count <= entries and of_candidate <= size:
            entries, size = entries - count, size - of_candidate
            fitting.append(row)
    return fitting, len(fitting) == len(rows)


def _stretches(gathered: Gathered) -> list[_Stretch]:
    """What is searched, the newest boundary first, each wording once: entries are carried on, and R stands again in the next H."""
    listed: dict[UUID, list[raw.Record]] = {}
    for row in gathered.entries:
        listed.setdefault(row["boundary_id"], []).append(row)
    seen: set[str | tuple[str, str]] = set()
    found: list[_Stretch] = []
    for boundary in gathered.boundaries:
        if boundary["candidate"] is not None:
            pruning = boundary["effective_mode"] == Mode.ENFORCE
            for row in listed.get(boundary["boundary_id"], ()):
                if row["text_key"] not in seen:
                    seen.add(row["text_key"])
                    place = Place(boundary["candidate"], Part.ENTRY, row["n"])
                    pruned = row["decision"] == "pruned" if pruning else None
                    found.append(_Stretch(text=row["text"], boundary=boundary, place=place, section=row["section"], pruned=pruned))
        data = gathered.histories.get(boundary["history_sha256"]) if boundary["history"] is not None else None
        for message in _readable(data):
            if (message.kind.value, message.text) not in seen:
                seen.add((message.kind.value, message.text))
                place = Place(boundary["history"], Part.MESSAGE, message.i)
                origin = origin_of(message, Rules.WINNOW) if message.kind is MessageKind.ENVIRONMENT else None
                found.append(_Stretch(text=message.text, boundary=boundary, place=place, message=message, origin=origin))
    return found


def _readable(history: bytes | None) -> tuple[Message, ...]:
    """The messages of a history but for what the recovery tools gave: a search would find itself."""
    if history is None:
        return ()
    try:
        messages = messages_of(history)
    except NotFound:  # an upload that a boundary claimed and that held no messages was refused; nothing to read
        return ()
    return tuple(m for m in relabelled(messages, {}) if m.origin is not Origin.RECOVERY)


def _hit(stretch: _Stretch, match: ranking.Match) -> Hit:
    message = stretch.message
    return Hit(
        place=stretch.place,
        run=stretch.boundary["run"],
        boundary_id=UUID(str(stretch.boundary["boundary_id"])),
        boundary_index=stretch.boundary["boundary_index"],
        score=match.score,
        excerpt=match.excerpt,
        kind=message.kind if message else None,
        origin=stretch.origin,
        tool=message.tool if message else None,
        section=stretch.section,
        pruned=stretch.pruned,
    )


async def pruned(tx: AsyncConnection, fleet: str, run: str, *, cursor: str | None, limit: int, now: datetime) -> PrunedPage:
    """What was pruned of a run, the newest boundary first. Raise `BadCursor`, and `NotFound` for a run that is not there."""
    at, boundary_id, n = (None, None, 0) if cursor is None else _behind(cursor)
    most = max(1, min(limit, MOST_ROWS))
    rows = await raw.fetch(tx, _PRUNED, fleet, storable(run), at, boundary_id, n, now, most + 1)
    if not rows and await raw.fetch_one(tx, "SELECT FROM runs WHERE fleet = $1 AND run = $2", fleet, storable(run)) is None:
        raise NotFound("there is no such run in this fleet; use the name that the host gives its session")
    shown = [
        Pruned(
            place=Place(r["handle"], Part.ENTRY, r["n"]), run=r["run"], boundary_id=UUID(str(r["boundary_id"])),
            boundary_index=r["boundary_index"], n=r["n"], section=r["section"], excerpt=ranking.excerpt(r["text"]), reason=r["reason"],
            score=r["score"], explanation=r["explanation"], asked_back=r["asked_back"],
        )
        for r in rows[:most]
    ]  # fmt: skip
    last = rows[most - 1] if len(rows) > most else None
    more = None if last is None else cursors.encode(last["boundary_at"], f"{last['boundary_id']}/{last['n']}")
    return PrunedPage(entries=tuple(shown), next_cursor=more)


def _behind(cursor: str) -> tuple[datetime, UUID, int]:
    """The last entry that was shown."""
    at, name = cursors.decode(cursor)
    boundary, _, n = name.partition("/")
    try:
        if not (n.isascii() and n.isdigit() and len(n) <= 9):  # noqa: PLR2004  digits of an integer column
            raise cursors.BadCursor
        return at, UUID(boundary), int(n)
    except ValueError as error:
        raise cursors.BadCursor from error
