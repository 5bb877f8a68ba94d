"""A backup and the database that is made of it: the same rows, the same answers, byte for byte."""

import asyncio
import contextlib
import json
import stat
import zipfile
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest

from tests.harness import databases
from tests.harness.databases import Database as OneDatabase
from tests.harness.pipeline import ScriptedJudge, Stages, candidate
from tests.harness.waiting import eventually
from winnow.cli.app import run as winnow
from winnow.contracts.vocabulary import Mode
from winnow.storage import api_keys, boundaries, dead_letters, fleets, migrate, originals, partitions, raw, retention
from winnow.storage import backup as stored
from winnow.storage.backup import Backup, BadBackup, NotEmpty
from winnow.storage.database import Database
from winnow.storage.keys import Key

pytestmark = pytest.mark.timeout(120)

SUMMARY = "## Decisions\n- take HAT136 for $152\n- ask the user about bags\n\n## Open TODOs\n- call the airline about ZZ999\n"
ODD = "tab\t backslash \\ \\N \\. quote \" ' null-like NULL ünïcödé 🛫 \r\n line\u2028end"


@pytest.fixture
def new_database(postgres):
    """An empty database beside the one that is backed up."""
    with databases.fresh(postgres) as name:
        yield OneDatabase(server=postgres, name=name)


async def lived_in(db: Database, fleet: str) -> tuple[Stages, list, str]:
    """A fleet with committed boundaries, one that waits for its judge, a dead letter and a key; the stages, candidates and secret."""
    stages = Stages(db, judge=ScriptedJudge({"ZZ999": 0.1, "bags": 0.2}))
    first = candidate(SUMMARY, run="trip", fleet=fleet, task=ODD)
    committed = await stages.one(first)
    second = candidate(
        SUMMARY + "- " + ODD.splitlines()[0] + "\n", run="trip", index=2, fleet=fleet, previous_summary=committed.summary.text
    )
    await stages.one(second)
    waits = candidate(SUMMARY, run="waits", fleet=fleet, mode=Mode.SHADOW)
    await stages.retrieve(waits)
    now = datetime.now(UTC)
    async with db.transaction() as tx:
        secret, _ = await api_keys.create(tx, fleet, name="n", role="runtime", by="t", now=now)
        letter = dead_letters.NewDeadLetter(
            topic="t", partition=0, offset=7, key=b"\x00k", value=bytes(range(256)) * 9, headers=(("h", b"\xff\x00"),),
            reason="handler_error", error=ODD, service="judge",
        )  # fmt: skip
        await dead_letters.add(tx, [letter], now=now)
        await fleets.hold(tx, fleet, by="t", because=ODD, now=now)
    return stages, [first, second, waits], secret


def content(database: OneDatabase) -> dict[str, list[str]]:
    """Every row of every table as text."""
    names = [r["t"] for r in database.sql("SELECT relname::text AS t FROM pg_class WHERE relnamespace = 'public'::regnamespace"
                                          " AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY 1")]  # fmt: skip
    return {name: [r["t"] for r in database.sql(f"SELECT x::text AS t FROM {name} x ORDER BY 1")] for name in names}  # noqa: S608  the catalogue


async def taken(db: Database, place: Path) -> stored.Manifest:
    """A backup of the newest schema."""
    revision = await database_revision(db)
    return await stored.take(db, place, revision=revision, version="test")


async def database_revision(db: Database) -> str:
    async with db.reading() as tx:
        from winnow.storage import raw

        row = await raw.fetch_one(tx, "SELECT version_num FROM alembic_version")
        assert row is not None
        return str(row["version_num"])


