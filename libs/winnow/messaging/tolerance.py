"""Batches that the client cannot read: what aiokafka would stop at for ever, or take all memory for.

A header name that is not UTF-8 ends aiokafka's record iterator with `UnicodeDecodeError`: the consume loop dies, the records before it in
the fetch are lost, and the partition stands still. A few kilobytes of zstd can decompress to gigabytes. Neither has a hook in the client,
whose version is pinned; so its record reader and its decompressors are replaced here, once a process, and tests watch that they are used.

An unreadable batch becomes one record that carries `Unreadable` as a header name: intake turns it into a dead letter with the raw batch.
"""

import struct
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import aiokafka.consumer.fetcher
import aiokafka.record._crecords.default_records
import aiokafka.record._crecords.legacy_records
import aiokafka.record.default_records
import aiokafka.record.legacy_records
import cramjam
from aiokafka.record.default_records import _DefaultRecordBatchPy, _DefaultRecordPy
from aiokafka.record.memory_records import MemoryRecords

from winnow.contracts.limits import MIB
from winnow.contracts.vocabulary import Reason

#: Bytes that one batch may decompress to. Our own producers stop at 10 MiB, and the largest record of the contract has 9.
MAX_BATCH_BYTES = 64 * MIB
#: What compressed data is usually at most: the first buffer is that large, and doubles where it does not suffice.
USUAL_RATIO = 16
FIRST_BUFFER_BYTES = 1 * MIB
#: What cramjam says where a buffer is too small, and nowhere else.
BUFFER_IS_FULL = "whole buffer"
#: The head of snappy's framed form (xerial), as Java producers write it; blocks of a length each follow.
XERIAL_MAGIC = b"\x82SNAPPY\x00"
XERIAL_HEAD_BYTES = 16
#: Offset and length stand before every batch (base offset, 8 bytes; length of the rest, 4 bytes).
BATCH_HEAD = struct.Struct(">qi")
MAGIC_OFFSET = 16
MAGIC_2 = 2


class DecompressedTooLarge(ValueError):
    """The batch decompresses to more than `MAX_BATCH_BYTES`."""


class Unreadable(str):
    """Name of the only header of a record that stands for an unreadable batch. No producer can make one: headers from outside are plain."""

    __slots__ = ("reason",)
    reason: Reason

    @classmethod
    def because(cls, exc: Exception) -> "Unreadable":
        """The mark of a batch that failed with `exc`."""
        mark = cls("winnow_unreadable")
        mark.reason = Reason.TOO_LARGE if isinstance(exc, DecompressedTooLarge) else Reason.INVALID
        return mark


class LenientBuffer(bytearray):
    """Record bytes whose text parts decode whatever they hold: a header name of other bytes is shown with escapes."""

    def __getitem__(self, at: Any) -> Any:  # noqa: ANN401  an index gives a number, a slice gives bytes
        part = super().__getitem__(at)
        return LenientBuffer(part) if isinstance(at, slice) else part

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:  # noqa: ARG002  strictness is what is left out here
        """As text, never failing."""
        return super().decode(encoding, "backslashreplace")


class TolerantBatch:
    """A batch of the client; what it cannot read is read again leniently, or becomes one unreadable record."""

    def __init__(self, batch: Any, raw: bytes) -> None:  # noqa: ANN401  aiokafka ships no annotations
        self._batch = batch
        self._raw = raw

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  the batch's own properties
        return getattr(self._batch, name)

    def __next__(self) -> Any:  # noqa: ANN401  control batches are read so, and only brokers write them
        return next(self._batch)

    def __iter__(self) -> Iterator[Any]:
        try:
            records: list[Any] = list(self._batch)
        except Exception as exc:  # noqa: BLE001  a codec, a struct, a text: whatever it is, the partition must move on
            records = self._again(exc)
        return iter(records)

    def _again(self, exc: Exception) -> list[Any]:
        """The records, read leniently where it is but a text that is broken."""
        if isinstance(exc, UnicodeDecodeError) and self._raw[MAGIC_OFFSET] >= MAGIC_2:
            batch = _DefaultRecordBatchPy(self._raw)
            batch = iter(batch)  # decompresses
            batch._buffer = LenientBuffer(batch._buffer)  # noqa: SLF001  the reader has no other seam
            try:
                return list(batch)
            except Exception as again:  # noqa: BLE001  as above
                exc = again
        batch = self._batch
        mark = Unreadable.because(exc)
        return [_DefaultRecordPy(batch.next_offset - 1, 0, 0, None, self._raw, [(mark, type(exc).__name__.encode())])]


