"""The stages of the pipeline over a migrated database."""

from collections.abc import AsyncIterator

import pytest

from tests.harness.databases import Database as MadeDatabase
from winnow.storage.database import Database


@pytest.fixture
async def store(database: MadeDatabase) -> AsyncIterator[Database]:
    """A pool on this module's database."""
    async with Database(database.dsn, pool_size=4) as pool:
        yield pool