async def test_every_row_comes_back_and_answers_are_the_same(database, new_database, tmp_path):
    """All tables are equal, resubmissions get the same bytes, what waited goes on to the same result, numbers are not given twice."""
    async with Database(database.dsn) as db:
        stages, candidates, secret = await lived_in(db, "acme")
        answers = [o.body for o in (await stages.retrieve(*candidates)).outgoing]
        manifest = await taken(db, tmp_path / "b.zip")
    assert manifest.rows > 20
    assert stat.S_IMODE((tmp_path / "b.zip").stat().st_mode) == 0o600
    before = content(database)
    databases.blocking(lambda: migrate.upgrade(new_database.dsn))
    with Backup(tmp_path / "b.zip") as backup:
        backup.check()
        async with Database(new_database.dsn) as db:
            await stored.put(db, backup)
    after = content(new_database)
    assert {name: rows for name, rows in after.items() if rows != before[name]} == {}

    async with Database(database.dsn) as old, Database(new_database.dsn) as new:
        again = Stages(new, judge=ScriptedJudge({"ZZ999": 0.1, "bags": 0.2}))
        assert [o.body for o in (await again.retrieve(*candidates)).outgoing] == answers
        results = []
        for db in (old, new):
            stages = Stages(db, judge=ScriptedJudge({"ZZ999": 0.1, "bags": 0.2}))
            results.append(await stages.run(*candidates))
        same = [[c.model_copy(update={"committed_at": None, "summary": None}) for c in result] for result in results]
        assert same[0] == same[1]
        assert [c.committed_sha256 for c in results[0]] == [c.committed_sha256 for c in results[1]]
        async with new.transaction() as tx:
            [found] = (await boundaries.load(tx, [Key("acme", candidates[0].boundary_id)])).values()
            handles = await originals.handles_of(tx, "acme", found.boundary_id)
            for handle in handles.values():
                mine = await originals.resolve(tx, "acme", handle, now=datetime.now(UTC))
                async with old.transaction() as other:
                    assert mine == await originals.resolve(other, "acme", handle, now=datetime.now(UTC))
            key = await api_keys.verify(tx, secret, now=datetime.now(UTC))
            assert key is not None
            numbers = {r.id for r in (await fleets.load(tx, ["acme"])).values() for r in [r.operating_point]}
            point = await fleets.set_point(tx, "acme", fleets.Point(tau=0.7), by="t", because=None, now=datetime.now(UTC))
            assert point.id > max(numbers)


async def test_it_is_one_moment_while_writers_go_on(database, tmp_path):
    """What is written while the backup runs is in none of its tables."""
    async with Database(database.dsn, pool_size=4) as db:
        stages, _, _ = await lived_in(db, "moving")
        wrote = False

        def meddle(name: str, _rows: int) -> None:
            nonlocal wrote
            if not wrote and name == "boundaries":
                wrote = True
                database.sql(
                    "INSERT INTO runs (fleet, run, agent, boundaries, first_at, last_at) VALUES ('moving', 'late', 'a', 1, now(), now())"
                )

        manifest = await stored.take(db, tmp_path / "b.zip", revision="x", version="t", progress=meddle)
        assert wrote
        runs = next(table for table in manifest.tables if table.name == "runs")
        assert runs.rows == len(database.sql("SELECT FROM runs")) - 1
        assert stages.dead == []


async def test_retention_waits_for_a_backup_and_stalls_nobody(database, tmp_path):
    """What retention would drop is in the backup, whole; while it waits the services write; afterwards it has dropped it."""
    async with Database(database.dsn, pool_size=6) as db:
        old = datetime(2020, 1, 15, tzinfo=UTC)
        async with db.transaction() as tx:
            await partitions.ensure(tx, [old])
            sql = "INSERT INTO judge_calls (fleet, boundary_id, boundary_at, call_id, judge, judge_version, started_at)"
            await raw.execute(tx, sql + " VALUES ('aged', $1, $2, $1, 'j', '1', $2)", uuid4(), old)
        retaining: list[asyncio.Task] = []

        async def retain() -> retention.Kept:
            while True:
                with contextlib.suppress(retention.InUse):  # a writer was at the table: as an operator, or a timer, would
                    async with db.transaction() as tx:
                        return await retention.apply(tx, retention.Policy(), now=datetime.now(UTC))

        def meddle(name: str, _rows: int) -> None:
            if name == "boundaries" and not retaining:  # the tables are read by name: `judge_calls` comes later
                retaining.append(asyncio.create_task(retain()))

        taking = asyncio.create_task(stored.take(db, tmp_path / "b.zip", revision="x", version="t", progress=meddle))
        await eventually(lambda: retaining, 30, what="the retention to begin")
        stages = Stages(db, judge=ScriptedJudge({}))
        async with asyncio.timeout(20):
            await stages.one(candidate(SUMMARY, run="meanwhile", fleet="aged"))
        manifest = await taking
        kept = await retaining[0]
    assert "judge_calls_2020_01" in kept.partitions
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        assert b"2020-01-15" in archive.read("judge_calls.copy")
    assert "2020-01" in next(table for table in manifest.tables if table.name == "judge_calls").months


