"""What the brokers of this machine have in common: a folder, a port that stays, a process, and a launch that is tried again."""

import signal
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Generic, Self, TypeVar

from winnow.embedded import ports, probe
from winnow.embedded.broker import Capability
from winnow.embedded.deadline import POLL_S, Deadline
from winnow.embedded.errors import NotRunningError, StartFailedError
from winnow.embedded.instance import START_TRIES, Instance
from winnow.embedded.paths import state_dir

P = TypeVar("P")


class LaunchedBroker(ABC, Generic[P]):
    """A broker in a folder and a process of ours (`BrokerHandle`). A subclass says which program `P` that is, and how it is launched."""

    #: Of folder, log and messages.
    name: ClassVar[str]
    #: What it can do, beside being killed.
    can: ClassVar[frozenset[Capability]]
    #: Seconds until it must answer.
    start_timeout_s: ClassVar[float]
    #: Signals and seconds that end it; SIGKILL follows.
    stop_steps: ClassVar[tuple[tuple[signal.Signals, float], ...]]
    #: Names of its process, and the signal for one whose starter was killed.
    process_names: ClassVar[frozenset[str]]
    orphan_signal: ClassVar[signal.Signals]

    def __init__(self, directory: Path | None = None, *, port: int | None = None) -> None:
        """Describe the broker; nothing is touched before `start`.

        Args:
            directory: for its port, its log and what it keeps; none: one with its name in the state folder.
            port: on 127.0.0.1; none: the one it had the last time, if that is free, else a free one.
        """
        self._instance = Instance((directory or state_dir() / self.name).absolute(), self.name)
        self._port_wanted = port
        self._port = 0

    def __repr__(self) -> str:
        """Show port and state."""
        return f"<{type(self).__name__}(port={self._port}, alive={self.alive})>"

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
        """What it can do; and it is ours to kill."""
        return self.can | {Capability.CONTROL}

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
        """Start it and wait until it serves.

        Raises:
            MissingToolError: the program is not here and cannot be fetched.
            AlreadyRunningError: another process has this folder; the error names it.
            StartFailedError: it ended or did not serve in time.
        """
        if self.alive:
            return self
        program = self._find()
        self._instance.claim(self.stop)
        try:
            self._instance.end_orphan(self.orphan_signal, self.process_names)
            self._launch(program)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End it cleanly."""
        self._instance.stop(*self.stop_steps)
        self._instance.release(self.stop)

    def kill(self) -> None:
        """End it with SIGKILL."""
        self._instance.kill()

    def restart(self) -> None:
        """End it cleanly and start it again on the same port, with what it keeps."""
        self._instance.stop(*self.stop_steps)
        self.start()

    def _launch(self, program: P) -> None:
        """Launch it on a port that another process may take first, at most `START_TRIES` times."""
        deadline = Deadline.after(self.start_timeout_s)
        for _ in range(START_TRIES):
            self._port = self._instance.port("port", self._port_wanted)
            if self._launched(program, self._port, deadline):
                return
        text = f"another process took each port that was free a moment before; see {self._instance.log_file}"
        raise StartFailedError(text)

    def _run(
        self,
        command: Sequence[str | Path],
        deadline: Deadline,
        *,
        env: Mapping[str, str],
        death_signal: signal.Signals = signal.SIGTERM,
        poll_s: float = POLL_S,
    ) -> bool:
        """Run a command and wait until it serves; False where its port was taken meanwhile."""
        return self._instance.run(
            command,
            ready=lambda child: probe.broker_is_ready(self._port) and ports.is_listened_on_by(child.pid, self._port),
            deadline=deadline,
            env=env,
            death_signal=death_signal,
            poll_s=poll_s,
        )

    @abstractmethod
    def _find(self) -> P:
        """What is launched. Raise `MissingToolError` where it is not here."""

    @abstractmethod
    def _launched(self, program: P, port: int, deadline: Deadline) -> bool:
        """Launch it on `port` by `_run`; return what that returns."""
