"""What the tests share: servers, databases, processes, data and waiting."""

from tests.harness.data import REPOSITORY, shared_data
from tests.harness.databases import Database, DatabaseServer
from tests.harness.processes import Program, Spawner
from tests.harness.waiting import eventually, wait_for

__all__ = ["REPOSITORY", "Database", "DatabaseServer", "Program", "Spawner", "eventually", "shared_data", "wait_for"]