async def test_retention_gives_up_rather_than_stall_the_services(database, monkeypatch):
    """Behind a dump that reads a partition it waits for a moment, changes nothing, and says what to do."""
    monkeypatch.setattr(retention, "DROP_WAIT_MS", 50)
    async with Database(database.dsn, pool_size=3) as db:
        async with db.transaction() as tx:
            await partitions.ensure(tx, [datetime(2019, 5, 1, tzinfo=UTC)])
        async with db.transaction() as dump:
            await raw.execute(dump, "LOCK TABLE decisions IN ACCESS SHARE MODE")
            with pytest.raises(retention.InUse, match="run the retention again"):
                async with db.transaction() as tx:
                    await retention.apply(tx, retention.Policy(), now=datetime.now(UTC))
        assert database.sql("SELECT to_regclass('decisions_2019_05') IS NOT NULL AS there")[0]["there"]
        async with db.transaction() as tx:
            kept = await retention.apply(tx, retention.Policy(), now=datetime.now(UTC))
        assert "decisions_2019_05" in kept.partitions


async def test_a_database_with_anything_in_it_is_refused_and_untouched(database, new_database, tmp_path):
    """A backup is never mixed into what is there; a damaged one leaves nothing behind."""
    async with Database(database.dsn) as db:
        await lived_in(db, "full")
        await taken(db, tmp_path / "b.zip")
        with Backup(tmp_path / "b.zip") as backup, pytest.raises(NotEmpty):
            await stored.put(db, backup)
    databases.blocking(lambda: migrate.upgrade(new_database.dsn))
    async with Database(new_database.dsn) as db:
        with Backup(tmp_path / "b.zip") as backup:
            last = backup.manifest.tables[-1]
            backup.manifest = replace(backup.manifest, tables=(*backup.manifest.tables[:-1], replace(last, rows=last.rows + 1)))
            with pytest.raises(BadBackup, match=last.name):
                await stored.put(db, backup)
        assert await stored.is_empty(db), "all or nothing"


def altered(place: Path, **change: object) -> Path:
    """The backup with another manifest."""
    out = place.with_name("altered.zip")
    with zipfile.ZipFile(place) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, data if name != "manifest.json" else json.dumps(json.loads(data) | change))
    return out


