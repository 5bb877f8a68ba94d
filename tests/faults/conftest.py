"""Servers that a test may strike down, and the settings that point everything at them."""

import pytest

from tests.faults.ground import Ground, prepare
from winnow.embedded import BrokerHandle, PostgresServer


@pytest.fixture
async def storm_ground(own_postgres: PostgresServer, own_broker: BrokerHandle) -> Ground:
    """A migrated database and all topics on servers of this test's own."""
    return await prepare(own_postgres, own_broker)
