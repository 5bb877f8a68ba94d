"""Files of recorded sessions, row by row: bounded, and never trusted.

A row is a JSON object with the place where it stood. What cannot be read is a `Fault` in its place, so that the rest goes on. A reader
opens the files that it was given and nothing that they name.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

from winnow.contracts import limits
from winnow.contracts.errors import Permanent

#: Whatever JSON can hold; nothing about it is known yet.
Json: TypeAlias = Any

#: Bytes of one line. 64 MiB of messages is the most that Winnow stores of a boundary; no single message is longer than that.
LINE_BYTES = limits.ORIGINAL_BYTES
#: Bytes of one file. A year of one session at 1 MiB a day; above it the tree of rows would not fit into a developer's memory.
FILE_BYTES = 512 * limits.MIB


class Unreadable(Permanent):
    """The file cannot be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One JSON object of a session."""

    place: str  # "session.jsonl, line 12": for messages to people
    value: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Something that could not be used. Its text quotes no content."""

    place: str
    text: str
    #: Nothing is wrong with the file: a session that is still being written ends in half a line, or a summary is encrypted.
    mild: bool = False
    #: It stands where a compaction is, so the session goes on from a summary that is not given.
    cut: bool = False


Rows = Iterator[Row | Fault]


def lines(path: Path) -> Rows:
    """The rows of a file with one JSON object a line. Raise `Unreadable`."""
    with _opened(path) as file:
        number = read = 0
        while data := file.readline(LINE_BYTES + 1):
            number += 1
            read += len(data)
            place = f"{path.name}, line {number}"
            if read > FILE_BYTES:
                yield Fault(place=place, text=f"the file is longer than {FILE_BYTES // limits.MIB} MiB; what follows is left out")
                return
            if not data.endswith(b"\n") and len(data) > LINE_BYTES:
                read += _skip_line(file, FILE_BYTES - read)
                yield Fault(place=place, text=f"longer than {LINE_BYTES // limits.MIB} MiB")
                continue
            if number == 1:
                data = data.removeprefix(b"\xef\xbb\xbf")
            if data.strip():
                yield _row(place, data, last=not data.endswith(b"\n"))


def document(path: Path) -> Json:
    """The one JSON value of a file. Raise `Unreadable`."""
    with _opened(path) as file:
        data = file.read(FILE_BYTES + 1)
    if len(data) > FILE_BYTES:
        msg = f"{path.name} is longer than {FILE_BYTES // limits.MIB} MiB"
        raise Unreadable(msg)
    try:
        return json.loads(data.removeprefix(b"\xef\xbb\xbf"))
    except json.JSONDecodeError as exc:
        msg = f"{path.name}, line {exc.lineno}: not JSON ({exc.msg})"
        raise Unreadable(msg) from None
    except (ValueError, RecursionError) as exc:
        msg = f"{path.name}: {_why(exc)}"
        raise Unreadable(msg) from None


def elements(path: Path, values: Json, what: str) -> Rows:
    """The objects of a JSON array as rows; `what` names an element, for example `message`."""
    if not isinstance(values, list):
        yield Fault(place=path.name, text=f"no array of {what}s where one was expected")
        return
    for number, value in enumerate(values, 1):
        place = f"{path.name}, {what} {number}"
        yield Row(place=place, value=value) if isinstance(value, dict) else Fault(place=place, text="not an object")


def json_or_lines(path: Path, values_of: Callable[[Any], Any], what: str) -> Rows:
    """The rows of a file that holds one JSON value, or one object a line: its first line tells. Raise `Unreadable`."""
    with _opened(path) as file:
        first = file.readline(LINE_BYTES + 1)
        more = bool(file.read(1))
    if more and isinstance(_row("", first, last=False), Row):
        yield from lines(path)
    else:
        yield from elements(path, values_of(document(path)), what)


def _opened(path: Path) -> IO[bytes]:
    """The file. Raise `Unreadable`; a folder, a pipe or a device is none."""
    try:
        if not path.is_file():
            msg = f"{path}: " + ("not a plain file" if path.exists() else "no such file")
            raise Unreadable(msg)
        return path.open("rb")
    except (OSError, ValueError) as exc:
        msg = f"{path}: {getattr(exc, 'strerror', None) or exc}"
        raise Unreadable(msg) from None


def _skip_line(file: IO[bytes], most: int) -> int:
    """Read past the rest of a line, `most` bytes at most; how many were read."""
    read = 0
    while read < most and (data := file.readline(limits.MIB)):
        read += len(data)
        if data.endswith(b"\n"):
            break
    return read


def _row(place: str, data: bytes, *, last: bool) -> Row | Fault:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as exc:
        if last:
            return Fault(place=place, text="cut off: the session is still being written, or the file was truncated", mild=True)
        return Fault(place=place, text=_why(exc))
    return Row(place=place, value=value) if isinstance(value, dict) else Fault(place=place, text="not a JSON object")


def _why(exc: Exception) -> str:
    """What is wrong with JSON, without its content."""
    if isinstance(exc, RecursionError):
        return "nested too deeply"
    if isinstance(exc, UnicodeDecodeError):
        return "not UTF-8"
    return f"not JSON ({exc.msg}, column {exc.colno})" if isinstance(exc, json.JSONDecodeError) else "not JSON that can be read"
