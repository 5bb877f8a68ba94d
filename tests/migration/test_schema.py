"""The schema: up, down and up again, the same as the code knows it, with a comment on everything."""

import os
import re
import secrets
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import asyncpg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Connection, pool
from sqlalchemy.ext.asyncio import create_async_engine

from tests.harness import databases
from winnow.storage import migrate, tables
from winnow.storage.database import driver_url

OURS = "winnow_service", "winnow_gateway", "winnow_view_owner", "winnow_reader"

#: Everything in the database that a migration may make, with its definition.
OBJECTS = """
SELECT 'relation ' || c.relname || ' ' || c.relkind::text || ' ' || coalesce(array_to_string(c.reloptions, ','), '') || ' '
    || pg_get_userbyid(c.relowner) || ' ' || c.relrowsecurity || c.relforcerowsecurity || ' '
    || coalesce(array_to_string(c.relacl, ','), '') AS what
    FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace
UNION ALL SELECT 'column ' || c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || a.attnotnull || ' '
    || coalesce(pg_get_expr(d.adbin, d.adrelid), '') || coalesce(array_to_string(a.attacl, ','), '')
    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
    WHERE c.relnamespace = 'public'::regnamespace AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL SELECT 'index ' || pg_get_indexdef(i.indexrelid) FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
    WHERE c.relnamespace = 'public'::regnamespace
UNION ALL SELECT 'constraint ' || conrelid::regclass || ' ' || conname || ' ' || pg_get_constraintdef(oid) FROM pg_constraint
    WHERE connamespace = 'public'::regnamespace
UNION ALL SELECT 'function ' || oid::regprocedure || ' ' || md5(prosrc) || coalesce(array_to_string(proacl, ','), '') FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace
UNION ALL SELECT 'trigger ' || pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
    WHERE c.relnamespace = 'public'::regnamespace AND NOT tgisinternal
UNION ALL SELECT 'policy ' || tablename || ' ' || policyname || ' ' || array_to_string(roles, ',') || cmd || coalesce(qual, '')
    || coalesce(with_check, '') FROM pg_policies WHERE schemaname = 'public'
UNION ALL SELECT 'view ' || viewname || ' ' || md5(definition) FROM pg_views WHERE schemaname = 'public'
"""


def _objects(database) -> set[str]:
    return {r["what"] for r in database.sql(OBJECTS)}


def test_up_down_up(empty_database):
    """A downgrade removes everything that the upgrade made, and another upgrade makes the same again."""
    migrate.upgrade(empty_database.dsn)
    first = _objects(empty_database)
    assert len(first) > 500
    migrate.downgrade(empty_database.dsn, "base")
    left = {o for o in _objects(empty_database) if "alembic_version" not in o}
    assert left == set()
    assert migrate.current(empty_database.dsn) is None
    migrate.upgrade(empty_database.dsn)
    assert _objects(empty_database) == first


def test_revisions(empty_database):
    """`pending` lists what `upgrade` applies, `current` says what there is, and a second upgrade does nothing."""
    pending = migrate.pending(empty_database.dsn)
    assert pending
    assert pending[0] == "0001"
    assert migrate.current(empty_database.dsn) is None
    migrate.upgrade(empty_database.dsn, pending[0])
    assert migrate.current(empty_database.dsn) == pending[0]
    migrate.upgrade(empty_database.dsn)
    before = _objects(empty_database)
    migrate.upgrade(empty_database.dsn)
    assert (migrate.current(empty_database.dsn), migrate.pending(empty_database.dsn)) == (pending[-1], [])
    assert _objects(empty_database) == before


async def test_inside_an_event_loop(empty_database):
    """Migrating works where an event loop is running already."""
    migrate.upgrade(empty_database.dsn)
    assert migrate.current(empty_database.dsn) is not None


def test_concurrent_upgrades(empty_database):
    """Several processes that upgrade one database at once all succeed, and it is upgraded once."""
    newest = migrate.pending(empty_database.dsn)[-1]
    upgrade = [sys.executable, "-c", "import sys; from winnow.storage import migrate; migrate.upgrade(sys.argv[1])", empty_database.dsn]
    started = [subprocess.Popen(upgrade, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}) for _ in range(3)]
    assert [process.wait(50) for process in started] == [0, 0, 0]
    assert [r["version_num"] for r in empty_database.sql("SELECT version_num FROM alembic_version")] == [newest]


