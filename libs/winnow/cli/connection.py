"""How a command finds its Winnow: the environment first, else the `winnow up` that runs in the state folder."""

import asyncio
import getpass
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from winnow.cli import endpoints
from winnow.contracts.errors import Permanent, Retryable, WinnowError

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from winnow.cli.endpoints import Endpoints
    from winnow.messaging.settings import KafkaSettings
    from winnow.storage.database import Database

T = TypeVar("T")


class NotConnected(Permanent):
    """There is no Winnow to talk to; start `winnow up` in another terminal, or set the variables that this text names."""


class Refused(Permanent):
    """The database refused what it was asked."""


class Unreachable(Retryable):
    """Winnow does not answer; see whether it runs, then try again."""


def running() -> "Endpoints | None":
    """What `winnow up` runs in the state folder, if anything."""
    from winnow.embedded import state_dir

    return endpoints.read(state_dir())


def database_url() -> str:
    """WINNOW_DATABASE_URL, else that of the running `winnow up`. Raise `NotConnected`."""
    if url := os.environ.get("WINNOW_DATABASE_URL"):
        return checked_url(url)
    if found := running():
        return found.database_url
    raise NotConnected("no database: start `winnow up` in another terminal, or set WINNOW_DATABASE_URL")


def checked_url(url: str) -> str:
    """`url`, where it is one of a database that Winnow can use; the error does not quote it. Raise `NotConnected`."""
    from winnow.storage.database import driver_url

    try:
        driver_url(url)
    except ValueError as exc:
        msg = f"WINNOW_DATABASE_URL: {exc}"
        raise NotConnected(msg) from None
    return url


def gateway() -> tuple[str, str]:
    """URL and API key: WINNOW_GATEWAY_URL and WINNOW_API_KEY, else those of the running `winnow up`. Raise `NotConnected`."""
    found = running()
    url = os.environ.get("WINNOW_GATEWAY_URL") or (found.gateway_url if found else None)
    key = os.environ.get("WINNOW_API_KEY") or (found.api_key if found else None)
    if url is None:
        raise NotConnected("no gateway: start `winnow up` in another terminal, or set WINNOW_GATEWAY_URL and WINNOW_API_KEY")
    if key is None:
        raise NotConnected("no API key: set WINNOW_API_KEY (an operator makes one with `winnow keys create`)")
    return url, key


def kafka_environment() -> dict[str, str]:
    """Variables by which this process reaches the broker: its own, else those of the running `winnow up`. Raise `NotConnected`."""
    own = {name: value for name, value in os.environ.items() if name.startswith("WINNOW_")}
    if "WINNOW_KAFKA_BOOTSTRAP_SERVERS" in own:
        return own
    if found := running():
        return own | {"WINNOW_KAFKA_BOOTSTRAP_SERVERS": found.kafka_bootstrap_servers, "WINNOW_TOPIC_PREFIX": found.topic_prefix}
    raise NotConnected("no broker: start `winnow up` in another terminal, or set WINNOW_KAFKA_BOOTSTRAP_SERVERS")


def on_database(work: Callable[["Database"], Awaitable[T]], *, connections: int = 1) -> T:
    """Run `work` on the database, with so many connections at most, and close it. Raise `Unreachable` where it does not answer."""
    from winnow.storage.database import Database

    async def run() -> T:
        database = Database(database_url(), pool_size=connections, application_name="winnow-cli")
        try:
            return await work(database)
        finally:
            await database.close()

    with unreachable():
        return asyncio.run(run())


@contextmanager
def unreachable() -> Iterator[None]:
    """Turn the errors of a database that does not answer into `Unreachable`, and its refusals into `Refused`."""
    from asyncpg import PostgresError
    from sqlalchemy.exc import DBAPIError

    from winnow.storage.database import transient
    from winnow.storage.faults import silence, untrusted

    try:
        yield
    except Exception as exc:
        if (found := untrusted(exc)) is not None:
            raise found from exc
        if transient(exc) or isinstance(exc, OSError):
            raise Unreachable(silence(exc)) from exc
        if isinstance(exc, DBAPIError | PostgresError):
            said = str(exc.orig if isinstance(exc, DBAPIError) else exc).splitlines()[0]
            said = said.rpartition(">: ")[2]  # SQLAlchemy puts the driver's class before the server's words
            msg = f"the database refuses: {said}" + ("; bring its schema up with `winnow db upgrade`" if "does not exist" in said else "")
            raise Refused(msg) from exc
        raise


async def no_broker(settings: "KafkaSettings", error: Exception) -> WinnowError:
    """What a command ends with where its client could not reach a broker: why it is not let in, or that nobody answers."""
    from winnow.messaging.reach import told

    found = await told(settings, error)
    if isinstance(found, WinnowError):
        return found
    return Unreachable(f"the broker at {settings.kafka_bootstrap_servers} does not answer ({type(error).__name__}); see whether it runs")


def in_transaction(work: Callable[["AsyncConnection"], Awaitable[T]]) -> T:
    """Run `work` in one transaction as the pipeline's role, which sees all fleets."""

    async def run(database: "Database") -> T:
        async with database.transaction() as tx:
            return await work(tx)

    return on_database(run)


def operator() -> str:
    """Who runs this command, for the audit log."""
    try:
        return f"cli:{getpass.getuser()}"
    except (KeyError, OSError, ImportError):  # a container's user without a name
        return f"cli:uid-{os.getuid()}"
