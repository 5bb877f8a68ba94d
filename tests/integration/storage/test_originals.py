"""Originals: exact bytes by content and by handle, within their fleet, until they are erased or expire."""

import asyncio
import secrets
import zlib
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.integration.storage.builders import candidate, stored
from winnow.contracts import limits
from winnow.contracts.errors import Gone, HashMismatch, NotFound, TooLarge
from winnow.storage import originals, raw, retention, values
from winnow.storage.keys import ContentKey
from winnow.storage.originals import Content, Kind, NewHandle


async def _handle(db, content: Content, **more) -> str:
    handle = originals.new_handle()
    async with db.transaction() as tx:
        await originals.put(tx, [content])
        await originals.put_handles(tx, [NewHandle(handle=handle, fleet=content.fleet, sha256=content.sha256, kind=Kind.HISTORY, **more)])
    return handle


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.one_of(st.binary(max_size=2000), st.text(max_size=500).map(lambda t: t.encode("utf-8", "surrogatepass"))))
async def test_bytes_are_exact(database, data):
    """Whatever is stored comes back byte for byte, compressed or not."""
    from winnow.storage.database import Database

    async with Database(database.dsn) as db, db.transaction() as tx:
        content = Content.of("any", data * 3)
        await originals.put(tx, [content, content])
        assert await originals.get(tx, [content.key, ContentKey("any", "0" * 64)]) == {content.key: data * 3}


async def test_content_is_stored_once_a_fleet(db, fleet, now):
    """The same bytes are one row in a fleet and another row in another fleet."""
    data = secrets.token_bytes(1000)
    async with db.transaction() as tx:
        for _ in range(2):
            await originals.put(tx, [Content.of(fleet, data), Content.of("other", data)])
        rows = await raw.fetch(tx, "SELECT fleet, size, encoding FROM originals WHERE sha256 = $1", Content.of(fleet, data).sha256)
    assert sorted((r["fleet"], r["size"], r["encoding"]) for r in rows) == sorted([(fleet, 1000, "raw"), ("other", 1000, "raw")])


async def test_what_must_be_there(db, fleet):
    """An original that is only referred to is touched where it is there, and missed where it is not."""
    there, new = Content.of(fleet, secrets.token_bytes(100)), Content.of(fleet, secrets.token_bytes(100))
    async with db.transaction() as tx:
        await originals.put(tx, [there])
        await raw.execute(tx, "UPDATE originals SET touched_at = touched_at - interval '1 day' WHERE fleet = $1", fleet)
        await originals.put(tx, [new], kept=[there.key, new.key])
        rows = await raw.fetch(tx, "SELECT 1 FROM originals WHERE fleet = $1 AND touched_at > now() - interval '1 hour'", fleet)
        assert len(rows) == 2
        with pytest.raises(Gone):
            await originals.put(tx, [], kept=[ContentKey(fleet, "0" * 64)])


async def test_compression(db, fleet):
    """What compresses is stored compressed."""
    content = Content.of(fleet, "the same again and again " * 1000)
    async with db.transaction() as tx:
        await originals.put(tx, [content])
        row = await raw.fetch_one(tx, "SELECT encoding, size, length(data) AS stored FROM originals WHERE sha256 = $1", content.sha256)
    assert (row["encoding"], row["size"]) == ("zstd", len(content.data))
    assert row["stored"] < len(content.data) / 10


@pytest.mark.parametrize("data", [b"", b"short", b"\x00\xff" * 10_000, "the same again \u00e9 ".encode() * 500])
def test_packing_and_what_was_packed_before(data):
    """What is packed comes back to the byte, what zlib packed too; an unknown encoding is an error, never taken for the bytes."""
    assert values.decompress(*values.compress(data)) == data
    assert values.decompress(zlib.compress(data), "zlib") == data
    with pytest.raises(values.UnknownEncoding, match="brotli"):
        values.decompress(data, "brotli")


@pytest.mark.parametrize("size", [100, 300 * limits.KIB])
@pytest.mark.parametrize("there", [False, True])
async def test_originals_and_handles_at_once(db, fleet, now, size, there):
    """Handles are stored with their originals, whether these are small or large, new or there already; and without any original."""
    content = Content.of(fleet, secrets.token_bytes(size))
    first, second = (
        NewHandle(handle=originals.new_handle(), fleet=fleet, sha256=content.sha256, kind=Kind.HISTORY, boundary_id=None) for _ in range(2)
    )
    async with db.transaction() as tx:
        if there:
            await originals.put(tx, [content])
        await originals.put(tx, [content], handles=[first])
        await originals.put(tx, [], handles=[second])
        for new in (first, second):
            assert (await originals.resolve(tx, fleet, new.handle, now=now)).data == content.data


async def test_what_is_collected_meanwhile_is_put_anew(db, fleet):
    """An original that another transaction deletes at this moment is waited for, and there again afterwards."""
    content = Content.of(fleet, secrets.token_bytes(100))
    async with db.transaction() as tx:
        await originals.put(tx, [content])
        await raw.execute(tx, "UPDATE originals SET touched_at = now() - interval '2 hours' WHERE sha256 = $1", content.sha256)

    async def put() -> None:
        async with db.transaction() as tx:
            await originals.put(tx, [content])

    async with db.transaction() as tx:
        await raw.execute(tx, "DELETE FROM originals WHERE sha256 = $1", content.sha256)
        putting = asyncio.create_task(put())
        async with db.reading() as other, asyncio.timeout(10):
            while not await raw.fetch(other, "SELECT 1 FROM pg_locks WHERE NOT granted"):  # noqa: ASYNC110  a server's lock sets no event
                await asyncio.sleep(0.01)
    await putting
    async with db.transaction() as tx:
        assert await originals.get(tx, [content.key]) == {content.key: content.data}


