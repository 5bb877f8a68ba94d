"""Apache Kafka itself on this machine: one KRaft node, no container."""

import base64
import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from winnow.embedded import distribution, ports
from winnow.embedded.broker import APACHE_KAFKA
from winnow.embedded.deadline import Deadline
from winnow.embedded.distribution import KafkaDistribution
from winnow.embedded.errors import StartFailedError
from winnow.embedded.launched import LaunchedBroker

#: Seconds for formatting the log folder, which takes 0.9 s.
FORMAT_TIMEOUT_S = 60.0

#: Seconds between two questions whether it is ready; on two cores, asking more often delays the answer.
POLL_S = 0.05

#: 160 MB resident instead of 330 with stock sizes; the first compiler tier alone starts a third faster.
JAVA_OPTIONS = ("-Xms96m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:+ExitOnOutOfMemoryError")

PROPERTIES = """\
process.roles=broker,controller
node.id=1
controller.quorum.bootstrap.servers={host}:{controller_port}
listeners=PLAINTEXT://{host}:{port},CONTROLLER://{host}:{controller_port}
advertised.listeners=PLAINTEXT://{host}:{port}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
log.dirs={data}
# Topics come from the registry; a misspelt name must not make one.
auto.create.topics.enable=false
# Above the largest topic limit (10 MiB, dead letters), so that each topic's own limit decides.
message.max.bytes=16777216
replica.fetch.max.bytes=16777216
# One node: replication 1, and internal topics as small as they go.
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
# A group forms at once and loses a dead member within a second.
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
# After a SIGKILL the dead broker's session must expire first: 3 s until it serves again, 12 s with the stock 9 s.
broker.session.timeout.ms=1500
broker.heartbeat.interval.ms=300
# Two cores.
num.io.threads=2
num.network.threads=2
num.recovery.threads.per.data.dir=1
log.cleaner.dedupe.buffer.size=4194304
log.segment.delete.delay.ms=1000
"""


class KafkaBroker(LaunchedBroker[KafkaDistribution]):
    """One Apache Kafka node: for the tests, and for a trial whose log survives, also a SIGKILL.

    Its `pid` is the Java machine's, its `log_file` has warnings and errors.
    """

    name = "kafka"
    can = APACHE_KAFKA
    #: It takes 2 s, 3 s after a SIGKILL; replaying a long log takes longer.
    start_timeout_s = 60.0
    #: SIGTERM takes 0.3 s.
    stop_steps = ((signal.SIGTERM, 15.0),)
    process_names = frozenset({"java"})
    orphan_signal = signal.SIGTERM

    def __init__(
        self,
        directory: Path | None = None,
        *,
        port: int | None = None,
        launcher: Callable[[], KafkaDistribution] = distribution.obtain,
        properties: Mapping[str, str] | None = None,
        format_options: Sequence[str] = (),
    ) -> None:
        """Describe the broker; nothing is touched before `start`.

        Args:
            directory: see `LaunchedBroker`; also for its log and settings.
            port: see `LaunchedBroker`.
            launcher: finds or fetches Java and the jars when the broker is started.
            properties: more settings of the broker; they win over ours. The plain listener on the loopback address must stay: by it we
                see whether the broker serves. `{plain}` and `{controller}` in a value stand for the two that are there.
            format_options: more options of `kafka.tools.StorageTool format`, for example `--add-scram`.
        """
        super().__init__(directory, port=port)
        self._launcher = launcher
        self._properties = dict(properties or {})
        self._format_options = tuple(format_options)

    def format(self) -> Path:
        """Make the empty log folder that `start` would make, and return it; it may be copied to other brokers, to save them a second.

        Raises:
            MissingToolError: see `start`.
            StartFailedError: Kafka could not make it.
        """
        self._instance.directory.mkdir(parents=True, exist_ok=True)
        # The ports are written into the folder, but a broker goes by its settings.
        port = self._instance.port("port", self._port_wanted)
        self._format(self._find(), port, self._instance.port("controller-port", None, avoid=[port]))
        return self._instance.directory / "data"

    def _find(self) -> KafkaDistribution:
        return self._launcher()

    def _launched(self, program: KafkaDistribution, port: int, deadline: Deadline) -> bool:
        controller_port = self._instance.port("controller-port", None, avoid=[port])
        self._format(program, port, controller_port)
        settings = self._configure(self._instance.directory / "data", port, controller_port)
        command = program.command("kafka.Kafka", settings, options=JAVA_OPTIONS)
        return self._run(command, deadline, env=_environment(), poll_s=POLL_S)

    def _configure(self, data: Path, port: int, controller_port: int) -> Path:
        settings = self._instance.directory / "server.properties"
        # A properties file takes a backslash for an escape.
        folder = str(data).replace("\\", "\\\\")
        text = PROPERTIES.format(host=ports.LOCALHOST, port=port, controller_port=controller_port, data=folder)
        plain = f"PLAINTEXT://{ports.LOCALHOST}:{port}"
        controller = f"CONTROLLER://{ports.LOCALHOST}:{controller_port}"
        # Of a name that is given twice, a properties file means the last.
        more = (
            f"{name}={value}\n".replace("{plain}", plain).replace("{controller}", controller) for name, value in self._properties.items()
        )
        settings.touch(mode=0o600)  # it may hold passwords
        settings.write_text(text + "".join(more))
        return settings

    def _format(self, kafka: KafkaDistribution, port: int, controller_port: int) -> None:
        """Format a folder beside `data` and rename it, so that a half-formatted one is never taken for a log."""
        data = self._instance.directory / "data"
        if data.exists():
            return
        fresh = data.with_name("data.new")
        shutil.rmtree(fresh, ignore_errors=True)
        settings = self._configure(fresh, port, controller_port)
        command = kafka.command(
            "kafka.tools.StorageTool",
            "format",
            "--standalone",
            "-t",
            _cluster_id(),
            "-c",
            settings,
            *self._format_options,
            options=JAVA_OPTIONS,
        )
        answer = subprocess.run(  # noqa: S603 - our own Java and jars
            command, check=False, capture_output=True, text=True, errors="replace", env=_environment(), timeout=FORMAT_TIMEOUT_S
        )
        if answer.returncode:
            text = f"Kafka could not format {fresh}:\n{(answer.stdout + answer.stderr).strip()[-2000:]}"
            raise StartFailedError(text)
        fresh.rename(data)


def _cluster_id() -> str:
    """Return 128 random bits the way Kafka writes them, which never starts with a dash."""
    while (text := base64.urlsafe_b64encode(secrets.token_bytes(16)).rstrip(b"=").decode()).startswith("-"):
        pass
    return text


def _environment() -> dict[str, str]:
    """The caller's, less the variables that change every Java program and Kafka's own scripts."""
    return {name: value for name, value in os.environ.items() if name not in {"JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS"}}
