"""Erasure of a run or a fleet: rows, originals, handles, dead letters and queued events. The bus forgets within its retention.

Until then its records are still delivered: whoever meets one of an erased run drops it (`erased_runs`).
"""

import secrets
from collections.abc import Collection
from dataclasses import asdict, dataclass
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.events import sha256
from winnow.storage import audit, canaries, raw
from winnow.storage.retention import REFERRED
from winnow.storage.values import storable


@dataclass(frozen=True, slots=True, kw_only=True)
class Erased:
    """What was removed. Originals that another run still uses stay.

    `observations` counts units of the ledger whose name was replaced by a random one: their losses are numbers that the monitor's state
    rests on, and say nothing of anybody. Erasing a fleet removes them.
    """

    boundaries: int
    originals: int
    handles: int
    dead_letters: int
    outbox: int
    runtime_events: int
    observations: int


_CHILDREN = ("entries", "evidence_passages", "entry_evidence", "scores", "decisions", "judge_calls", "stage_outputs")

#: What a fleet has, children before what they refer to.
_OF_FLEET = (
    *_CHILDREN, "recoveries", "pinned_entries", "canary_donors", "boundaries", "runs", "originals", "outbox", "runtime_events",
    "observations", "observation_keys", "monitor_states", "monitor_epochs", "streams", "open_runs", "run_units", "fleet_activity",
    "prune_profiles", "webhook_deliveries", "alerts", "certificates",
)  # fmt: skip

# Storing an original takes a ROW EXCLUSIVE lock on the table until its transaction ends. This lock waits for all such transactions, so the
# statements after it see every boundary that refers to an original; whoever comes later waits, finds the original gone and stores it anew.
_STOP_PUTS = "LOCK TABLE originals IN SHARE ROW EXCLUSIVE MODE"

_HASHES = """
SELECT h.sha256 FROM boundaries b
CROSS JOIN LATERAL (
    VALUES (b.task_sha256), (b.history_sha256), (b.previous_sha256), (b.candidate_sha256), (b.committed_sha256)) AS h(sha256)
WHERE b.fleet = $1 AND b.run = $2 AND h.sha256 IS NOT NULL
UNION
SELECT h.sha256 FROM boundaries b JOIN handles h ON h.fleet = b.fleet AND h.boundary_id = b.boundary_id
WHERE b.fleet = $1 AND b.run = $2 AND h.sha256 IS NOT NULL
"""

_HANDLES = """
UPDATE handles h SET erased_at = $3, sha256 = NULL FROM boundaries b
WHERE b.fleet = $1 AND b.run = $2 AND h.fleet = b.fleet AND h.boundary_id = b.boundary_id AND h.erased_at IS NULL
"""

# A claim check has a handle before there is a boundary. It goes with its content, unless something of another run has that too.
_UNBOUND = """
UPDATE handles u SET erased_at = $3, sha256 = NULL
WHERE u.fleet = $1 AND u.sha256 = ANY($2::text[]) AND u.boundary_id IS NULL AND u.erased_at IS NULL
    AND NOT EXISTS (SELECT FROM boundaries b WHERE b.fleet = $1
        AND u.sha256 IN (b.task_sha256, b.history_sha256, b.previous_sha256, b.candidate_sha256, b.committed_sha256))
    AND NOT EXISTS (SELECT FROM handles o WHERE o.fleet = $1 AND o.sha256 = u.sha256 AND o.boundary_id IS NOT NULL AND o.erased_at IS NULL)
"""

_UNREFERRED = f"""
WITH referred AS ({REFERRED})
DELETE FROM originals o WHERE o.fleet = $1 AND o.sha256 = ANY($2::text[])
    AND NOT EXISTS (SELECT FROM referred r WHERE r.fleet = o.fleet AND r.sha256 = o.sha256)
"""  # noqa: S608  built from a constant

# A dead letter that could not be read still has its key, and the key names the run.
_DEAD = "DELETE FROM dead_letters WHERE (fleet = $1 AND run = $2) OR key = convert_to($1 || '/' || $2, 'UTF8')"


