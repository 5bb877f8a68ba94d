"""The pool: which errors pass, lost connections, notifications that survive them."""

import asyncio

import asyncpg
import pytest
from sqlalchemy import exc, text

from tests.harness.waiting import eventually
from winnow.storage import raw
from winnow.storage.database import Database, data_error, driver_url, transient

KILL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


@pytest.mark.parametrize(
    ("statement", "passes", "row"),
    [
        ("SELECT 1 / 0", False, True),
        ("INSERT INTO fleets (fleet) VALUES ('x')", False, True),
        ("SELECT 'x'::int", False, True),
        ("SELECT * FROM nowhere", False, False),
        ("SELEKT", False, False),
        ("SELECT pg_terminate_backend(pg_backend_pid())", True, False),
        ("SET LOCAL statement_timeout = '20ms'; SELECT pg_sleep(5)", True, False),
        ("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '40P01'; END $$", True, False),
        ("DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '53300'; END $$", True, False),
    ],
)
@pytest.mark.parametrize("way", ["driver", "sqlalchemy"])
async def test_kinds_of_errors(db, statement, passes, row, way):
    """Errors of the server are told apart the same whether SQLAlchemy wraps them or the driver raises them."""
    with pytest.raises((asyncpg.PostgresError, asyncpg.InterfaceError, exc.DBAPIError)) as caught:  # noqa: PT012  the last one raises
        async with db.transaction() as tx:
            for part in statement.split("; ") if statement.startswith("SET") else [statement]:
                if way == "driver":
                    await raw.fetch(tx, part)
                else:
                    await tx.execute(text(part))
    assert (transient(caught.value), data_error(caught.value)) == (passes, row)


@pytest.mark.parametrize(
    ("value", "column"),
    [("\ud800", "text"), ("\x00", "text"), ("no number", "int"), (2**40, "int"), (object(), "timestamptz"), ("x", "uuid")],
)
async def test_values_that_do_not_fit(db, value, column):
    """A value that cannot be sent or stored is a fault of its row."""
    with pytest.raises(Exception) as caught:  # noqa: PT011  every kind of value has an exception of its own
        async with db.transaction() as tx:
            await raw.fetch(tx, f"SELECT $1::{column}", value)
    assert data_error(caught.value)
    assert not transient(caught.value)


async def test_no_server():
    """A server that is not there is a transient fault."""
    async with Database("postgresql://nobody@127.0.0.1:1/nothing") as db:
        with pytest.raises(ConnectionRefusedError) as caught:
            await db.ping()
    assert transient(caught.value)


@pytest.mark.parametrize(
    ("error", "passes"), [(ValueError("x"), False), (ConnectionResetError(), True), (TimeoutError(), True), (KeyError(), False)]
)
def test_other_errors(error, passes):
    """Errors of the network pass, errors of the program do not."""
    assert transient(error) is passes
    assert not data_error(error)


async def test_a_farewell_that_the_driver_has_only_half_read_passes(database):
    """Between the server's last word and the end of its connection the driver refuses whatever it is asked; the next connection works."""
    fields = b"SFATAL\0C57P01\0Mterminating connection\0\0"
    async with Database(database.dsn, pool_size=1) as db:
        async with db.transaction() as tx:
            connection = await raw.driver(tx)
        connection._protocol.data_received(b"E" + (len(fields) + 4).to_bytes(4, "big") + fields)
        with pytest.raises(asyncpg.InternalClientError) as caught:
            async with db.transaction():
                pass
        assert transient(caught.value)
        connection.terminate()
        async with db.transaction() as tx:
            assert await raw.fetch(tx, "SELECT 1")


async def test_our_own_mistakes_do_not_pass(db):
    """Using the driver wrongly is no transient fault: it would be retried for ever."""
    with pytest.raises(asyncpg.InterfaceError) as caught:
        async with db.transaction() as tx:
            await raw.fetch(tx, "SELECT $1::int")
    assert not transient(caught.value)


