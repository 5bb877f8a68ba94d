"""Streams as the monitor knows them: configuration, epoch and state, read together and checked; what cannot be read is said, not lost."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pydantic import ValidationError
from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.assurance import monitor, state, terms
from winnow.assurance.ebh import joining_weight
from winnow.assurance.ledger import Signature, Watched
from winnow.assurance.refusals import InvalidConfig, StateUnreadable
from winnow.contracts.streams import MISSING_PREFIX, StreamConfig, family_of
from winnow.contracts.vocabulary import Family
from winnow.storage import audit, epochs, raw, streams
from winnow.storage.keys import StreamKey
from winnow.storage.streams import State
from winnow.storage.values import jsonb


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """A stream as it is stored. `row` is None before its first fold."""

    key: StreamKey
    config: StreamConfig
    position: int | None
    #: Last sequence number given.
    sampled: int
    row: State | None = None
    watched: Watched | None = None
    #: Why it cannot be folded: the fleet is held, and the row stays as it is.
    unreadable: str | None = None

    @property
    def family(self) -> Family:
        """Whose error budget it shares."""
        return family_of(self.key.stream)


_LOAD = """
SELECT s.fleet, s.stream, s.config AS said, s.position, s.last_seq AS sampled, m.epoch, m.state, m.last_seq, m.log_evidence, m.status,
    m.updated_at, m.folded, m.missing, m.refused, m.late, m.due_at, m.recertification, e.from_seq, e.config, e.missing AS policy,
    e.signature
