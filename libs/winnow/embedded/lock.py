"""A lock between processes that a crash cannot leave behind."""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from winnow.embedded.deadline import Deadline
from winnow.embedded.errors import AlreadyRunningError

#: Seconds between two tries for a lock that another process holds.
RETRY_S = 0.1


class FileLock:
    """An advisory lock on a file; the kernel drops it when the holder dies, so it is never stale.

    The file holds the holder's process id for error texts, and is never deleted: deleting it would let two processes lock two files
    of one name.
    """

    def __init__(self, path: Path) -> None:
        """Name the lock; nothing is touched yet."""
        self._path = path
        self._descriptor: int | None = None

    def __repr__(self) -> str:
        """Show the path and whether it is held here."""
        return f"<FileLock({str(self._path)!r}, held={self.held})>"

    @property
    def held(self) -> bool:
        """Whether this object holds the lock."""
        return self._descriptor is not None

    def acquire(self, deadline: Deadline | None = None) -> None:
        """Take the lock, waiting until `deadline` (none: not at all).

        Raises:
            AlreadyRunningError: somebody else holds it; the error names the process id.
        """
        if self.held:
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        taken = False
        try:
            taken = (deadline or Deadline.after(0)).wait(lambda: _try(descriptor), poll_s=RETRY_S)
            if not taken:
                pid = _read_pid(descriptor)
                who = f"process {pid}" if pid else "another process"
                text = f"{who} uses {self._path.parent}; stop it, or choose another folder with WINNOW_STATE_DIR"
                raise AlreadyRunningError(text, pid=pid)
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
            self._descriptor = descriptor
        finally:
            if not taken:
                os.close(descriptor)

    def release(self) -> None:
        """Give the lock back; harmless where it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def __enter__(self) -> Self:
        """Take the lock at once or fail, unless it was taken with `acquire` before."""
        self.acquire()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Give it back."""
        self.release()


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _read_pid(descriptor: int) -> int | None:
    text = os.pread(descriptor, 32, 0).strip()
    return int(text) if text.isdigit() else None
