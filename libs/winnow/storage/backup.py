"""The whole database in one file, and a new database from it, without PostgreSQL's own tools and across its versions 15 to 18.

A backup is a ZIP file: one member a table in PostgreSQL's COPY text format (UTF-8), and at the end `manifest.json`. It is taken in one
REPEATABLE READ transaction, so it is the database at one moment, whatever the services do meanwhile. A partition that is dropped is missing
from a snapshot that was taken before, so retention and backup exclude each other, by the row that retention locks first of all: whoever
comes second waits, and holds up no service meanwhile. A restore is one transaction too: the new database has all of it, or none.

Left out: `alembic_version` and `locks`, which migrations write, and login roles, which belong to the cluster and not to a database.
"""

import errno
import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from graphlib import TopologicalSorter
from pathlib import Path
from typing import IO, Self

import asyncpg

from winnow.contracts.errors import Conflict, Permanent
from winnow.storage import raw
from winnow.storage.database import Database

#: Version of the file's form; a reader refuses what is newer.
FORM = 1
MANIFEST = "manifest.json"
#: Tables that the migrations fill.
LEFT_OUT = ("alembic_version", "locks")
#: Bytes of a manifest at most: a name, some columns and months for each of a hundred tables.
MANIFEST_BYTES = 4 * 2**20
#: Connections that a backup needs: one reads, one keeps retention away.
CONNECTIONS = 2
#: Bytes that are read from a member at once.
CHUNK_BYTES = 2**18
#: Of ZIP's deflate: level 1 takes a third of the time of level 6; originals and outbox bodies are compressed already.
LEVEL = 1

#: Errors that a file has and a connection has not.
_OF_DISKS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})

#: Told a table's name and its rows when it is done.
Progress = Callable[[str, int], None]


class BadBackup(Permanent):
    """The file is no backup of Winnow, or it is damaged; take another one."""


class FileExists(Conflict):
    """There is a file of that name; a backup never writes over anything."""


class NotWritten(Permanent):
    """The backup cannot be written."""


class NotEmpty(Conflict):
    """The database already holds something; a backup goes into a new one (CREATE DATABASE), so that nothing is mixed or lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One table of a backup."""

    name: str
    columns: tuple[str, ...]
    rows: int
    #: Of the member's bytes, uncompressed.
    sha256: str
    size: int
    #: Months of its partitions, as YYYY-MM; empty where it is not partitioned.
    months: tuple[str, ...] = ()
    #: Column that numbers itself, and the last number given (or, where the role may not see that, the largest in use); a restored
    #: database must not give one twice.
    identity: str | None = None
    last_number: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a backup holds."""

    form: int
    #: Version of Winnow that took it, and the revision of the schema.
    winnow: str
    revision: str
    taken_at: str
    postgres: int
    tables: tuple[Table, ...]
    #: SQL readers, whose logins must be made anew in another cluster.
    readers: tuple[str, ...]

    @property
    def rows(self) -> int:
        """Of all tables."""
        return sum(table.rows for table in self.tables)


_TABLES = """
SELECT c.relname::text AS name,
    ARRAY(SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
        AND a.attgenerated = '' ORDER BY a.attnum) AS columns,
    (SELECT a.attname::text FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attidentity <> '' LIMIT 1) AS identity,
    ARRAY(SELECT replace(right(k.relname, 7), '_', '-') FROM pg_inherits i JOIN pg_class k ON k.oid = i.inhrelid
        WHERE i.inhparent = c.oid ORDER BY 1) AS months,
    ARRAY(SELECT DISTINCT p.relname::text FROM pg_constraint f JOIN pg_class p ON p.oid = f.confrelid
        WHERE f.conrelid = c.oid AND f.contype = 'f' AND f.confrelid <> c.oid) AS needs
FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
    AND NOT c.relname = ANY ($1::text[]) ORDER BY c.relname