async def test_handles(db, fleet, now):
    """A handle gives back exact bytes to its own fleet; to another fleet, or made up, it is not found; expired, it is gone."""
    content = Content.of(fleet, b"\x00\xff exact")
    handle = await _handle(db, content, expires_at=now + timedelta(hours=1))
    async with db.transaction() as tx:
        found = await originals.resolve(tx, fleet, handle, now=now)
        assert (found.data, found.sha256, found.kind) == (content.data, content.sha256, Kind.HISTORY)
        for fleet_, handle_ in (
            ("another", handle),
            (fleet, originals.new_handle()),
            (fleet, "\x00"),
            (fleet, "\ud800"),
            (fleet, "' OR 1=1"),
        ):
            with pytest.raises(NotFound):
                await originals.resolve(tx, fleet_, handle_, now=now)
        with pytest.raises(Gone):
            await originals.resolve(tx, fleet, handle, now=now + timedelta(hours=1))


async def test_handles_are_random():
    """Handles have 32 url-safe characters and do not repeat."""
    handles = {originals.new_handle() for _ in range(100)}
    assert len(handles) == 100
    assert {len(h) for h in handles} == {32}


async def test_damage_is_noticed(db, fleet, now):
    """Stored bytes that do not have their hash any more are refused, not passed on."""
    content = Content.of(fleet, b"exact")
    handle = await _handle(db, content)
    async with db.transaction() as tx:
        await raw.execute(tx, "UPDATE originals SET data = $1 WHERE sha256 = $2 AND fleet = $3", b"rotten", content.sha256, fleet)
        with pytest.raises(HashMismatch):
            await originals.get(tx, [content.key])
        with pytest.raises(HashMismatch):
            await originals.resolve(tx, fleet, handle, now=now)


async def test_too_large(db, fleet, monkeypatch):
    """An original above the limit is refused before it reaches the database."""
    monkeypatch.setattr(limits, "ORIGINAL_BYTES", 10)
    async with db.transaction() as tx:
        with pytest.raises(TooLarge):
            await originals.put(tx, [Content.of(fleet, b"x" * 11)])


async def test_handles_of_a_boundary(db, fleet, now):
    """The handles of a boundary are found by kind, for one boundary and for a batch."""
    boundary = await stored(db, candidate(fleet), now)
    content = Content.of(fleet, candidate(fleet).candidate)
    handle = await _handle(db, content, boundary_id=boundary.boundary_id)
    async with db.transaction() as tx:
        assert await originals.handles_of(tx, fleet, boundary.boundary_id) == {Kind.HISTORY: handle}
        assert await originals.handles_of_many(tx, [boundary.key]) == {boundary.key: {Kind.HISTORY: handle}}


async def test_collection(db, fleet, now):
    """Collection deletes what nothing refers to and was not stored lately; what a boundary or a live handle refers to stays."""
    event = candidate(fleet, previous_summary="- before")
    boundary = await stored(db, event, now)
    loose, held, expired = (Content.of(fleet, secrets.token_bytes(50)) for _ in range(3))
    async with db.transaction() as tx:
        await originals.put(tx, [loose])
    await _handle(db, held)
    await _handle(db, expired, expires_at=now - timedelta(days=1))
    async with db.transaction() as tx:
        assert await retention.collect_originals(tx, fleet=fleet) == 0
        await raw.execute(tx, "UPDATE originals SET touched_at = now() - interval '2 hours' WHERE fleet = $1", fleet)
        assert await retention.collect_originals(tx, fleet=fleet) == 2
        left = {r["sha256"] for r in await raw.fetch(tx, "SELECT sha256 FROM originals WHERE fleet = $1", fleet)}
    assert left == {
        held.sha256, boundary.candidate_sha256, boundary.history_sha256, boundary.task_sha256, boundary.previous_sha256,
    }  # fmt: skip


async def test_collection_beside_a_put(db, fleet):
    """An original that is stored again while collection runs is not lost: the one waits for the other."""
    contents = [Content.of(fleet, secrets.token_bytes(50)) for _ in range(50)]
    async with db.transaction() as tx:
        await originals.put(tx, contents)
        await raw.execute(tx, "UPDATE originals SET touched_at = now() - interval '2 hours' WHERE fleet = $1", fleet)

    async def put() -> None:
        async with db.transaction() as tx:
            await originals.put(tx, contents)
            await asyncio.sleep(0)  # the transaction is open while the other one works
            await raw.fetch(tx, "SELECT pg_sleep(0.05)")

    async def collect() -> int:
        async with db.transaction() as tx:
            return await retention.collect_originals(tx, fleet=fleet)

    await asyncio.gather(put(), collect(), put())
    async with db.transaction() as tx:
        assert await originals.get(tx, [c.key for c in contents]) == {c.key: c.data for c in contents}
