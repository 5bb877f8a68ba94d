"""Files of losses: one number a line, in the order in which the units were drawn."""

import re
import sys
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from winnow.assurance import monitor
from winnow.assurance.config import MonitorConfig
from winnow.assurance.refusals import InvalidLoss
from winnow.contracts.errors import Permanent

#: Bytes of the longest line that can hold a number; a double needs 24.
LINE_BYTES: Final = 100

#: A decimal number. float() alone would also take "nan", "inf", "1_0" and digits of other scripts.
_NUMBER: Final = re.compile(rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")


class BadLine(Permanent):
    """A line is no loss; correct the file."""


def read(name: str, config: MonitorConfig) -> Sequence[float]:
    """Read the losses of the file `name`, or of standard input for `-`.

    A line is a number in [lo, 1]; white space around it and empty lines at the end are allowed.

    Raises:
        BadLine: a line is no loss; the text names file and line.
        Permanent: the file cannot be read.
    """
    losses = array("d")
    empty = 0
    with _opened(name) as file:
        for number, line in enumerate(iter(lambda: file.readline(LINE_BYTES + 1), b""), start=1):
            text = line.strip()
            if not text:
                empty = empty or number
                continue
            if empty:
                raise BadLine(
                    f"{name}, line {empty}: empty; a loss that is missing is not passed over, take the line out if there was none"
                )
            if len(line) > LINE_BYTES or not _NUMBER.match(text):
                raise BadLine(f"{name}, line {number}: {_shown(text)} is no number; a line holds one loss")
            try:
                losses.append(monitor.checked(config, float(text)))
            except InvalidLoss as exc:
                raise BadLine(f"{name}, line {number}: {exc}") from None
    return losses


@contextmanager
def _opened(name: str) -> Iterator[IO[bytes]]:
    """The file, with its errors in words."""
    try:
        if name == "-":
            yield sys.stdin.buffer
        else:
            with Path(name).open("rb") as file:
                yield file
    except (OSError, ValueError) as exc:  # ValueError: a NUL in the name
        msg = f"{name}: {getattr(exc, 'strerror', None) or exc}"
        raise Permanent(msg) from None


def _shown(text: bytes) -> str:
    """The beginning of a bad line."""
    shown = text[:40].decode("utf-8", "backslashreplace")
    return repr(shown) + ("..." if len(text) > len(shown.encode("utf-8", "replace")) else "")
