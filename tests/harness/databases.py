"""Databases for tests: one migrated template a run, one copy of it a test module."""

import asyncio
import inspect
import threading
import uuid
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar
from urllib.parse import quote, urlsplit, urlunsplit

import asyncpg

T = TypeVar("T")


class DatabaseServer(Protocol):
    """A PostgreSQL server, ours or another's."""

    def dsn(self, database: str = ..., *, role: str = ..., password: str | None = ..., driver: str = ...) -> str:
        """Return the URL of `database`."""


class ExternalPostgres:
    """The server of DATABASE_URL, whose user may create databases and roles (`DatabaseServer`)."""

    def __init__(self, url: str) -> None:
        """Take a URL with any driver and database."""
        self._url = urlsplit(url)

    def dsn(self, database: str = "winnow", *, role: str = "", password: str | None = None, driver: str = "+asyncpg") -> str:
        """Return the URL of `database` on this server; no `role`: the URL's own user."""
        place = self._url.netloc.rpartition("@")
        login = f"{quote(role, safe='')}:{quote(password or '', safe='')}" if role else place[0]
        query = self._url.query
        return urlunsplit((f"postgresql{driver}", f"{login}@{place[2]}" if login else place[2], f"/{quote(database)}", query, ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """One database with the current schema."""

    server: DatabaseServer
    name: str

    @property
    def dsn(self) -> str:
        """URL for SQLAlchemy and for WINNOW_DATABASE_URL."""
        return self.server.dsn(self.name)

    @property
    def asyncpg_dsn(self) -> str:
        """URL for `asyncpg.connect`."""
        return self.server.dsn(self.name, driver="")

    def sql(self, statement: str, *arguments: object) -> list[asyncpg.Record]:
        """Run one statement as the owner, from synchronous code, and return its rows."""
        return sql(self.asyncpg_dsn, statement, *arguments)


def blocking(call: Callable[[], T | Awaitable[T]]) -> T:
    """Run `call` to its end in a thread of its own, with an event loop of its own if it is a coroutine function.

    Synchronous fixtures may run while pytest-asyncio holds this thread's event loop.
    """

    def run() -> T:
        answer = call()
        return asyncio.run(_await(answer)) if inspect.isawaitable(answer) else answer

    with ThreadPoolExecutor(1, thread_name_prefix=threading.current_thread().name) as pool:
        return pool.submit(run).result()


async def _await(answer: Awaitable[T]) -> T:
    return await answer


def sql(dsn: str, statement: str, *arguments: object) -> list[asyncpg.Record]:
    """Run one statement on a connection of its own, from synchronous code, and return its rows."""

    async def run() -> list[asyncpg.Record]:
        connection = await asyncpg.connect(dsn)
        try:
            return list(await connection.fetch(statement, *arguments))
        finally:
            await connection.close()

    return blocking(run)


@contextmanager
def template(server: DatabaseServer) -> Iterator[str]:
    """Make a database, migrate it to the newest schema and yield its name."""
    from winnow.storage import migrate

    with fresh(server, prefix="winnow_template") as name:
        dsn = server.dsn(name)
        blocking(lambda: migrate.upgrade(dsn))
        yield name


@contextmanager
def fresh(server: DatabaseServer, *, template: str = "", prefix: str = "winnow_test") -> Iterator[str]:
    """Make a database, empty or a copy of `template`, yield its name, and drop it whoever is still connected."""
    name = f"{prefix}_{uuid.uuid4().hex[:12]}"
    admin = server.dsn("postgres", driver="")
    copy = ""
    if template:
        # A template may have no connections; whatever migrated it may not have closed its last one yet.
        sql(admin, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", template)
        # Files are copied in 70 ms; the default way writes every page to the log.
        copy = f" TEMPLATE {template} STRATEGY file_copy"
    sql(admin, f"CREATE DATABASE {name}{copy}")
    try:
        yield name
    finally:
        sql(admin, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
