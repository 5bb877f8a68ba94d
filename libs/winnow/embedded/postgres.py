"""PostgreSQL on this machine, from the wheel's programs or your own, without containers."""

import os
import re
import secrets
import shutil
import signal
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from winnow.embedded import account as accounts
from winnow.embedded import binaries, home, ports
from winnow.embedded.account import Account
from winnow.embedded.binaries import PostgresBinaries
from winnow.embedded.child import Child
from winnow.embedded.deadline import Deadline
from winnow.embedded.errors import AlreadyRunningError, EmbeddedError, NotRunningError, StartFailedError
from winnow.embedded.instance import START_TRIES, Instance
from winnow.embedded.paths import state_dir

SUPERUSER = "postgres"
DEFAULT_DATABASE = "winnow"

#: Seconds. A start takes 0.1 s; after a crash it replays up to max_wal_size (1 GiB) first.
START_TIMEOUT_S = 60.0

#: Seconds for initdb, which takes 0.8 s, and for one statement of ours.
TOOL_TIMEOUT_S = 60.0

#: SIGINT: roll back and write a checkpoint. SIGQUIT: end now, recover at the next start.
STOP_STEPS = ((signal.SIGINT, 10.0), (signal.SIGQUIT, 5.0))

SETTINGS = {
    # TCP on this machine only. No Unix socket: its path may be at most 107 bytes, which a deep state folder exceeds.
    "listen_addresses": ports.LOCALHOST,
    "unix_socket_directories": "",
    # Five services with a pool each, the tests' own connections, and room.
    "max_connections": "100",
    "shared_buffers": "64MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",  # one line every five minutes otherwise, for ever
}

#: For data that nobody will miss: half the time a commit, and nothing after a power cut.
EPHEMERAL_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}

IDENTIFIER = re.compile(r"[a-z_][a-z0-9_]{0,62}")

#: Line of postmaster.pid that tells the state of the server, counted from 0.
STATUS_LINE = 7


