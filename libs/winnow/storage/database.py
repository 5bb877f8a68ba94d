"""The pool of connections, transactions as one role or one fleet, and notifications."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import asyncpg
import orjson
from sqlalchemy import URL, event, exc, make_url, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from winnow.storage import raw
from winnow.storage.faults import data_error, transient
from winnow.storage.values import jsonb

__all__ = ["COMMITTED_CHANNEL", "OUTBOX_CHANNEL", "Database", "Transaction", "data_error", "driver_url", "transient"]

#: What `Database.transaction` gives: the connection that a transaction runs on.
Transaction = AsyncConnection

#: Channel with the `Key.token` of every boundary that is committed.
COMMITTED_CHANNEL = "winnow_committed"
#: Channel that tells relays of new outbox rows.
OUTBOX_CHANNEL = "winnow_outbox"

#: What libpq calls the parameters of TLS in a URL. A key's password is not among them: a URL is shown too easily.
TLS_PARAMETERS = ("sslmode", "sslrootcert", "sslcert", "sslkey", "sslcrl", "ssl_min_protocol_version", "ssl_max_protocol_version")
#: From none to the only one that knows who answers. Without any the driver prefers TLS and checks no certificate.
TLS_MODES = ("disable", "allow", "prefer", "require", "verify-ca", "verify-full")

#: Seconds to open a connection. A server that starts up refuses at once; this is for one that does not answer at all.
CONNECT_TIMEOUT_S = 10.0
#: Seconds between signs of life on the listening connection: a peer that vanished without a word is noticed after two of them.
LISTEN_KEEPALIVE_S = 15.0
#: Seconds before a lost listening connection is made anew: the first and the longest pause.
RECONNECT_FIRST_S, RECONNECT_MOST_S = 0.1, 5.0
#: Milliseconds after which the server ends a transaction that its owner forgot, so that its locks do not stay for ever.
IDLE_IN_TRANSACTION_MS = 300_000


def driver_url(url: str) -> URL:
    """`url` (postgres://, postgresql://, any driver) for asyncpg. Raise `ValueError`, whose text does not quote it.

    libpq's TLS parameters (`TLS_PARAMETERS`) go to the driver as a URL of their own, which it reads as libpq does: SQLAlchemy would hand
    them over as arguments that the driver does not have.
    """
    try:
        parsed = make_url(url)
    except exc.ArgumentError as error:
        msg = "the database URL is not one; write postgresql://user:password@host:port/database"
        raise ValueError(msg) from error
    if parsed.get_backend_name() not in {"postgresql", "postgres"}:
        msg = f"the database must be PostgreSQL, not {parsed.get_backend_name()}"
        raise ValueError(msg)
    query = dict(parsed.query)
    tls = {name: str(query.pop(name)) for name in TLS_PARAMETERS if name in query}
    if "sslmode=" in url and "sslmode" not in tls:  # SQLAlchemy drops a parameter without a value; a variable that is not set leaves one
        tls["sslmode"] = ""
    if tls:
        if tls.get("sslmode", TLS_MODES[-1]) not in TLS_MODES:
            msg = f"sslmode of the database URL is one of {', '.join(TLS_MODES)}"
            raise ValueError(msg)
        for name in ("sslrootcert", "sslcert", "sslkey"):
            if name in tls and not Path(tls[name]).is_file():
                msg = f"{name} of the database URL names a file that is not there"
                raise ValueError(msg)
        query["dsn"] = f"postgresql://?{urlencode(tls)}"
    return parsed.set(drivername="postgresql+asyncpg", query=query)


def _alive(dbapi_connection: Any, _record: object, _proxy: object) -> None:  # noqa: ANN401  SQLAlchemy's adapter, which has no public type
    """Refuse a pooled connection that the server has closed; known locally, so it costs no round trip (a pre-ping costs one)."""
    if dbapi_connection.driver_connection.is_closed():
        raise exc.DisconnectionError


@asynccontextmanager
async def _begun(tx: AsyncConnection) -> AsyncIterator[None]:
    """A transaction of the driver on `tx`. A connection whose transaction could not be ended is thrown away, never pooled."""
    connection = await raw.driver(tx)
    try:
        async with connection.transaction():
            yield
    finally:
        if not connection.is_closed() and connection.is_in_transaction():
            await tx.invalidate()


class Database:
    """A pool of connections to one database. `async with Database(url) as database:`, or `await close()` when done.

    Args:
        url: Any PostgreSQL URL; `postgresql+asyncpg://` is not required.
        pool_size: The most connections that are open at once; who wants one more waits `pool_timeout_s`.
        application_name: Shown in `pg_stat_activity`.
        pool_timeout_s: Seconds to wait for a connection; then `sqlalchemy.exc.TimeoutError`, which is transient.
    """

    def __init__(self, url: str, *, pool_size: int = 5, application_name: str = "winnow", pool_timeout_s: float = 30.0) -> None:
        self._url = driver_url(url)
        self._engine: AsyncEngine = create_async_engine(
            self._url,
            pool_size=pool_size,
            max_overflow=0,
            # Transactions are the driver's own (`_begun`): SQLAlchemy's needs a statement more to begin, and two greenlets.
            isolation_level="AUTOCOMMIT",
            pool_timeout=pool_timeout_s,
            # For every connection, the driver's own statements included: jsonb comes as Python values.
            json_serializer=jsonb,
            json_deserializer=orjson.loads,
            hide_parameters=True,  # an error's text must not quote somebody's content
            connect_args={
                "timeout": CONNECT_TIMEOUT_S,
                # Prepared statements stay as long as their connection. With a lifetime (300 s in the driver) each has a timer, which holds
                # the context that it was set in, the batch at work included, and becomes a cycle when the statement is prepared anew.
                "max_cached_statement_lifetime": 0,
                "server_settings": {
                    "application_name": application_name,
                    "TimeZone": "UTC",
                    # Arrays have no statistics, so the planner thinks our batches are huge and would compile them (100 ms a plan).
                    "jit": "off",
                    # The same statements again and again, on arrays of which a plan can know nothing: planning each anew costs as much as
                    # running it (13.4 against 7.4 ms of the server's time for one boundary through all stages, alone in its batches).
                    "plan_cache_mode": "force_generic_plan",
                    "idle_in_transaction_session_timeout": str(IDLE_IN_TRANSACTION_MS),
                },
            },
        )
        event.listen(self._engine.sync_engine, "checkout", _alive)

    def __repr__(self) -> str:
        """Where it is, without the password."""
        return f"<Database {self._url.render_as_string(hide_password=True)}>"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncConnection]:
        """One transaction as the pipeline: sees all fleets. Commits at the end, rolls back on an exception, and on nothing else."""
        async with self._engine.connect() as tx, _begun(tx):
            yield tx

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """For look-ups as the pipeline: each statement by itself, without the round trips of a transaction. Write nothing in it."""
        async with self._engine.connect() as tx:
            yield tx

    @asynccontextmanager
    async def fleet_transaction(self, fleet: str) -> AsyncIterator[AsyncConnection]:
        """One transaction as role `winnow_gateway`, which sees and writes rows of `fleet` alone.

        Role and fleet are the transaction's own: the pooled connection forgets them when it ends, however it ends.
        """
        async with self._engine.connect() as tx, _begun(tx):
            await tx.execute(
                text("SELECT set_config('winnow.fleet', :fleet, true), set_config('role', 'winnow_gateway', true)"), {"fleet": fleet}
            )
            yield tx

    async def ping(self) -> None:
        """Ask the server for an answer. Raise what it raises."""
        async with self._engine.connect() as connection:
            await connection.execute(text("SELECT 1"))

    async def listen(self, channel: str, callback: Callable[[str], None], *, connected: Callable[[], None] | None = None) -> None:
        """Call `callback` with each payload, for ever, on a connection of its own that is made anew when it is lost.

        Run it as a task and cancel it to stop. What was notified while the connection was down is lost: `connected` is called after each
        (re)connection, so that the caller looks at the table once. Callbacks must not block; their exceptions end `listen`.
        """
        pause = RECONNECT_FIRST_S
        while True:
            try:
                connection = await self._connect_alone()
            except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
                await asyncio.sleep(pause)
                pause = min(RECONNECT_MOST_S, pause * 2)
                continue
            pause = RECONNECT_FIRST_S
            try:
                await self._listen_on(connection, channel, callback, connected)
            finally:
                connection.terminate()  # at once; a polite close waits for a server that may be gone
            await asyncio.sleep(pause)

    async def _connect_alone(self) -> "asyncpg.Connection[asyncpg.Record]":
        """A connection outside the pool."""
        options: dict[str, Any] = {name: self._url.query[name] for name in ("ssl", "dsn") if name in self._url.query}
        return await asyncpg.connect(
            host=self._url.host,
            port=self._url.port,
            user=self._url.username,
            password=self._url.password,
            database=self._url.database,
            timeout=CONNECT_TIMEOUT_S,
            server_settings={"application_name": "winnow-listen"},
            **options,
        )

    @staticmethod
    async def _listen_on(
        connection: "asyncpg.Connection[asyncpg.Record]",
        channel: str,
        callback: Callable[[str], None],
        connected: Callable[[], None] | None,
    ) -> None:
        """Hand over payloads until the connection ends. Callbacks run here and not in the driver, where an error would vanish in a log."""
        arrived: asyncio.Queue[str | None] = asyncio.Queue()
        connection.add_termination_listener(lambda *_: arrived.put_nowait(None))
        try:
            await connection.add_listener(channel, lambda _connection, _pid, _channel, payload: arrived.put_nowait(str(payload)))
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            return
        if connected is not None:
            connected()
        while True:
            try:
                payload = await asyncio.wait_for(arrived.get(), LISTEN_KEEPALIVE_S)
            except TimeoutError:
                try:
                    await connection.execute("SELECT 1", timeout=LISTEN_KEEPALIVE_S)
                except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
                    return
                continue
            if payload is None:
                return
            callback(payload)

    async def close(self) -> None:
        """Close all connections; those in use are closed when they come back."""
        with contextlib.suppress(OSError):
            await self._engine.dispose()
