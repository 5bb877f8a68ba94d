"""Servers that a test may strike down, and the settings that point everything at them."""

from pathlib import Path

import pytest

from tests.faults.ground import Ground, prepare, topics
from tests.harness import Database
from winnow.embedded import BrokerHandle, PostgresServer

HERE = Path(__file__).parent
#: Seconds. Servers and services are started within the test, on a machine that may be busy with other tests; none takes a tenth of it.
TIMEOUT_S = 180


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of this folder time, where they do not say how much they need."""
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture
async def storm_ground(own_postgres: PostgresServer, own_broker: BrokerHandle) -> Ground:
    """A migrated database and all topics on servers of this test's own."""
    return await prepare(own_postgres, own_broker)


@pytest.fixture
async def ground(database: Database, broker: BrokerHandle) -> Ground:
    """This module's database and topics of this test's own, on servers that stay up."""
    return await topics(database.dsn, broker)
