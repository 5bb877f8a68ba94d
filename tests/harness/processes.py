"""Services in processes of their own, with their output kept."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path

from tests.harness.data import REPOSITORY
from winnow.embedded import Deadline
from winnow.embedded.child import Child

#: Seconds from SIGTERM to SIGKILL when a test ends; the services' own grace is 20 s.
STOP_S = 25.0


class Program:
    """One running command. It dies with the test process, whatever ends that."""

    def __init__(self, argv: Sequence[str | Path], *, log: Path, env: Mapping[str, str]) -> None:
        """Start it in the root of the repository."""
        self.argv, self.log_file, self._env = list(argv), log, dict(env)
        self._child = self._start()

    def __repr__(self) -> str:
        """Show the command and how it stands."""
        return f"<Program({' '.join(map(str, self.argv[1:]))!r}, pid={self.pid}, returncode={self.returncode})>"

    def _start(self) -> Child:
        return Child(self.argv, log=self.log_file, cwd=REPOSITORY, env=self._env, death_signal=signal.SIGKILL)

    @property
    def pid(self) -> int:
        """Process id."""
        return self._child.pid

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._child.alive

    @property
    def returncode(self) -> int | None:
        """Exit status, negative for a signal; None while it runs."""
        return self._child.returncode

    @property
    def output(self) -> str:
        """All that it has written to stdout and stderr, earlier starts included."""
        return self.log_file.read_text(errors="replace") if self.log_file.exists() else ""

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        self._child.send(number)

    def terminate(self) -> None:
        """Send SIGTERM and return at once."""
        self.send(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL and wait."""
        self._child.kill()

    def wait(self, deadline_s: float = STOP_S) -> int:
        """Wait until it has ended and return its exit status.

        Raises:
            AssertionError: it did not end in time; the text has the end of its output.
        """
        assert self._child.wait(Deadline.after(deadline_s)), f"{self} did not end within {deadline_s} s:\n{self._child.output()}"
        assert self.returncode is not None
        return self.returncode

    def stop(self) -> None:
        """End it, cleanly if it can."""
        self._child.stop((signal.SIGTERM, STOP_S))

    def restart(self) -> None:
        """Start it again, after it has ended or been killed; its output goes on in the same file."""
        self.stop()
        self._child = self._start()


class Spawner:
    """Starts programs and ends them all when the test ends."""

    def __init__(self, directory: Path, env: Mapping[str, str] | None = None) -> None:
        """Keep logs in `directory`; `env` is added to this process's environment for every program."""
        self._directory, self._env = directory, dict(env or {})
        self._numbers = count(1)
        self.programs: list[Program] = []

    def services(self, *names: str, env: Mapping[str, str] | None = None) -> Program:
        """Start `python -m services NAME ...` (no name: all of them)."""
        return self.command([sys.executable, "-m", "services", *names], env=env, label="-".join(names) or "services")

    def command(self, argv: Sequence[str | Path], *, env: Mapping[str, str] | None = None, label: str = "") -> Program:
        """Start any command; the first part is a path."""
        log = self._directory / f"{next(self._numbers)}-{label or Path(argv[0]).name}.log"
        program = Program(argv, log=log, env={**os.environ, "PYTHONUNBUFFERED": "1", **self._env, **(env or {})})
        self.programs.append(program)
        return program

    def stop(self) -> None:
        """End all, the newest first, and print what each had to say: pytest shows it where the test failed."""
        for program in reversed(self.programs):
            program.send(signal.SIGTERM)
        for program in reversed(self.programs):
            program.stop()
        for program in self.programs:
            print(f"--- {program}\n{program.output}")  # noqa: T201 - captured by pytest
        self.programs.clear()
