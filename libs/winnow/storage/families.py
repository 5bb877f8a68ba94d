"""Families of streams, looked at by one process at a time: who alarms beside others, whether the fleet does, who may be released."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.assurance import monitor
from winnow.assurance import streams as family_streams
from winnow.assurance.ebh import joining_weight
from winnow.assurance.streams import Member
from winnow.assurance.terms import weight_of
from winnow.contracts.events import Alert
from winnow.contracts.streams import MISSING_PREFIX
from winnow.contracts.vocabulary import Family, Guarantee
from winnow.storage import alarms, raw, streams, watched
from winnow.storage.alarms import Acting, Finding
from winnow.storage.findings import alarm_finding
from winnow.storage.keys import StreamKey

#: Natural log of the largest evidence that is written as a number.
_MOST = 700.0
#: Natural log of the evidence that one stream of a family must have before the family is looked at: with the least level that any stream
#: can have (half of the budget, shared with all), less is no reason to.
_WORTH_A_LOOK = 0.5


async def lead(tx: AsyncConnection) -> bool:
    """Take the lock of whoever looks at families, until the transaction ends; False while another process has it."""
    return await raw.fetch_one(tx, "SELECT FROM locks WHERE name = 'families' FOR UPDATE SKIP LOCKED") is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    """The streams of one family that have an epoch."""

    fleet: str
    family: Family
    held: bool
    delta: float
    members: tuple[Member, ...]
    #: Share of the budget that epochs have used, the current ones included.
    used: float
    #: Sum of the epochs' numbers: another one after every release.
    generation: int


_MEMBERS = """
WITH moving AS (
    SELECT DISTINCT s.fleet, s.family FROM monitor_states m JOIN streams s ON s.fleet = m.fleet AND s.stream = m.stream
    WHERE m.log_evidence >= $1 AND m.status IN ('ok', 'warn')
)
SELECT s.fleet, s.family, s.stream, s.position, m.epoch, m.status, m.log_evidence, (e.config->>'delta')::float8 AS delta,
    f.held_since IS NOT NULL AS held
FROM moving v JOIN streams s ON s.fleet = v.fleet AND s.family = v.family AND s.position IS NOT NULL
JOIN fleets f ON f.fleet = s.fleet
JOIN monitor_states m ON m.fleet = s.fleet AND m.stream = s.stream AND m.log_evidence IS NOT NULL
JOIN monitor_epochs e ON e.fleet = m.fleet AND e.stream = m.stream AND e.epoch = m.epoch
WHERE m.status <> 'held' AND e.config->>'mode' <> 'arl'
ORDER BY s.fleet, s.family, s.stream
"""


async def _moving(tx: AsyncConnection) -> list[_Family]:
    """Families in which some stream has gained evidence."""
    groups: dict[tuple[str, str], list[raw.Record]] = {}
    for row in await raw.fetch(tx, _MEMBERS, _WORTH_A_LOOK):
        groups.setdefault((row["fleet"], row["family"]), []).append(row)
    return [
        _Family(
            fleet=fleet,
            family=Family(family),
            held=rows[0]["held"],
            # Each epoch keeps the budget that it was opened with; where that was changed since, the smaller one counts for all.
            delta=min(r["delta"] for r in rows),
            members=tuple(
                Member(
                    stream=r["stream"],
                    weight=weight_of(r["position"], r["epoch"]),
                    evidence=math.exp(min(r["log_evidence"], _MOST)),
                    frozen=r["status"] in {"alarm", "recovered"},
                )
                for r in rows
            ),
            used=math.fsum(family_streams.spent(joining_weight(r["position"]), r["epoch"]) for r in rows),
            generation=sum(r["epoch"] for r in rows),
        )
        for (fleet, family), rows in groups.items()
    ]


async def evaluate(tx: AsyncConnection, acting: Acting, *, fleet_delta: float, now: datetime) -> list[Alert]:
    """Weighted e-BH over each family, and the fleet's own evidence; the caller leads (`lead`).

    Streams that e-BH names are frozen at the evidence they have; one that moved meanwhile, or whose row somebody holds, is left for the
    next look. Return the new alerts.
    """
    told: list[Alert] = []
    for family in await _moving(tx):
        verdict = family_streams.evaluate(family.members, family.delta)
        by_name = {m.stream: m for m in family.members}
        rejected = sum(m.frozen for m in family.members) + len(verdict.alarms)
        for name in verdict.alarms:
            member = by_name[name]
            level = 1.0 / (family.delta * member.weight * rejected)
            finding = await _freeze(tx, StreamKey(family.fleet, name), member, level, acting, now)
            if finding is not None:
                told += await alarms.act(tx, [finding], acting, now=now)
        evidence = fleet_evidence(family.members, family.used)
        if evidence >= 1.0 / fleet_delta and not family.held and not verdict.alarms:
            told += await alarms.act(tx, [_whole(family, evidence, fleet_delta, acting)], acting, now=now)
    return told


def fleet_evidence(members: Sequence[Member], used: float) -> float:
    """Evidence that some stream of the family is above its budget: weight·M of those that go on, and the share that is not given away.

    Epochs that ended and streams that alarmed count as 0. That is less than the supermartingale that keeps them, so 1/delta is a level for
    it as well, for the life of the fleet, and a release is not followed by the same alarm again.
    """
    return math.fsum(m.weight * m.evidence for m in members if not m.frozen) + max(0.0, 1.0 - used)


async def _freeze(tx: AsyncConnection, key: StreamKey, member: Member, level: float, acting: Acting, now: datetime) -> Finding | None:
    """Freeze a stream that the family's level names, where it still has the evidence that it was named for."""
    lock = StreamKey(key.fleet, key.stream.removeprefix(MISSING_PREFIX))
    taken = await raw.fetch_one(tx, "SELECT FROM streams WHERE fleet = $1 AND stream = $2 FOR NO KEY UPDATE SKIP LOCKED", *lock)
    found = (await watched.load(tx, [key])).get(key) if taken is not None else None
    if found is None or found.watched is None or found.row is None:
        return None
    at = found.watched
    # The logarithm and back costs some last digits.
    if at.state.alarm_at is not None or at.state.evidence < member.evidence * (1.0 - 1e-9):
        return None
    frozen = replace(at, state=monitor.freeze(at.state))
    row = watched.written(found, frozen, now=now)
    await streams.save_states(tx, [replace(row, due_at=found.row.due_at)])
    return await alarm_finding(tx, found, frozen, at.last_seq, acting, rule="e-bh", level=level, now=now)


