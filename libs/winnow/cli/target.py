"""Where a command's results go: whole, or not at all."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from winnow.contracts.errors import Permanent


@contextmanager
def target_of(name: str) -> Iterator[IO[str]]:
    """The file of results (standard output for `-`), complete or not there: written beside its place and renamed at the end."""
    if name == "-":
        yield sys.stdout
        sys.stdout.flush()
        return
    place = Path(name)
    if place.exists() and not place.is_file():  # /dev/stdout, a pipe: nothing to rename
        with place.open("w", encoding="utf-8") as file:
            yield file
        return
    try:
        handle, fresh = tempfile.mkstemp(prefix=f".{place.name[:100]}.", dir=place.parent)
    except (OSError, ValueError) as exc:
        msg = f"{name}: {getattr(exc, 'strerror', None) or exc}"
        raise Permanent(msg) from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            yield file
        umask = os.umask(0)
        os.umask(umask)
        Path(fresh).chmod(0o666 & ~umask)  # mkstemp's own 0600 would surprise whoever shares the folder
        Path(fresh).replace(place)
    except BaseException:
        Path(fresh).unlink(missing_ok=True)
        raise
