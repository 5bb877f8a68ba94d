"""The pytest side of the harness: fixtures, markers, and what the terminal summary says of the broker."""

import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.harness import brokers, databases
from tests.harness.brokers import BrokerChoice
from tests.harness.data import quick_place
from tests.harness.databases import Database, DatabaseServer, ExternalPostgres
from tests.harness.processes import Spawner
from winnow.embedded import BrokerHandle, Capability, KafkaBroker, PostgresServer

CHOICE = pytest.StashKey[BrokerChoice]()
NOTICES = pytest.StashKey[set[str]]()

#: Fixtures that start a broker.
BROKER_FIXTURES = frozenset({"broker", "own_broker", "secured_kafka"})

#: The worker's answer to the main process, under pytest-xdist.
WORKER_NOTICE = "winnow_broker_notice"


def _choice(config: pytest.Config) -> BrokerChoice:
    if CHOICE not in config.stash:
        config.stash[CHOICE] = brokers.choose()
    return config.stash[CHOICE]


def usable(config: pytest.Config) -> BrokerChoice:
    """Return the choice, failing the test at hand where the broker that is required cannot run."""
    choice = _choice(config)
    if choice.problem:
        pytest.fail(choice.problem, pytrace=False)
    config.stash[NOTICES].add(choice.notice)
    return choice


def pytest_configure(config: pytest.Config) -> None:
    """Start with nothing to tell."""
    config.stash[NOTICES] = set()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the fault suite as serial, and refuse a capability that is misspelt."""
    known = set(Capability)
    for item in items:
        if "faults" in item.path.parts:
            item.add_marker(pytest.mark.serial)
        for marker in item.iter_markers("needs"):
            if unknown := set(marker.args) - known:
                msg = f"{item.nodeid}: needs({', '.join(map(repr, unknown))}): the capabilities are {', '.join(sorted(known))}"
                raise pytest.UsageError(msg)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Fetch Apache Kafka's jars, once, where a test wants a broker: a download must not eat a test's time limit."""
    wanted = any(BROKER_FIXTURES & set(getattr(item, "fixturenames", ())) for item in session.items)
    if wanted and not session.config.option.collectonly:
        terminal = session.config.pluginmanager.get_plugin("terminalreporter")
        session.config.stash[CHOICE] = brokers.fetched(_choice(session.config), terminal.write_line if terminal else lambda _: None)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test whose broker lacks what it needs."""
    needed = {name for marker in item.iter_markers("needs") for name in marker.args}
    if needed:
        choice = usable(item.config)
        if missing := needed - choice.capabilities:
            pytest.skip(f"the {choice.name} broker lacks {', '.join(sorted(missing))}")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand a worker's notice to the main process."""
    if hasattr(session.config, "workeroutput"):
        notices: set[str] = session.config.stash[NOTICES]
        session.config.workeroutput[WORKER_NOTICE] = sorted(notices)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take a worker's notice; one that crashed has none."""
    node.config.stash[NOTICES].update(getattr(node, "workeroutput", {}).get(WORKER_NOTICE, ()))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which broker it was where it was not the default."""
    notices: set[str] = config.stash[NOTICES]
    for notice in sorted(notices - {""}):
        terminalreporter.write_line(notice, yellow=True)


@pytest.fixture(scope="session")
def postgres() -> Iterator[DatabaseServer]:
    """The PostgreSQL server of this test process: an ephemeral one (1 s, 26 MB), or that of DATABASE_URL.

    One a process and not one for all workers of pytest-xdist: a shared one must outlive whichever worker started it.
    """
    if url := os.environ.get("DATABASE_URL"):
        yield ExternalPostgres(url)
        return
    with PostgresServer(ephemeral=True, temporary_place=quick_place()) as server:
        yield server


@pytest.fixture(scope="session")
def database_template(postgres: DatabaseServer) -> Iterator[str]:
    """The name of a migrated database that nobody connects to."""
    with databases.template(postgres) as name:
        yield name


@pytest.fixture(scope="module")
def database(postgres: DatabaseServer, database_template: str) -> Iterator[Database]:
    """A database of this test module's own, with the current schema."""
    with databases.fresh(postgres, template=database_template) as name:
        yield Database(server=postgres, name=name)


@pytest.fixture
def empty_database(postgres: DatabaseServer) -> Iterator[Database]:
    """A database of this test's own, without any schema."""
    with databases.fresh(postgres) as name:
        yield Database(server=postgres, name=name)


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    """A PostgreSQL server of this test's own, to stop, kill and restart; without a schema."""
    with PostgresServer(ephemeral=True, temporary_place=quick_place()) as server:
        yield server


@pytest.fixture(scope="session")
def kafka_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty log folder of Apache Kafka, to be copied; making one takes a Java start, four seconds of processor time."""
    return KafkaBroker(tmp_path_factory.mktemp("kafka")).format()


@pytest.fixture(scope="session")
def broker(request: pytest.FixtureRequest, pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerHandle]:
    """The broker of this test process, shared by its tests: leave it running, and take topic names from `topic_prefix`."""
    yield from _run_broker(usable(pytestconfig), tmp_path_factory.mktemp("broker"), request)


@pytest.fixture
def own_broker(request: pytest.FixtureRequest, pytestconfig: pytest.Config, tmp_path: Path) -> Iterator[BrokerHandle]:
    """A broker of this test's own, to stop, kill and restart."""
    choice = usable(pytestconfig)
    if Capability.CONTROL not in choice.capabilities:
        pytest.skip(f"the {choice.name} broker is not ours to stop")
    yield from _run_broker(choice, tmp_path / "broker", request)


def _run_broker(choice: BrokerChoice, directory: Path, request: pytest.FixtureRequest) -> Iterator[BrokerHandle]:
    if choice.name == brokers.KAFKA:
        shutil.copytree(request.getfixturevalue("kafka_log"), directory / "data")
    handle = choice.make(directory)
    handle.start()
    try:
        yield handle
    finally:
        handle.stop()
        # Kafka's index files have 10 MB each; pytest keeps the folders of three runs.
        shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="module")
def topic_prefix() -> str:
    """A prefix for topic and group names that no other test module has."""
    return f"t{uuid.uuid4().hex[:10]}."


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[Spawner]:
    """Starts services and other programs (`spawn.services("judge", env=...)`), and ends them with the test."""
    spawner = Spawner(tmp_path)
    yield spawner
    spawner.stop()
