"""What the database says of itself: version, clock, roles, row-level security, backlogs. Reads alone; for `winnow doctor`."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import asyncpg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.storage import raw
from winnow.storage.bindings import standings
from winnow.storage.database import Database

#: Roles that the migrations make; none may log in, be a superuser or pass by row-level security.
ROLES = ("winnow_service", "winnow_gateway", "winnow_view_owner", "winnow_reader")
#: Before a certificate ends there is still time for another one.
EXPIRES_SOON = timedelta(days=7)
#: A fleet that has no rows.
NOBODY = "winnow doctor looks for rows of nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """The server and who we are on it."""

    version: int  # as server_version_num, for example 180001
    user: str
    superuser: bool
    bypasses: bool  # the role passes by row-level security
    service: bool  # it has the rights of winnow_service
    skew_s: float  # the server's clock minus ours; positive: the server's is ahead
    trip_s: float  # of the question; the skew is known no better than half of it
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Guards:
    """What keeps one tenant from another's rows."""

    missing_roles: tuple[str, ...]
    #: Roles of ours, and readers' logins, that may pass by row-level security, or log in where none may.
    loose_roles: tuple[str, ...]
    #: Tables and partitions without ENABLE or FORCE ROW LEVEL SECURITY.
    open_tables: tuple[str, ...]
    #: Views that do not belong to winnow_view_owner.
    loose_views: tuple[str, ...]
    #: Readers in the table whose login role is gone from the cluster.
    lost_readers: tuple[str, ...]
    tables: int
    #: Tables of which the gateway's role saw rows of other fleets; None: it could not be asked.
    seen_by_nobody: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What waits, what was given up, and who is silent. Times are the server's."""

    now: datetime
    fleets: int
    held: tuple[tuple[str, str], ...]  # fleet, because
    uncertified: tuple[tuple[str, str], ...]  # fleet, because: a certificate is demanded and none covers what it serves
    unwatched: tuple[str, ...]  # a live monitor is demanded
    expiring: tuple[tuple[str, datetime], ...]  # fleet, when the last certificate that it needs ends (within `EXPIRES_SOON`)
    judges: tuple[tuple[str, str], ...]  # fleet, judge of its operating point
    outbox: int
    outbox_oldest: datetime | None
    outbox_failed: int  # of them, tried in vain
    stuck: Mapping[str, int]  # by the stage that they wait for
    stuck_oldest: datetime | None
    dead: Mapping[str, int]  # never replayed, by reason
    dead_last: datetime | None
    heartbeats: Mapping[str, datetime]
    watched: int  # streams that somebody must fold
    overdue: datetime | None  # since when the timer of a stream has been over
    alarmed: int
    webhook_waiting: int
    webhook_dead: int
    judge_trouble: tuple[tuple[str, str, int, int], ...]  # judge, last error, failed, asked: in the last hour
    retention_last: datetime | None
    oldest_boundary: datetime | None


_SERVER = """
SELECT current_setting('server_version_num')::int AS version, current_user::text AS me, r.rolsuper, r.rolbypassrls,
    EXISTS (SELECT FROM pg_roles WHERE rolname = 'winnow_service') AS there, pg_database_size(current_database()) AS size
FROM pg_roles r WHERE r.rolname = current_user
"""

_GUARDS = """
SELECT
    ARRAY(SELECT w FROM unnest($1::text[]) AS w WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = w) ORDER BY w) AS missing_roles,
    ARRAY(SELECT r.rolname::text FROM pg_roles r WHERE (r.rolname = ANY ($1::text[]) AND (r.rolcanlogin OR r.rolsuper OR r.rolbypassrls))
        OR (EXISTS (SELECT FROM reader_roles k WHERE k.role = r.rolname) AND (r.rolsuper OR r.rolbypassrls)) ORDER BY 1) AS loose_roles,
    ARRAY(SELECT c.relname::text FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
        AND c.relname <> 'alembic_version' AND NOT (c.relrowsecurity AND c.relforcerowsecurity) ORDER BY 1) AS open_tables,
    ARRAY(SELECT c.relname::text FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'v'
        AND EXISTS (SELECT FROM pg_roles WHERE rolname = 'winnow_view_owner')
        AND has_table_privilege('winnow_reader', c.oid, 'SELECT')
        AND pg_get_userbyid(c.relowner) <> 'winnow_view_owner' ORDER BY 1) AS loose_views,
    ARRAY(SELECT k.role FROM reader_roles k WHERE NOT EXISTS (SELECT FROM pg_roles r WHERE r.rolname = k.role) ORDER BY 1) AS lost_readers,
    (SELECT count(*) FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
        AND c.relname <> 'alembic_version') AS tables
"""

