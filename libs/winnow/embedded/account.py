"""The user that PostgreSQL runs as. It refuses to run as root."""

import os
import pwd
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from winnow.embedded.errors import EmbeddedError

#: The account that every Unix has for programs that own nothing. Its group is called nogroup or nobody; we go by number.
NOBODY = "nobody"

#: Seconds for a look at a file as another user; it takes 30 ms.
PROBE_TIMEOUT_S = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """A user that root can run a program as."""

    name: str
    uid: int
    gid: int

    def run(self, argv: Sequence[str | Path], *, cwd: Path = Path("/")) -> subprocess.CompletedProcess[bytes]:
        """Run a short program as this user with a bare environment; the caller looks at the exit status."""
        script = Path(__file__).with_name("_exec.py")
        command = [sys.executable, "-I", "-S", str(script), "0", "0", str(self.uid), str(self.gid), *(str(part) for part in argv)]
        return subprocess.run(  # noqa: S603 - the command is built by the launchers of this package
            command, check=False, capture_output=True, cwd=cwd, env={"LC_ALL": "C"}, timeout=PROBE_TIMEOUT_S
        )

    def can_enter(self, directory: Path) -> bool:
        """Tell whether this user can reach into `directory`, by trying: mode bits do not tell of ACLs and mounts."""
        return self.run(["/bin/sh", "-c", 'cd -- "$1"', "sh", directory]).returncode == 0

    def can_run(self, *programs: Path) -> bool:
        """Tell whether this user can run each of `programs` and load its libraries, by asking for its version."""
        return all(self.run([program, "--version"]).returncode == 0 for program in programs)


def by_uid(uid: int) -> Account:
    """Return the account with this number, which need not have a name."""
    try:
        entry = pwd.getpwuid(uid)
    except KeyError:
        return Account(name=str(uid), uid=uid, gid=uid)
    return Account(name=entry.pw_name, uid=uid, gid=entry.pw_gid)


def for_postgres(data: Path) -> Account | None:
    """Return the user to run the server of `data` as: its owner, else nobody; None means: as we are, for we are not root.

    Raises:
        EmbeddedError: `data` belongs to somebody else whom we cannot become, or there is no account `nobody`.
    """
    owner = data.stat().st_uid if data.exists() else None
    if (me := os.geteuid()) != 0:
        if owner is not None and owner != me:
            text = f"{data} belongs to {by_uid(owner).name}; run as that user or as root, or choose another WINNOW_STATE_DIR"
            raise EmbeddedError(text)
        return None
    if owner:
        return by_uid(owner)
    try:
        return by_uid(pwd.getpwnam(NOBODY).pw_uid)
    except KeyError:
        text = "PostgreSQL cannot run as root and this system has no account 'nobody'; add one, or run as another user"
        raise EmbeddedError(text) from None
