"""Bringing a database to a revision of the schema."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

import asyncpg
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, pool
from sqlalchemy.ext.asyncio import create_async_engine

from winnow.storage.database import CONNECT_TIMEOUT_S, driver_url

T = TypeVar("T")

#: Times that a migration is tried again when another database of the cluster made or dropped the same roles at that moment.
ROLE_RACES = 5
#: Seconds before such a repetition.
ROLE_RACE_PAUSE_S = 0.2
#: Alembic keeps what it works on in its own module, so a process can migrate one database at a time.
_ALEMBIC = threading.Lock()


def script_location() -> Path:
    """Where the migrations are: inside the installed package, or at the top of a checkout. Raise `FileNotFoundError`."""
    here = Path(__file__).resolve()
    for place in (here.parent / "_migrations", here.parents[3] / "migrations"):
        if (place / "env.py").is_file():
            return place
    msg = "the migrations are missing from this installation; install winnow-compaction anew"
    raise FileNotFoundError(msg)


def _config() -> Config:
    """Alembic's settings; there is no ini file."""
    config = Config()
    config.set_main_option("script_location", str(script_location()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


def _with_connection(dsn: str, work: Callable[[Connection], T]) -> T:
    """Run `work` on a connection of its own, from a thread that has no event loop yet, so that callers may have one."""

    async def run() -> T:
        engine = create_async_engine(driver_url(dsn), poolclass=pool.NullPool, connect_args={"timeout": CONNECT_TIMEOUT_S})
        try:
            async with engine.connect() as connection:
                return await connection.run_sync(work)
        finally:
            await engine.dispose()

    with ThreadPoolExecutor(1, thread_name_prefix="winnow-migrate") as thread:
        return thread.submit(asyncio.run, run()).result()


def _raced(error: BaseException) -> bool:
    """Roles are the cluster's: another database's migration changed one in the middle of ours."""
    at: BaseException | None = error
    while at is not None:
        if isinstance(at, asyncpg.PostgresError):
            return isinstance(at, asyncpg.UndefinedObjectError | asyncpg.DeadlockDetectedError) or "concurrently" in str(at)
        at = getattr(at, "orig", None) or at.__cause__
    return False


def _migrate(dsn: str, step: Callable[[Config], None]) -> None:
    """Run an Alembic command; in its own transaction it takes effect whole or not at all, so a race is simply run again."""

    def work(connection: Connection) -> None:
        config = _config()
        config.attributes["connection"] = connection
        step(config)
        connection.commit()

    for attempt in range(1 + ROLE_RACES):
        try:
            with _ALEMBIC:
                return _with_connection(dsn, work)
        except Exception as error:
            if attempt == ROLE_RACES or not _raced(error):
                raise
            time.sleep(ROLE_RACE_PAUSE_S * (attempt + 1))
    return None


def upgrade(dsn: str, revision: str = "head") -> None:
    """Upgrade the database at `dsn` (any PostgreSQL URL). Processes that do so at the same time wait for each other."""
    _migrate(dsn, lambda config: command.upgrade(config, revision))


def downgrade(dsn: str, revision: str) -> None:
    """Downgrade to `revision`; `base` removes everything that the migrations made, roles only where no other database uses them."""
    _migrate(dsn, lambda config: command.downgrade(config, revision))


def current(dsn: str) -> str | None:
    """The revision that the database has, or None."""
    return _with_connection(dsn, lambda connection: MigrationContext.configure(connection).get_current_revision())


def pending(dsn: str) -> list[str]:
    """The revisions that `upgrade` would apply, in order."""
    have = current(dsn)
    scripts = ScriptDirectory.from_config(_config())
    return [s.revision for s in reversed(list(scripts.iterate_revisions("head", have or "base")))]


def standing(dsn: str) -> tuple[tuple[str, ...], list[str], str | None]:
    """All revisions of this program, those that an upgrade would apply, and the one that the database has (perhaps an unknown one)."""
    have = current(dsn)
    scripts = ScriptDirectory.from_config(_config())
    known = tuple(s.revision for s in reversed(list(scripts.walk_revisions())))
    if have is not None and have not in known:
        return known, [], have
    return known, [s.revision for s in reversed(list(scripts.iterate_revisions("head", have or "base")))], have
