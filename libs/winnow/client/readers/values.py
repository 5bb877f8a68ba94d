"""Untrusted JSON as the values that a reader needs: what is of another type reads as absent."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from winnow.client.readers.rows import Json

#: Characters of a name, as the contract limits it.
NAME_CHARS = 200


def mapping(value: Json) -> Mapping[str, Any]:
    """`value` where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def listing(value: Json) -> list[Any]:
    """`value` where it is an array, else an empty one."""
    return value if isinstance(value, list) else []


def text(value: Json) -> str:
    """`value` where it is a string, else an empty one. A lone surrogate, which has no UTF-8 bytes, becomes U+FFFD."""
    if not isinstance(value, str):
        return ""
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return value


def name(value: Json) -> str | None:
    """`value` as a name that an event may carry, or None: not empty, printable, cut to 200 characters."""
    said = "".join(c for c in text(value)[: 4 * NAME_CHARS] if c.isprintable()).strip()
    return said[:NAME_CHARS] or None


def count(value: Json) -> int | None:
    """`value` where it is a number of something, else None."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31 else None


def moment(value: Json) -> str | None:
    """`value` where it is a time with a zone, as ISO 8601, else None."""
    try:
        at = datetime.fromisoformat(text(value))
        return at.isoformat() if at.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def blocks(content: Json, *kinds: str, key: str = "text") -> str:
    """The text of a message's content: a string, or an array of blocks of which those of the named kinds are joined by line ends."""
    if isinstance(content, str):
        return text(content)
    said = [text(one if isinstance(one, str) else mapping(one).get(key)) for one in listing(content) if _is_one(one, kinds)]
    return "\n".join(part for part in said if part)


def _is_one(block: Json, kinds: tuple[str, ...]) -> bool:
    return isinstance(block, str) or mapping(block).get("type") in kinds


def call(tool: Json, arguments: Json) -> str:
    """A tool call as it stands in an action's text: `[tool call] name: {arguments}`."""
    try:
        said = text(arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False))
    except RecursionError:  # just below the depth that was still read
        said = "{nested too deeply}"
    return f"[tool call] {name(tool) or 'unknown'}: {said}"


def without_blocks(said: str, opening: str, closing: str) -> str:
    """`said` without the stretches from `opening` to the next `closing`. One that is never closed is text. Linear."""
    if opening not in said:
        return said
    kept: list[str] = []
    at = 0
    while (start := said.find(opening, at)) >= 0:
        end = said.find(closing, start)
        if end < 0:
            break
        kept.append(said[at:start])
        at = end + len(closing)
    kept.append(said[at:])
    return "".join(kept)