def test_databases_of_one_cluster(postgres):
    """Databases of one cluster share the roles: upgrading and downgrading works from several threads, and roles stay while one is used."""
    with databases.fresh(postgres) as one, databases.fresh(postgres) as two, ThreadPoolExecutor(2) as threads:
        dsns = [postgres.dsn(one), postgres.dsn(two)]
        list(threads.map(migrate.upgrade, dsns))
        migrate.downgrade(dsns[0], "base")
        roles = {r["rolname"] for r in databases.sql(postgres.dsn(two, driver=""), "SELECT rolname FROM pg_roles")}
        assert set(OURS) <= roles
        assert databases.sql(postgres.dsn(two, driver=""), "SELECT * FROM fleet_daily") == []


def test_unused_roles_go(own_postgres):
    """The last downgrade of a cluster drops the roles, a reader's login included."""
    with databases.fresh(own_postgres) as name:
        dsn = own_postgres.dsn(name)
        migrate.upgrade(dsn)
        plain = own_postgres.dsn(name, driver="")
        databases.sql(plain, "INSERT INTO fleets (fleet, created_at) VALUES ('acme', now())")
        databases.sql(plain, "CREATE ROLE reader_of_acme LOGIN")
        databases.sql(plain, "GRANT winnow_reader TO reader_of_acme")
        databases.sql(
            plain, "INSERT INTO reader_roles (role, fleet, created_at, created_by) VALUES ('reader_of_acme', 'acme', now(), 'test')"
        )
        migrate.downgrade(dsn, "base")
        roles = {r["rolname"] for r in databases.sql(plain, "SELECT rolname FROM pg_roles")}
        assert not roles & {*OURS, "reader_of_acme"}
        migrate.upgrade(dsn)


def test_a_failed_upgrade_leaves_nothing(empty_database):
    """An upgrade that fails in the middle takes effect not at all, and can be run again when the cause is gone."""
    empty_database.sql("CREATE TABLE outbox (a int)")
    with pytest.raises(Exception, match="outbox"):
        migrate.upgrade(empty_database.dsn)
    assert {o for o in _objects(empty_database) if o.startswith("relation")} == {
        o for o in _objects(empty_database) if "relation outbox " in o
    }
    empty_database.sql("DROP TABLE outbox")
    migrate.upgrade(empty_database.dsn)


def test_no_drift(database):
    """The tables as the code knows them and as the migrations make them are the same: columns, types, keys, indexes, constraints."""

    def compare(connection: Connection) -> list[object]:
        def ours(thing, name, kind, reflected, _):
            return not (kind == "table" and reflected and (re.search(r"_\d{4}_\d{2}$", name) or name == "alembic_version"))

        context = MigrationContext.configure(
            connection, opts={"compare_type": True, "compare_server_default": True, "include_object": ours}
        )
        return compare_metadata(context, tables.metadata)

    async def run() -> list[object]:
        engine = create_async_engine(driver_url(database.dsn), poolclass=pool.NullPool)
        try:
            async with engine.connect() as connection:
                return await connection.run_sync(compare)
        finally:
            await engine.dispose()

    # Comments stand in the migrations alone. Alembic lists changes of one column in a list of their own.
    found = [change for entry in databases.blocking(run) for change in (entry if isinstance(entry, list) else [entry])]
    assert [change for change in found if "comment" not in change[0]] == []


