"""Fixtures of the tests of the embedded servers."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.harness.data import quick_place
from winnow.embedded import PostgresServer
from winnow.embedded.account import Account, by_uid


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A temporary folder that every user can reach; pytest's own are closed to all but their owner."""
    folder = Path(tempfile.mkdtemp(prefix="winnow-test-", dir=quick_place())).resolve()
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def seed() -> Iterator[Path]:
    """The folder of a new server that has been stopped; initdb is most of what a start costs."""
    with tempfile.TemporaryDirectory(prefix="winnow-test-", dir=quick_place(), ignore_cleanup_errors=True) as place:
        Path(place).chmod(0o755)
        with PostgresServer(Path(place, "postgres")) as server:
            folder = server.directory
        (folder / "port").unlink()
        yield folder


@pytest.fixture
def folder(seed: Path, open_folder: Path) -> Path:
    """A server's folder with data, not running."""
    subprocess.run(["/bin/cp", "-a", seed, open_folder / "postgres"], check=True)
    return open_folder / "postgres"


@pytest.fixture
def nobody() -> Account:
    """The user that PostgreSQL runs as when we are root; the test is skipped where we are not."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    import pwd

    return by_uid(pwd.getpwnam("nobody").pw_uid)
