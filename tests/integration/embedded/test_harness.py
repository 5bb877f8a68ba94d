"""The harness itself: which broker, waiting, programs."""

import signal
from pathlib import Path

import pytest

from tests.harness import Database, Spawner, brokers, databases, eventually, wait_for
from winnow.embedded import BrokerHandle, Capability


@pytest.fixture(autouse=True)
def _no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("KAFKA_BOOTSTRAP", "WINNOW_TEST_BROKER", "WINNOW_REQUIRE_KAFKA", "CI"):
        monkeypatch.delenv(name, raising=False)


def test_kafka_where_it_can_run() -> None:
    """Apache Kafka is the default and needs no notice."""
    choice = brokers.choose(lambda: None)
    assert (choice.name, choice.notice, choice.problem) == ("kafka", "", "")
    assert Capability.TRANSACTIONS in choice.capabilities


def test_mesh_with_a_notice() -> None:
    """Without Java the embedded broker takes over and the summary will say so."""
    choice = brokers.choose(lambda: "no java")
    assert choice.name == "mesh"
    assert choice.notice == "integration ran on the embedded broker: Java 17 or Maven missing (no java)"
    assert Capability.PERSISTENCE not in choice.capabilities


@pytest.mark.parametrize(("name", "value"), [("CI", "true"), ("WINNOW_REQUIRE_KAFKA", "1"), ("WINNOW_TEST_BROKER", "kafka")])
def test_kafka_is_required(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """Where Kafka is required, its absence is a problem and not a notice."""
    monkeypatch.setenv(name, value)
    assert brokers.choose(lambda: "no java").problem
    assert not brokers.choose(lambda: None).problem


def test_a_named_broker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """KAFKA_BOOTSTRAP names a broker that is not ours to kill; an unknown kind is a problem."""
    monkeypatch.setenv("WINNOW_TEST_BROKER", "rabbit")
    assert "kafka or mesh" in brokers.choose(lambda: None).problem
    monkeypatch.setenv("KAFKA_BOOTSTRAP", "elsewhere:9092")
    choice = brokers.choose(lambda: None)
    assert Capability.CONTROL not in choice.capabilities
    broker = choice.make(tmp_path)
    broker.start()
    broker.stop()
    assert (broker.bootstrap, broker.alive) == ("elsewhere:9092", True)
    with pytest.raises(AssertionError, match="not ours to kill"):
        broker.restart()


@pytest.mark.parametrize(
    ("url", "dsn"),
    [
        ("postgresql://me:pw@host:1/db?ssl=require", "postgresql+asyncpg://me:pw@host:1/other?ssl=require"),
        ("postgresql+asyncpg://host/db", "postgresql+asyncpg://host/other"),
    ],
)
def test_a_named_server(url: str, dsn: str) -> None:
    """DATABASE_URL gives the place and the login; the database and a role are ours to choose."""
    assert databases.ExternalPostgres(url).dsn("other") == dsn
    assert databases.ExternalPostgres(url).dsn("other", role="r", password="p@").startswith("postgresql+asyncpg://r:p%40@host")


def test_databases_are_apart(empty_database: Database, postgres: databases.DatabaseServer) -> None:
    """A copy of a template has its tables, is changed alone, and is gone afterwards, even while somebody is connected."""
    empty_database.sql("CREATE TABLE t (x int)")
    with databases.fresh(postgres, template=empty_database.name) as name:
        copy = Database(server=postgres, name=name)
        copy.sql("INSERT INTO t VALUES (1)")
        assert copy.sql("SELECT count(*) AS n FROM t")[0]["n"] == 1
    assert empty_database.sql("SELECT count(*) AS n FROM t")[0]["n"] == 0
    assert not empty_database.sql("SELECT FROM pg_database WHERE datname = $1", name)


async def test_databases_inside_a_loop(postgres: databases.DatabaseServer) -> None:
    """The synchronous helpers work while an event loop runs."""
    assert databases.sql(postgres.dsn("postgres", driver=""), "SELECT 42 AS x")[0]["x"] == 42


@pytest.mark.needs("control")
def test_brokers_are_shared(broker: BrokerHandle) -> None:
    """The broker of the run is up."""
    assert broker.alive
    assert broker.bootstrap.startswith("127.0.0.1:")


async def test_waiting() -> None:
    """Waiting returns what the condition found, and says what was waited for when it fails."""
    answers = iter([0, "", "found", 0, "later"])
    assert wait_for(lambda: next(answers)) == "found"
    assert await eventually(lambda: next(answers)) == "later"
    with pytest.raises(AssertionError, match=r"not within 0\.05 s: the end"):
        wait_for(lambda: False, 0.05, what="the end")

    async def never() -> bool:
        return False

    with pytest.raises(AssertionError, match="never"):
        await eventually(never, 0.05)


def test_programs(spawn: Spawner) -> None:
    """A program's output is kept over kill and restart, and its exit status is known."""
    program = spawn.command(["/bin/sh", "-c", 'echo "$GREETING"; exec /bin/sleep 600'], env={"GREETING": "hello"})
    wait_for(lambda: program.output == "hello\n")
    program.kill()
    assert program.returncode == -signal.SIGKILL
    program.restart()
    wait_for(lambda: program.output == "hello\nhello\n")
    program.terminate()
    assert program.wait() == -signal.SIGTERM
    assert not program.alive
