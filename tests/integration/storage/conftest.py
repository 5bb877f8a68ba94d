"""A pool on the module's database, and a clock that stands."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from tests.harness import databases
from winnow.storage import fleets
from winnow.storage.database import Database


@pytest.fixture
async def db(database: databases.Database) -> AsyncIterator[Database]:
    async with Database(database.dsn, pool_size=4, pool_timeout_s=10) as pool:
        yield pool


@pytest.fixture
def now() -> datetime:
    return datetime.now(UTC)


@pytest.fixture
async def fleet(db: Database, now: datetime) -> str:
    """A fleet of this test's own: modules share a database, tests do not share a fleet."""
    import uuid

    name = f"fleet-{uuid.uuid4().hex[:12]}"
    async with db.transaction() as tx:
        await fleets.ensure(tx, [name], default=fleets.Point(), now=now)
    return name