class PostgresServer:
    """One PostgreSQL server with a folder of its own; started and stopped by whoever holds this object.

    The folder holds `data`, `password` (of the superuser, mode 0600), `port`, `lock` and `postgres.log`. Data survives stop, kill and
    restart, except with `ephemeral` and no folder: then everything is in a temporary folder that `stop` deletes.
    Not thread-safe. Every method blocks; call them from a worker thread beside an event loop.
    """

    def __init__(
        self,
        directory: Path | None = None,
        *,
        port: int | None = None,
        ephemeral: bool = False,
        temporary_place: Path | None = None,
    ) -> None:
        """Describe the server; nothing is touched before `start`.

        Args:
            directory: its folder; none: `postgres` in the state folder, or a temporary one where it is `ephemeral`.
            port: on 127.0.0.1; none: the one it had the last time, if that is free, else a free one.
            ephemeral: trade durability for speed; a power cut loses the data.
            temporary_place: where to make the temporary folder; none: the system's place for such.
        """
        self._wanted = directory
        self._temporary_place = temporary_place
        self._port_wanted = port
        self._ephemeral = ephemeral
        self._temporary: Path | None = None
        self._instance: Instance | None = None
        self._binaries: PostgresBinaries | None = None
        self._account: Account | None = None
        self._port = 0
        self._password = ""

    def __repr__(self) -> str:
        """Show folder, port and state."""
        folder = self._instance.directory if self._instance else self._wanted
        return f"<PostgresServer({str(folder)!r}, port={self._port}, alive={self.alive})>"

    def __enter__(self) -> Self:
        """Start it."""
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stop it."""
        self.stop()

    @property
    def alive(self) -> bool:
        """Whether the server process runs."""
        return self._instance is not None and self._instance.alive

    @property
    def pid(self) -> int:
        """Process id of the server."""
        return self._owned().child.pid

    @property
    def port(self) -> int:
        """Port on 127.0.0.1."""
        self._owned()
        return self._port

    @property
    def directory(self) -> Path:
        """The folder that it really uses, see `winnow.embedded.home.reachable`."""
        return self._owned().directory

    @property
    def log_file(self) -> Path:
        """What the server has to say."""
        return self._owned().log_file

    @property
    def password(self) -> str:
        """The superuser's password."""
        self._owned()
        return self._password

    def dsn(self, database: str = DEFAULT_DATABASE, *, role: str = SUPERUSER, password: str | None = None, driver: str = "+asyncpg") -> str:
        """Return the URL of `database` for SQLAlchemy (`driver=""`: for asyncpg or psql).

        Args:
            database: need not exist.
            role: whoever is to log in.
            password: the role's; none: the superuser's.
            driver: SQLAlchemy's name for the driver, with its plus sign.
        """
        login = quote(password if password is not None else self.password, safe="")
        return f"postgresql{driver}://{quote(role, safe='')}:{login}@{ports.LOCALHOST}:{self.port}/{quote(database, safe='')}"

    def start(self) -> Self:
        """Start the server and return when it takes connections and has the database `winnow`; at once if it already runs.

        Raises:
            MissingToolError: there is no PostgreSQL, or none that its user can run.
            AlreadyRunningError: another process has this folder; the error names it.
            StartFailedError: it ended or was not ready in time; the error has the end of its log.
            EmbeddedError: the folder cannot be used; the error says why.
        """
        if self.alive:
            return self
        source = binaries.find()
        if self._instance is None:
            self._instance = Instance(self._choose_folder(), "postgres")
        self._instance.claim(self.stop)
        try:
            self._binaries = binaries.usable_by(self._account, source, self._instance.directory)
            self._make_data()
            self._password = self._password_file.read_text().strip()
            self._clear_the_way()
            self._launch()
            self.create_database(DEFAULT_DATABASE)
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """End the server cleanly, give the folder back, delete it if it was temporary; harmless where nothing runs."""
        if self._instance is None:
            return
        self._instance.stop(*STOP_STEPS)
        self._instance.release(self.stop)
        self._instance = None
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None

    def kill(self) -> None:
        """End the server with SIGKILL, as the kernel does when memory is short; `start` recovers the data."""
        self._owned().kill()

    def restart(self) -> None:
        """Stop the server cleanly and start it again, on the same data and port."""
        self._owned().stop(*STOP_STEPS)
        self.start()

    def sql(self, statement: str, *, database: str = "postgres") -> str:
        """Run `statement` as the superuser and return its rows as psql prints them, unaligned; for set-up, not for data.

        Raises:
            EmbeddedError: the server refused it; the error has its message.
        """
        command: list[str | Path] = [self._tools()["psql"], "-h", ports.LOCALHOST, "-p", str(self.port), "-U", SUPERUSER, "-d", database]
        command += ["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-f", "-"]
        answer = subprocess.run(  # noqa: S603 - our own program; the statement goes in by standard input
            command, check=False, input=statement, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S,
            env={"PGPASSWORD": self.password, "PGCLIENTENCODING": "UTF8", "LC_ALL": "C"},
        )  # fmt: skip
        if answer.returncode:
            raise EmbeddedError(answer.stderr.strip())
        return answer.stdout.strip()

    def create_database(self, name: str) -> None:
        """Make the database `name` unless it exists.

        Raises:
            EmbeddedError: the name is not lower-case letters, digits and underscores.
        """
        if not IDENTIFIER.fullmatch(name):
            text = f"{name!r} cannot be a database name here; use lower-case letters, digits and underscores, at most 63"
            raise EmbeddedError(text)
        self.sql(f"SELECT 'CREATE DATABASE {name}' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = '{name}')\n\\gexec\n")  # noqa: S608 - checked above

    def _owned(self) -> Instance:
        if self._instance is None:
            raise NotRunningError
        return self._instance

    def _tools(self) -> PostgresBinaries:
        if self._binaries is None:
            raise NotRunningError
        return self._binaries

    @property
    def _data(self) -> Path:
        return self._owned().directory / "data"

    @property
    def _password_file(self) -> Path:
        return self._owned().directory / "password"

    def _choose_folder(self) -> Path:
        if self._wanted is None and self._ephemeral:
            self._account = accounts.for_postgres(Path("/nonexistent"))
            self._temporary = home.temporary(self._account, self._temporary_place)
            return self._temporary
        wanted = self._wanted or state_dir() / "postgres"
        self._account = accounts.for_postgres(wanted / "data")
        return home.reachable(wanted, self._account)

    def _make_data(self) -> None:
        """Run initdb in a folder beside `data` and rename it, so that a half-made cluster is never taken for one."""
        if self._data.exists():
            made_by = (self._data / "PG_VERSION").read_text().strip()
            if made_by != str(self._tools().major):
                text = (
                    f"{self._data} was made by PostgreSQL {made_by}, this is {self._tools().major}: point WINNOW_PG_BIN at "
                    f"{made_by}, or dump and load into another WINNOW_STATE_DIR"
                )
                raise EmbeddedError(text)
            return
        directory = self._owned().directory
        fresh, for_initdb = directory / "data.new", directory / "password.new"
        if fresh.exists():
            shutil.rmtree(fresh)
        password = secrets.token_urlsafe(24)
        _write_secret(self._password_file, password)
        _write_secret(for_initdb, password)
        fresh.mkdir(mode=0o700)
        if self._account is not None:
            for path in (fresh, for_initdb):
                os.chown(path, self._account.uid, self._account.gid)
        command: list[str | Path] = [self._tools()["initdb"], "-D", fresh, "-U", SUPERUSER, "-A", "scram-sha-256", "--pwfile", for_initdb]
        command += ["-E", "UTF8", "--locale=C", "--no-instructions", *(["--no-sync"] if self._ephemeral else [])]
        child = Child(command, log=directory / "initdb.log", cwd=directory, env=_environment(directory), account=self._account)
        try:
            done = child.wait(Deadline.after(TOOL_TIMEOUT_S))
        finally:
            child.kill()
            for_initdb.unlink()
        if not done or child.returncode:
            text = f"initdb could not make {fresh}:\n{child.output()}"
            raise StartFailedError(text)
        fresh.rename(self._data)

    def _clear_the_way(self) -> None:
        """Deal with what a crash left: a running orphan, then a lock file whose process id now belongs to someone else."""
        instance = self._owned()
        instance.end_orphan(signal.SIGINT, frozenset({"postgres"}), cwd=self._data)
        lock = self._data / "postmaster.pid"
        if not lock.exists() or not Path("/proc/self").exists():
            return
        words = lock.read_text().split(maxsplit=1)
        holder = int(words[0]) if words and words[0].isdigit() else 0
        # Nothing of this cluster runs any more (we hold our own lock and have looked for its processes). PostgreSQL sees through a
        # stale file whose process is gone, but not where the number has been given to another process of the same user.
        if holder and Path(f"/proc/{holder}").exists():
            if _works_in(holder, self._data):
                text = f"process {holder} still runs PostgreSQL on {self._data}; stop it"
                raise AlreadyRunningError(text, pid=holder)
            lock.unlink()

    def _launch(self) -> None:
        instance = self._owned()
        settings = SETTINGS | (EPHEMERAL_SETTINGS if self._ephemeral else {})
        deadline = Deadline.after(START_TIMEOUT_S)
        for _ in range(START_TRIES):
            self._port = instance.port("port", self._port_wanted)
            command: list[str | Path] = [self._tools()["postgres"], "-D", self._data, "-p", str(self._port)]
            for name, value in settings.items():
                command += ["-c", f"{name}={value}"]
            started = instance.run(
                command, ready=self._is_ready, deadline=deadline, env=_environment(instance.directory), cwd=self._data,
                account=self._account, death_signal=signal.SIGINT,
            )  # fmt: skip
            if started:
                return
        text = f"another process took each port that was free a moment before; see {instance.log_file}"
        raise StartFailedError(text)

    def _is_ready(self, child: Child) -> bool:
        """Read what pg_ctl reads: no connection, no password, no half-open state."""
        try:
            lines = (self._data / "postmaster.pid").read_text().splitlines()
        except FileNotFoundError:
            return False
        return len(lines) > STATUS_LINE and lines[0].strip() == str(child.pid) and lines[STATUS_LINE].strip() == "ready"


def _environment(directory: Path) -> dict[str, str]:
    """No PGDATA, PGPORT or PGOPTIONS of the caller may reach the server."""
    return {"PATH": os.defpath, "LC_ALL": "C", "HOME": str(directory)}


def _write_secret(path: Path, text: str) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"{text}\n")


def _works_in(pid: int, directory: Path) -> bool:
    try:
        return Path(f"/proc/{pid}/cwd").readlink() == directory
    except OSError:
        return False
