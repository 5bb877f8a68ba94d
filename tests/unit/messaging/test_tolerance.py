"""Batches that the client cannot read."""

import gzip

import aiokafka.consumer.fetcher
import cramjam
import pytest
from aiokafka.codec import snappy_encode
from aiokafka.errors import CorruptRecordException
from aiokafka.record._crecords import default_records
from aiokafka.record.default_records import _DefaultRecordBatchBuilderPy

from winnow.contracts.limits import MIB
from winnow.contracts.vocabulary import Reason
from winnow.messaging import tolerance
from winnow.messaging.tolerance import DecompressedTooLarge, TolerantRecords, Unreadable, snappy_length

tolerance.install()
CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


class BinaryName(str):
    """A header name that other clients can write and ours cannot."""

    __slots__ = ()

    def encode(self, *_):
        return b"\xff\xfe"


def batch_of(values, *, codec="none", headers=(), base=0, key=b"k"):
    builder = _DefaultRecordBatchBuilderPy(2, CODECS[codec], 0, -1, -1, -1, 1 << 30)
    for offset, value in enumerate(values):
        builder.append(offset, timestamp=1, key=key, value=value, headers=list(headers))
    data = bytearray(builder.build())
    data[:8] = base.to_bytes(8, "big")
    return bytes(data)


def read(data):
    """Records of all batches."""
    records, out = TolerantRecords(data), []
    while records.has_next():
        out += list(records.next_batch())
    return out


def unreadable(record):
    return [name.reason for name, _ in record.headers if isinstance(name, Unreadable)]


def test_the_client_uses_the_replacement():
    """The fetcher reads with ours; a new version of the client that does not would fail here."""
    assert aiokafka.consumer.fetcher.MemoryRecords is TolerantRecords
    assert default_records.zstd_decode is not aiokafka.codec.zstd_decode


@pytest.mark.parametrize("codec", CODECS)
def test_good_batches_read_as_before(codec):
    """Every codec, several batches, binary header values: nothing is changed."""
    values = [b"a" * 10, b"", None, bytes(range(256)) * 100]
    data = batch_of(values, codec=codec, headers=[("x", b"\xff"), ("y", None)]) + batch_of(values, codec=codec, base=4)
    records = read(data)
    assert [r.value for r in records] == values * 2
    assert [r.offset for r in records] == list(range(8))
    assert records[0].headers == [("x", b"\xff"), ("y", None)]


def test_a_batch_keeps_its_properties():
    """What the fetcher asks a batch is answered by the client's own."""
    batch = TolerantRecords(batch_of([b"1", b"2"], base=7)).next_batch()
    assert (batch.base_offset, batch.next_offset, batch.is_control_batch, batch.producer_id) == (7, 9, False, -1)
    assert batch.validate_crc()
    assert TolerantRecords(b"").next_batch() is None


@pytest.mark.parametrize("codec", CODECS)
def test_a_header_name_that_is_no_text_is_read_with_escapes(codec):
    """The record and its neighbours are whole; the client alone would lose them and stop."""
    data = batch_of([b"1"]) + batch_of([b"2", b"3"], codec=codec, headers=[(BinaryName("x"), b"v")], base=1) + batch_of([b"4"], base=3)
    records = read(data)
    assert [(r.offset, r.value) for r in records] == [(0, b"1"), (1, b"2"), (2, b"3"), (3, b"4")]
    assert records[1].headers == [("\\xff\\xfe", b"v")]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_a_decompression_bomb_becomes_one_unreadable_record(codec):
    """It is not expanded; the next batch is read; the raw batch is kept."""
    bomb = batch_of([b"\0" * (tolerance.MAX_BATCH_BYTES + 2 * MIB)], codec=codec, base=5)
    first, second = read(bomb + batch_of([b"after"], base=6))
    assert unreadable(first) == [Reason.TOO_LARGE]
    assert (first.offset, first.value) == (5, bomb)
    assert second.value == b"after"


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_garbage_that_says_it_is_compressed_becomes_one_unreadable_record(codec):
    """A batch of three offsets is passed by as a whole."""
    data = bytearray(batch_of([b"1" * 100, b"2", b"3"], codec=codec, base=5))
    data[61:] = b"\xde\xad" * ((len(data) - 61) // 2) + b"\x00" * ((len(data) - 61) % 2)
    first, second = read(bytes(data) + batch_of([b"after"], base=8))
    assert unreadable(first) in ([Reason.INVALID], [Reason.TOO_LARGE])  # snappy's garbage begins with a length
    assert first.offset == 7
    assert second.value == b"after"


def test_a_record_whose_lengths_lie_becomes_unreadable():
    """Broken structure inside a batch is no end of the world."""
    data = bytearray(batch_of([b"1" * 100], base=5))
    data[61] = 0x7F
    [record] = read(bytes(data))
    assert unreadable(record) == [Reason.INVALID]


def test_no_producer_can_forge_the_mark():
    """A plain header of the same name is a plain header."""
    [record] = read(batch_of([b"1"], headers=[("winnow_unreadable", b"x")]))
    assert unreadable(record) == []


def test_a_batch_too_short_to_be_one_is_the_client_s_error():
    """A fetch that is cut in its head is raised as the client raises it, and fetched again."""
    with pytest.raises(CorruptRecordException):
        TolerantRecords(b"\0" * 8 + (2).to_bytes(4, "big") + b"\0\0").next_batch()


def test_large_but_lawful_batches_pass():
    """Nine megabytes that compress to almost nothing are what a candidate may be."""
    for codec in CODECS:
        [record] = read(batch_of([b"x" * (9 * MIB)], codec=codec))
        assert len(record.value) == 9 * MIB


def test_snappy_says_its_length_in_both_forms():
    """Plain and framed."""
    data = b"abc" * 100_000
    assert snappy_length(bytes(cramjam.snappy.compress_raw(data))) == len(data)
    assert snappy_length(snappy_encode(data)) == len(data)
    assert snappy_length(b"") == 0
    assert snappy_length(b"\xff" * 20) > tolerance.MAX_BATCH_BYTES


def test_gzip_of_several_members_is_one_text():
    """Concatenated members are decompressed, and counted together."""
    member = gzip.compress(b"a" * 1000)
    assert tolerance._gzip(member * 3) == b"a" * 3000
    bomb = gzip.compress(b"\0" * (30 * MIB))
    with pytest.raises(DecompressedTooLarge):
        tolerance._gzip(bomb * 3)


def test_installing_twice_changes_nothing():
    """The replacement is not wrapped again."""
    before = default_records.snappy_decode
    tolerance.install()
    assert default_records.snappy_decode is before
