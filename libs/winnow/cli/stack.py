"""A whole Winnow on this machine: PostgreSQL, a broker, topics, schema, a key, and the services."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Self

from winnow.cli import connection, endpoints, secret_file, topics
from winnow.cli.endpoints import Endpoints
from winnow.cli.processes import ONE_PROCESS, PROCESSES, Processes
from winnow.contracts.access import Role
from winnow.contracts.errors import WinnowError
from winnow.contracts.limits import MIB
from winnow.embedded import BrokerHandle, Capability, KafkaBroker, MeshBroker, PostgresServer
from winnow.embedded.lock import FileLock

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

#: The fleet that a trial starts with.
DEFAULT_FLEET = "default"
#: Partitions of topics that are created here: one process of a service consumes them all, and each costs the broker files and memory.
PARTITIONS = 4

#: Milliseconds. Apache Kafka answers a waiting fetch as soon as there is a record, so the wait only says how often an idle consumer asks
#: anew: ten times a second takes 6 ms of processor time a second more than twice, and 17 of the broker's.
KAFKA_FETCH_WAIT_MS = 500
#: Milliseconds. The memory broker looks for records at the half of a wait and at its end: a record is found a quarter of the wait later in
#: the median, in each of three stages. So waits are short while records come, and long where none do.
MEMORY_FETCH_WAIT_MS, MEMORY_FETCH_BUSY_MS = 250, 40
#: Consumers of a broker on this machine. The memory broker answers the first join after half the session time-out: 22 s with the stock
#: 45 s. Six seconds outlast a machine that is busy starting everything else. Each has three heartbeats.
_LOCAL_BROKER = {
    "WINNOW_PARTITIONS": str(PARTITIONS),
    "WINNOW_SESSION_TIMEOUT_MS": "6000",
    "WINNOW_HEARTBEAT_INTERVAL_MS": "2000",
    "WINNOW_FETCH_MAX_WAIT_MS": str(KAFKA_FETCH_WAIT_MS),
}
_MEMORY_BROKER = {
    "WINNOW_PARTITIONS": str(PARTITIONS),
    "WINNOW_SESSION_TIMEOUT_MS": "3000",
    "WINNOW_HEARTBEAT_INTERVAL_MS": "1000",
    "WINNOW_FETCH_MAX_WAIT_MS": str(MEMORY_FETCH_WAIT_MS),
    "WINNOW_FETCH_BUSY_WAIT_MS": str(MEMORY_FETCH_BUSY_MS),
    "WINNOW_IDEMPOTENCE": "off",
}


#: Bytes. Below it a disk counts as full: PostgreSQL and Apache Kafka write files of 10 to 16 MiB ahead.
ROOM = 32 * MIB


class BrokerKind(StrEnum):
    """Which broker `winnow up` starts."""

    MESH = "mesh"  # from a wheel, memory only
    KAFKA = "kafka"  # Apache Kafka, its log survives; needs Java 17


class StackEnded(WinnowError):
    """A part of this Winnow ended by itself; see its log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to start."""

    state: Path
    broker: BrokerKind = BrokerKind.MESH
    #: Data in temporary folders that are deleted at the end, and no fsync.
    ephemeral: bool = False
    #: None: 8484 if it is free, else a free one.
    gateway_port: int | None = None
    fleet: str = DEFAULT_FLEET
    #: All services in one process: less memory, later answers.
    one_process: bool = False


class Stack:
    """Everything that `winnow up` runs. One at a time in a state folder. Methods block and are for one thread."""

    def __init__(self, plan: Plan, *, say: Callable[[str], None], environment: Mapping[str, str]) -> None:
        """Describe it; nothing is touched before `start`.

        Args:
            plan: what to start.
            say: told each step in a few words before it is taken.
            environment: the process's variables; WINNOW_DATABASE_URL and WINNOW_KAFKA_BOOTSTRAP_SERVERS in it replace either part.
        """
        self._plan, self._say, self._environment = plan, say, dict(environment)
        self._lock = FileLock(plan.state / "up.lock")
        self._temporary: Path | None = None
        self._postgres: PostgresServer | None = None
        self._broker: BrokerHandle | None = None
        self._services: Processes | None = None
        self._endpoints: Endpoints | None = None

    def __enter__(self) -> Self:
        """Start everything."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop everything."""
        self.stop()

    @property
    def endpoints(self) -> Endpoints:
        """Where it listens. Raise `StackEnded` before it has started."""
        if self._endpoints is None:
            raise StackEnded("nothing runs yet; call start first")
        return self._endpoints

    @property
    def console_key_file(self) -> Path:
        """The operator's key that opens the console of this Winnow."""
        return self._data("console-key")

    def start(self) -> Endpoints:
        """Start everything and return when all services are ready. What was started is stopped again where a later part fails.

        Raises:
            AlreadyRunningError: another process runs Winnow in this state folder; the error names it.
            EmbeddedError: a part could not be started; the error says why.
            NotConnected, Unreachable, Refused: WINNOW_DATABASE_URL is none, or the database does not answer or refuses.
        """
        self._lock.acquire()
        try:
            self._endpoints = self._start()
        except BaseException:
            self.stop()
            raise
        endpoints.write(self._plan.state, self._endpoints)
        return self._endpoints

    def _start(self) -> Endpoints:
        if self._plan.ephemeral:
            self._temporary = Path(tempfile.mkdtemp(prefix="winnow-up-"))
        settings = dict(self._environment)
        settings["WINNOW_DATABASE_URL"] = self._start_postgres()
        settings |= self._start_broker()
        self._say("migrating the database")
        from winnow.storage import migrate

        with connection.unreachable():
            migrate.upgrade(settings["WINNOW_DATABASE_URL"])
            api_key = asyncio.run(self._ensure_keys(settings["WINNOW_DATABASE_URL"]))
        self._say("creating topics")
        asyncio.run(topics.ensured(settings))
        self._say("starting the services")
        port = self._start_services(settings)
        return Endpoints(
            gateway_url=f"http://127.0.0.1:{port}",
            api_key=api_key,
            console_key_file=str(self.console_key_file),
            fleet=self._plan.fleet,
            kafka_bootstrap_servers=settings["WINNOW_KAFKA_BOOTSTRAP_SERVERS"],
            topic_prefix=settings.get("WINNOW_TOPIC_PREFIX", ""),
            database_url=settings["WINNOW_DATABASE_URL"],
            pid=os.getpid(),
        )

    def check(self) -> None:
        """Raise `StackEnded` or `ServicesEnded` where a part has ended by itself, with the end of its log."""
        if self._services is not None:
            self._services.check()
        if self._broker is not None and not self._broker.alive:
            msg = f"the broker ended by itself; its log is {self._broker.log_file}"
            raise StackEnded(msg + self._full())
        if self._postgres is not None and not self._postgres.alive:
            msg = f"PostgreSQL ended by itself; its log is {self._postgres.log_file}"
            raise StackEnded(msg + self._full())

    def _full(self) -> str:
        """That there is no room left, where there is none: what ended may not have been able to say it."""
        if shutil.disk_usage(self._plan.state).free >= ROOM:
            return ""
        return "; its disk is full: make room and start `winnow up` again, what the gateway had accepted is there"

    def stop(self) -> None:
        """Stop the services, let them drain, then broker and database; harmless where nothing of ours runs."""
        if not self._lock.held:
            return  # somebody else's state folder: the file in it tells where *they* listen
        endpoints.remove(self._plan.state)
        if self._services is not None:
            self._services.stop(self.stop)
            self._services = None
        if self._broker is not None:
            self._broker.stop()
            self._broker = None
        if self._postgres is not None:
            self._postgres.stop()
            self._postgres = None
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None
        self._endpoints = None
        self._lock.release()

    def hurry(self) -> None:
        """End the services at once, where they are still draining: `stop` then goes on. For a signal handler."""
        if self._services is not None:
            self._services.hurry()

    def _data(self, name: str) -> Path:
        """The folder of one part."""
        return (self._temporary or self._plan.state) / name

    def _start_postgres(self) -> str:
        """The URL of the database: the caller's own, or the one that is started here."""
        if given := self._environment.get("WINNOW_DATABASE_URL"):
            return connection.checked_url(given)
        self._say("starting PostgreSQL")
        directory = None if self._plan.ephemeral else self._data("postgres")
        self._postgres = PostgresServer(directory, ephemeral=self._plan.ephemeral)
        self._postgres.start()
        return self._postgres.dsn()

    def _start_broker(self) -> dict[str, str]:
        """Settings of the broker: the caller's own, or the one that is started here."""
        if "WINNOW_KAFKA_BOOTSTRAP_SERVERS" in self._environment:
            return {}
        kind = self._plan.broker
        self._say("starting Apache Kafka (the first time, its jars are fetched)" if kind is BrokerKind.KAFKA else "starting the broker")
        made = KafkaBroker(self._data("kafka")) if kind is BrokerKind.KAFKA else MeshBroker(self._data("mesh"))
        self._broker = made
        made.start()
        local = _LOCAL_BROKER if Capability.PERSISTENCE in made.capabilities else _MEMORY_BROKER
        said = {name: value for name, value in local.items() if name not in self._environment}
        return said | {"WINNOW_KAFKA_BOOTSTRAP_SERVERS": made.bootstrap}

    async def _ensure_keys(self, database_url: str) -> str:
        """The agents' key and the console's in the state folder; return the agents'."""
        from winnow.storage import fleets
        from winnow.storage.database import Database

        now = datetime.now(UTC)
        database = Database(database_url, pool_size=1, application_name="winnow-up")
        try:
            async with database.transaction() as tx:
                await fleets.ensure(tx, [self._plan.fleet], default=fleets.Point(), now=now)
                agents = await self._ensure_key(tx, self._data("api-key"), Role.RUNTIME, now)
                await self._ensure_key(tx, self.console_key_file, Role.OPERATOR, now)
        finally:
            await database.close()
        return agents

    async def _ensure_key(self, tx: "AsyncConnection", place: Path, role: Role, now: datetime) -> str:
        """The key in a file, made anew where it is not there or the database does not know it."""
        from winnow.storage import api_keys

        known = secret_file.read(place)
        found = await api_keys.verify(tx, known, now=now) if known else None
        if found is not None and known and found.fleet == self._plan.fleet and found.role is role:
            return known
        secret, _ = await api_keys.create(tx, self._plan.fleet, name="winnow up", role=role, by="winnow up", now=now)
        secret_file.write(place, secret)
        return secret

    def _start_services(self, settings: Mapping[str, str]) -> int:
        """Start the services and wait until all are ready; return the gateway's port."""
        plan, processes = self._plan, ONE_PROCESS if self._plan.one_process else PROCESSES
        self._services = Processes(self._data("services"), processes, gateway_port=plan.gateway_port, temporary=plan.ephemeral)
        return self._services.start(
            {
                "WINNOW_LOG_FORMAT": "json",
                "WINNOW_GATEWAY_HOST": "127.0.0.1",
                "WINNOW_STATUS_HOST": "127.0.0.1",
                **settings,
                "WINNOW_GATEWAY_TLS_CERTFILE": "",  # nothing leaves this machine, and the address that we tell is http://
                "WINNOW_GATEWAY_TLS_KEYFILE": "",
                "PYTHONUNBUFFERED": "1",
            },
            self.stop,
        )
