"""A pool on the module's database, a fleet of each test's own, and a clock that a test moves."""

import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from tests.harness import databases
from winnow.storage import fleets
from winnow.storage.database import Database


@dataclass
class Clock:
    """Time as a test says it is."""

    now: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __call__(self) -> datetime:
        return self.now

    def passes(self, **span: float) -> datetime:
        """Let time pass."""
        self.now += timedelta(**span)
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def db(database: databases.Database) -> AsyncIterator[Database]:
    async with Database(database.dsn, pool_size=4, pool_timeout_s=10) as pool:
        yield pool


@pytest.fixture
async def fleet(db: Database, clock: Clock) -> str:
    """A fleet of this test's own."""
    name = f"fleet-{uuid.uuid4().hex[:12]}"
    async with db.transaction() as tx:
        await fleets.ensure(tx, [name], default=fleets.Point(), now=clock())
    return name
