"""Recovery through the SDK, with and without an event loop."""

import asyncio
from uuid import uuid4

import pytest

from tests.integration.recovery.conftest import FLIGHT, SUMMARY
from winnow.client import HttpTransport, SyncWinnowClient, WinnowClient
from winnow.contracts.errors import NotFound, Permanent
from winnow.storage import originals


async def test_what_was_pruned_is_asked_back(house):
    """The client lists what was pruned, finds it by its words, and gets its exact bytes; a retried request is one recovery."""
    committed = await house.compact()
    async with WinnowClient(HttpTransport(house.stage.service.url, house.stage.key), fleet=house.fleet) as client:
        page = await client.pruned_entries("r")
        assert [e.excerpt for e in page.items] == ["- rebook via Lisbon on Friday", "- call the über-desk"]
        hit = next(h for h in (await client.search_history("Lisbon", run="r")).items if h.what == "entry")
        assert (hit.handle, hit.pruned) == (page.items[0].handle, True)
        event_id = uuid4()
        for _ in range(2):
            got = await client.expand(hit.handle, event_id=event_id)
            assert (got.text, got.kind, got.source, got.whole) == ("- rebook via Lisbon on Friday\n", "candidate", False, True)
        assert got.boundary_id == committed.boundary_id
        assert len(await house.rows("SELECT FROM recoveries WHERE fleet = $1")) == 1
        piece = await client.expand(committed.candidate_handle, start=3, end=12)
        assert (piece.data, piece.start, piece.end, piece.size, piece.whole) == (
            SUMMARY.encode()[3:12],
            3,
            12,
            len(SUMMARY.encode()),
            False,
        )
        output = next(h for h in (await client.search_history("seat")).items if h.origin == "observation")
        assert (await client.expand(output.handle)).text == FLIGHT


async def test_misses_are_errors(house, other):
    """What is not there, another fleet's, or no handle at all is an error of its own, never empty bytes."""
    await house.compact()
    entry = (await house.pruned())[0]["handle"]
    key, _ = await house.stage.new_key(f"{house.fleet}-other")
    async with WinnowClient(HttpTransport(house.stage.service.url, key)) as client:
        for handle in (entry, originals.new_handle(), "nonsense", "\x00", "../runs", ""):
            with pytest.raises(NotFound):
                await client.expand(handle)
        for wrong in ({"handle": "x" * 300}, {"handle": entry, "start": -1}, {"handle": entry, "run": "\x00"}):
            with pytest.raises(Permanent):
                await client.expand(**wrong)
        with pytest.raises(NotFound):
            await client.pruned_entries("r")
        with pytest.raises(NotFound):
            await client.search_history("flight", run="r")
        with pytest.raises(Permanent):
            await client.search_history("")


async def test_bytes_that_are_no_text_come_back(house):
    """Bytes that are not UTF-8 come back exactly, and say that they are no text."""
    exact = bytes(range(256)) * 4
    async with WinnowClient(HttpTransport(house.stage.service.url, house.stage.key)) as client:
        claim = (await house.stage.http.post("/v1/originals", content=exact)).json()
        with pytest.raises(Permanent, match="which run asks"):
            await client.expand(claim["handle"])
        got = await client.expand(claim["handle"], run="r")
        assert (got.data, got.text) == (exact, None)
    (row,) = await house.rows("SELECT given_key, source, bytes FROM recoveries WHERE fleet = $1")
    assert row == {"given_key": None, "source": None, "bytes": len(exact)}


async def test_without_an_event_loop(house):
    """The synchronous client does the same."""
    await house.compact()

    def work() -> bytes:
        with SyncWinnowClient(HttpTransport(house.stage.service.url, house.stage.key)) as client:
            (hit,) = client.search_history("über-desk", limit=1).items
            assert client.pruned_entries("r").items[1].handle == hit.handle
            return client.expand(hit.handle).data

    assert await asyncio.to_thread(work) == "- call the über-desk\n".encode()
