"""`winnow backup` and `winnow restore`: the database in one file, and a new database from it."""

import asyncio
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.cli.connection import Refused, checked_url, database_url, in_transaction, on_database, operator, unreachable
from winnow.cli.exits import ExitCode
from winnow.cli.terminal import Terminal
from winnow.contracts.errors import Permanent

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from winnow.storage.backup import Backup, Manifest
    from winnow.storage.database import Database

File = Annotated[Path, typer.Argument(metavar="FILE", help="The backup.")]


class NoFile(Permanent):
    """The file cannot be read or written."""


def backup(
    file: File,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON.")] = False,
) -> None:
    """Write the whole database into a new file, as it is at one moment, while everything goes on.

    The file holds what agents wrote and read, and the hashes of API keys: it is made readable by its owner alone; keep it so. It needs no
    program of PostgreSQL and goes into PostgreSQL 15 to 18. What is on the bus need not be backed up.

    Example:  winnow backup /backups/winnow-$(date +%F).zip
    """
    from winnow import __version__
    from winnow.storage import backup as stored
    from winnow.storage import migrate

    terminal, url = Terminal(), database_url()
    with unreachable():
        known, _, revision = migrate.standing(url)
    if revision is None or revision not in known:
        msg = f"the schema is at {revision or 'nothing'}, which this Winnow does not know; back up with the Winnow that runs"
        raise Refused(msg)

    async def work(database: "Database") -> "Manifest":
        return await stored.take(
            database, file, revision=revision, version=__version__, progress=lambda name, rows: terminal.note(f"… {name}: {rows}")
        )

    made = on_database(work, connections=stored.CONNECTIONS)
    in_transaction(lambda tx: _audited(tx, "backup.take", made))
    _told(terminal, "backed up", file, made, as_json=as_json)


def restore(
    file: File,
    *,
    check: Annotated[bool, typer.Option("--check", help="Only read the file through and compare its hashes; touch no database.")] = False,
    embedded: Annotated[bool, typer.Option("--embedded", help="Into a new database of WINNOW_STATE_DIR, for `winnow up`.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON.")] = False,
) -> None:
    """Put a backup into a new, empty database (WINNOW_DATABASE_URL), all of it or nothing; then bring its schema up to date.

    Restore as the role that shall own the tables. Logins of SQL readers belong to the cluster: `winnow readers create` makes them anew.
    Start the services afterwards: what waited in a stage is published again, and what was committed is answered as it was, byte for byte.

    A backup knows nothing of what was erased after it was taken: repeat those erasures (`winnow erase`).
    """
    from winnow.storage.backup import Backup

    terminal = Terminal()
    try:
        with Backup(file) as found:
            if check:
                found.check(lambda name, rows: terminal.note(f"… {name}: {rows}"))
                _told(terminal, "sound:", file, found.manifest, as_json=as_json)
                return
            if embedded:
                _into_state(found, terminal)
            else:
                if "WINNOW_DATABASE_URL" not in os.environ:
                    terminal.fail("name the new database by WINNOW_DATABASE_URL, or say --embedded", ExitCode.USAGE)
                _into(found, checked_url(os.environ["WINNOW_DATABASE_URL"]), terminal)
            _told(terminal, "restored", file, found.manifest, as_json=as_json)
            if found.manifest.readers:
                terminal.note(f"SQL readers whose logins must be made anew: {', '.join(found.manifest.readers)}", style="yellow")
    except OSError as exc:
        msg = f"{file}: {exc.strerror or exc}"
        raise NoFile(msg) from None


def _into(found: "Backup", url: str, terminal: Terminal) -> None:
    """Migrate an empty database to the backup's revision, fill it, and migrate it on."""
    from winnow.storage import backup as stored
    from winnow.storage import migrate
    from winnow.storage.database import Database

    wanted = found.manifest.revision

    async def fill() -> None:
        database = Database(url, pool_size=1, application_name="winnow-restore")
        try:
            await stored.put(database, found, progress=lambda name, rows: terminal.note(f"… {name}: {rows}"))
            async with database.transaction() as tx:
                await _audited(tx, "backup.restore", found.manifest)
        finally:
            await database.close()

    with unreachable():
        known, _, current = migrate.standing(url)
        if wanted not in known:
            made_by = found.manifest.winnow[:100]
            msg = f"the backup's schema is {wanted[:100]}, which this Winnow does not know; restore it with Winnow {made_by}"
            raise Refused(msg)
        if current is None:
            migrate.upgrade(url, wanted)
        elif current != wanted:
            msg = f"the database's schema is at {current}, the backup's at {wanted}; restore into a new database without any schema"
            raise stored.NotEmpty(msg)
        asyncio.run(fill())
        migrate.upgrade(url)


def _into_state(found: "Backup", terminal: Terminal) -> None:
    """Start the embedded PostgreSQL of the state folder, without services, and fill it."""
    from winnow.embedded import PostgresServer, state_dir
    from winnow.embedded.lock import FileLock

    state = state_dir()
    state.mkdir(parents=True, exist_ok=True)
    lock = FileLock(state / "up.lock")
    lock.acquire()
    try:
        with PostgresServer(state / "postgres") as server:
            _into(found, server.dsn(), terminal)
    finally:
        lock.release()


async def _audited(tx: "AsyncConnection", action: str, manifest: "Manifest") -> None:
    """A row in the audit trail: everything was read, or all of it came back."""
    from winnow.storage import audit

    details = {"taken_at": manifest.taken_at, "revision": manifest.revision, "rows": manifest.rows}
    await audit.add(tx, action=action, by=operator(), now=datetime.now(UTC), details=details)


def _told(terminal: Terminal, what: str, file: Path, manifest: "Manifest", *, as_json: bool) -> None:
    """Say what the backup holds."""
    value = {
        "file": str(file),
        "taken_at": manifest.taken_at,
        "winnow": manifest.winnow,
        "revision": manifest.revision,
        "tables": len(manifest.tables),
        "rows": manifest.rows,
        "bytes": sum(table.size for table in manifest.tables),
    }
    if as_json:
        terminal.json(value)
    else:
        terminal.show(
            f"{what} {value['rows']} rows of {value['tables']} tables ({value['bytes']} bytes), taken {manifest.taken_at}: {file}"
        )
