"""Streams that the drift monitor watches, and the exact state of each one's e-process."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

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
        )
        for r in rows
    ]


async def lock_state(tx: AsyncConnection, fleet: str, stream: str) -> State | None:
    """The state of a stream, locked until the transaction ends; None where there is none yet (the stream's row is locked instead)."""
    await raw.execute(tx, "SELECT FROM streams WHERE fleet = $1 AND stream = $2 FOR NO KEY UPDATE", fleet, stream)
    row = await raw.fetch_one(tx, "SELECT * FROM monitor_states WHERE fleet = $1 AND stream = $2 FOR UPDATE", fleet, stream)
    return None if row is None else State(**dict(row))


async def save_state(tx: AsyncConnection, state: State) -> None:
    """Write a state, in the transaction that decides the fate of the units it folded. The stream must be registered."""
    await raw.execute(
        tx,
        "INSERT INTO monitor_states (fleet, stream, epoch, state, last_seq, log_evidence, status, updated_at)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (fleet, stream) DO UPDATE SET epoch = excluded.epoch, state = excluded.state,"
        " last_seq = excluded.last_seq, log_evidence = excluded.log_evidence, status = excluded.status, updated_at = excluded.updated_at",
        state.fleet,
        state.stream,
        state.epoch,
        state.state,
        state.last_seq,
        state.log_evidence,
        state.status,
        state.updated_at,
    )
