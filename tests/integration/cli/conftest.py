"""The command line as a process of its own, and a whole Winnow that it runs."""

import io
import os
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.harness import wait_for
from winnow.cli.app import run
from winnow.cli.endpoints import Endpoints, read
from winnow.embedded import Deadline
from winnow.embedded.child import Child

#: Seconds. Everything is up in 10 s on a quiet machine.
UP_S = 120.0

WINNOW = [sys.executable, "-m", "winnow.cli"]


def environment(state: Path, **more: str) -> dict[str, str]:
    """This process's variables without any WINNOW_ but those given, and without colour."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("WINNOW_")}
    return kept | {"WINNOW_STATE_DIR": str(state), "NO_COLOR": "1", "PYTHONUNBUFFERED": "1"} | more


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


Winnow = Callable[..., Ran]


@pytest.fixture
def winnow(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Winnow:
    """Run `winnow` with these words in this process, which spares two seconds of imports a call.

    `env` has the WINNOW_ variables that it gets; the state folder is an empty one unless `env` names another.
    """

    def call(*words: str, env: dict[str, str] | None = None, stdin: str = "") -> Ran:
        with monkeypatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("WINNOW_")]:
                patch.delenv(name)
            for name, value in ({"WINNOW_STATE_DIR": str(tmp_path / "state")} | (env or {})).items():
                patch.setenv(name, value)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
            capsys.readouterr()
            code = run(list(words))
        captured = capsys.readouterr()
        return Ran(returncode=int(code), stdout=captured.out, stderr=captured.err)

    return call


@dataclass(frozen=True)
class Up:
    """A running `winnow up`."""

    child: Child
    state: Path
    log: Path

    @property
    def env(self) -> dict[str, str]:
        """What lets a command find it."""
        return {"WINNOW_STATE_DIR": str(self.state)}

    @property
    def output(self) -> str:
        return self.log.read_text()

    @property
    def endpoints(self) -> Endpoints:
        found = read(self.state)
        assert found is not None, self.output
        return found

    def stop(self, *steps) -> None:
        self.child.stop(*steps)

    def wait(self, seconds: float) -> int:
        assert self.child.wait(Deadline.after(seconds)), f"winnow up does not end:\n{self.output[-3000:]}"
        assert self.child.returncode is not None
        return self.child.returncode


def start_up(directory: Path, *words: str, **env: str) -> Up:
    """Start `winnow up` and wait until it says that it is up."""
    directory.mkdir(parents=True, exist_ok=True)
    state, log = directory / "state", directory / "up.log"
    child = Child([*WINNOW, "up", *words], log=log, cwd=directory, env=environment(state, **env))
    up = Up(child=child, state=state, log=log)
    wait_for(lambda: not child.alive or read(state) is not None, UP_S, what="winnow up")
    if not child.alive:
        services = state / "services" / "services.log"
        pytest.fail(
            f"winnow up ended with {child.returncode}:\n{up.output[-3000:]}\n{services.read_text()[-3000:] if services.exists() else ''}"
        )
    return up


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """An ephemeral Winnow of this module's own."""
    running = start_up(tmp_path_factory.mktemp("up"), "--ephemeral")
    yield running
    running.stop((signal.SIGINT, 45.0))