FROM unnest($1::text[], $2::text[]) AS k(fleet, stream)
JOIN streams s ON s.fleet = k.fleet AND s.stream = k.stream
LEFT JOIN monitor_states m ON m.fleet = k.fleet AND m.stream = k.stream
LEFT JOIN monitor_epochs e ON e.fleet = k.fleet AND e.stream = k.stream AND e.epoch = m.epoch
"""


def name_of(key: StreamKey) -> str:
    """What a state says it was bet on."""
    return f"{key.fleet}/{key.stream}"


async def load(tx: AsyncConnection, keys: Sequence[StreamKey]) -> dict[StreamKey, Loaded]:
    """The streams that are registered, by key."""
    rows = await raw.fetch(tx, _LOAD, *raw.columns(sorted(set(keys)), 2))
    return {found.key: found for found in map(_loaded, rows)}


def _loaded(row: raw.Record) -> Loaded:
    """One stream."""
    key = StreamKey(row["fleet"], row["stream"])
    try:
        config = StreamConfig.model_validate(row["said"])
    except ValidationError as exc:
        bare = Loaded(key=key, config=StreamConfig(), position=row["position"], sampled=row["sampled"], row=_row(row))
        return replace(bare, unreadable=f"the configuration of the stream cannot be read ({exc.error_count()} errors)")
    found = Loaded(key=key, config=config, position=row["position"], sampled=row["sampled"], row=_row(row))
    if found.row is None:
        return found
    if row["config"] is None:
        return replace(found, unreadable="the state belongs to an epoch that is not there")
    try:
        epoch = epochs.of_row(row["epoch"], row["from_seq"], row["config"], row["policy"], row["signature"])
        known = state.load(row["state"], epoch.config, stream=name_of(key), epoch=epoch.number)
    except (StateUnreadable, InvalidConfig) as exc:
        return replace(found, unreadable=str(exc))
    except (TypeError, ValueError):
        return replace(found, unreadable="the terms of the stream's epoch cannot be read")
    return replace(found, watched=Watched(epoch=epoch, state=known, last_seq=found.row.last_seq))


def _row(row: raw.Record) -> State | None:
    """The state as it is stored; None before the first epoch, when only a timer stands there."""
    if row["state"] is None or (not row["epoch"] and not row["state"] and not row["last_seq"]):
        return None
    return State(**{name: row[name] for name in State.__dataclass_fields__})


def written(found: Loaded, watched: Watched, *, now: datetime) -> State:
    """The row of a state: counts and timer as they were."""
    known = watched.state
    before = found.row
    row = State(
        fleet=found.key.fleet,
        stream=found.key.stream,
        epoch=watched.epoch.number,
        state=state.dump(known, stream=name_of(found.key), epoch=watched.epoch.number),
        last_seq=watched.last_seq,
        log_evidence=known.log_evidence,
        status=known.status if known.n or known.status != "ok" else "insufficient",
        updated_at=now,
    )
    if before is None:
        return row
    return replace(row, folded=before.folded, missing=before.missing, refused=before.refused, late=before.late)


async def lock(tx: AsyncConnection, keys: Sequence[StreamKey]) -> None:
    """Lock the rows of streams, in order, until the transaction ends. A stream of missing grades is locked with its stream."""
    await raw.execute(
        tx,
        "SELECT FROM streams s JOIN unnest($1::text[], $2::text[]) AS k(fleet, stream) ON s.fleet = k.fleet AND s.stream = k.stream"
        " ORDER BY s.fleet, s.stream FOR NO KEY UPDATE OF s",
        *raw.columns(sorted(set(keys)), 2),
    )


async def settle(tx: AsyncConnection, key: StreamKey, config: StreamConfig) -> None:
    """Write a configuration with everything said."""
    await raw.execute(
        tx, "UPDATE streams SET config = $3::jsonb WHERE fleet = $1 AND stream = $2", *key, jsonb(config.model_dump(exclude_none=True))
    )


_PLACES = """
SELECT f.fleet, f.family, coalesce(max(s.position), 0) AS taken FROM unnest($1::text[], $2::text[]) AS f(fleet, family)
LEFT JOIN streams s ON s.fleet = f.fleet AND s.family = f.family GROUP BY f.fleet, f.family
"""
_PLACE = """
UPDATE streams s SET family = p.family, position = p.position, weight = p.weight
FROM unnest($1::text[], $2::text[], $3::text[], $4::integer[], $5::float8[]) AS p(fleet, stream, family, position, weight)
WHERE s.fleet = p.fleet AND s.stream = p.stream
"""


async def register(tx: AsyncConnection, found: Sequence[Loaded]) -> dict[StreamKey, Loaded]:
    """Give streams that have none a place in their family, in order; it is theirs for good. Locks the fleets."""
    new = sorted((f for f in found if f.position is None), key=lambda f: f.key)
    if not new:
        return {}
    await raw.execute(
        tx, "SELECT FROM fleets WHERE fleet = ANY($1::text[]) ORDER BY fleet FOR NO KEY UPDATE", sorted({f.key.fleet for f in new})
    )
    families = sorted({(f.key.fleet, f.family.value) for f in new})
    taken = {(r["fleet"], r["family"]): r["taken"] for r in await raw.fetch(tx, _PLACES, *raw.columns(families, 2))}
    placed: dict[StreamKey, Loaded] = {}
    rows = []
    for one in new:
        place = taken[one.key.fleet, one.family.value] = taken[one.key.fleet, one.family.value] + 1
        placed[one.key] = replace(one, position=place)
        rows.append((*one.key, one.family.value, place, joining_weight(place)))
    await raw.execute(tx, _PLACE, *raw.columns(rows, 5))
    return placed


async def open_epoch(  # noqa: PLR0913  everything that an epoch is made of, each by its name
    tx: AsyncConnection,
    found: Loaded,
    config: StreamConfig,
    *,
    delta: float,
    number: int,
    from_seq: int,
    signature: Signature,
    because: str,
    now: datetime,
) -> Watched:
    """Open an epoch of a stream that has a place and a settled configuration; the caller writes its state. Raise `InvalidConfig`."""
    if found.position is None:
        raise InvalidConfig("the stream has no place in its family yet")
    epoch = terms.opened(config, delta=delta, position=found.position, number=number, from_seq=from_seq, signature=signature)
    await epochs.open_one(tx, found.key, epoch, because=because, now=now)
    return Watched(epoch=epoch, state=monitor.initial(epoch.config), last_seq=from_seq - 1)


async def decided_through(tx: AsyncConnection, key: StreamKey) -> int:
    """Last unit of a stream that was decided; a stream of missing grades goes as far as its stream does, whatever it missed itself."""
    source = key.stream.removeprefix(MISSING_PREFIX)
    row = await raw.fetch_one(tx, "SELECT last_seq FROM monitor_states WHERE fleet = $1 AND stream = $2", key.fleet, source)
    return row["last_seq"] if row else 0


async def begin_anew(tx: AsyncConnection, keys: Sequence[StreamKey], *, because: str, now: datetime) -> None:
    """Open another epoch of streams, whose rows are locked, behind their last unit; a state that cannot be read goes to the audit log.

    Raise `InvalidConfig` where a stream's configuration cannot be run: set it anew.
    """
    rows: list[State] = []
    for key, found in sorted((await load(tx, keys)).items()):
        last = await raw.fetch_one(
            tx,
            "SELECT epoch AS number, (config->>'delta')::float8 AS delta FROM monitor_epochs WHERE fleet = $1 AND stream = $2"
            " ORDER BY epoch DESC LIMIT 1",
            *key,
        )
        if found.row is None or last is None:
            continue
        if found.watched is None:
            details = {"stream": key.stream, "state": found.row.state, "because": found.unreadable}
            await audit.add(tx, action="stream.state_given_up", by="release", now=now, fleet=key.fleet, because=because, details=details)
        signature = found.watched.epoch.signature if found.watched else Signature()
        through = await decided_through(tx, key)
        begun = await open_epoch(
            tx, found, found.config, delta=last["delta"], number=last["number"] + 1, from_seq=through + 1,
            signature=signature, because=because, now=now,
        )  # fmt: skip
        rows.append(replace(written(found, begun, now=now), due_at=None if key.stream.startswith(MISSING_PREFIX) else now))
    await streams.save_states(tx, rows)