async def erase_run(tx: AsyncConnection, fleet: str, run: str, *, by: str, because: str | None = None, now: datetime) -> Erased:
    """Erase a run, with an audit row. Its handles answer `Gone` from then on. An unknown run erases nothing and is no error.

    Raise what a deadlock raises: the pipeline may be storing the run at this moment. It is transient; erase again.
    """
    run = storable(run)
    await raw.execute(tx, _STOP_PUTS)
    hashes = [r["sha256"] for r in await raw.fetch(tx, _HASHES, fleet, run)]
    hashes += await canaries.forget(tx, fleet, run, now=now)
    for child in _CHILDREN:
        await raw.execute(
            tx,
            f"DELETE FROM {child} c USING boundaries b WHERE b.fleet = $1 AND b.run = $2 AND c.fleet = b.fleet"  # noqa: S608  a constant
            " AND c.boundary_id = b.boundary_id AND c.boundary_at = b.boundary_at",
            fleet,
            run,
        )
    handles = await raw.execute(tx, _HANDLES, fleet, run, now)
    await raw.execute(
        tx,
        "DELETE FROM recoveries r WHERE r.fleet = $1 AND (r.run = $2 OR r.boundary_id IN"
        " (SELECT b.boundary_id FROM boundaries b WHERE b.fleet = $1 AND b.run = $2))",
        fleet,
        run,
    )
    await raw.execute(
        tx,
        "DELETE FROM canary_donors c USING boundaries b WHERE b.fleet = $1 AND b.run = $2 AND c.fleet = b.fleet"
        " AND c.boundary_id = b.boundary_id",
        fleet,
        run,
    )
    boundaries = await raw.execute(tx, "DELETE FROM boundaries WHERE fleet = $1 AND run = $2", fleet, run)
    handles += await raw.execute(tx, _UNBOUND, fleet, hashes, now)
    erased = Erased(
        boundaries=boundaries,
        handles=handles,
        originals=await raw.execute(tx, _UNREFERRED, fleet, hashes),
        dead_letters=await raw.execute(tx, _DEAD, fleet, run),
        outbox=await raw.execute(tx, "DELETE FROM outbox WHERE fleet = $1 AND run = $2", fleet, run),
        runtime_events=await raw.execute(tx, "DELETE FROM runtime_events WHERE fleet = $1 AND run = $2", fleet, run),
        observations=await _forget_unit(tx, fleet, run),
    )
    for table in ("open_runs", "run_units", "pinned_entries", "runs"):
        await raw.execute(tx, f"DELETE FROM {table} WHERE fleet = $1 AND run = $2", fleet, run)  # noqa: S608  a constant
    # The run's name is what was asked to be forgotten; a hash of it lets the asker prove that it was.
    details = {"run_sha256": sha256(run), **asdict(erased)}
    await audit.add(tx, action="erase.run", by=by, now=now, fleet=fleet, because=because, details=details)
    return erased


async def _forget_unit(tx: AsyncConnection, fleet: str, run: str) -> int:
    """Give the run's units in every ledger a random name; return how many there were."""
    name = f"erased-{secrets.token_hex(8)}"
    await raw.execute(tx, "UPDATE observation_keys SET unit = $3 WHERE fleet = $1 AND unit = $2", fleet, run, name)
    return await raw.execute(tx, "UPDATE observations SET unit = $3, boundary_id = NULL WHERE fleet = $1 AND unit = $2", fleet, run, name)


# A fleet's erasure names no run: it stands for all that were there before it.
_ERASED = """
SELECT k.fleet, k.run FROM unnest($1::text[], $2::text[], $3::text[]) AS k(fleet, run, run_sha256)
WHERE EXISTS (SELECT FROM audit_log a WHERE a.fleet = k.fleet AND ($4::timestamptz IS NULL OR a.at >= $4)
    AND (a.action = 'erase.fleet' OR (a.action = 'erase.run' AND a.details ->> 'run_sha256' = k.run_sha256)))
"""


async def erased_runs(tx: AsyncConnection, runs: Collection[tuple[str, str]], *, since: datetime | None = None) -> set[tuple[str, str]]:
    """Those of `runs` (fleet, run) that were erased at some time, or since a moment, or whose fleet was.

    For later stages' records of boundaries that are not there: of an erased run nothing may be kept, so they are no dead letters.
    """
    if not runs:
        return set()
    rows = sorted((fleet, storable(run), sha256(storable(run))) for fleet, run in set(runs))
    return {(r["fleet"], r["run"]) for r in await raw.fetch(tx, _ERASED, *raw.columns(rows, 3), since)}


async def erase_fleet(tx: AsyncConnection, fleet: str, *, by: str, because: str | None = None, now: datetime) -> Erased:
    """Erase all runs, streams, certificates and keys of a fleet, with an audit row; its readers see nothing any more.

    The fleet's row, its operating points and its audit rows stay: they say that it was, and what was done. Its keys are revoked, its
    handles answer `Gone`.
    """
    await raw.execute(tx, _STOP_PUTS)
    counts = {}
    for table in _OF_FLEET:
        counts[table] = await raw.execute(tx, f"DELETE FROM {table} WHERE fleet = $1", fleet)  # noqa: S608  a constant
    handles = await raw.execute(tx, "UPDATE handles SET erased_at = $2, sha256 = NULL WHERE fleet = $1 AND erased_at IS NULL", fleet, now)
    await raw.execute(tx, "UPDATE api_keys SET revoked_at = coalesce(revoked_at, $2) WHERE fleet = $1", fleet, now)
    await raw.execute(tx, "UPDATE api_keys SET also = array_remove(also, $1) WHERE $1 = ANY (also)", fleet)
    erased = Erased(
        boundaries=counts["boundaries"],
        handles=handles,
        originals=counts["originals"],
        dead_letters=await raw.execute(
            tx,
            "DELETE FROM dead_letters WHERE fleet = $1 OR starts_with(encode(key, 'escape'), $1 || '/') OR key = convert_to($1, 'UTF8')",
            fleet,
        ),
        outbox=counts["outbox"],
        runtime_events=counts["runtime_events"],
        observations=counts["observations"],
    )
    await audit.add(tx, action="erase.fleet", by=by, now=now, fleet=fleet, because=because, details=asdict(erased))
    return erased
