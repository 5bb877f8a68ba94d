"""Streams that the drift monitor watches, and the exact state of each one's e-process."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.vocabulary import Family
from winnow.storage import raw
from winnow.storage.values import jsonb, storable


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A stream as it is registered. One that only observations told of has an empty `config` and no weight."""

    fleet: str
    stream: str
    config: Mapping[str, object]
    weight: float | None
    last_seq: int
    registered_at: datetime
    closed_at: datetime | None
    family: Family = Family.RISK
    position: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What the monitor wrote last. `state` is kept as text: a replay is identical to the bit."""

    fleet: str
    stream: str
    epoch: int
    state: str
    last_seq: int
    log_evidence: float | None
    status: str
    updated_at: datetime
    folded: int = 0
    missing: int = 0
    refused: int = 0
    late: int = 0  # counted by whoever stores grades; never written here
    due_at: datetime | None = None
    recertification: str | None = None


async def register(
    tx: AsyncConnection, fleet: str, stream: str, *, config: Mapping[str, object], weight: float | None, now: datetime
) -> None:
    """Register a stream, or change its configuration (the monitor then starts a new epoch). The fleet must exist."""
    await raw.execute(
        tx,
        "INSERT INTO streams (fleet, stream, config, weight, registered_at) VALUES ($1, $2, $3::jsonb, $4, $5)"
        " ON CONFLICT (fleet, stream) DO UPDATE SET config = excluded.config, weight = coalesce(streams.weight, excluded.weight)",
        fleet,
        storable(stream),
        jsonb(dict(config)),
        weight,
        now,
    )


async def listed(tx: AsyncConnection, fleet: str | None = None) -> list[Stream]:
    """Streams by fleet and name."""
    rows = await raw.fetch(tx, "SELECT * FROM streams WHERE $1::text IS NULL OR fleet = $1 ORDER BY fleet, stream", fleet)
    return [
        Stream(
            fleet=r["fleet"],
            stream=r["stream"],
            config=r["config"],
            weight=r["weight"],
            last_seq=r["last_seq"],
            registered_at=r["registered_at"],
            closed_at=r["closed_at"],
            family=Family(r["family"]),
            position=r["position"],
        )
        for r in rows
    ]


async def lock_state(tx: AsyncConnection, fleet: str, stream: str) -> State | None:
    """The state of a stream, locked until the transaction ends; None where there is none yet (the stream's row is locked instead)."""
    await raw.execute(tx, "SELECT FROM streams WHERE fleet = $1 AND stream = $2 FOR NO KEY UPDATE", fleet, stream)
    row = await raw.fetch_one(tx, "SELECT * FROM monitor_states WHERE fleet = $1 AND stream = $2 FOR UPDATE", fleet, stream)
    return None if row is None else State(**dict(row))


async def hold(tx: AsyncConnection, fleet: str, stream: str, *, now: datetime) -> None:
    """Mark a state that cannot be read: the row is kept as it is, and nothing is folded into it until the fleet is released."""
    await raw.execute(
        tx,
        "UPDATE monitor_states SET status = 'held', due_at = NULL, updated_at = $3 WHERE fleet = $1 AND stream = $2",
        fleet,
        stream,
        now,
    )


async def save_state(tx: AsyncConnection, state: State) -> None:
    """Write one state; see `save_states`."""
    await save_states(tx, [state])


_SAVE = """
INSERT INTO monitor_states (fleet, stream, epoch, state, last_seq, log_evidence, status, updated_at, folded, missing, refused, due_at,
    recertification)
SELECT * FROM unnest($1::text[], $2::text[], $3::integer[], $4::text[], $5::bigint[], $6::float8[], $7::text[], $8::timestamptz[],
    $9::bigint[], $10::bigint[], $11::bigint[], $12::timestamptz[], $13::text[])
ON CONFLICT (fleet, stream) DO UPDATE SET epoch = excluded.epoch, state = excluded.state, last_seq = excluded.last_seq,
    log_evidence = excluded.log_evidence, status = excluded.status, updated_at = excluded.updated_at, folded = excluded.folded,
    missing = excluded.missing, refused = excluded.refused, due_at = excluded.due_at, recertification = excluded.recertification
"""


async def save_states(tx: AsyncConnection, states: Sequence[State]) -> None:
    """Write states, in the transaction that decides the fate of the units they folded. The streams must be registered and locked."""
    rows = [
        (
            s.fleet, s.stream, s.epoch, s.state, s.last_seq, s.log_evidence, s.status, s.updated_at, s.folded, s.missing, s.refused,
            s.due_at, s.recertification,
        )
        for s in sorted(states, key=lambda s: (s.fleet, s.stream))
    ]  # fmt: skip
    if rows:
        await raw.execute(tx, _SAVE, *raw.columns(rows, 13))
