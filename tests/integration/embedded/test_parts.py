"""Ports, locks, deadlines, folders and children."""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from tests.harness import wait_for
from winnow.embedded import AlreadyRunningError, Deadline, EmbeddedError, cache_dir, ports, probe, state_dir
from winnow.embedded.child import Child
from winnow.embedded.lock import FileLock

# A whole locale: Python would add one of its own choice to half of one.
ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C"}


def child(tmp_path: Path, *argv: str) -> Child:
    """Start a child with its log in `tmp_path`."""
    return Child(argv, log=tmp_path / "log", cwd=tmp_path, env=ENVIRONMENT)


def test_ports_are_outside_the_outgoing_range() -> None:
    """A picked port can never be the source port of a client that dials it."""
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert all(ports.pick() < min(low, 32_768) for _ in range(20))


def test_who_listens() -> None:
    """Only the process that has the listening socket counts as its listener."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert ports.is_listened_on_by(os.getpid(), port)
        assert not ports.is_listened_on_by(os.getppid(), port)
        assert not ports.is_free(port)
    assert not ports.is_listened_on_by(os.getpid(), port)


def test_no_port_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no port is free, the error says so instead of looking for ever."""
    monkeypatch.setattr(ports, "is_free", lambda _: False)
    with pytest.raises(EmbeddedError, match="no free port"):
        ports.pick()


@pytest.mark.parametrize("content", ["", "x", "0", "-1", "70000", "99999999999999999999", "12 13"])
def test_remembered_port_that_makes_no_sense(tmp_path: Path, content: str) -> None:
    """A damaged memory of a port is replaced."""
    file = tmp_path / "port"
    file.write_text(content)
    port = ports.remembered(file)
    assert port in ports.PORT_RANGE
    assert ports.remembered(file) == port
    assert ports.remembered(file, avoid=[port]) != port


def test_probe_is_not_fooled() -> None:
    """Neither a closed port nor one that listens in silence, hangs up or talks nonsense counts as a ready broker."""
    assert not probe.broker_is_ready(ports.pick())
    for answer in (b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0" * 16, b"\0\0\0\x20\0\0\0\x01\0\0\0\0\0\0\0\0"):
        with socket.create_server(("127.0.0.1", 0)) as server:

            def serve(server: socket.socket = server, answer: bytes = answer) -> None:
                connection = server.accept()[0]
                with connection:
                    connection.recv(1024)
                    connection.sendall(answer)

            thread = threading.Thread(target=serve)
            thread.start()
            assert not probe.broker_is_ready(server.getsockname()[1])
            thread.join()


def test_lock_is_exclusive_and_never_stale(tmp_path: Path) -> None:
    """A lock has one holder, names it to others, and is free the moment the holder is killed."""
    lock = FileLock(tmp_path / "lock")
    script = (
        "import sys\nfrom pathlib import Path\nfrom winnow.embedded.lock import FileLock\n"
        "FileLock(Path(sys.argv[1])).acquire()\nprint('held', flush=True)\nsys.stdin.read()\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(AlreadyRunningError, match=f"process {holder.pid} uses"):
            lock.acquire()
        with pytest.raises(AlreadyRunningError):
            lock.acquire(Deadline.after(0.2))
        holder.kill()
    with lock:
        assert lock.held
    assert not lock.held


def test_folders(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Winnow's own variable comes first, then XDG's if it is absolute, then the home folder."""
    for own, xdg, below, ask in (
        ("WINNOW_STATE_DIR", "XDG_STATE_HOME", ".local/state", state_dir),
        ("WINNOW_CACHE_DIR", "XDG_CACHE_HOME", ".cache", cache_dir),
    ):
        monkeypatch.setenv("HOME", str(tmp_path))
        for name in (own, xdg):
            monkeypatch.delenv(name, raising=False)
        assert ask() == tmp_path / below / "winnow"
        monkeypatch.setenv(xdg, "relative")
        assert ask() == tmp_path / below / "winnow"
        monkeypatch.setenv(xdg, "/x")
        assert ask() == Path("/x/winnow")
        monkeypatch.setenv(own, "~/here")
        assert ask() == tmp_path / "here"


def test_child_gets_a_bare_world(tmp_path: Path) -> None:
    """A child has the environment that it was given, no input, and its output in the log."""
    one = child(tmp_path, "/usr/bin/env")
    assert one.wait(Deadline.after(20))
    assert one.returncode == 0
    assert dict(line.split("=") for line in one.output().splitlines()) == ENVIRONMENT
    two = child(tmp_path, "/bin/sh", "-c", "cat; echo two >&2; exit 7")
    assert two.wait(Deadline.after(20))
    assert (two.returncode, two.output()) == (7, "two")


def test_child_that_cannot_be_run(tmp_path: Path) -> None:
    """A program that cannot be run ends with the shell's status for that, and says why in the log."""
    missing = child(tmp_path, "/nonexistent/program")
    assert missing.wait(Deadline.after(20))
    assert missing.returncode == 126
    assert missing.output() == "cannot run /nonexistent/program: No such file or directory"


def test_child_that_ignores_a_signal(tmp_path: Path) -> None:
    """A child that does not heed its signals is killed after their time."""
    stubborn = child(tmp_path, "/bin/sh", "-c", "trap '' TERM; echo ready; while :; do /bin/sleep 600; done")
    wait_for(lambda: stubborn.output() == "ready")
    stubborn.stop((signal.SIGTERM, 0.1))
    assert stubborn.returncode == -signal.SIGKILL
    stubborn.stop()
    stubborn.kill()
    assert not stubborn.alive
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.cwd() == str(tmp_path):
                process.kill()


def test_deadline() -> None:
    """A deadline that has passed has nothing left, and a condition is asked at least once."""
    passed = Deadline.after(-1)
    assert passed.passed
    assert passed.remaining() == 0.0
    assert passed.wait(lambda: True)
    assert not passed.wait(lambda: False)