"""


def _quoted(name: str) -> str:
    """An identifier for SQL; names come from the catalogue or from a file, and are never trusted."""
    return '"' + name.replace('"', '""') + '"'


async def take(database: Database, place: Path, *, revision: str, version: str, progress: Progress = lambda _name, _rows: None) -> Manifest:
    """Write the database into the new file `place` (mode 0600) and return what it holds. `database` has `CONNECTIONS` or more.

    `revision` is that of the schema, `version` that of this program. The role must see all rows: a member of winnow_service, or a
    superuser.
    Raises `FileExists`, or `NotWritten` where the folder is not there or the disk is full.
    """
    try:
        handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise FileExists from None
    except (OSError, ValueError) as exc:
        raise NotWritten(f"{place}: {getattr(exc, 'strerror', None) or exc}") from None
    try:
        with os.fdopen(handle, "w+b") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
            async with _without_retention(database):
                manifest = await _taken(database, archive, revision, version, progress)
            archive.writestr(MANIFEST, json.dumps(asdict(manifest), indent=1))
    except BaseException as exc:
        os.unlink(place)  # noqa: PTH108  one call of a moment, as the `open` above
        if isinstance(exc, OSError) and exc.errno in _OF_DISKS:  # others are the database's
            raise NotWritten(f"{place}: {exc.strerror}") from None
        raise
    return manifest


@asynccontextmanager
async def _without_retention(database: Database) -> AsyncIterator[None]:
    """Let no retention run until the block ends; wait for one that does."""
    async with database.transaction() as tx:
        await raw.execute(tx, "SET LOCAL idle_in_transaction_session_timeout = 0")
        # SHARE: backups may run beside one another.
        await raw.execute(tx, "SELECT FROM locks WHERE name = 'retention' FOR SHARE")
        yield


async def _taken(database: Database, archive: zipfile.ZipFile, revision: str, version: str, progress: Progress) -> Manifest:
    """Copy all tables out of one snapshot."""
    async with database.reading() as tx:
        connection = await raw.driver(tx)
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            # A dump of a large database takes longer than a transaction of the services may.
            await connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            tables: list[Table] = []
            for row in await connection.fetch(_TABLES, list(LEFT_OUT)):
                tables.append(await _copied(connection, archive, row))
                progress(tables[-1].name, tables[-1].rows)
            readers = await connection.fetch("SELECT role FROM reader_roles ORDER BY role")
            server = await connection.fetchval("SELECT current_setting('server_version_num')::int")
    return Manifest(
        form=FORM,
        winnow=version,
        revision=revision,
        taken_at=datetime.now(UTC).isoformat(timespec="seconds"),
        postgres=server,
        tables=tuple(tables),
        readers=tuple(r["role"] for r in readers),
    )


async def _copied(connection: "asyncpg.Connection[asyncpg.Record]", archive: zipfile.ZipFile, row: asyncpg.Record) -> Table:
    """One table as a member of the archive."""
    digest, size = hashlib.sha256(), 0
    columns = ", ".join(map(_quoted, row["columns"]))
    with archive.open(f"{row['name']}.copy", "w", force_zip64=True) as member:

        async def write(data: bytes) -> None:
            nonlocal size
            digest.update(data)
            size += len(data)
            member.write(data)

        # Of a partitioned table only a query gives the rows.
        query = f"SELECT {columns} FROM public.{_quoted(row['name'])}"  # noqa: S608  quoted names of the catalogue
        status = await connection.copy_from_query(query, output=write, format="text", encoding="utf-8")
    last = None
    if row["identity"] is not None:
        sequence = await connection.fetchval("SELECT pg_get_serial_sequence($1, $2)", f"public.{_quoted(row['name'])}", row["identity"])
        # NULL for a role that may not look at the sequence; the largest number in use is known all the same.
        given = await connection.fetchval("SELECT pg_sequence_last_value($1::text::regclass)", sequence)
        largest = await connection.fetchval(f"SELECT max({_quoted(row['identity'])}) FROM public.{_quoted(row['name'])}")  # noqa: S608  quoted
        last = max((number for number in (given, largest) if number is not None), default=None)
    return Table(
        name=row["name"],
        columns=tuple(row["columns"]),
        rows=int(status.rpartition(" ")[2]),
        sha256=digest.hexdigest(),
        size=size,
        months=tuple(row["months"]),
        identity=row["identity"],
        last_number=last,
    )


class Backup:
    """A backup that is read. `with Backup(path) as backup:`; raises `BadBackup` where it is none, `OSError` where it cannot be read."""

    def __init__(self, place: Path) -> None:
        try:
            self._archive = zipfile.ZipFile(place)
        except zipfile.BadZipFile as exc:
            raise BadBackup from exc
        try:
            self.manifest = self._read_manifest()
        except BaseException:
            self._archive.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._archive.close()

    def _read_manifest(self) -> Manifest:
        """The manifest, every field of it looked at."""
        try:
            if self._archive.getinfo(MANIFEST).file_size > MANIFEST_BYTES:
                raise BadBackup
            value = json.loads(self._archive.read(MANIFEST))
            form = value["form"]
            if not isinstance(form, int) or form > FORM:
                msg = f"the backup has form {form}, this Winnow reads up to {FORM}; restore it with the Winnow that took it"
                raise BadBackup(msg)
            tables = tuple(
                Table(**(table | {"columns": tuple(table["columns"]), "months": tuple(table["months"])})) for table in value.pop("tables")
            )
            return Manifest(**(value | {"tables": tables, "readers": tuple(value["readers"])}))
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError, zipfile.BadZipFile) as exc:
            raise BadBackup from exc

    def check(self, progress: Progress = lambda _name, _rows: None) -> None:
        """Read all of it and compare sizes and hashes. Raise `BadBackup`."""
        for table in self.manifest.tables:
            digest, size = hashlib.sha256(), 0
            with self._open(table) as member:
                while data := self._chunk(member):
                    digest.update(data)
                    size += len(data)
            self._same(table, digest.hexdigest(), size)
            progress(table.name, table.rows)

    def _open(self, table: Table) -> IO[bytes]:
        try:
            return self._archive.open(f"{table.name}.copy")
        except (KeyError, zipfile.BadZipFile, NotImplementedError, RuntimeError) as exc:
            raise BadBackup from exc

    @staticmethod
    def _chunk(member: IO[bytes]) -> bytes:
        try:
            return member.read(CHUNK_BYTES)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as exc:
            raise BadBackup from exc

    @staticmethod
    def _same(table: Table, digest: str, size: int) -> None:
        if digest != table.sha256 or size != table.size:
            msg = f"{table.name} is damaged in this backup; take another one"
            raise BadBackup(msg)

    async def rows(self, table: Table) -> AsyncIterator[bytes]:
        """The bytes of a table, checked; the last step raises `BadBackup` where they are not those that were written."""
        digest, size = hashlib.sha256(), 0
        with self._open(table) as member:
            while data := self._chunk(member):
                digest.update(data)
                size += len(data)
                if size > table.size:
                    break
                yield data
        self._same(table, digest.hexdigest(), size)


async def is_empty(database: Database) -> bool:
    """No table of the schema `public` has a row, but for what the migrations write."""
    async with database.reading() as tx:
        for row in await raw.fetch(tx, _TABLES, list(LEFT_OUT)):
            found = await raw.fetch_one(tx, f"SELECT EXISTS (SELECT FROM public.{_quoted(row['name'])}) AS some")  # noqa: S608  quoted
            if found is not None and found["some"]:
                return False
    return True


async def put(database: Database, backup: Backup, *, progress: Progress = lambda _name, _rows: None) -> None:
    """Put a backup into a database whose schema has the backup's revision and no rows, all or nothing.

    The role must own the tables (whoever ran `winnow db upgrade` does) and see all rows. Raises `NotEmpty`, `BadBackup`.
    """
    if not await is_empty(database):
        raise NotEmpty
    async with database.transaction() as tx:
        connection = await raw.driver(tx)
        await connection.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        here = {row["name"]: row for row in await connection.fetch(_TABLES, list(LEFT_OUT))}
        tables = {table.name: table for table in backup.manifest.tables}
        foreign = sorted(name for name, table in tables.items() if name not in here or not set(table.columns) <= set(here[name]["columns"]))
        if foreign:
            msg = f"the backup has {', '.join(foreign)[:500]}, which a schema of revision {backup.manifest.revision} has not; it is damaged"
            raise BadBackup(msg)
        for month in sorted({month for table in tables.values() for month in table.months}):
            await connection.execute("SELECT winnow_ensure_partitions($1)", _month(month))
        for name in TopologicalSorter({name: set(here[name]["needs"]) & set(tables) for name in tables}).static_order():
            await _filled(connection, backup, tables[name])
            progress(name, tables[name].rows)


async def _filled(connection: "asyncpg.Connection[asyncpg.Record]", backup: Backup, table: Table) -> None:
    """One table. By way of a temporary one: COPY does not fill a table with row-level security, INSERT does."""
    name, columns = _quoted(table.name), ", ".join(map(_quoted, table.columns))
    await connection.execute(f"CREATE TEMPORARY TABLE restoring (LIKE public.{name}) ON COMMIT DROP")
    try:
        await connection.copy_to_table(
            "restoring", source=backup.rows(table), columns=list(table.columns), schema_name="pg_temp", format="text", encoding="utf-8"
        )
    except asyncpg.DataError as exc:
        msg = f"{table.name} holds what its columns cannot; the backup is damaged"
        raise BadBackup(msg) from exc
    status = await connection.execute(
        f"INSERT INTO public.{name} ({columns}) OVERRIDING SYSTEM VALUE SELECT {columns} FROM pg_temp.restoring"  # noqa: S608  quoted
    )
    await connection.execute("DROP TABLE pg_temp.restoring")
    rows = int(status.rpartition(" ")[2])
    if rows != table.rows:
        msg = f"{table.name} has {rows} rows, the manifest says {table.rows}; the backup is damaged"
        raise BadBackup(msg)
    if table.identity is not None and table.last_number is not None:
        sequence = await connection.fetchval("SELECT pg_get_serial_sequence($1, $2)", f"public.{name}", table.identity)
        await connection.execute("SELECT setval($1::text::regclass, $2)", sequence, table.last_number)


def _month(text: str) -> date:
    """The first day of a month. Raise `BadBackup`."""
    try:
        return datetime.strptime(f"{text}-01", "%Y-%m-%d").replace(tzinfo=UTC).date()
    except (TypeError, ValueError) as exc:
        raise BadBackup from exc
