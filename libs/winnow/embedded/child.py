"""A process that we started and that must not outlive us."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

from winnow.embedded.account import Account
from winnow.embedded.deadline import Deadline

#: Beside this module; run by path so that the child imports nothing of ours.
EXEC_SCRIPT = Path(__file__).with_name("_exec.py")

#: Bytes of the end of a log file that go into an error text.
TAIL_BYTES = 2_000


class Child:
    """One running program in a session of its own, its output in a log file, ended by the kernel when this process ends.

    A thread starts the program and then waits for it. The kernel's death signal is tied to the *thread* that started a process, not
    to the whole parent: a child that was started from a short-lived worker thread would die with that thread.
    """

    def __init__(
        self,
        argv: Sequence[str | Path],
        *,
        log: Path,
        cwd: Path,
        env: Mapping[str, str],
        account: Account | None = None,
        death_signal: signal.Signals = signal.SIGTERM,
    ) -> None:
        """Start `argv`; its output is appended to `log`. `account` (root only) is the user that it runs as.

        Raises:
            OSError: the Python interpreter itself could not be started, or `log` not be written.
        """
        self._argv = [sys.executable, "-I", "-S", str(EXEC_SCRIPT), str(int(death_signal)), str(os.getpid())]
        self._argv += [str(account.uid), str(account.gid)] if account else ["-1", "-1"]
        self._argv += [str(part) for part in argv]
        self._log, self._cwd, self._env = log, cwd, dict(env)
        self._log_start = log.stat().st_size if log.exists() else 0
        started: Future[subprocess.Popen[bytes]] = Future()
        self._thread = threading.Thread(target=self._run, args=(started,), name=f"child {Path(argv[0]).name}", daemon=True)
        self._thread.start()
        self._process = started.result()

    def __repr__(self) -> str:
        """Show the process id and how it ended, if it did."""
        return f"<Child(pid={self.pid}, returncode={self.returncode})>"

    def _run(self, started: "Future[subprocess.Popen[bytes]]") -> None:
        try:
            with self._log.open("ab") as log:
                process = subprocess.Popen(  # noqa: S603 - the command is built by the launchers of this package
                    self._argv,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=self._cwd,
                    env=self._env,
                    # Ctrl-C in a terminal goes to the whole foreground group; servers must stay up until their clients have drained.
                    start_new_session=True,
                )
        except BaseException as error:  # noqa: BLE001 - handed to the thread that asked
            started.set_exception(error)
            return
        started.set_result(process)
        process.wait()

    @property
    def pid(self) -> int:
        """Process id; the program replaced the script that started it, so it is the program's own."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None and self._thread.is_alive()

    @property
    def returncode(self) -> int | None:
        """Exit status, negative for a signal; None while it runs."""
        return self._process.returncode

    def wait(self, deadline: Deadline) -> bool:
        """Block until it has ended; False if the deadline came first."""
        self._thread.join(deadline.remaining())
        return not self._thread.is_alive()

    def send(self, number: signal.Signals) -> None:
        """Send a signal; harmless once it has ended."""
        self._process.send_signal(number)

    def stop(self, *steps: tuple[signal.Signals, float]) -> None:
        """Send each signal in turn, giving it so many seconds to work; at last SIGKILL, which is waited for."""
        for number, seconds in steps:
            if not self.alive:
                break
            self.send(number)
            if self.wait(Deadline.after(seconds)):
                return
        self.kill()

    def kill(self) -> None:
        """End it at once, without a chance to clean up, and wait until the kernel has done so."""
        self.send(signal.SIGKILL)
        self._thread.join()

    def output(self) -> str:
        """Return the end of what it has written since it was started."""
        with self._log.open("rb") as log:
            log.seek(max(self._log_start, self._log.stat().st_size - TAIL_BYTES))
            return log.read().decode(errors="replace").strip()