async def test_a_damaged_or_strange_file_is_said_to_be_one(database, tmp_path):
    """Cut, altered, newer, or no backup at all: never a traceback, never half a database."""
    place = tmp_path / "b.zip"
    async with Database(database.dsn) as db:
        await lived_in(db, "damage")
        await taken(db, place)
    whole = place.read_bytes()
    for name, data in {"cut": whole[: len(whole) // 2], "none": b"", "text": b"not a zip" * 100, "nul": b"\x00" * 5000}.items():
        (tmp_path / name).write_bytes(data)
        with pytest.raises(BadBackup):
            Backup(tmp_path / name)
    for change in ({"form": 99}, {"form": "x"}, {"tables": [{"name": 3}]}, {"tables": 7}, {"surprise": 1}, {"readers": None}):
        with pytest.raises(BadBackup):
            Backup(altered(place, **change))
    # A byte of a member changes: its checksum says so.
    with zipfile.ZipFile(place) as archive:
        info = max(archive.infolist(), key=lambda one: one.compress_size)
        at = info.header_offset + 30 + len(info.filename) + info.compress_size // 2
    spoilt = bytearray(whole)
    spoilt[at + 20] ^= 0xFF
    (tmp_path / "spoilt").write_bytes(spoilt)
    with Backup(tmp_path / "spoilt") as backup, pytest.raises(BadBackup):
        backup.check()


def test_the_commands(database, empty_database, tmp_path, monkeypatch, capsys):
    """backup, restore --check, restore into an empty database; never over a file, never without a database named."""

    async def live() -> None:
        async with Database(database.dsn) as db:
            await lived_in(db, "commands")

    databases.blocking(live)
    place = tmp_path / "b.zip"
    monkeypatch.setenv("WINNOW_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("WINNOW_DATABASE_URL", database.dsn)

    def call(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = winnow(list(words))
        said = capsys.readouterr()
        return int(code), said.out, said.err

    code, out, err = call("backup", str(place), "--json")
    assert code == 0, err
    told = json.loads(out)
    assert call("backup", str(place))[0] == 4
    assert call("backup", str(tmp_path / "no" / "folder.zip"))[0] == 1
    assert call("restore", str(place), "--check")[0] == 0
    code, _, err = call("restore", str(place))
    assert (code, "new one" in err) == (4, True), err
    monkeypatch.setenv("WINNOW_DATABASE_URL", empty_database.dsn)
    code, out, err = call("restore", str(place), "--json")
    assert code == 0, err
    assert json.loads(out) == told
    old, new = content(database), content(empty_database)
    assert [row for row in old.pop("audit_log") if "backup.take" in row]
    assert [row for row in new.pop("audit_log") if "backup.restore" in row]
    assert new == old
    monkeypatch.delenv("WINNOW_DATABASE_URL")
    assert call("restore", str(place))[0] == 2
    assert call("restore", str(tmp_path / "nothing"))[0] == 1
    assert call("backup", "--help")[0] == call("restore", "--help")[0] == 0


@pytest.mark.serial
def test_into_the_embedded_database(database, tmp_path, monkeypatch):
    """`--embedded` fills the database that `winnow up` will start on; a second time it is refused."""
    from winnow.embedded import PostgresServer

    async def live() -> None:
        async with Database(database.dsn) as db:
            await lived_in(db, "embedded")

    databases.blocking(live)
    monkeypatch.setenv("WINNOW_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("WINNOW_DATABASE_URL", database.dsn)
    assert winnow(["backup", str(tmp_path / "b.zip")]) == 0
    monkeypatch.delenv("WINNOW_DATABASE_URL")
    assert winnow(["restore", str(tmp_path / "b.zip"), "--embedded"]) == 0
    assert winnow(["restore", str(tmp_path / "b.zip"), "--embedded"]) == 4
    with PostgresServer(tmp_path / "state" / "postgres") as server:
        rows = databases.sql(server.dsn(driver=""), "SELECT count(*) AS n FROM boundaries WHERE fleet = 'embedded'")
    assert rows[0]["n"] == 3


async def test_a_plain_member_of_the_service_role_takes_a_whole_backup(database, postgres, tmp_path):
    """In production services are no superusers: all rows are in the backup all the same, and the largest number in use of each table."""
    async with Database(database.dsn) as db:
        await lived_in(db, "plain")
        whole = await taken(db, tmp_path / "owner.zip")
    database.sql("CREATE ROLE plain_service LOGIN PASSWORD 'plain-service-1' IN ROLE winnow_service")
    try:
        async with Database(postgres.dsn(database.name, role="plain_service", password="plain-service-1")) as db:
            made = await taken(db, tmp_path / "plain.zip")
    finally:
        database.sql("DROP ROLE plain_service")
    assert [(t.name, t.rows, t.sha256) for t in made.tables] == [(t.name, t.rows, t.sha256) for t in whole.tables]
    numbered = [table for table in made.tables if table.identity is not None and table.rows]
    assert numbered
    for table in numbered:
        ((largest,),) = database.sql(f'SELECT max("{table.identity}") FROM "{table.name}"')  # noqa: S608  names of our own catalogue
        assert table.last_number == largest
    # The owner also sees numbers that were given and are not in use: nothing that is made after a restore gets one of them again.
    for plain, owner in zip(made.tables, whole.tables, strict=True):
        assert (plain.last_number or 0) <= (owner.last_number or 0)


async def test_an_owner_that_is_no_superuser_restores_all_of_it(database, postgres, tmp_path):
    """COPY does not fill tables with row-level security; the restore does, as the role that owns them."""
    async with Database(database.dsn) as db:
        await lived_in(db, "owned")
        await taken(db, tmp_path / "b.zip")
    name, admin = "winnow_restored_by_owner", postgres.dsn("postgres", driver="")
    databases.sql(admin, "CREATE ROLE backup_owner LOGIN CREATEROLE PASSWORD 'backup-owner-1'")
    try:
        databases.sql(admin, "GRANT winnow_service, winnow_gateway, winnow_view_owner, winnow_reader TO backup_owner WITH ADMIN OPTION")
        databases.sql(admin, f"CREATE DATABASE {name} OWNER backup_owner")
        url = postgres.dsn(name, role="backup_owner", password="backup-owner-1")
        databases.blocking(lambda: migrate.upgrade(url))
        with Backup(tmp_path / "b.zip") as backup:
            async with Database(url) as db:
                await stored.put(db, backup)
        assert content(OneDatabase(server=postgres, name=name)) == content(database)
    finally:
        databases.sql(admin, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        databases.sql(admin, "DROP ROLE backup_owner")
