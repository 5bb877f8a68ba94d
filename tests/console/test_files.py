"""Originals as files of the console."""

from datetime import UTC, datetime

from tests.console.place import TEXT
from winnow.storage import erase
from winnow.storage.originals import Kind


async def test_originals_are_files_to_the_byte(place):
    """Candidate, history, an entry and a message come as attachments that no browser opens or guesses at, and each look is noted."""
    async with place.person("runtime") as http:
        root = f"/console/fleets/{place.fleet}"
        page = (await http.get(f"{root}/boundaries/{place.boundary}")).text
        handles = await place.handles()
        for handle in handles.values():
            assert f"{root}/originals/{handle}" in page
        candidate = handles[Kind.CANDIDATE]
        assert f"{root}/originals/{candidate}.e1" in page
        answer = await http.get(f"{root}/originals/{candidate}")
        assert (answer.status_code, answer.content) == (200, TEXT.encode())
        assert answer.headers["content-type"] == "application/octet-stream"
        assert answer.headers["content-disposition"] == f'attachment; filename="candidate-{place.boundary}.txt"'
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert answer.headers["cross-origin-resource-policy"] == "same-origin"
        answer = await http.get(f"{root}/originals/{candidate}.e1")
        assert answer.content in TEXT.encode()
        assert answer.content.startswith(b"- Flight")
        assert answer.headers["content-disposition"].endswith('-e1.txt"')
        history = await http.get(f"{root}/originals/{handles[Kind.HISTORY]}")
        assert history.headers["content-disposition"].endswith('.json"')
        assert history.json()["history"]
        committed = await http.get(f"{root}/originals/{handles[Kind.COMMITTED]}")
        assert b"HAT136" in committed.content
        assert await place.looks() == [("candidate", None), ("candidate", "e1"), ("history", None), ("committed", None)]
        for wrong, status in ((f"{candidate}.e99", 404), ("x" * 32, 404), ("..%2f..%2fetc", 404), ("%00", 404), ("x" * 300, 404)):
            answer = await http.get(f"{root}/originals/{wrong}")
            assert answer.status_code == status, wrong
            assert answer.headers["content-type"].startswith("text/html")


async def test_an_erased_original_is_gone_and_offered_no_more(place):
    """A file of an erased run is answered 410 with a page that says so."""
    handle = (await place.handles())[Kind.CANDIDATE]
    async with place.db.transaction() as tx:
        await erase.erase_run(tx, place.fleet, "run-1", by="test", because="test", now=datetime.now(UTC))
    async with place.person("operator") as http:
        answer = await http.get(f"/console/fleets/{place.fleet}/originals/{handle}")
        assert (answer.status_code, "expired or was erased" in answer.text) == (410, True)
