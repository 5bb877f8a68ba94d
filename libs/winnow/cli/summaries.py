"""Files that hold a summary: plain text, or JSON with a field `summary`."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path

from winnow.contracts.errors import Permanent, TooLarge

#: Bytes. A file above this is no summary; a limit against memory exhaustion.
FILE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class SummaryFile:
    """What was read: the summary exactly as it stands, and the host that the file names, if any."""

    name: str
    text: str
    host: str | None = None


def read(name: str) -> SummaryFile:
    """Read the file `name`, or standard input for `-`.

    A file that ends in `.json`, or whose content is a JSON object with a text `summary`, gives that text; any other is the summary itself.

    Raises:
        Permanent: it cannot be read, is not UTF-8, or is JSON without a summary; the text says which.
        TooLarge: it is longer than 64 MiB.
    """
    data = _bytes(name)
    try:
        text = data.decode()
    except UnicodeDecodeError as exc:
        msg = f"{name}: byte {exc.start} is not UTF-8; convert the file first"
        raise Permanent(msg) from None
    named_json = name.endswith(".json")
    if named_json or text.lstrip("\ufeff \t\r\n").startswith("{"):
        found = _from_json(name, text)
        if found is not None:
            return found
        if named_json:
            msg = f'{name}: no JSON object with a text field "summary"; rename the file if it is the summary itself'
            raise Permanent(msg)
    return SummaryFile(name=name, text=text)


def _bytes(name: str) -> bytes:
    """The content, at most one byte more than is allowed."""
    try:
        if name == "-":
            data = sys.stdin.buffer.read(FILE_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(FILE_BYTES + 1)
    except (OSError, ValueError) as exc:  # ValueError: a NUL in the name
        msg = f"{name}: {getattr(exc, 'strerror', None) or exc}"
        raise Permanent(msg) from None
    if len(data) > FILE_BYTES:
        msg = f"{name}: longer than {FILE_BYTES // 2**20} MiB, which no summary is"
        raise TooLarge(msg)
    return data


def _from_json(name: str, text: str) -> SummaryFile | None:
    """The summary of a JSON object, or None where it is none."""
    try:
        value = json.loads(text.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not isinstance(value.get("summary"), str):
        return None
    host = value.get("host")
    return SummaryFile(name=name, text=value["summary"], host=host if isinstance(host, str) else None)
