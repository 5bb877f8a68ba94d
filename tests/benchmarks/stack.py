"""Servers of one benchmark: a broker, PostgreSQL as it is by default (fsync on), and the services in processes of their own."""

import asyncio
import signal
import sys
import tempfile
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.harness.databases import blocking
from tests.harness.processes import Program, Spawner
from winnow.cli.stack import KAFKA_FETCH_WAIT_MS, MEMORY_FETCH_BUSY_MS, MEMORY_FETCH_WAIT_MS
from winnow.embedded import BrokerHandle, KafkaBroker, MeshBroker, PostgresServer, ports
from winnow.messaging.settings import KafkaSettings
from winnow.messaging.topics import ensure_topics
from winnow.storage import migrate
from winnow.telemetry import Telemetry

MESH, KAFKA = "embedded broker", "Apache Kafka"

#: Milliseconds. The embedded broker lets a group form after half of it; far above any pause of a busy process.
SESSION_TIMEOUT_MS = 6_000
HEARTBEAT_MS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """A database and a set of topics that nobody else uses."""

    database_url: str
    settings: KafkaSettings

    @property
    def asyncpg_url(self) -> str:
        """URL for `asyncpg.connect`."""
        return self.database_url.replace("+asyncpg", "", 1)

    def environment(self, gateway_port: int) -> dict[str, str]:
        """Variables that point services at this ground."""
        return {
            "WINNOW_DATABASE_URL": self.database_url,
            "WINNOW_KAFKA_BOOTSTRAP_SERVERS": self.settings.kafka_bootstrap_servers,
            "WINNOW_TOPIC_PREFIX": self.settings.topic_prefix,
            "WINNOW_PARTITIONS": str(self.settings.partitions),
            "WINNOW_SESSION_TIMEOUT_MS": str(self.settings.session_timeout_ms),
            "WINNOW_HEARTBEAT_INTERVAL_MS": str(self.settings.heartbeat_interval_ms),
            "WINNOW_FETCH_MAX_WAIT_MS": str(self.settings.fetch_max_wait_ms),
            "WINNOW_FETCH_BUSY_WAIT_MS": str(self.settings.busy_wait_ms),
            "WINNOW_GATEWAY_PORT": str(gateway_port),
            "WINNOW_STATUS_PORT": "0",
            "WINNOW_LOG_LEVEL": "WARNING",
        }


class Stack:
    """A broker, a PostgreSQL server, and whatever runs on them."""

    def __init__(self, kind: str, broker: BrokerHandle, postgres: PostgresServer, spawner: Spawner) -> None:
        """Hold servers that run already; `stack` starts them."""
        self.kind, self.broker, self.postgres, self._spawner = kind, broker, postgres, spawner

    @property
    def broker_pid(self) -> int:
        """Process id of the broker."""
        pid: int = self.broker.pid  # type: ignore[attr-defined]  # both of ours have it
        return pid

    def ground(self, *, partitions: int = 12) -> Ground:
        """Make a migrated database and topics."""
        name = f"bench_{uuid.uuid4().hex[:10]}"
        self.postgres.create_database(name)
        url = self.postgres.dsn(name)
        blocking(lambda: migrate.upgrade(url))
        settings = KafkaSettings(
            kafka_bootstrap_servers=self.broker.bootstrap,
            topic_prefix=f"{name}.",
            partitions=partitions,
            session_timeout_ms=SESSION_TIMEOUT_MS,
            heartbeat_interval_ms=HEARTBEAT_MS,
            fetch_max_wait_ms=KAFKA_FETCH_WAIT_MS if self.kind == KAFKA else MEMORY_FETCH_WAIT_MS,
            fetch_busy_wait_ms=None if self.kind == KAFKA else MEMORY_FETCH_BUSY_MS,
        )
        asyncio.run(ensure_topics(settings, Telemetry.plain("bench")))
        return Ground(database_url=url, settings=settings)

    def services(self, ground: Ground, *names: str) -> Program:
        """Start services in one process (no name: all of them)."""
        return self._spawner.services(*names, env=ground.environment(ports.pick()))

    def command(self, ground: Ground, arguments: Sequence[str], label: str) -> Program:
        """Start a program of the benchmarks."""
        return self._spawner.command([sys.executable, *arguments], env=ground.environment(0), label=label)


@contextmanager
def stack(kind: str, *, database: bool = True) -> Iterator[Stack]:
    """Start the servers, yield them, end all that was started and delete what they wrote."""
    with ExitStack() as cleanup:
        folder = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="winnow-bench-", ignore_cleanup_errors=True)))
        folder.chmod(0o711)  # PostgreSQL runs as another user where we are root
        broker: BrokerHandle = MeshBroker(folder / "broker") if kind == MESH else KafkaBroker(folder / "broker")
        postgres = PostgresServer(folder / "postgres")
        cleanup.callback(postgres.stop)
        if database:
            postgres.start()
        cleanup.callback(broker.stop)
        broker.start()
        spawner = Spawner(folder)
        cleanup.callback(_quietly, spawner)
        yield Stack(kind, broker, postgres, spawner)


def _quietly(spawner: Spawner) -> None:
    """End the programs; show the output of those that had ended by themselves."""
    for program in spawner.programs:
        if not program.alive and program.returncode not in {0, -signal.SIGTERM}:
            print(f"--- {program}\n{program.output[-4000:]}", file=sys.stderr)
        program.stop()