def test_no_drift_beyond_alembic(database):
    """What Alembic does not compare is the same too: primary keys, partitioning, check constraints and identity columns."""
    rows = database.sql(
        "SELECT c.relname AS name, pg_get_partkeydef(c.oid) AS part, array_agg(a.attname::text ORDER BY k.i) AS pk FROM pg_class c"
        " JOIN pg_constraint x ON x.conrelid = c.oid AND x.contype = 'p' CROSS JOIN LATERAL unnest(x.conkey) WITH ORDINALITY AS k(n, i)"
        " JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.n"
        " WHERE c.relnamespace = 'public'::regnamespace AND NOT c.relispartition AND c.relname <> 'alembic_version'"
        " GROUP BY c.oid, c.relname"
    )
    made = {r["name"]: (r["pk"], r["part"]) for r in rows}
    known = {
        name: ([c.name for c in table.primary_key], table.dialect_options["postgresql"]["partition_by"] or None)
        for name, table in tables.metadata.tables.items()
    }
    assert made == known
    identity = {
        (r["t"], r["c"])
        for r in database.sql("SELECT attrelid::regclass::text AS t, attname AS c FROM pg_attribute WHERE attidentity = 'a'")
    }
    assert identity == {(t.name, c.name) for t in tables.metadata.tables.values() for c in t.columns if c.identity is not None}
    checks = {
        r["n"] for r in database.sql("SELECT conname AS n FROM pg_constraint WHERE contype = 'c' AND connamespace = 'public'::regnamespace")
    }
    assert checks == {c.name for t in tables.metadata.tables.values() for c in t.constraints if type(c).__name__ == "CheckConstraint"}


def test_everything_has_a_comment(database):
    """Every table, partition, view, column and function says what it means."""
    bare = database.sql(
        "SELECT c.relname::text AS what FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v')"
        " AND obj_description(c.oid, 'pg_class') IS NULL"
        " UNION ALL SELECT c.relname || '.' || a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
        " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'v') AND a.attnum > 0 AND NOT a.attisdropped"
        " AND col_description(c.oid, a.attnum) IS NULL"
        " UNION ALL SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace"
        " AND obj_description(p.oid, 'pg_proc') IS NULL"
    )
    assert [r["what"] for r in bare] == []


def test_functions_with_the_owners_rights_are_closed(database):
    """A function that runs with its owner's rights has a fixed search path and is not open to the public."""
    rows = database.sql(
        "SELECT p.oid::regprocedure::text AS what FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace AND p.prosecdef"
        " AND (NOT coalesce(p.proconfig::text LIKE '%search_path=pg_catalog, public, pg_temp%', false)"
        " OR has_function_privilege('winnow_reader', p.oid, 'EXECUTE'))"
    )
    assert rows == []


async def test_an_owner_who_is_no_superuser(own_postgres):
    """A database owner with CREATEROLE migrates up, works with all tables under forced policies, makes readers, and migrates down."""
    from datetime import UTC, datetime

    from tests.integration.storage.builders import candidate, told
    from winnow.storage import fleets, readers
    from winnow.storage.database import Database

    role, password = "plain_owner", secrets.token_hex(16)
    admin = own_postgres.dsn("postgres", driver="")
    databases.sql(admin, f"CREATE ROLE {role} LOGIN CREATEROLE NOSUPERUSER NOBYPASSRLS PASSWORD '{password}'")
    databases.sql(admin, f"CREATE DATABASE owned OWNER {role}")
    dsn = own_postgres.dsn("owned", role=role, password=password)
    migrate.upgrade(dsn)
    now = datetime.now(UTC)
    async with Database(dsn) as db:
        async with db.transaction() as tx:
            await fleets.ensure(tx, ["acme", "other"], default=fleets.Point(), now=now)
            await readers.create(tx, "acme", "reader_one", secret := secrets.token_urlsafe(20), by="ops", now=now)
        await told(db, candidate("acme"), now)
        await told(db, candidate("other"), now)
        async with db.fleet_transaction("acme") as tx:
            assert {r["fleet"] for r in await _fetch(tx, "SELECT fleet FROM boundaries")} == {"acme"}
            assert {r["fleet"] for r in await _fetch(tx, "SELECT fleet FROM boundary_history")} == {"acme"}
        async with db.transaction() as tx:
            assert {r["fleet"] for r in await _fetch(tx, "SELECT fleet FROM boundary_history")} == {"acme", "other"}
    reader = await asyncpg.connect(own_postgres.dsn("owned", role="reader_one", password=secret, driver=""))
    try:
        assert {r["fleet"] for r in await reader.fetch("SELECT fleet FROM boundary_history")} == {"acme"}
    finally:
        await reader.close()
    migrate.downgrade(dsn, "base")
    assert migrate.current(dsn) is None
    migrate.upgrade(dsn)


async def _fetch(tx, sql: str):
    from winnow.storage import raw

    return await raw.fetch(tx, sql)
