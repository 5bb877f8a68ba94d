"""What every embedded server has: a folder of its own, a lock on it, remembered ports, a log file and one child process."""

import atexit
import os
import re
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from winnow.embedded import ports
from winnow.embedded.account import Account
from winnow.embedded.child import Child
from winnow.embedded.deadline import POLL_S, Deadline
from winnow.embedded.errors import NotRunningError, StartFailedError
from winnow.embedded.lock import FileLock

#: Seconds for a server whose starter was killed to end by itself, after its signal.
ORPHAN_GRACE_S = 10.0

#: Bytes. A log file above this is set aside when the server starts; one older copy is kept.
LOG_LIMIT = 8 * 1024 * 1024

#: PostgreSQL and Kafka write what the C library says, the memory broker the name of Rust's error.
ADDRESS_IN_USE = re.compile("address already in use|AddrInUse", re.IGNORECASE)

#: A port that was free when we looked may be taken when the server binds it; each retry draws another.
START_TRIES = 5


class Instance:
    """The folder and the process of one server. Not thread-safe: one owner calls it."""

    def __init__(self, directory: Path, name: str) -> None:
        """Name the folder and the server; nothing is touched before `claim`."""
        self.directory = directory
        self.log_file = directory / f"{name}.log"
        self._name = name
        self._lock = FileLock(directory / "lock")
        self._child: Child | None = None

    @property
    def claimed(self) -> bool:
        """Whether the folder is ours."""
        return self._lock.held

    @property
    def child(self) -> Child:
        """The running process.

        Raises:
            NotRunningError: there is none.
        """
        if self._child is None:
            raise NotRunningError
        return self._child

    @property
    def alive(self) -> bool:
        """Whether the process runs."""
        return self._child is not None and self._child.alive

    def claim(self, at_exit: Callable[[], None]) -> None:
        """Lock the folder, and have `at_exit` called when this interpreter ends.

        Raises:
            AlreadyRunningError: another process has it.
        """
        if not self.claimed:
            self.directory.mkdir(parents=True, exist_ok=True)
            self._lock.acquire()
            atexit.register(at_exit)

    def release(self, at_exit: Callable[[], None]) -> None:
        """Give the folder back; the process must have ended."""
        atexit.unregister(at_exit)
        self._lock.release()

    def port(self, label: str, wanted: int | None, *, avoid: Sequence[int] = ()) -> int:
        """Return the port `wanted`, or the one this folder remembers under `label`, or a new one.

        Raises:
            StartFailedError: `wanted` is in use.
        """
        if wanted is None:
            return ports.remembered(self.directory / label, avoid=avoid)
        if not ports.is_free(wanted):
            text = f"port {wanted} is in use; stop what listens there or leave the port out, then {self._name} finds a free one"
            raise StartFailedError(text)
        return wanted

    def run(
        self,
        argv: Sequence[str | Path],
        *,
        ready: Callable[[Child], bool],
        deadline: Deadline,
        env: Mapping[str, str],
        cwd: Path | None = None,
        account: Account | None = None,
        death_signal: signal.Signals = signal.SIGTERM,
        poll_s: float = POLL_S,
    ) -> bool:
        """`launch` and `settle`."""
        self.launch(argv, env=env, cwd=cwd, account=account, death_signal=death_signal)
        return self.settle(ready, deadline=deadline, poll_s=poll_s)

    def launch(
        self,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str],
        cwd: Path | None = None,
        account: Account | None = None,
        death_signal: signal.Signals = signal.SIGTERM,
    ) -> None:
        """Start the process; `settle` says what became of it."""
        _rotate(self.log_file)
        self._child = Child(argv, log=self.log_file, cwd=cwd or self.directory, env=env, account=account, death_signal=death_signal)
        (self.directory / "pid").write_text(f"{self._child.pid}\n")

    def settle(self, ready: Callable[[Child], bool], *, deadline: Deadline, poll_s: float = POLL_S) -> bool:
        """Wait until `ready` says that the launched process is; False if it ended because its port was taken meanwhile.

        Raises:
            StartFailedError: it ended for another reason or was not ready in time; it is not running then.
        """
        child = self.child
        try:
            deadline.wait(lambda: not child.alive or ready(child), poll_s=poll_s)
        except BaseException:
            child.kill()
            raise
        if child.alive and ready(child):
            return True
        ended = not child.alive
        child.kill()
        self._child = None
        output = child.output()
        if ended and ADDRESS_IN_USE.search(output):
            return False
        how = f"ended with status {child.returncode}" if ended else "did not get ready in time"
        text = f"{self._name} {how}; its log is {self.log_file}\n{output}"
        raise StartFailedError(text)

    def stop(self, *steps: tuple[signal.Signals, float]) -> None:
        """End the process with these signals and seconds, at last with SIGKILL; harmless where none runs."""
        if self._child is not None:
            self._child.stop(*steps)
            self._child = None

    def kill(self) -> None:
        """End the process with SIGKILL; the folder stays ours."""
        self.child.kill()
        self._child = None

    def end_orphan(self, number: signal.Signals, programs: frozenset[str], *, cwd: Path | None = None) -> None:
        """End what a killed starter left behind in this folder, and wait for it.

        Such a process still has the data open; a second server on top of it would fail, or worse. Needs /proc; elsewhere the
        servers' own lock files stand guard.
        """
        place = cwd or self.directory
        deadline = Deadline.after(ORPHAN_GRACE_S)
        for pid in _processes_in(place, programs):
            _signal(pid, number)
        if not deadline.wait(lambda: not _processes_in(place, programs)):
            for pid in _processes_in(place, programs):
                _signal(pid, signal.SIGKILL)
            Deadline.after(ORPHAN_GRACE_S).wait(lambda: not _processes_in(place, programs))


def _rotate(log: Path) -> None:
    if log.exists() and log.stat().st_size > LOG_LIMIT:
        log.replace(log.with_suffix(".log.1"))


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return


def _processes_in(directory: Path, programs: frozenset[str]) -> list[int]:
    """Return the processes named in `programs` whose working directory is `directory`."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "comm").read_text().strip() in programs and (entry / "cwd").readlink() == directory:
                found.append(int(entry.name))
        except OSError:
            continue  # it has ended, or belongs to somebody else
    return found
