"""Findings of the database: schema, roles, row-level security, clock, and what waits in it."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

from winnow.cli.checkup.findings import Finding, error, note, ok, warning

if TYPE_CHECKING:
    from winnow.storage.inspection import Backlog, Guards, Server

#: Major versions that Winnow's tests run on, from and to.
OLDEST, NEWEST = 15, 18
#: Seconds between our clock and the server's: deadlines are compared across machines, and an agent's own are often a few seconds.
SKEW_WARN_S, SKEW_ERROR_S = 1.0, 10.0
#: Age of a boundary that is not committed, of an unsent outbox row and of a heartbeat that is worth a word.
STUCK_AFTER, OUTBOX_AFTER, SILENT_AFTER = timedelta(minutes=5), timedelta(minutes=1), timedelta(minutes=1)
#: A daily job that did not run for so long was forgotten.
RETENTION_AFTER = timedelta(days=3)
#: Names that one finding lists.
MOST_NAMES = 8


def listed(names: Sequence[str]) -> str:
    """Some names, and how many more there are."""
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def span(delta: timedelta) -> str:
    """A duration in words, in its largest unit."""
    seconds = max(0.0, delta.total_seconds())
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def of_schema(current: str | None, known: Sequence[str], pending: Sequence[str]) -> list[Finding]:
    """The revision against those of this program. `known` has all of its revisions, `pending` those that an upgrade would apply."""
    if current is None:
        return [error("database.schema", "there is no schema", "run `winnow db upgrade`")]
    if current not in known:
        return [error("database.schema", f"the schema is at {current}, which this Winnow does not know", "run a Winnow of that release")]
    if pending:
        return [error("database.schema", f"the schema is at {current}; {', '.join(pending)} wait", "run `winnow db upgrade`")]
    return [ok("database.schema", f"at {current}, the newest")]


def of_server(server: "Server") -> list[Finding]:
    """Version, role and clock."""
    major = server.version // 10_000
    found = [ok("database", f"PostgreSQL {major}, {server.size_bytes / 2**20:.0f} MiB, answers in {1000 * server.trip_s:.1f} ms")]
    if major < OLDEST:
        found = [error("database", f"PostgreSQL {major}", f"Winnow needs {OLDEST} or newer: upgrade the server")]
    elif major > NEWEST:
        found = [warning("database", f"PostgreSQL {major} is newer than any that Winnow was tested on", f"prefer {NEWEST}")]
    if not server.service and not server.superuser:
        found.append(
            error("database.role", f"{server.user} has not the rights of winnow_service", f"GRANT winnow_service TO {server.user}")
        )
    elif server.superuser or server.bypasses:
        found.append(
            note(
                "database.role",
                f"{server.user} is a superuser or passes by row-level security",
                "fine on one machine; in production let services connect as a plain member of winnow_service",
            )
        )
    else:
        found.append(ok("database.role", f"{server.user} is a plain member of winnow_service"))
    skew = abs(server.skew_s)
    said = f"the server's clock is {skew:.2f} s {'ahead of' if server.skew_s > 0 else 'behind'} this machine's"
    if skew <= SKEW_WARN_S + server.trip_s / 2:
        found.append(ok("database.clock", f"within {skew:.2f} s of this machine's"))
    else:
        made = error if skew > SKEW_ERROR_S else warning
        found.append(
            made("database.clock", said, "synchronise the clocks (NTP): deadlines and watermarks compare times of several machines")
        )
    return found


def of_guards(guards: "Guards") -> list[Finding]:
    """Roles and row-level security."""
    found: list[Finding] = []
    if guards.missing_roles:
        found.append(error("database.roles", f"missing: {listed(guards.missing_roles)}", "run `winnow db upgrade` as the schema's owner"))
    if guards.loose_roles:
        advice = "ALTER ROLE ... NOLOGIN NOSUPERUSER NOBYPASSRLS (a reader keeps LOGIN): what passes by row-level security sees all tenants"
        found.append(error("database.roles", f"too much is allowed to {listed(guards.loose_roles)}", advice))
    if not guards.missing_roles and not guards.loose_roles:
        found.append(ok("database.roles", "all there, none may log in or pass by row-level security"))
    if guards.open_tables:
        advice = "ALTER TABLE ... ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY; see who switched it off"
        found.append(error("database.rows", f"no row-level security on {listed(guards.open_tables)}", advice))
    if guards.seen_by_nobody:
        advice = "a policy or a grant was changed: compare with the migrations, and stop the gateway until it is mended"
        found.append(error("database.rows", f"the gateway's role sees other fleets' rows of {listed(guards.seen_by_nobody)}", advice))
    if guards.loose_views:
        advice = "ALTER VIEW ... OWNER TO winnow_view_owner: a view shows what its owner may see"
        found.append(error("database.views", f"another owner: {listed(guards.loose_views)}", advice))
    if guards.lost_readers:
        advice = "`winnow readers create` them anew, or `winnow readers drop` them"
        found.append(warning("database.readers", f"no login role any more: {listed(guards.lost_readers)}", advice))
    if not guards.open_tables and not guards.seen_by_nobody:
        seen = "; tried as the gateway's role: it sees no other fleet" if guards.seen_by_nobody is not None else ""
        found.append(ok("database.rows", f"row-level security is on and forced on {guards.tables} tables and partitions{seen}"))
    if guards.seen_by_nobody is None and not guards.missing_roles:
        advice = "services need it; GRANT winnow_gateway to the role of the gateway"
        found.append(warning("database.rows", "this role may not become winnow_gateway, so isolation was not tried", advice))
    return found


def of_backlog(state: "Backlog") -> list[Finding]:
    """Holds, certificates, outbox, stuck boundaries, dead letters, heartbeats, webhook, judges, retention."""
    return [*_fleets(state), *_waiting(state), *_watching(state), *_judging(state), *_kept(state)]


def _fleets(state: "Backlog") -> Iterator[Finding]:
    """Holds and certificates."""
    for fleet, because in state.held[:MOST_NAMES]:
        yield warning("fleets.held", f"{fleet} is held: {because}", f"`winnow fleet show {fleet}`, then `winnow release {fleet}`")
    if len(state.held) > MOST_NAMES:
        yield warning("fleets.held", f"{len(state.held)} fleets are held in all", "`winnow fleet show`")
    for fleet, because in state.uncertified[:MOST_NAMES]:
        advice = f"`winnow certify LOSSES --alpha ALPHA --fleet {fleet}`; until then nothing is pruned there"
        yield warning("fleets.certificates", f"{fleet}: {because}", advice)
    if len(state.uncertified) > MOST_NAMES:
        yield warning(
            "fleets.certificates", f"{len(state.uncertified)} fleets in all lack the certificate that they require", "`winnow certificates`"
        )
    for fleet, until in state.expiring[:MOST_NAMES]:
        yield warning("fleets.certificates", f"the one of {fleet} ends on {until:%Y-%m-%d %H:%M} UTC", "certify anew before that")
    if state.unwatched:
        yield warning("fleets.monitor", f"held for want of a live monitor: {listed(state.unwatched)}", "start the drift monitor")
    if not state.held and not state.uncertified and not state.unwatched:
        yield ok("fleets", f"{state.fleets}, none held")


def _waiting(state: "Backlog") -> Iterator[Finding]:
    """Outbox, stuck boundaries, dead letters."""
    if state.outbox_oldest is not None and state.now - state.outbox_oldest > OUTBOX_AFTER:
        said = f"{state.outbox} rows wait, the oldest for {span(state.now - state.outbox_oldest)}"
        said += f"; {state.outbox_failed} were tried in vain" if state.outbox_failed else ""
        yield error("outbox", said, "see whether a gateway runs and the broker answers; nothing is lost, it goes out by itself")
    else:
        yield ok("outbox", f"{state.outbox} rows wait")
    if state.stuck and state.stuck_oldest is not None:
        said = ", ".join(f"{number} wait for the {stage}" for stage, number in state.stuck.items())
        advice = "see whether these services run (`winnow lag`); the sweeper publishes them again"
        yield warning("boundaries.stuck", f"{said}; the oldest came {span(state.now - state.stuck_oldest)} ago", advice)
    else:
        yield ok("boundaries.stuck", f"none waits longer than {span(STUCK_AFTER)}")
    if state.dead and state.dead_last is not None:
        said = ", ".join(f"{number} {reason}" for reason, number in state.dead.items())
        advice = "`winnow dead-letters list`; mend the cause, then `winnow dead-letters replay`"
        yield warning("dead-letters", f"{said}, never replayed; the last came {span(state.now - state.dead_last)} ago", advice)
    else:
        yield ok("dead-letters", "none that was not replayed")


def _watching(state: "Backlog") -> Iterator[Finding]:
    """The drift monitor and its webhook."""
    newest = max(state.heartbeats.values(), default=None)
    if newest is None:
        made = warning if state.watched else note
        yield made("monitor", f"no drift monitor has ever run; there are {state.watched} streams", "start one: nobody watches the fleets")
    elif state.now - newest > SILENT_AFTER:
        advice = "start a drift monitor: alarms wait, and fleets with --hold-if-stale are held"
        yield error("monitor", f"the last sign of life came {span(state.now - newest)} ago", advice)
    else:
        yield ok("monitor", f"alive, {state.watched} streams")
    if state.overdue is not None and state.now - state.overdue > SILENT_AFTER:
        said = f"the timer of a stream has been over for {span(state.now - state.overdue)}"
        yield warning("monitor.lag", said, "the monitor is behind: look at its log and at the database's load")
    if state.alarmed:
        yield warning("monitor.streams", f"{state.alarmed} streams are in alarm or held", "`winnow alerts`, `winnow streams list`")
    if state.webhook_dead:
        advice = "`winnow alerts` shows them; mend the other side, which was tried for half a day"
        yield warning("webhook", f"{state.webhook_dead} alerts were given up", advice)
    if state.webhook_waiting:
        yield note("webhook", f"{state.webhook_waiting} deliveries wait")


def _judging(state: "Backlog") -> Iterator[Finding]:
    """What calls of judges came to in the last hour."""
    for judge, last, failed, asked in state.judge_trouble:
        made = error if failed == asked else warning
        yield made(f"judge {judge}", f"{failed} of {asked} calls failed in the last hour, the last by {last}", "docs/judges.md: failures")


def _kept(state: "Backlog") -> Iterator[Finding]:
    """Whether the daily job runs."""
    young = state.oldest_boundary is None or state.now - state.oldest_boundary < RETENTION_AFTER
    if state.retention_last is not None and state.now - state.retention_last <= RETENTION_AFTER:
        yield ok("retention", f"last applied {span(state.now - state.retention_last)} ago")
    elif not young:
        ago = "never" if state.retention_last is None else f"{span(state.now - state.retention_last)} ago"
        yield warning("retention", f"last applied: {ago}", "run `winnow retention` once a day (docs/operations.md, Forgetting)")


async def look(url: str, judges: Sequence[str]) -> list[Finding]:
    """Everything about the database at `url`; `judges` are those of this process. Raise what the driver raises where it does not answer."""
    from winnow.storage import inspection, migrate
    from winnow.storage.database import Database

    known, pending, current = await asyncio.to_thread(migrate.standing, url)
    found = of_schema(current, known, pending)
    database = Database(url, pool_size=1, application_name="winnow-doctor", pool_timeout_s=10.0)
    try:
        found += of_server(await inspection.server(database))
        if current is not None and not pending and current in known:
            found += of_guards(await inspection.guards(database))
            async with database.reading() as tx:
                state = await inspection.backlog(tx, stuck_after=STUCK_AFTER)
            found += [*of_backlog(state), *judges_named(state, judges)]
    finally:
        await database.close()
    return found


def judges_named(state: "Backlog", there: Sequence[str]) -> list[Finding]:
    """Operating points that name a judge which is not configured here."""
    wanting = sorted({(judge, fleet) for fleet, judge in state.judges if judge not in there})
    return [
        warning("judges", f"{fleet} asks for {judge}, which WINNOW_JUDGES of this process does not have", "the fallback answers there")
        for judge, fleet in wanting[:MOST_NAMES]
    ]