_TENANT_TABLES = """
SELECT c.relname::text AS name FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'fleet'
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    AND has_table_privilege('winnow_gateway', c.oid, 'SELECT') ORDER BY 1
"""

_FLEETS = """
SELECT f.fleet, f.held_since IS NOT NULL AS held, coalesce(f.held_because, '') AS because, p.judge,
    p.hold_if_monitor_stale AND NOT EXISTS (SELECT FROM monitor_heartbeats h WHERE h.at >= now() - interval '60 s') AS unwatched
FROM fleets f JOIN operating_points p ON p.id = f.operating_point ORDER BY f.fleet
"""

_BACKLOG = """
SELECT now() AS now,
    (SELECT count(*) FROM outbox WHERE sent_at IS NULL) AS outbox,
    (SELECT min(created_at) FROM outbox WHERE sent_at IS NULL) AS outbox_oldest,
    (SELECT count(*) FROM outbox WHERE sent_at IS NULL AND attempts > 0) AS outbox_failed,
    (SELECT count(*) FROM boundaries b WHERE b.committed_at IS NULL AND b.evidence_at IS NULL AND b.received_at < now() - $1::interval)
        AS without_evidence,
    (SELECT count(*) FROM boundaries b WHERE b.committed_at IS NULL AND b.evidence_at IS NOT NULL AND b.scored_at IS NULL
        AND b.received_at < now() - $1::interval) AS without_scores,
    (SELECT count(*) FROM boundaries b WHERE b.committed_at IS NULL AND b.scored_at IS NOT NULL AND b.received_at < now() - $1::interval)
        AS without_commit,
    (SELECT min(b.received_at) FROM boundaries b WHERE b.committed_at IS NULL AND b.received_at < now() - $1::interval) AS stuck_oldest,
    (SELECT max(created_at) FROM dead_letters WHERE replays = 0) AS dead_last,
    (SELECT count(*) FROM streams) AS watched,
    (SELECT min(due_at) FROM monitor_states WHERE due_at < now() AND status NOT IN ('alarm', 'held')) AS overdue,
    (SELECT count(*) FROM monitor_states WHERE status IN ('alarm', 'held')) AS alarmed,
    (SELECT count(*) FROM webhook_deliveries WHERE next_at IS NOT NULL) AS webhook_waiting,
    (SELECT count(*) FROM webhook_deliveries WHERE dead_at IS NOT NULL) AS webhook_dead,
    (SELECT max(at) FROM audit_log WHERE action = 'retention.apply') AS retention_last,
    (SELECT min(boundary_at) FROM boundaries) AS oldest_boundary
"""

_JUDGES = """
SELECT c.judge, (array_agg(c.error ORDER BY c.started_at DESC) FILTER (WHERE c.error IS NOT NULL))[1] AS last_error,
    count(*) FILTER (WHERE c.error IS NOT NULL) AS failed, count(*) AS asked
FROM judge_calls c WHERE c.started_at >= now() - interval '1 hour' AND c.boundary_at >= now() - interval '7 days'
GROUP BY c.judge HAVING count(*) FILTER (WHERE c.error IS NOT NULL) > 0 ORDER BY c.judge
"""


async def server(database: Database) -> Server:
    """The server's version, our role, and how far its clock is from ours."""
    async with database.reading() as tx:
        began, before = time.monotonic(), datetime.now(UTC)
        clock = await raw.fetch_one(tx, "SELECT clock_timestamp() AS at")
        trip = time.monotonic() - began
        row = await raw.fetch_one(tx, _SERVER)
        if row is None or clock is None:  # `current_user` is always a role
            msg = "the server does not say who we are"
            raise LookupError(msg)
        mine = row["there"] and bool(await _value(tx, "SELECT pg_has_role(current_user, 'winnow_service', 'USAGE')"))
    return Server(
        version=row["version"],
        user=row["me"],
        superuser=row["rolsuper"],
        bypasses=row["rolbypassrls"],
        service=mine,
        skew_s=(clock["at"] - before).total_seconds() - trip / 2,
        trip_s=trip,
        size_bytes=row["size"],
    )


