"""Two hostile readers and a shared pool: nobody sees another fleet's rows, whatever he sets, asks or plants."""

# ruff: noqa: S608  the names of tables and views are this module's own

import asyncio
import secrets
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass

import asyncpg
import pytest

from tests.harness.waiting import eventually
from tests.integration.storage.builders import candidate, new_boundary, told
from winnow.contracts.errors import Conflict, NotFound, Permanent
from winnow.contracts.events import Graded, Observation, Sampled
from winnow.storage import boundaries, entries, fleets, folding, observations, originals, outbox, raw, readers, retention
from winnow.storage.database import COMMITTED_CHANNEL, Database
from winnow.storage.originals import Content, Kind, NewHandle
from winnow.storage.policy import Policy

VIEWS = (
    "boundary_history", "entry_history", "unsupported_by_section", "unsupported_by_boundary", "entry_persistence", "fleet_daily",
    "stream_status", "judge_cost_daily", "stream_epochs", "run_outcomes", "entry_findings", "recovery_history", "audit_trail",
    "composition_entries", "composition_by_section", "composition_by_boundary", "composition_persistence", "composition_kept",
)  # fmt: skip
TABLES = (
    "fleets", "operating_points", "api_keys", "reader_roles", "audit_log", "runs", "boundaries", "entries", "evidence_passages",
    "entry_evidence", "scores", "decisions", "judge_calls", "stage_outputs", "originals", "handles", "recoveries", "runtime_events",
    "outbox", "dead_letters", "locks", "streams", "observation_keys", "observations", "monitor_states", "monitor_heartbeats", "alerts",
    "certificates", "monitor_epochs", "open_runs", "run_units", "fleet_activity", "prune_profiles", "webhook_deliveries",
    "pinned_entries", "canary_donors",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenant:
    fleet: str
    role: str
    dsn: str
    word: str


@pytest.fixture
async def tenants(database, db, now) -> AsyncIterator[tuple[Tenant, Tenant]]:
    """Two fleets with a boundary and a reader each; the rows of each hold a word of its own."""
    made = []
    for _ in range(2):
        token = secrets.token_hex(6)
        fleet, role, word, password = f"fleet-{token}", f"reader_{token}", f"word{token}", secrets.token_urlsafe(20)
        async with db.transaction() as tx:
            await fleets.ensure(tx, [fleet], default=fleets.Point(), now=now)
            await readers.create(tx, fleet, role, password, by="ops", now=now)
        await told(db, candidate(fleet, run=f"run {word}", texts=[f"- {word} ordered", f"- will call {word}"]), now)
        async with db.transaction() as tx:
            unit = Observation(
                fleet=fleet, event_id=uuid.uuid4(), stream=f"harm {word}", unit=f"run {word}", sampled=Sampled(probability=1, at=now),
                graded=Graded(loss=0.0, grader="rule", at=now),
            )  # fmt: skip
            await folding.fold(tx, (await observations.put(tx, [unit], now=now)).streams, Policy(), now=now)
            await raw.execute(
                tx,
                "INSERT INTO run_units (fleet, run, closed_at, because, boundaries, coin) VALUES ($1, $2, $3, 'idle', 0, 0)",
                fleet,
                f"run {word}",
                now,
            )
        made.append(
            Tenant(fleet=fleet, role=role, word=word, dsn=database.server.dsn(database.name, role=role, password=password, driver=""))
        )
    yield made[0], made[1]
    async with db.transaction() as tx:
        for tenant in made:
            await readers.drop(tx, tenant.role, by="ops", now=now)


@pytest.fixture
async def hostile(tenants) -> AsyncIterator[asyncpg.Connection]:
    """A session of the first reader, who may write what he likes into his own session."""
    connection = await asyncpg.connect(tenants[0].dsn)
    await connection.execute("SET default_transaction_read_only = off")
    yield connection
    await connection.close()


async def _sees(connection, view: str) -> str:
    return "\n".join(r["row"] for r in await connection.fetch(f"SELECT v::text AS row FROM {view} v"))


async def test_readers_see_their_own_fleet(tenants):
    """Each reader sees his fleet in every view that has rows, and the other's in none."""
    for me, other in (tenants, tenants[::-1]):
        connection = await asyncpg.connect(me.dsn)
        try:
            for view in VIEWS:
                seen = await _sees(connection, view)
                assert other.fleet not in seen
                assert other.word not in seen
            for view in ("entry_history", "stream_epochs", "run_outcomes"):
                assert me.word in await _sees(connection, view)
            assert me.fleet in await _sees(connection, "fleet_daily")
        finally:
            await connection.close()


async def test_readers_have_no_tables(hostile):
    """No table, partition or function is open to a reader."""
    partitions = [r["n"] for r in await hostile.fetch("SELECT relname AS n FROM pg_class WHERE relispartition AND relkind = 'r'")]
    assert partitions
    for table in (*TABLES, *partitions, "alembic_version"):
        for statement in (f"SELECT * FROM {table}", f"DELETE FROM {table}", f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                async with hostile.transaction():
                    await hostile.execute(statement)
    for call in (
        "winnow_ensure_partitions(current_date)",
        "winnow_drop_partitions(current_date, '{entries}')",
        "winnow_verify_key('', now())",
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await hostile.execute(f"SELECT {call}")


@pytest.mark.parametrize(
    "attempt",
    [
        "SET winnow.fleet = '{fleet}'",
        "SELECT set_config('winnow.fleet', '{fleet}', false)",
        "SELECT set_config('role', 'winnow_service', false)",
        "SET ROLE winnow_gateway",
        "SET ROLE winnow_service",
        "SET ROLE winnow_view_owner",
        "SET ROLE winnow_reader",
        "SET ROLE {role}",
        "SET SESSION AUTHORIZATION {role}",
        "SET SESSION AUTHORIZATION DEFAULT",
        "SET row_security = off",
        "SET search_path = pg_temp, public",
        "GRANT {role} TO CURRENT_USER",
        "GRANT winnow_service TO CURRENT_USER",
        "ALTER VIEW entry_history SET (security_invoker = true)",
        "CREATE OR REPLACE VIEW entry_history AS SELECT 1",
        "ALTER ROLE CURRENT_USER BYPASSRLS",
        "CREATE FUNCTION public.f() RETURNS int LANGUAGE sql AS 'SELECT 1'",
        "CREATE TABLE public.t (a int)",
    ],
)
async def test_settings_open_nothing(tenants, hostile, attempt):
    """Whatever a reader sets, becomes or alters, the other fleet stays out of sight."""
    _, other = tenants
    try:
        await hostile.execute(attempt.format(fleet=other.fleet, role=other.role))
    except asyncpg.PostgresError:
        await hostile.execute("SELECT 1")  # refused, and the session goes on
    for view in VIEWS:
        try:
            seen = await _sees(hostile, view)
        except asyncpg.PostgresError:
            continue  # refused is as good as empty
        assert other.fleet not in seen
        assert other.word not in seen


async def test_leaky_conditions(tenants, hostile):
    """A function that tells what it is asked about is asked about the reader's own rows only."""
    me, other = tenants
    await hostile.execute("CREATE TEMPORARY TABLE heard (what text)")
    await hostile.execute(
        "CREATE FUNCTION pg_temp.leak(what text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS"
        " $$ BEGIN INSERT INTO heard VALUES (what); RETURN true; END $$"
    )
    await hostile.execute(
        "CREATE FUNCTION pg_temp.same(a text, b text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS"
        " $$ BEGIN INSERT INTO heard VALUES (a); RETURN a = b; END $$"
    )
    await hostile.execute("CREATE OPERATOR pg_temp.=== (LEFTARG = text, RIGHTARG = text, FUNCTION = pg_temp.same)")
    await hostile.fetch("SELECT 1 FROM entry_history WHERE pg_temp.leak(fleet || text || coalesce(evidence, ''))")
    await hostile.fetch("SELECT 1 FROM entry_history WHERE text OPERATOR(pg_temp.===) 'x'")
    await hostile.fetch("SELECT 1 FROM boundary_history WHERE pg_temp.leak(fleet || run) ORDER BY pg_temp.leak(run)")
    heard = "\n".join(r["what"] for r in await hostile.fetch("SELECT what FROM heard"))
    assert me.word in heard
    assert other.word not in heard
    assert other.fleet not in heard


async def test_errors_tell_nothing(tenants, hostile):
    """A condition that fails on a row fails on the reader's own rows only: an error text cannot carry another's."""
    _, other = tenants
    with pytest.raises(asyncpg.InvalidTextRepresentationError) as caught:
        await hostile.fetch("SELECT 1 FROM entry_history WHERE (text || fleet)::int = 1")
    assert other.word not in str(caught.value)
    assert other.fleet not in str(caught.value)
    assert await hostile.fetch("SELECT 1 FROM entry_history WHERE fleet = $1 AND 1 / (length(text) - length(text)) = 1", other.fleet) == []


async def test_catalogues_tell_nothing(tenants, database, hostile):
    """Statistics, other sessions' statements and comments hold nothing of another fleet for a reader."""
    _, other = tenants
    owner = await asyncpg.connect(database.asyncpg_dsn)
    try:
        await owner.execute("ANALYZE")
        assert await owner.fetch("SELECT 1 FROM pg_stats WHERE tablename = 'boundaries'")
        await owner.fetch(f"SELECT '{other.word}'")
        for relation in ("pg_stats", "pg_stat_activity", "pg_stats_ext", "pg_roles"):
            assert other.word not in await _sees(hostile, relation)
        assert await hostile.fetch("SELECT 1 FROM pg_stats WHERE schemaname = 'public'") == []
        for secret in ("pg_statistic", "pg_authid"):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await hostile.fetch(f"SELECT 1 FROM {secret}")
    finally:
        await owner.close()


async def test_locks_of_a_reader_stop_nobody(db, now, tenants, hostile):
    """A reader who holds every advisory lock that Winnow ever took keeps neither relay nor partitions nor retention from their work."""
    me, _ = tenants
    for lock in range(7166113001, 7166113004):
        await hostile.execute(f"SELECT pg_advisory_lock({lock})")
    message = outbox.NewMessage(fleet=me.fleet, topic="t", key="k", body=b"x", event_id=uuid.uuid4(), headers={}, run="r")
    async with asyncio.timeout(20), db.transaction() as tx:
        await outbox.add(tx, [message])
        assert message.event_id in {c.message.event_id for c in await outbox.claim(tx)}
        await raw.execute(tx, "SELECT winnow_ensure_partitions('2031-05-01')")
        await retention.apply(tx, retention.Policy(), now=now)


async def test_listening_tells_nothing(db, now, tenants, hostile):
    """A reader who listens to the commits of all fleets hears nothing that names another's fleet, run or boundary."""
    _, other = tenants
    heard: list[str] = []
    await hostile.add_listener(COMMITTED_CHANNEL, lambda *said: heard.append(said[-1]))
    boundary = (await told(db, candidate(other.fleet, run=f"run {other.word}", index=2), now)).boundary
    await eventually(lambda: bool(heard), 10)
    for name in (other.fleet, other.word, str(boundary.boundary_id), boundary.boundary_id.hex):
        assert name not in "\n".join(heard)


async def test_a_dropped_reader_sees_nothing(database, db, now, fleet):
    """A reader who is dropped sees no rows in a session that is still open, and cannot log in again."""
    role, password = f"reader_{uuid.uuid4().hex[:10]}", secrets.token_urlsafe(20)
    async with db.transaction() as tx:
        await readers.create(tx, fleet, role, password, by="ops", now=now)
    await told(db, candidate(fleet), now)
    dsn = database.server.dsn(database.name, role=role, password=password, driver="")
    connection = await asyncpg.connect(dsn)
    try:
        assert len(await connection.fetch("SELECT 1 FROM boundary_history")) == 1
        async with db.transaction() as tx:
            await readers.drop(tx, role, by="ops", now=now)
        try:
            left = await connection.fetch("SELECT 1 FROM boundary_history")
        except asyncpg.PostgresError:
            left = []  # refused is as good as empty
        assert left == []
        with pytest.raises(asyncpg.PostgresError):
            await asyncpg.connect(dsn)
    finally:
        await connection.close()


async def test_readers_are_made_carefully(database, db, now, fleet):
    """A reader's role is new or already this fleet's; its password is checked, changed on request, and in no table or statement."""
    role, first, second = f"reader_{uuid.uuid4().hex[:10]}", secrets.token_urlsafe(20), secrets.token_urlsafe(20)
    async with db.transaction() as tx:
        await readers.create(tx, fleet, role, first, by="ops", now=now)
        await readers.create(tx, fleet, role, second, by="ops", now=now)
        assert (role, fleet) in [(r.role, r.fleet) for r in await readers.listed(tx)]
        await fleets.ensure(tx, ["other-fleet"], default=fleets.Point(), now=now)
        for wrong, error in (
            ((fleet, "postgres", second), Conflict),
            (("other-fleet", role, second), Conflict),
            (("nobody", "reader_x", second), NotFound),
            ((fleet, "winnow_service", second), Permanent),
            ((fleet, 'x"; DROP ROLE y; --', second), Permanent),
            ((fleet, "pg_monitor", second), Permanent),
            ((fleet, "reader_x", "short"), Permanent),
            ((fleet, "reader_x", "with a quote ' and space"), Permanent),
        ):
            with pytest.raises(error):
                await readers.create(tx, *wrong, by="ops", now=now)
        rows = await raw.fetch(tx, "SELECT a::text AS row FROM audit_log a UNION ALL SELECT r::text FROM reader_roles r")
        assert not any(first in r["row"] or second in r["row"] for r in rows)
    connection = await asyncpg.connect(database.server.dsn(database.name, role=role, password=second, driver=""))
    await connection.close()
    async with db.transaction() as tx:
        await readers.drop(tx, role, by="ops", now=now)
        with pytest.raises(NotFound):
            await readers.drop(tx, role, by="ops", now=now)


async def test_the_gateways_transactions(db, now, tenants):
    """A transaction of the gateway sees and writes its own fleet alone, through tables, views and prepared statements."""
    me, other = tenants
    async with db.fleet_transaction(me.fleet) as tx:
        for table in ("boundaries", "entries", "originals", "handles", "stage_outputs", "fleets", "entry_history", "boundary_history"):
            assert {r["fleet"] for r in await raw.fetch(tx, f"SELECT fleet FROM {table}")} == {me.fleet}
        assert len((await boundaries.page(tx, me.fleet)).boundaries) == 1
        assert (await boundaries.page(tx, other.fleet)).boundaries == ()
        own = (await boundaries.page(tx, me.fleet)).boundaries[0]
        assert len(await entries.history(tx, own.key)) == 2
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await raw.fetch(tx, "SELECT * FROM api_keys")
    for write in (
        lambda tx: boundaries.insert_new(tx, [new_boundary(candidate(other.fleet, index=7), now)]),
        lambda tx: originals.put(tx, [Content.of(other.fleet, b"planted")]),
        lambda tx: originals.put_handles(
            tx, [NewHandle(handle=originals.new_handle(), fleet=other.fleet, sha256="0" * 64, kind=Kind.EVENT)]
        ),
        lambda tx: outbox.add(tx, [outbox.NewMessage(fleet=other.fleet, topic="t", key="k", body=b"", event_id=uuid.uuid4(), headers={})]),
        lambda tx: raw.execute(tx, "UPDATE boundaries SET fleet = 'x'"),
        lambda tx: raw.execute(tx, "DELETE FROM boundaries"),
        lambda tx: raw.execute(tx, "UPDATE originals SET data = ''"),
    ):
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            async with db.fleet_transaction(me.fleet) as tx:
                await write(tx)


async def test_the_gateways_own_writes(db, now, tenants):
    """What the gateway stores for its fleet is accepted: boundary, originals, handle, outbox row, recovery; twice is once."""
    me, _ = tenants
    event = candidate(me.fleet, index=8)
    for _ in range(2):
        async with db.fleet_transaction(me.fleet) as tx:
            await originals.put(tx, [Content.of(me.fleet, event.candidate), Content.of(me.fleet, event.task)])
            (stored,) = await boundaries.insert_new(tx, [new_boundary(event, now)])
            handle = originals.new_handle()
            await originals.put_handles(
                tx,
                [
                    NewHandle(
                        handle=handle, fleet=me.fleet, sha256=event.candidate_sha256, kind=Kind.CANDIDATE, boundary_id=event.boundary_id
                    )
                ],
            )
            found = await originals.resolve(tx, me.fleet, handle, now=now)
            await originals.record_recovery(tx, found, via="gateway", now=now)
            message = outbox.NewMessage(fleet=me.fleet, topic="t", key="k", body=b"", event_id=event.boundary_id, headers={})
            await outbox.add(tx, [message])
    assert stored.boundary.boundary_id == event.boundary_id
    async with db.transaction() as tx:
        assert [r["n"] for r in await raw.fetch(tx, "SELECT count(*) AS n FROM outbox WHERE fleet = $1", me.fleet)] == [1]


async def test_pooled_connections_forget(database, now, tenants):
    """One pooled connection that serves one fleet after another, or none, or fails in between, never serves the last one's rows."""
    me, other = tenants
    async with Database(database.dsn, pool_size=1) as pool:
        for tenant in (me, other, me):
            async with pool.fleet_transaction(tenant.fleet) as tx:
                rows = await raw.fetch(tx, "SELECT fleet FROM boundaries")
                assert {r["fleet"] for r in rows} == {tenant.fleet}
        with pytest.raises(RuntimeError):
            async with pool.fleet_transaction(me.fleet) as tx:
                raise RuntimeError
        async with pool.fleet_transaction("") as tx:
            assert await raw.fetch(tx, "SELECT fleet FROM boundaries") == []
        async with pool.transaction() as tx:
            row = await raw.fetch_one(tx, "SELECT current_user::text AS who, current_setting('winnow.fleet', true) AS fleet")
            assert row["who"] != "winnow_gateway"
            assert not row["fleet"]


async def test_concurrent_fleets_on_one_pool(db, now, tenants):
    """Many transactions of two fleets at once on a small pool each see their own fleet."""

    async def look(tenant: Tenant) -> set[str]:
        async with db.fleet_transaction(tenant.fleet) as tx:
            return {r["fleet"] for r in await raw.fetch(tx, "SELECT fleet FROM boundaries")}

    asked = [tenants[i % 2] for i in range(40)]
    assert await asyncio.gather(*map(look, asked)) == [{t.fleet} for t in asked]


def test_the_tables_of_this_test_are_all(database):
    """Every table has forced row level security, also each partition; and the lists of this module are complete."""
    rows = database.sql(
        "SELECT relname, relkind::text, relispartition, relrowsecurity AND relforcerowsecurity AS forced FROM pg_class"
        " WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v') AND relname <> 'alembic_version'"
    )
    assert {r["relname"] for r in rows if r["relkind"] != "v" and not r["relispartition"]} == set(TABLES)
    assert {r["relname"] for r in rows if r["relkind"] == "v"} == set(VIEWS)
    assert [r["relname"] for r in rows if r["relkind"] != "v" and not r["forced"]] == []
    owners = database.sql("SELECT DISTINCT viewowner::text AS o FROM pg_views WHERE schemaname = 'public'")
    assert [r["o"] for r in owners] == ["winnow_view_owner"]
