"""Where in a JSON text something stands: the path of keys and positions that leads to it."""

import re
from typing import Final

#: Longest text of which a path is told; the way to a place is read from the beginning.
_CHARS: Final = 400_000
_TOKEN: Final = re.compile(r'"((?:[^"\\]|\\.){0,2000})"(\s{0,16}:)?|[\[\]{},]')


def path_at(text: str, at: int) -> str | None:
    """The path to the value at an offset, as `reservations[2].price`; None where the text is no JSON object or list before it. Linear."""
    if at > _CHARS or text.lstrip()[:1] not in {"{", "["}:
        return None
    levels: list[str | int] = []  # of each open object the key at hand, of each list the position
    for found in _TOKEN.finditer(text):
        if found.start() > at or (at < found.end() and found[1] is not None and found[2] is None):
            break
        if found[2] is not None:
            if levels and isinstance(levels[-1], str):
                levels[-1] = found[1]
        elif found[1] is None and not _followed(found.group(), levels):
            return None
    parts = "".join(f"[{level}]" if isinstance(level, int) else f".{level}" for level in levels if level != "")
    return parts.removeprefix(".") or None


def _followed(sign: str, levels: list[str | int]) -> bool:
    """Go over a bracket, brace or comma; False where one closes that none has opened."""
    if sign in "{[":
        levels.append("" if sign == "{" else 0)
    elif sign == ",":
        if levels and isinstance(levels[-1], int):
            levels[-1] += 1
    elif levels:
        levels.pop()
    else:
        return False
    return True
