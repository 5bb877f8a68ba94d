"""Epochs of streams: under which terms units were and are folded, and how each ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.assurance.config import MonitorConfig
from winnow.assurance.ledger import Epoch, Signature
from winnow.contracts.vocabulary import Missing
from winnow.storage import raw
from winnow.storage.keys import StreamKey
from winnow.storage.values import jsonb, storable

#: Configurations that are remembered: 2 KB each; streams of one kind and age share one.
KNOWN_CONFIGS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredEpoch:
    """An epoch as it is stored, with its alarm where it had one."""

    key: StreamKey
    epoch: Epoch
    started_at: datetime
    because: str
    #: Last unit that was folded before the alarm froze its state.
    alarm_seq: int | None
    alarm_at: datetime | None
    alarm_rule: str | None
    alarm_level: float | None
    alarm_evidence: float | None
    alert_id: UUID | None


def of_row(number: int, from_seq: int, config: dict[str, Any], missing: str, signature: dict[str, Any]) -> Epoch:
    """An epoch of its columns. Raise `InvalidConfig`."""
    return Epoch(
        number=number,
        from_seq=from_seq,
        config=_monitor(tuple(sorted(config.items()))),
        missing=Missing(missing),
        signature=Signature(**signature),
    )


@lru_cache(maxsize=KNOWN_CONFIGS)
def _monitor(parameters: tuple[tuple[str, Any], ...]) -> MonitorConfig:
    """The configuration of its parameters. Remembered: a fold of a few units takes less time than checking them all again."""
    return MonitorConfig(**dict(parameters))


_OPEN = """
INSERT INTO monitor_epochs (fleet, stream, epoch, from_seq, config, missing, signature, error_share, started_at, because)
VALUES ($1, $2, $3, $4, $5::jsonb, $6, $7::jsonb, $8, $9, $10)
"""


async def open_one(tx: AsyncConnection, key: StreamKey, epoch: Epoch, *, because: str, now: datetime) -> None:
    """Write a new epoch. The stream's row must be locked."""
    share = epoch.config.delta * epoch.config.weight
    await raw.execute(
        tx, _OPEN, *key, epoch.number, epoch.from_seq, jsonb(epoch.config.parameters()), epoch.missing, _signature(epoch), share, now,
        storable(because),
    )  # fmt: skip


async def fill(tx: AsyncConnection, key: StreamKey, epoch: Epoch) -> None:
    """Write what an epoch learned of what its units have in common."""
    await raw.execute(
        tx,
        "UPDATE monitor_epochs SET signature = $4::jsonb WHERE fleet = $1 AND stream = $2 AND epoch = $3",
        *key,
        epoch.number,
        _signature(epoch),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """How an epoch alarmed."""

    seq: int
    at: datetime
    rule: str  # own, e-bh or fleet
    level: float
    log_evidence: float


async def alarmed(tx: AsyncConnection, key: StreamKey, number: int, alarm: Alarm, *, alert_id: UUID) -> None:
    """Write an epoch's alarm; the first one stays."""
    await raw.execute(
        tx,
        "UPDATE monitor_epochs SET alarm_seq = $4, alarm_at = $5, alarm_rule = $6, alarm_level = $7, alarm_evidence = $8, alert_id = $9"
        " WHERE fleet = $1 AND stream = $2 AND epoch = $3 AND alarm_at IS NULL",
        *key, number, alarm.seq, alarm.at, alarm.rule, alarm.level, alarm.log_evidence, alert_id,
    )  # fmt: skip


async def of(tx: AsyncConnection, key: StreamKey) -> list[StoredEpoch]:
    """All epochs of a stream, the first one first. Raise `InvalidConfig` where a row was altered."""
    rows = await raw.fetch(tx, "SELECT * FROM monitor_epochs WHERE fleet = $1 AND stream = $2 ORDER BY epoch", *key)
    return [
        StoredEpoch(
            key=key,
            epoch=of_row(r["epoch"], r["from_seq"], r["config"], r["missing"], r["signature"]),
            started_at=r["started_at"],
            because=r["because"],
            alarm_seq=r["alarm_seq"],
            alarm_at=r["alarm_at"],
            alarm_rule=r["alarm_rule"],
            alarm_level=r["alarm_level"],
            alarm_evidence=r["alarm_evidence"],
            alert_id=r["alert_id"],
        )
        for r in rows
    ]


async def earlier(tx: AsyncConnection, key: StreamKey, before: int) -> list[Signature]:
    """What the units of the epochs before `before` had in common."""
    rows = await raw.fetch(
        tx, "SELECT signature FROM monitor_epochs WHERE fleet = $1 AND stream = $2 AND epoch < $3 ORDER BY epoch", *key, before
    )
    return [Signature(**r["signature"]) for r in rows]


def is_past(unit: Signature, current: Signature, before: Sequence[Signature]) -> bool:
    """A unit that differs from the current epoch comes from an earlier one: some part of it differs and was there before."""
    return any(
        mine is not None and now is not None and mine != now and any(then[i] == mine for then in before)
        for i, (mine, now) in enumerate(zip(unit, current, strict=True))
    )


def _signature(epoch: Epoch) -> str:
    return jsonb(epoch.signature._asdict())
