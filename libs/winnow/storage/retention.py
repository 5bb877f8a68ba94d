"""Retention: drops partitions, purges what was sent, collects originals that nothing refers to."""

from dataclasses import asdict, dataclass
from datetime import date, datetime, timedelta

from asyncpg import LockNotAvailableError
from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.errors import Retryable
from winnow.storage import audit, outbox, partitions, raw

#: Milliseconds that a drop waits for whoever uses the table: behind it everybody who comes later waits, all services included. Below
#: PostgreSQL's `deadlock_timeout` (1 s): where drop and writer would wait for each other in a circle, the drop gives up, not the writer.
DROP_WAIT_MS = 800


class InUse(Retryable):
    """Something that runs for long, such as a dump, reads what is to be dropped; run the retention again when it is through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How long what is kept. What is partitioned goes by whole months: a month is dropped when all of it is older."""

    history: timedelta = timedelta(days=365)
    #: Stage outputs: what a resubmission is answered with. Shorter than the bus keeps a candidate (7 days) would answer it with nothing.
    outputs: timedelta = timedelta(days=365)
    outbox: timedelta = timedelta(days=7)
    dead_letters: timedelta = timedelta(days=90)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a pass removed, table by table."""

    partitions: tuple[str, ...]
    boundaries: int
    outbox: int
    dead_letters: int
    runtime_events: int
    handles: int
    originals: int


#: Children of a boundary, dropped with it by month.
_HISTORY = ("entries", "evidence_passages", "entry_evidence", "scores", "decisions", "judge_calls", "observations")
# What keeps an original: a boundary's hash, or a handle that still answers.
REFERRED = """
SELECT b.fleet, h.sha256 FROM boundaries b
CROSS JOIN LATERAL (
    VALUES (b.task_sha256), (b.history_sha256), (b.previous_sha256), (b.candidate_sha256), (b.committed_sha256)) AS h(sha256)
WHERE h.sha256 IS NOT NULL
UNION ALL
SELECT fleet, sha256 FROM handles WHERE erased_at IS NULL AND sha256 IS NOT NULL AND (expires_at IS NULL OR expires_at > now())
"""

# Locked in key order, as `originals.put` locks: in the order of the scan the two would wait for each other in a circle. What was touched
# by whoever had the lock before is looked at again, and stays.
_COLLECT = f"""
WITH referred AS ({REFERRED}), unused AS (
    SELECT o.fleet, o.sha256 FROM originals o WHERE o.touched_at < now() - $1::interval AND ($2::text IS NULL OR o.fleet = $2)
        AND NOT EXISTS (SELECT FROM referred r WHERE r.fleet = o.fleet AND r.sha256 = o.sha256)
    ORDER BY o.fleet, o.sha256 FOR UPDATE OF o
)
DELETE FROM originals o USING unused u WHERE o.fleet = u.fleet AND o.sha256 = u.sha256
"""  # noqa: S608  built from a constant


async def apply(tx: AsyncConnection, policy: Policy, *, now: datetime) -> Kept:
    """Apply `policy` once, with an audit row. Safe to run at any time and from several processes (one waits for the other).

    Dropping a partition locks its parent for a moment; everything else works beside the pipeline. A backup is waited for. Raise `InUse`
    where anything else reads the tables for long.
    """
    await raw.execute(tx, "SELECT FROM locks WHERE name = 'retention' FOR UPDATE")
    cut = partitions.month_of(now - policy.history)
    dropped = [
        *await _drop(tx, cut, _HISTORY),
        *await _drop(tx, partitions.month_of(now - min(policy.outputs, policy.history)), ("stage_outputs",)),
    ]
    boundaries = await raw.execute(tx, "DELETE FROM boundaries WHERE boundary_at < $1::date::timestamp AT TIME ZONE 'UTC'", cut)
    await raw.execute(tx, "DELETE FROM observation_keys WHERE observed_at < $1::date::timestamp AT TIME ZONE 'UTC'", cut)
    events = await raw.execute(tx, "DELETE FROM runtime_events WHERE received_at < $1", now - policy.history)
    await raw.execute(tx, "DELETE FROM recoveries WHERE at < $1", now - policy.history)
    await raw.execute(tx, "DELETE FROM pinned_entries WHERE pinned_at < $1", now - policy.history)
    await raw.execute(tx, "DELETE FROM canary_donors WHERE boundary_at < $1::date::timestamp AT TIME ZONE 'UTC'", cut)
    await raw.execute(tx, "DELETE FROM run_units WHERE closed_at < $1", now - policy.history)
    await raw.execute(tx, "DELETE FROM fleet_activity WHERE slot < $1", now - policy.history)
    await raw.execute(tx, "DELETE FROM webhook_deliveries WHERE created_at < $1 AND next_at IS NULL", now - policy.history)
    await raw.execute(
        tx,
        "DELETE FROM runs r WHERE r.last_at < $1::date::timestamp AT TIME ZONE 'UTC'"
        " AND NOT EXISTS (SELECT FROM boundaries b WHERE b.fleet = r.fleet AND b.run = r.run)",
        cut,
    )
    # Handles of what is gone answer 410 for as long again, then 404.
    handles = await raw.execute(
        tx,
        "UPDATE handles h SET erased_at = $1, sha256 = NULL WHERE h.erased_at IS NULL AND (h.expires_at <= $1 OR (h.created_at < $2"
        " AND NOT EXISTS (SELECT FROM boundaries b WHERE b.fleet = h.fleet AND b.boundary_id = h.boundary_id)))",
        now,
        now - policy.history,
    )
    await raw.execute(tx, "DELETE FROM handles WHERE erased_at < $1", now - policy.history)
    kept = Kept(
        partitions=tuple(dropped),
        boundaries=boundaries,
        outbox=await outbox.purge(tx, older_than=policy.outbox, now=now),
        dead_letters=await raw.execute(tx, "DELETE FROM dead_letters WHERE created_at < $1", now - policy.dead_letters),
        runtime_events=events,
        handles=handles,
        originals=await collect_originals(tx),
    )
    await audit.add(tx, action="retention.apply", by="retention", now=now, details=asdict(kept))
    return kept


async def _drop(tx: AsyncConnection, before: date, of: tuple[str, ...]) -> list[str]:
    """Drop the partitions of `of` that end on or before a day. Raise `InUse`."""
    await raw.execute(tx, f"SET LOCAL lock_timeout = {DROP_WAIT_MS}")
    try:
        row = await raw.fetch_one(tx, "SELECT winnow_drop_partitions($1, $2) AS names", before, list(of))
    except LockNotAvailableError:
        raise InUse from None
    await raw.execute(tx, "SET LOCAL lock_timeout = 0")
    return list(row["names"]) if row else []


async def collect_originals(tx: AsyncConnection, *, fleet: str | None = None, grace: timedelta = timedelta(hours=1)) -> int:
    """Delete originals that no boundary and no live handle refers to and that nobody stored or touched within `grace`.

    `grace` covers transactions that have stored an original and not yet the row that refers to it; see `originals.put`. Times are the
    server's. Return how many were deleted.
    """
    return await raw.execute(tx, _COLLECT, grace, fleet)
