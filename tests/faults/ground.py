"""A database and topics of one test, and the variables that point services at them."""

import asyncio
import uuid
from dataclasses import dataclass

from winnow.embedded import BrokerHandle, PostgresServer, ports
from winnow.embedded.postgres import DEFAULT_DATABASE
from winnow.messaging.settings import KafkaSettings
from winnow.messaging.topics import ensure_topics
from winnow.storage import migrate
from winnow.telemetry import Telemetry

#: Few, so that runs share them and every member of a group of two has some.
PARTITIONS = 4
#: Milliseconds. A killed member's partitions are free after it; far above the pauses of a busy machine.
SESSION_TIMEOUT_MS, HEARTBEAT_MS = 2_000, 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Where a test plays."""

    database_url: str
    settings: KafkaSettings

    @property
    def asyncpg_url(self) -> str:
        """URL for `asyncpg.connect`."""
        return self.database_url.replace("+asyncpg", "", 1)

    def environment(self, **more: str) -> dict[str, str]:
        """Variables for services; `more` in small letters, without the prefix."""
        said = {
            "database_url": self.database_url,
            "kafka_bootstrap_servers": self.settings.kafka_bootstrap_servers,
            "topic_prefix": self.settings.topic_prefix,
            "partitions": str(self.settings.partitions),
            "session_timeout_ms": str(self.settings.session_timeout_ms),
            "heartbeat_interval_ms": str(self.settings.heartbeat_interval_ms),
            "status_port": "0",
            "gateway_port": str(ports.pick()),
            # A crash between commit and publish is mended by the redelivery; the sweeper must not be what saves it.
            "stuck_after_s": "600",
        } | more
        return {f"WINNOW_{name.upper()}": value for name, value in said.items()}


async def prepare(postgres: PostgresServer, broker: BrokerHandle) -> Ground:
    """Make a migrated database and all topics."""
    url = postgres.dsn()
    await asyncio.to_thread(migrate.upgrade, url)
    # An ephemeral server confirms a commit before it is written, so that SIGKILL takes back what was promised. Not in a test of promises.
    await asyncio.to_thread(postgres.sql, f"ALTER DATABASE {DEFAULT_DATABASE} SET synchronous_commit = on")
    return await topics(url, broker)


async def topics(database_url: str, broker: BrokerHandle) -> Ground:
    """Make all topics, under names that no other test has."""
    settings = KafkaSettings(
        kafka_bootstrap_servers=broker.bootstrap,
        topic_prefix=f"f{uuid.uuid4().hex[:10]}.",
        partitions=PARTITIONS,
        session_timeout_ms=SESSION_TIMEOUT_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
    )
    await ensure_topics(settings, Telemetry.plain("faults"))
    return Ground(database_url=database_url, settings=settings)