class TolerantRecords:
    """The client's reader of a fetched partition, which keeps the bytes of each batch at hand."""

    def __init__(self, data: bytes) -> None:
        self._records = MemoryRecords(data)
        self._data = data
        self._at = 0

    def size_in_bytes(self) -> int:
        """Bytes of the whole."""
        return int(self._records.size_in_bytes())

    def has_next(self) -> bool:
        """A complete batch follows."""
        return bool(self._records.has_next())

    def next_batch(self) -> TolerantBatch | None:
        """The next batch, None where none is complete."""
        batch = self._records.next_batch()
        if batch is None:
            return None
        _, length = BATCH_HEAD.unpack_from(self._data, self._at)
        begin, self._at = self._at, self._at + BATCH_HEAD.size + length
        return TolerantBatch(batch, bytes(self._data[begin : self._at]))


def _growing(decompress_into: Callable[[Any, bytearray], int]) -> Callable[[Any], bytes]:
    """A decompressor that gives up above the limit instead of taking all memory."""

    def decode(payload: Any) -> bytes:  # noqa: ANN401  any buffer
        data = bytes(payload)
        size = min(MAX_BATCH_BYTES, max(FIRST_BUFFER_BYTES, USUAL_RATIO * len(data)))
        while True:
            buffer = bytearray(size)
            try:
                return bytes(memoryview(buffer)[: decompress_into(data, buffer)])
            except cramjam.DecompressionError as exc:
                if BUFFER_IS_FULL not in str(exc):
                    raise
                if size >= MAX_BATCH_BYTES:
                    raise DecompressedTooLarge from None
            size = min(MAX_BATCH_BYTES, 4 * size)

    return decode


def _gzip(payload: Any) -> bytes:  # noqa: ANN401  any buffer
    data, whole = bytes(payload), bytearray()
    while data:
        member = zlib.decompressobj(wbits=31)
        whole += member.decompress(data, MAX_BATCH_BYTES + 1 - len(whole))
        if len(whole) > MAX_BATCH_BYTES:
            raise DecompressedTooLarge
        if not member.eof:
            break
        data = member.unused_data
    return bytes(whole)


def _snappy(original: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    """Snappy says its length first, so it is known before anything is decompressed."""

    def decode(payload: Any) -> bytes:  # noqa: ANN401  any buffer
        data = bytes(payload)
        if snappy_length(data) > MAX_BATCH_BYTES:
            raise DecompressedTooLarge
        return original(data)

    return decode


def snappy_length(data: bytes) -> int:
    """Bytes that snappy data says it decompresses to, in plain or framed form; stops counting above the limit."""
    if not data.startswith(XERIAL_MAGIC):
        return _leading_varint(data, 0)
    total, at = 0, XERIAL_HEAD_BYTES
    while at + 4 <= len(data) and total <= MAX_BATCH_BYTES:
        total += _leading_varint(data, at + 4)
        at += 4 + int.from_bytes(data[at : at + 4], "big")
    return total


def _leading_varint(data: bytes, at: int) -> int:
    number = 0
    for shift, byte in enumerate(data[at : at + 5]):
        number |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:  # noqa: PLR2004  the high bit says that more follows
            break
    return number


def install() -> None:
    """Replace the client's reader and decompressors; a second call changes nothing."""
    fetcher: Any = aiokafka.consumer.fetcher
    if fetcher.MemoryRecords is TolerantRecords:
        return
    fetcher.MemoryRecords = TolerantRecords
    for module in (
        aiokafka.record.default_records,
        aiokafka.record.legacy_records,
        aiokafka.record._crecords.default_records,  # noqa: SLF001  the compiled twin
        aiokafka.record._crecords.legacy_records,  # noqa: SLF001  the same
    ):
        names: Any = module
        names.gzip_decode = _gzip
        names.lz4_decode = _growing(cramjam.lz4.decompress_into)
        names.snappy_decode = _snappy(names.snappy_decode)
        if hasattr(names, "zstd_decode"):
            names.zstd_decode = _growing(cramjam.zstd.decompress_into)
