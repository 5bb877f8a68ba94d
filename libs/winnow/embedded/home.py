"""Where a PostgreSQL server keeps its data: the folder that was asked for, or one that its user can reach."""

import hashlib
import os
import shutil
import tempfile
import time
from pathlib import Path

from winnow.embedded.account import Account
from winnow.embedded.binaries import SHARED_PLACE
from winnow.embedded.errors import AlreadyRunningError, EmbeddedError
from winnow.embedded.lock import FileLock

#: Others may pass through to their own data inside, but not list.
PASSABLE = 0o711

#: Of temporary folders; what a killed run left behind is recognised by it.
EPHEMERAL_PREFIX = "winnow-postgres-"

#: Seconds. A folder that is younger may belong to a server that is about to take its lock.
LEFTOVER_AGE_S = 3600.0


def reachable(wanted: Path, account: Account | None) -> Path:
    """Return `wanted`, made if needed, or, where `account` cannot reach it, a stand-in under /var/lib/winnow.

    Root's own state folder lies under /root, which is closed to the user that PostgreSQL runs as. Opening root's home would be worse
    than moving: `wanted` becomes a symbolic link to the stand-in, so the data is found where it is looked for, in every later run.

    Raises:
        EmbeddedError: `wanted` already has data there that `account` cannot reach, or no folder can be made.
    """
    if account is None:
        wanted.mkdir(parents=True, exist_ok=True)
        return wanted.resolve()
    _make(wanted.readlink() if wanted.is_symlink() else wanted)
    if account.can_enter(wanted.resolve()):
        return wanted.resolve()
    if wanted.is_symlink() or any(wanted.iterdir()):
        text = (
            f"user {account.name}, whom PostgreSQL runs as, cannot reach {wanted.resolve()}; "
            "make its parent folders passable (chmod o+x) or choose another WINNOW_STATE_DIR"
        )
        raise EmbeddedError(text)
    stand_in = SHARED_PLACE / f"{wanted.name}-{hashlib.sha256(str(wanted).encode()).hexdigest()[:12]}"
    _make(stand_in)
    if not account.can_enter(stand_in):
        text = (
            f"user {account.name}, whom PostgreSQL runs as, can reach neither {wanted} nor {stand_in}; "
            "set WINNOW_STATE_DIR to a folder that every user may enter"
        )
        raise EmbeddedError(text)
    wanted.rmdir()
    wanted.symlink_to(stand_in, target_is_directory=True)
    return stand_in


def temporary(account: Account | None, first: Path | None = None) -> Path:
    """Return a new folder for a server that is to be forgotten, in `first` or the first temporary place that `account` can reach."""
    for place in dict.fromkeys([str(first or tempfile.gettempdir()), "/tmp", "/var/tmp", str(SHARED_PLACE)]):  # noqa: S108 - mkdtemp inside
        if not Path(place).is_dir():
            continue
        sweep(Path(place))
        folder = Path(tempfile.mkdtemp(prefix=EPHEMERAL_PREFIX, dir=place)).resolve()
        if account is None:
            return folder
        folder.chmod(PASSABLE)
        if account.can_enter(folder):
            return folder
        folder.rmdir()
    text = f"user {account.name if account else ''} can reach no temporary folder; set TMPDIR to one that every user may enter"
    raise EmbeddedError(text)


def sweep(place: Path) -> None:
    """Delete what killed runs of ours left in `place`: 40 MB each, and a test run may be killed often."""
    for folder in place.glob(f"{EPHEMERAL_PREFIX}*"):
        lock = folder / "lock"
        try:
            status = lock.stat()
            if status.st_uid != os.geteuid() or time.time() - status.st_mtime < LEFTOVER_AGE_S:
                continue
            with FileLock(lock):
                shutil.rmtree(folder, ignore_errors=True)
        except (OSError, AlreadyRunningError):
            continue  # somebody else's, or in use


def _make(folder: Path) -> None:
    """Make `folder` and its missing parents passable, whatever the umask; leave alone what exists."""
    if not folder.exists() and not folder.is_symlink():
        _make(folder.parent)
        folder.mkdir(exist_ok=True)
        folder.chmod(PASSABLE)
