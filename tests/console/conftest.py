"""A whole Winnow and a browser before it."""

import os
import shutil
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.console.place import Place, standing
from tests.console.world import World, fill
from tests.harness import databases
from tests.harness.data import REPOSITORY
from tests.harness.databases import blocking
from tests.harness.plugin import NOTICES
from tests.harness.processes import Spawner
from winnow.embedded import ports
from winnow.messaging.settings import KafkaSettings
from winnow.messaging.topics import ensure_topics
from winnow.telemetry import Telemetry

#: Where the pictures of the pages are kept.
SHOTS = REPOSITORY / "var" / "console"
SKIPPED = "the console was not looked at: there is no Chromium (install Debian's package chromium)"
#: A browser that asks nobody but us, in a container.
FLAGS = [
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="session")
def chromium(pytestconfig: pytest.Config) -> Path:
    """The browser; without one the tests are skipped, and the summary says so."""
    found = shutil.which("chromium")
    if found is None:
        if os.environ.get("WINNOW_REQUIRE_CHROMIUM") == "1":
            pytest.fail(f"WINNOW_REQUIRE_CHROMIUM=1, and {SKIPPED}", pytrace=False)
        pytestconfig.stash[NOTICES].add(SKIPPED)
        pytest.skip(SKIPPED)
    return Path(found)


@pytest.fixture(scope="module")
def world(chromium, broker, postgres, database_template, topic_prefix, tmp_path_factory) -> Iterator[World]:
    """All services in one process, over this process's broker and a database of their own."""
    spawner = Spawner(tmp_path_factory.mktemp("console"))
    kafka = KafkaSettings(
        kafka_bootstrap_servers=broker.bootstrap,
        topic_prefix=topic_prefix,
        partitions=2,
        session_timeout_ms=6000,
        heartbeat_interval_ms=500,
    )
    with databases.fresh(postgres, template=database_template) as name:
        database = databases.Database(server=postgres, name=name)
        blocking(lambda: ensure_topics(kafka, Telemetry.plain()))
        port = ports.pick()
        services = spawner.command([sys.executable, "-m", "services"], env={
            "WINNOW_DATABASE_URL": database.dsn, "WINNOW_KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap, "WINNOW_TOPIC_PREFIX": topic_prefix,
            "WINNOW_PARTITIONS": "2", "WINNOW_SESSION_TIMEOUT_MS": "6000", "WINNOW_HEARTBEAT_INTERVAL_MS": "500",
            "WINNOW_GATEWAY_PORT": str(port), "WINNOW_STATUS_PORT": str(ports.pick()), "WINNOW_FOLD_INTERVAL_S": "0.2",
                "WINNOW_LOG_LEVEL": "WARNING",
        })  # fmt: skip
        made = World(
            url=f"http://127.0.0.1:{port}", database=database, topic_prefix=topic_prefix, bootstrap=broker.bootstrap, services=services
        )
        try:
            fill(made)
            yield made
        finally:
            spawner.stop()


@pytest.fixture
async def place(database: databases.Database) -> AsyncIterator[Place]:
    """A gateway with a boundary and a dead letter of one fleet."""
    async with standing(database.dsn) as made:
        yield made
