"""What must be true after a storm; each finding is a sentence, and no finding is the goal."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import asyncpg
from aiokafka import ConsumerRecord

from tests.faults.plan import FLEET, Plan, Shot
from tests.faults.wire import Position
from winnow.contracts.events import Committed
from winnow.contracts.vocabulary import Outcome
from winnow.messaging.deadletters import split_headers

#: Findings of one kind that are named.
NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Aftermath:
    """All that is left of a storm."""

    plan: Plan
    #: Where the records that must be dead letters were written.
    poison: Mapping[Position, Shot]
    #: The committed and the dead-letter topic, whole.
    committed: Sequence[ConsumerRecord]
    letters: Sequence[ConsumerRecord]


async def findings(connection: asyncpg.Connection, left: Aftermath) -> list[str]:
    """Return all that is not as it must be."""
    events = _events(left)
    return [
        *await _boundaries(connection, left.plan),
        *_bodies(left.plan, events),
        *_order(left.plan, events),
        *await _stored_bodies(connection, events),
        *await _counts(connection, events),
        *await _parents(connection, left.plan),
        *await _letters(connection, left),
        *_announced(left),
        *await _leftovers(connection),
    ]


def _events(left: Aftermath) -> list[tuple[Committed, bytes]]:
    """The committed events in the order of their partitions, without rejections: those end other requests than the one that won."""
    read = [(Committed.model_validate_json(record.value), bytes(record.value)) for record in left.committed]
    return [(event, body) for event, body in read if event.outcome is not Outcome.REJECTED]


async def _boundaries(connection: asyncpg.Connection, plan: Plan) -> list[str]:
    """One row for every valid boundary, judged, and none else."""
    rows = await connection.fetch("SELECT boundary_id, outcome, committed_at FROM boundaries WHERE fleet = $1", FLEET)
    wanted = {s.event.boundary_id for s in plan.samples}
    stored = Counter(UUID(str(row["boundary_id"])) for row in rows)
    found = _missing("boundaries without a row", wanted - stored.keys())
    found += _missing("rows that nobody submitted", stored.keys() - wanted)
    found += _missing("boundaries with several rows", {name for name, n in stored.items() if n > 1})
    found += _missing("boundaries that are not committed", {row["boundary_id"] for row in rows if row["committed_at"] is None})
    found += _missing("boundaries that were not judged", {row["boundary_id"] for row in rows if row["outcome"] != "judged"})
    return found


def _bodies(plan: Plan, events: Sequence[tuple[Committed, bytes]]) -> list[str]:
    """One distinct committed body a boundary."""
    bodies: dict[UUID, set[bytes]] = defaultdict(set)
    for event, body in events:
        bodies[event.boundary_id].add(body)
    wanted = {s.event.boundary_id for s in plan.samples}
    found = _missing("boundaries that never came out", wanted - bodies.keys())
    found += _missing("committed events that nobody asked for", bodies.keys() - wanted)
    found += _missing("boundaries with differing committed bodies", {name for name, different in bodies.items() if len(different) > 1})
    return found


def _order(plan: Plan, events: Sequence[tuple[Committed, bytes]]) -> list[str]:
    """First occurrences come in the order of the run."""
    seen: set[UUID] = set()
    order: dict[str, list[int]] = defaultdict(list)
    for event, _ in events:
        if event.boundary_id not in seen:
            seen.add(event.boundary_id)
            order[event.run].append(event.index)
    wrong = {f"{run}: {indexes}" for run, indexes in order.items() if indexes != sorted(indexes)}
    return _missing("runs out of order", wrong)


async def _stored_bodies(connection: asyncpg.Connection, events: Sequence[tuple[Committed, bytes]]) -> list[str]:
    """The committed bytes are those that hash and candidate say."""
    rows = await connection.fetch("SELECT boundary_id, committed_sha256, pruned, entries FROM boundaries WHERE fleet = $1", FLEET)
    stored = {UUID(str(row["boundary_id"])): row for row in rows}
    wrong = {
        event.boundary_id
        for event, _ in events
        if (row := stored.get(event.boundary_id)) is None
        or row["committed_sha256"] != event.committed_sha256
        or row["pruned"] != event.pruned
        or row["entries"] != len(event.decisions)
        or event.summary is None
        or event.summary.sha256 != event.committed_sha256
    }
    return _missing("committed events that differ from their row", wrong)


async def _counts(connection: asyncpg.Connection, events: Sequence[tuple[Committed, bytes]]) -> list[str]:
    """As many entries, scores and decisions are stored as the event has decisions."""
    found: list[str] = []
    wanted = {event.boundary_id: len(event.decisions) for event, _ in events}
    for table in ("entries", "scores", "decisions"):
        counted = f"SELECT boundary_id, count(*) AS n FROM {table} WHERE fleet = $1 GROUP BY boundary_id"  # noqa: S608  a name from above
        rows = await connection.fetch(counted, FLEET)
        counts = {UUID(str(row["boundary_id"])): row["n"] for row in rows}
        found += _missing(f"boundaries with another number of {table}", {b for b, n in wanted.items() if counts.get(b, 0) != n})
        found += _missing(f"{table} of unknown boundaries", counts.keys() - wanted.keys())
    return found


async def _parents(connection: asyncpg.Connection, plan: Plan) -> list[str]:
    """Each boundary found the one whose text it carried on."""
    rows = await connection.fetch("SELECT boundary_id, parent_boundary_id FROM boundaries WHERE fleet = $1", FLEET)
    parents = {UUID(str(row["boundary_id"])): row["parent_boundary_id"] and UUID(str(row["parent_boundary_id"])) for row in rows}
    wrong = {
        sample.event.boundary_id
        for run in plan.runs
        for before, sample in zip((None, *run), run, strict=False)
        if parents.get(sample.event.boundary_id) != (before and before.event.boundary_id)
    }
    return _missing("boundaries with another parent than the one before", wrong)


async def _letters(connection: asyncpg.Connection, left: Aftermath) -> list[str]:
    """One row for every invalid record, for the right reason, and none else."""
    rows = await connection.fetch('SELECT topic, partition, "offset", reason FROM dead_letters')
    stored = {(row["topic"], row["partition"], row["offset"]): row["reason"] for row in rows}
    found: list[str] = []
    if len(rows) != len(stored):
        found.append("a position has several dead letters")
    lost = {f"{shot.what} at {at}" for at, shot in left.poison.items() if at not in stored}
    found += _missing("invalid records without a dead letter", lost)
    found += _missing("dead letters of valid records", {f"{at}: {stored[at]}" for at in stored.keys() - left.poison.keys()})
    wrong = {f"{shot.what}: {stored[at]}" for at, shot in left.poison.items() if at in stored and stored[at] != shot.reason}
    return found + _missing("dead letters for another reason", wrong)


def _announced(left: Aftermath) -> list[str]:
    """Each dead letter stands on the topic, too, with its own bytes, key and headers."""
    told: dict[Position, ConsumerRecord] = {}
    for record in left.letters:
        _, why = split_headers([(name, value or b"") for name, value in record.headers])
        if why is not None:
            told[why.topic, why.partition, why.offset] = record
    silent = {shot.what for at, shot in left.poison.items() if at not in told}
    changed = {
        shot.what
        for at, shot in left.poison.items()
        if at in told
        and (told[at].value != shot.value or told[at].key != shot.key or told[at].headers[: len(shot.headers)] != shot.headers)
    }
    return _missing("dead letters that the topic does not have", silent) + _missing("dead letters with other bytes", changed)


async def _leftovers(connection: asyncpg.Connection) -> list[str]:
    """Nothing waits."""
    waiting = await connection.fetchval("SELECT count(*) FROM outbox WHERE sent_at IS NULL")
    return [f"{waiting} rows wait in the outbox"] if waiting else []


def _missing(what: str, which: "set[object] | set[str] | set[UUID]") -> list[str]:
    """Return a sentence where there is something to say."""
    if not which:
        return []
    named = ", ".join(sorted(map(str, which))[:NAMED])
    return [f"{len(which)} {what}: {named}{' …' if len(which) > NAMED else ''}"]
