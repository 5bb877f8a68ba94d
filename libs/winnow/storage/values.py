"""How values become what PostgreSQL can hold: texts without NUL, JSON, arrays, compressed bytes."""

import zlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from uuid import UUID

import cramjam
import orjson

from winnow.contracts.errors import WinnowError

#: U+FFFD stands for what a text column cannot hold; the exact bytes are in `originals`.
REPLACEMENT = "\ufffd"
#: Bytes. Below it the header and the call cost more than the saving.
COMPRESS_FROM = 256
#: Level 1 packs an evidence body of 48 KB into 10.3 in 0.13 ms; level 3 into 9.9 in 0.18 ms; zlib at its fastest into 11.5 in 0.36 ms.
ZSTD_LEVEL = 1

RAW = "raw"
ZSTD = "zstd"
#: What was stored before zstd.
ZLIB = "zlib"


class UnknownEncoding(WinnowError):
    """A newer version of Winnow stored the bytes; run that one."""


def storable(text: str) -> str:
    """`text` with U+0000 and lone surrogates replaced by U+FFFD: PostgreSQL's text has neither."""
    if "\x00" in text:
        text = text.replace("\x00", REPLACEMENT)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def storable_or_none(text: str | None) -> str | None:
    """`storable`, where there is a text."""
    return None if text is None else storable(text)


def _clean(value: object) -> object:
    """`storable` for every string of a JSON value."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(str(k)): _clean(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(v) for v in value]
    return value


def _plain(value: object) -> str:
    """What orjson does not take: the driver's own kind of UUID, decimal numbers. Raise `TypeError` for anything else."""
    if isinstance(value, UUID | Decimal):
        return str(value)
    raise TypeError


def jsonb(value: object) -> str:
    """JSON text for a jsonb column. Not-a-number becomes null, U+0000 becomes U+FFFD."""
    try:
        encoded = orjson.dumps(value, default=_plain).decode()
    except orjson.JSONEncodeError:  # lone surrogates among others
        return orjson.dumps(_clean(value), default=_plain).decode()
    # The escape may also be an escaped backslash before "u0000"; then cleaning changes nothing.
    return orjson.dumps(_clean(orjson.loads(encoded))).decode() if "\\u0000" in encoded else encoded


def array_literal(items: Iterable[object]) -> str:
    """Text form of a PostgreSQL array: a column of arrays cannot travel as one array, its rows differ in length."""
    quoted = ('"' + storable(str(i)).replace("\\", "\\\\").replace('"', '\\"') + '"' for i in items)
    return "{" + ",".join(quoted) + "}"


def utc(moments: Iterable[datetime | None]) -> list[datetime | None]:
    """The same moments in UTC, for `array_text`: an offset with seconds (local times before 1900) is written wrongly by JSON encoders."""
    return [m if m is None or m.tzinfo is UTC else m.astimezone(UTC) for m in moments]


def array_text(items: Sequence[str | float | UUID | datetime | None]) -> str:
    """Text form of a PostgreSQL array of storable texts, finite numbers, UUIDs or moments in UTC; None is NULL.

    Send it as `$1::text::float8[]`.

    By way of JSON, whose lists of such values differ in their brackets alone: a tenth of what the driver takes, which asks of every element
    whether it is an array itself.
    """
    text = orjson.dumps(items, default=_plain).decode()
    if "\\" in text:  # JSON escapes more than quotes and backslashes, and otherwise
        return "{" + ",".join("NULL" if i is None else array_literal([i])[1:-1] for i in items) + "}"
    return "{" + text[1:-1] + "}"


def compress(data: bytes) -> tuple[bytes, str]:
    """The smaller of `data` and its compressed form, and the encoding's name."""
    if len(data) >= COMPRESS_FROM:
        packed = bytes(cramjam.zstd.compress(data, ZSTD_LEVEL))
        if len(packed) < len(data):
            return packed, ZSTD
    return data, RAW


def decompress(data: bytes, encoding: str) -> bytes:
    """Undo `compress`. What is decompressed was compressed here, so its size is bounded by what was stored.

    Raise `UnknownEncoding` where the row says something else.
    """
    if encoding == ZSTD:
        return bytes(cramjam.zstd.decompress(data))
    if encoding == ZLIB:
        return zlib.decompress(data)
    if encoding == RAW:
        return data
    msg = f"stored bytes are encoded as {encoding!r}, which this version of Winnow cannot read; run the version that stored them"
    raise UnknownEncoding(msg)