async def test_lost_connections_are_replaced(database, db):
    """After the server has ended all connections, the pool's next transactions work at once."""
    await asyncio.gather(*(db.ping() for _ in range(4)))
    database.sql(KILL)

    async def works() -> bool:
        try:
            await db.ping()
        except (asyncpg.PostgresError, asyncpg.InterfaceError, exc.DBAPIError, OSError) as error:
            if not transient(error):
                raise
            return False
        return True

    await eventually(works, 10)
    await asyncio.gather(*(db.ping() for _ in range(8)))


async def test_the_driver_is_inside_the_transaction(db):
    """What is given to the driver first belongs to the transaction: it is rolled back with it."""
    with pytest.raises(RuntimeError):  # noqa: PT012  the failing transaction is the test
        async with db.transaction() as tx:
            await raw.execute(tx, "CREATE TABLE never (a int)")
            raise RuntimeError
    async with db.transaction() as tx:
        assert (await raw.fetch_one(tx, "SELECT to_regclass('never') AS t"))["t"] is None


async def test_savepoints(db):
    """A row that fails under a savepoint leaves its neighbours in the transaction."""
    async with db.transaction() as tx:
        await raw.execute(tx, "CREATE TEMPORARY TABLE kept (a int PRIMARY KEY) ON COMMIT DROP")
        refused = []
        for value in (1, 1, 2):
            try:
                async with tx.begin_nested():
                    await raw.execute(tx, "INSERT INTO kept VALUES ($1)", value)
            except asyncpg.UniqueViolationError as error:
                refused.append((value, data_error(error)))
        assert refused == [(1, True)]
        assert [r["a"] for r in await raw.fetch(tx, "SELECT a FROM kept ORDER BY a")] == [1, 2]


async def test_listening_survives_a_lost_connection(database, db):
    """A listener whose connection is cut connects again, says so, and hears what comes then."""
    heard: list[str] = []
    connections: list[int] = []
    task = asyncio.create_task(db.listen("test_channel", heard.append, connected=lambda: connections.append(1)))
    try:
        await eventually(lambda: len(connections) == 1, 10)
        database.sql("SELECT pg_notify('test_channel', 'one')")
        await eventually(lambda: heard == ["one"], 10)
        database.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'winnow-listen'"
            " AND datname = current_database()"
        )
        await eventually(lambda: len(connections) == 2, 10)
        database.sql("SELECT pg_notify('test_channel', 'two')")
        await eventually(lambda: heard == ["one", "two"], 10)
    finally:
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_failing_callback_is_not_swallowed(database, db):
    """An error of the listener's own code ends `listen` with that error."""
    ready = asyncio.Event()

    def callback(payload: str) -> None:
        raise ValueError(payload)

    task = asyncio.create_task(db.listen("test_channel", callback, connected=ready.set))
    await asyncio.wait_for(ready.wait(), 10)
    database.sql("SELECT pg_notify('test_channel', 'boom')")
    with pytest.raises(ValueError, match="boom"):
        await asyncio.wait_for(task, 10)


@pytest.mark.parametrize(
    "url", ["postgres://u:p@h/d", "postgresql://u:p@h/d", "postgresql+psycopg://u:p@h/d", "postgresql+asyncpg://u:p@h/d?sslmode=require"]
)
def test_urls(url):
    """Any PostgreSQL URL is taken; `sslmode` reaches the driver; the password is not shown."""
    made = driver_url(url)
    assert made.drivername == "postgresql+asyncpg"
    assert dict(made.query) == ({"dsn": "postgresql://?sslmode=require"} if "sslmode" in url else {})
    assert ":p@" not in repr(Database(url))


@pytest.mark.parametrize("url", ["", "nonsense", "mysql://h/d", "sqlite:///x", "\x00"])
def test_bad_urls(url):
    """Anything else is refused with a text that does not quote it."""
    with pytest.raises(ValueError, match=r"PostgreSQL|postgresql"):
        driver_url(url)


@pytest.mark.parametrize("wrong", ["sslmode=verify", "sslmode=", "sslmode=verify-full&sslrootcert=/nowhere/ca.pem", "sslkey=/nowhere"])
def test_bad_tls(wrong):
    """A misspelt mode and a missing file are said at once, and not by a connection that fails or, worse, does not."""
    with pytest.raises(ValueError, match="of the database URL") as refused:
        driver_url(f"postgresql://u:very-secret@h/d?{wrong}")
    assert "very-secret" not in str(refused.value)