def _whole(family: _Family, evidence: float, delta: float, acting: Acting) -> Finding:
    """The fleet alarms as a whole."""
    label_free = family.family is Family.LABEL_FREE
    most = sorted((m for m in family.members if not m.frozen), key=lambda m: -m.weight * m.evidence)[:5]
    named = ", ".join(m.stream for m in most)
    return Finding(
        fleet=family.fleet,
        stream=None,
        identity=("fleet", family.family, family.generation),
        because=(
            f"the fleet's {family.family.value.replace('_', ' ')} streams together: evidence {evidence:.4g} that some are above budget"
            f" reaches the level {1.0 / delta:.4g}; most of it comes from {named}"
        ),
        guarantee=Guarantee.ANYTIME,
        hold=acting.hold_on_label_free if label_free else True,
        log_evidence=math.log(evidence),
        details={"rule": "fleet", "level": 1.0 / delta, "family": family.family.value, "streams": len(family.members)},
    )


async def recertified(tx: AsyncConnection, *, held_for: timedelta, now: datetime) -> list[str]:
    """Fleets that the monitor holds for an alarm, `held_for` at least, whose alarmed streams were all shown to be within budget again."""
    rows = await raw.fetch(
        tx,
        "SELECT f.fleet FROM fleets f JOIN alerts a ON a.alert_id = f.hold_alert AND a.guarantee = 'anytime' AND a.stream IS NOT NULL"
        " WHERE f.held_by = $1 AND f.held_since <= $2"
        " AND EXISTS (SELECT FROM monitor_states m WHERE m.fleet = f.fleet AND m.status = 'recovered')"
        " AND NOT EXISTS (SELECT FROM monitor_states m WHERE m.fleet = f.fleet AND m.status IN ('alarm', 'held')) ORDER BY f.fleet",
        alarms.MONITOR,
        now - held_for,
    )
    return [r["fleet"] for r in rows]


async def held(tx: AsyncConnection) -> int:
    """How many fleets are held."""
    row = await raw.fetch_one(tx, "SELECT count(*) AS held FROM fleets WHERE held_since IS NOT NULL")
    return row["held"] if row else 0