async def guards(database: Database) -> Guards:
    """Roles and row-level security: by the catalogue, and by a look as the gateway's role for a fleet that does not exist."""
    async with database.reading() as tx:
        row = await raw.fetch_one(tx, _GUARDS, list(ROLES))
        if row is None:
            msg = "the catalogue gives no row"
            raise LookupError(msg)
        tenants = [r["name"] for r in await raw.fetch(tx, _TENANT_TABLES)] if not row["missing_roles"] else []
    try:
        async with database.fleet_transaction(NOBODY) as tx:
            # Names come from the catalogue of our own schema and are quoted all the same.
            seen = tuple([name for name in tenants if await _value(tx, f'SELECT EXISTS (SELECT FROM "{name}")')])  # noqa: S608
    except (DBAPIError, asyncpg.PostgresError):  # we may not become the gateway's role, or it may not read
        seen = None
    return Guards(
        missing_roles=tuple(row["missing_roles"]),
        loose_roles=tuple(row["loose_roles"]),
        open_tables=tuple(row["open_tables"]),
        loose_views=tuple(row["loose_views"]),
        lost_readers=tuple(row["lost_readers"]),
        tables=row["tables"],
        seen_by_nobody=seen,
    )


async def backlog(tx: AsyncConnection, *, stuck_after: timedelta) -> Backlog:
    """What waits and who is silent; a boundary counts as stuck when it is not committed after `stuck_after`."""
    row = await raw.fetch_one(tx, _BACKLOG, stuck_after)
    if row is None:
        msg = "the database gives no row"
        raise LookupError(msg)
    fleets = await raw.fetch(tx, _FLEETS)
    standing = [s for s in await standings(tx, now=row["now"]) if s.required]
    dead = await raw.fetch(tx, "SELECT reason, count(*) AS n FROM dead_letters WHERE replays = 0 GROUP BY 1 ORDER BY 2 DESC, 1")
    beats = await raw.fetch(tx, "SELECT monitor, at FROM monitor_heartbeats ORDER BY at DESC LIMIT 20")
    trouble = await raw.fetch(tx, _JUDGES)
    stuck = {"retriever": row["without_evidence"], "judge": row["without_scores"], "pruner": row["without_commit"]}
    return Backlog(
        now=row["now"],
        fleets=len(fleets),
        held=tuple((f["fleet"], f["because"]) for f in fleets if f["held"]),
        uncertified=tuple((s.fleet, s.because) for s in standing if s.because is not None),
        unwatched=tuple(f["fleet"] for f in fleets if f["unwatched"]),
        expiring=tuple((s.fleet, s.until) for s in standing if s.until is not None and s.until < row["now"] + EXPIRES_SOON),
        judges=tuple((f["fleet"], f["judge"]) for f in fleets),
        outbox=row["outbox"],
        outbox_oldest=row["outbox_oldest"],
        outbox_failed=row["outbox_failed"],
        stuck={stage: number for stage, number in stuck.items() if number},
        stuck_oldest=row["stuck_oldest"],
        dead={r["reason"]: r["n"] for r in dead},
        dead_last=row["dead_last"],
        heartbeats={r["monitor"]: r["at"] for r in beats},
        watched=row["watched"],
        overdue=row["overdue"],
        alarmed=row["alarmed"],
        webhook_waiting=row["webhook_waiting"],
        webhook_dead=row["webhook_dead"],
        judge_trouble=tuple((r["judge"], r["last_error"], r["failed"], r["asked"]) for r in trouble),
        retention_last=row["retention_last"],
        oldest_boundary=row["oldest_boundary"],
    )


async def _value(tx: AsyncConnection, sql: str) -> object:
    """The first column of the first row."""
    row = await raw.fetch_one(tx, sql)
    return None if row is None else row[0]
