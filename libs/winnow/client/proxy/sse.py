"""Server-sent events as a stream of bytes: told apart, and put together again from the same bytes where nothing was changed."""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

_BLANK = re.compile(rb"\r\n\r\n|\n\n|\r\r")
_LINE = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One event: its bytes with the blank line behind it, and its data where that is a JSON object."""

    raw: bytes
    data: dict[str, Any] | None


def blocks(body: bytes) -> list[Block]:
    """The events of a whole stream, in order; their bytes join to `body`. Linear."""
    made: list[Block] = []
    at = 0
    for blank in _BLANK.finditer(body):
        made.append(_block(body[at : blank.end()]))
        at = blank.end()
    if at < len(body):
        made.append(_block(body[at:]))
    return made


def rewritten(events: Sequence[Block], change: Callable[[dict[str, Any]], dict[str, Any] | None]) -> bytes:
    """The stream with each event's data replaced by what `change` makes of it; an event that it gives back unchanged keeps its bytes.

    `change` gets a copy, and returns None for an event that shall not be sent.
    """
    out: list[bytes] = []
    for event in events:
        if event.data is None:
            out.append(event.raw)
            continue
        data = change(json.loads(json.dumps(event.data)))
        if data is None:
            continue
        out.append(event.raw if data == event.data else _with_data(event.raw, data))
    return b"".join(out)


def _block(raw: bytes) -> Block:
    lines = [line[5:].lstrip(b" ") for line in _LINE.split(raw) if line.startswith(b"data:")]
    try:
        data = json.loads(b"\n".join(lines)) if lines else None
    except (ValueError, RecursionError):  # `[DONE]`, or not ours to read
        data = None
    return Block(raw=raw, data=data if isinstance(data, dict) else None)


def _with_data(raw: bytes, data: dict[str, Any]) -> bytes:
    """An event with other data: one data line in the place of those that it had."""
    others = [line for line in _LINE.split(raw) if line and not line.startswith(b"data:")]
    said = b"data: " + json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
    return b"\n".join([*others, said]) + b"\n\n"
