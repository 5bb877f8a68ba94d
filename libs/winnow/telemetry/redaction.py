"""What must not leave the process in a log line or an error text: secrets, and the content of summaries and messages."""

import re
import traceback
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, SecretBytes, SecretStr, ValidationError

from winnow.contracts.envelope import explain
from winnow.contracts.errors import WinnowError

MASK: Final = "***"
#: Characters of one logged value. A log line is read by people; what is longer is content.
MAX_TEXT_CHARS: Final = 500
#: Characters of a logged traceback.
MAX_TRACEBACK_CHARS: Final = 16_000
#: Depth and items of a structure that is logged; what is deeper or longer is content.
MAX_DEPTH: Final = 3
MAX_ITEMS: Final = 50
#: The one field whose text may be long and have lines: what all tasks do, when nothing moves.
STACKS: Final = "stacks"
#: Names of fields whose value is a secret, whatever it looks like.
_SECRET_NAME = re.compile(
    r"passw|secret|token|api[_-]?key|authori[sz]ation|credential|private_?key|cookie|\bdsn\b|_dsn$|database_url", re.IGNORECASE
)
#: Names that hold one of the words above and count things: an operator needs them.
_HARMLESS = frozenset({"tokens", "tokens_before", "tokens_after", "input_tokens", "output_tokens"})
#: Passwords inside URLs, Winnow's own API keys, bearer headers and keys of known providers. No nested repetition: linear.
_SECRETS_INSIDE = (
    (re.compile(r"(?P<head>[a-zA-Z][a-zA-Z0-9+.-]{0,30}://[^:/?#\s@]{0,200}):[^@/\s]{1,500}@"), r"\g<head>:***@"),
    (re.compile(r"\bwnw_[A-Za-z0-9_-]{6,}"), "wnw_***"),
    (re.compile(r"(?i)\b(?P<head>bearer|basic)\s+[A-Za-z0-9._~+/=-]{8,}"), r"\g<head> ***"),
    (re.compile(r"\bsk-[A-Za-z0-9_-]{8,}"), "sk-***"),
    (re.compile(r"(?i)\b(?P<head>password|passwd|pwd|secret|api_key)\s?=\s?[^\s&;,'\"]{1,500}"), r"\g<head>=***"),
)
#: Where a driver's message begins to quote values: statements and parameters (SQLAlchemy), row details (PostgreSQL).
_QUOTES_VALUES = ("[SQL:", "[parameters:", "DETAIL:", "CONTEXT:", "input_value=")


def printable(text: str, most: int = MAX_TEXT_CHARS, *, keep: str = "") -> str:
    """`text` cut to `most` characters, control characters (but `keep`) and lone surrogates escaped: safe for a terminal and a log."""
    cut = text if len(text) <= most else text[:most] + f"… ({len(text)} characters)"
    if cut.isprintable():
        return cut
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape", "backslashreplace").decode() for c in cut)


def mask_text(text: str) -> str:
    """`text` without the secrets that can be told by their form."""
    for pattern, replacement in _SECRETS_INSIDE:
        text = pattern.sub(replacement, text)
    return text


def mask(name: str, value: Any, depth: int = 0) -> Any:  # noqa: ANN401  log fields are anything
    """`value` as it may stand in the log field `name`: secrets masked, long texts cut, models reduced to their type."""
    if value is None or (isinstance(value, bool | int | float) and not _is_secret(name)):
        masked: Any = value
    elif _is_secret(name) or isinstance(value, SecretStr | SecretBytes):
        masked = MASK
    elif isinstance(value, bytes | bytearray | memoryview):
        masked = f"<{len(value)} bytes>"
    elif isinstance(value, BaseModel):  # an event holds content
        masked = f"<{type(value).__name__}>"
    elif isinstance(value, BaseException):
        masked = describe(value)
    elif isinstance(value, Mapping) and depth < MAX_DEPTH:
        masked = {printable(str(k), 100): mask(str(k)[:100], v, depth + 1) for k, v in islice(value.items(), MAX_ITEMS)}
    elif isinstance(value, list | tuple | set | frozenset) and depth < MAX_DEPTH:
        masked = [mask(name, item, depth + 1) for item in islice(value, MAX_ITEMS)]
    elif name == STACKS:
        masked = mask_text(printable(str(value), MAX_TRACEBACK_CHARS, keep="\n"))
    else:
        masked = mask_text(printable(str(value)))
    return masked


def mask_headers(headers: Iterable[tuple[str, bytes]]) -> tuple[tuple[str, bytes], ...]:
    """Headers of a record as they may be kept: the values of `authorization`, `cookie` and the like are masked, and secrets inside others.

    None of ours has such a name: whoever sends a record with one has sent more than he meant to.
    """
    return tuple((name, MASK.encode() if _is_secret(name) else _mask_bytes(value)) for name, value in headers)


def _mask_bytes(value: bytes) -> bytes:
    """`value` without the secrets that can be told by their form; any other byte stays as it is."""
    return mask_text(value.decode("latin-1")).encode("latin-1")


def _is_secret(name: str) -> bool:
    return name not in _HARMLESS and _SECRET_NAME.search(name[:100]) is not None


def describe(exc: BaseException, most: int = MAX_TEXT_CHARS) -> str:
    """One line on an error for the log: type and message, without secrets and without the values that drivers quote."""
    if isinstance(exc, ValidationError):
        text = explain(exc)
    else:
        text = str(exc)
        for mark in _QUOTES_VALUES:
            text = text.partition(mark)[0]
    line = printable(" ".join(text[: 4 * most].split()), most)
    return mask_text(f"{type(exc).__name__}: {line}" if line else type(exc).__name__)


def describe_without_content(exc: BaseException, most: int = MAX_TEXT_CHARS) -> str:
    """One line on an error for a dead letter: our own errors by their text, others by type and place, for their text may quote content."""
    if isinstance(exc, WinnowError | ValidationError):
        return describe(exc, most)
    frames = traceback.extract_tb(exc.__traceback__)
    if not frames:
        return type(exc).__name__
    last = frames[-1]
    return f"{type(exc).__name__} at {Path(last.filename).name}:{last.lineno} in {last.name}"


def format_exception(exc: BaseException) -> str:
    """The traceback of `exc` and its causes, with described messages and without local values."""
    parts: list[str] = []
    seen: set[int] = set()
    current: BaseException | None = exc
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        frames = traceback.extract_tb(current.__traceback__)
        lines = [f'  File "{f.filename}", line {f.lineno}, in {f.name}\n    {f.line}' for f in frames[-30:]]
        parts.append("\n".join([*lines, describe(current)]))
        if isinstance(current, BaseExceptionGroup):
            parts.extend(describe(inner) for inner in current.exceptions[:10])
        current = current.__cause__ or (None if current.__suppress_context__ else current.__context__)
    return mask_text("\n\ncaused by\n".join(parts)[:MAX_TRACEBACK_CHARS])
