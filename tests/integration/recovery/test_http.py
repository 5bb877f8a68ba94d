"""Recovery over HTTP: exact bytes, rows and events, misses that stay misses, and nobody else's fleet."""

import asyncio
from datetime import UTC, datetime
from uuid import uuid4

import pytest

from tests.integration.recovery.conftest import FLIGHT, SUMMARY, output, tool_result
from winnow.compaction.recovered import given_key
from winnow.contracts.envelope import decode
from winnow.contracts.events import RuntimeEvent, sha256
from winnow.contracts.vocabulary import Mode
from winnow.storage import boundaries, boundary_trail, erase, originals, raw, recovery, runtime_events
from winnow.storage.values import decompress


async def test_an_entry_comes_back_byte_for_byte(house):
    """A pruned entry is listed with a handle, and the handle gives exactly the bytes that the candidate has there."""
    committed = await house.compact()
    assert committed.pruned == 2
    first, second = await house.pruned()
    assert (first["n"], first["section"], first["reason"], first["asked_back"]) == (2, "Open TODOs", "score", False)
    assert second["excerpt"] == "- call the über-desk"
    answer = await house.ask(second["handle"])
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/octet-stream")
    assert answer.content == "- call the über-desk\n".encode()
    assert answer.content in SUMMARY.encode()
    assert answer.headers["etag"] == f'"{sha256(answer.content)}"'
    assert (answer.headers["winnow-kind"], answer.headers["winnow-source"]) == ("candidate", "false")
    assert answer.headers["winnow-boundary-id"] == str(committed.boundary_id)
    whole = await house.ask(committed.candidate_handle)
    assert whole.content == SUMMARY.encode()


async def test_a_recovery_is_a_row_and_an_event_once(house):
    """A recovery is stored with its event in one transaction; asked for again under the same id it is still one."""
    await house.compact()
    handle = (await house.pruned())[0]["handle"]
    event_id = str(uuid4())
    for _ in range(2):
        answer = await house.ask(handle, run="sub agent/7", event_id=event_id)
        assert answer.content == b"- rebook via Lisbon on Friday\n"
    (row,) = await house.rows("SELECT * FROM recoveries WHERE fleet = $1")
    assert (row["via"], row["run"], row["part"], row["kind"], row["source"]) == ("gateway", "sub agent/7", "e2", "candidate", False)
    assert (row["bytes"], str(row["event_id"]), row["handle"]) == (len(answer.content), event_id, handle.partition(".")[0])
    (queued,) = await house.rows("SELECT body, encoding, key FROM outbox WHERE fleet = $1 AND topic = 'winnow.runtime.v1'")
    event = decode(RuntimeEvent, decompress(queued["body"], queued["encoding"]))
    assert (event.kind, event.handle, event.part, event.recovery_tool) == ("recovered", row["handle"], "e2", True)
    assert (str(event.event_id), event.run, queued["key"]) == (event_id, "sub agent/7", f"{house.fleet}/sub agent/7")
    (pin,) = await house.rows("SELECT run, n FROM pinned_entries WHERE fleet = $1")
    assert pin == {"run": "r", "n": 2}
    assert [e["asked_back"] for e in await house.pruned()] == [True, False]


async def test_an_event_id_is_one_recovery(house):
    """Under the id of one recovery nothing else is given: it would be no row, no event, and unknown when it comes back in a history."""
    await house.compact()
    one, two = (e["handle"] for e in await house.pruned())
    event_id = str(uuid4())
    assert (await house.ask(one, event_id=event_id)).status_code == 200
    for answer in (
        await house.ask(two, event_id=event_id),
        await house.ask(one, event_id=event_id, end=5),
        await house.ask(one.partition(".")[0], event_id=event_id),
    ):
        assert (answer.status_code, answer.json()["reason"]) == (422, "invalid")
    assert [r["part"] for r in await house.rows("SELECT part FROM recoveries WHERE fleet = $1")] == ["e2"]
    assert [r["n"] for r in await house.rows("SELECT n FROM pinned_entries WHERE fleet = $1")] == [2]


@pytest.mark.parametrize("handled", [False, True], ids=["waits for the bus", "was handled"])
@pytest.mark.parametrize("said", [{"kind": "run_ended"}, {"kind": "recovered", "part": "e1"}], ids=["another kind", "another entry"])
async def test_the_id_of_another_event_recovers_nothing(house, said, handled):
    """What a runtime reported under an id would be told in the place of what the gateway gives: it gives nothing, and notes nothing."""
    event_id = await reported(house, said, handled=handled)
    handle = (await house.pruned())[0]["handle"]
    before = await house.rows("SELECT via FROM recoveries WHERE fleet = $1")
    answer = await house.ask(handle, event_id=event_id)
    assert (answer.status_code, answer.json()["reason"], b"Lisbon" in answer.content) == (422, "invalid", False)
    assert await house.rows("SELECT via FROM recoveries WHERE fleet = $1") == before
    assert (await house.ask(handle, event_id=str(uuid4()))).status_code == 200


@pytest.mark.parametrize("handled", [False, True], ids=["waits for the bus", "was handled"])
async def test_what_was_reported_before_it_is_asked_is_known_when_it_comes_back(house, handled):
    """Under one id it is one recovery, and the bytes that are given are noted once, so that they are no evidence by themselves."""
    event_id = await reported(house, {"kind": "recovered", "part": "e2"}, handled=handled)
    handle = (await house.pruned())[0]["handle"]
    for _ in range(3):
        assert (await house.ask(handle, event_id=event_id)).content == b"- rebook via Lisbon on Friday\n"
    async with house.stage.db.transaction() as tx:
        assert await recovery.given(tx, house.fleet, [given_key("- rebook via Lisbon on Friday\n")]) != {}
        [boundary] = (await boundaries.page(tx, house.fleet)).boundaries
        assert [(r.part, r.asked_back) for r in (await boundary_trail.load(tx, boundary)).recoveries] == [("e2", True)]
    rows = await house.rows("SELECT event_id, given_key FROM recoveries WHERE fleet = $1")
    assert sum(r["event_id"] is not None for r in rows) == sum(r["given_key"] is not None for r in rows) == 1


async def reported(house, said, *, handled):
    """Report an event over HTTP, and let the drift monitor's part happen where it was `handled`; its id."""
    committed = await house.compact()
    event_id = str(uuid4())
    body = {"run": "r", "event_id": event_id} | said | ({"handle": committed.candidate_handle} if said["kind"] == "recovered" else {})
    assert (await house.stage.http.post("/v1/runtime-events", json=body)).status_code == 202
    if handled:
        event = RuntimeEvent.model_validate(body | {"fleet": house.fleet, "at": datetime.now(UTC).isoformat()})
        async with house.stage.db.transaction() as tx:
            await runtime_events.store(tx, [event], now=datetime.now(UTC))
            await raw.execute(tx, "DELETE FROM outbox WHERE fleet = $1 AND topic = 'winnow.runtime.v1'", house.fleet)
    return event_id


async def test_a_look_is_no_recovery_by_an_agent(house):
    """Reading an original is noted, and neither told as an event nor pins anything."""
    await house.compact()
    handle = (await house.pruned())[0]["handle"]
    answer = await house.stage.http.get(f"/v1/originals/{handle}")
    assert answer.content == b"- rebook via Lisbon on Friday\n"
    (row,) = await house.rows("SELECT event_id, part FROM recoveries WHERE fleet = $1")
    assert row == {"event_id": None, "part": "e2"}
    assert await house.rows("SELECT FROM outbox WHERE fleet = $1 AND topic = 'winnow.runtime.v1'") == []
    assert await house.rows("SELECT FROM pinned_entries WHERE fleet = $1") == []
    assert house.counted("winnow_recoveries_total", via="look", result="given") == 1


async def test_a_message_comes_back_as_what_it_is(house):
    """The text of a message comes back exactly, marked as a source only where an environment returned it."""
    await house.compact()
    (hit,) = await house.search("seat 14C")
    assert (hit["what"], hit["kind"], hit["origin"], hit["tool"], hit["pruned"]) == ("message", "environment", "observation", "shell", None)
    answer = await house.ask(hit["handle"])
    assert (answer.text, answer.headers["winnow-source"]) == (FLIGHT, "true")
    (action,) = [h for h in await house.search("search") if h["kind"] == "action"]
    answer = await house.ask(action["handle"])
    assert (answer.text, answer.headers["winnow-source"]) == ("[tool call] search: {}", "false")


async def test_parts_and_misses(house):
    """What is not there is not found, what was erased is gone, and each is counted as that and as nothing else."""
    committed = await house.compact()
    candidate, history = committed.candidate_handle, committed.history_handle
    strangers = (
        f"{candidate}.e99", f"{candidate}.m1", f"{history}.e1", f"{history}.m99", originals.new_handle(), f"{originals.new_handle()}.e1",
        "x", "", f"{candidate}.e", f"{candidate}.e1.e2", f"{candidate}.x1", f"{candidate}.e{'9' * 30}", f"{candidate} ", "a\x00" * 20,
        "é" * 30, f"{candidate}.e١", "../" * 20,
    )  # fmt: skip
    for handle in strangers:
        answer = await house.ask(handle)
        assert (answer.status_code, answer.json()["reason"]) == (404, "not_found"), handle
    assert house.counted("winnow_recoveries_total", via="agent", result="not_found") == len(strangers)
    async with house.stage.db.transaction() as tx:
        await erase.erase_run(tx, house.fleet, "r", by="test", now=datetime.now(UTC))
    for handle in (candidate, f"{candidate}.e1", f"{history}.m1"):
        answer = await house.ask(handle)
        assert (answer.status_code, answer.json()["reason"]) == (410, "gone")
    assert house.counted("winnow_recoveries_total", via="agent", result="gone") == 3
    assert house.counted("winnow_recoveries_total", via="agent", result="given") == 0
    assert await house.rows("SELECT FROM recoveries WHERE fleet = $1") == []


async def test_pages_of_bytes_are_the_whole(house):
    """Cut into pages, a text is the same bytes, and no character is split."""
    text = "## Décisions\n- " + "日本語のテキスト, ".join("über" for _ in range(60)) + "\n"
    committed = await house.compact(text)
    got, at = b"", 0
    while True:
        answer = await house.ask(committed.candidate_handle, start=at, end=at + 100)
        answer.content.decode()
        got += answer.content
        at += len(answer.content)
        if answer.headers.get("content-range") is None or at == len(text.encode()):
            break
        assert answer.status_code == 206
        assert answer.headers["content-range"] == f"bytes {at - len(answer.content)}-{at - 1}/{len(text.encode())}"
    assert got == text.encode()


async def test_a_stretch_without_bytes_is_no_recovery(house):
    """At the end, behind it, or from a place to itself nothing is given: it is an error that says the size, no row and no pin."""
    text = "## Décisions\n- über alles\n"
    committed = await house.compact(text)
    for stretch in ({"start": 10**6}, {"start": len(text.encode())}, {"start": 4, "end": 4}):
        answer = await house.ask(committed.candidate_handle, **stretch)
        assert answer.status_code == 422
        assert f"it has {len(text.encode())} bytes" in answer.json()["detail"]
    assert await house.rows("SELECT FROM recoveries WHERE fleet = $1") == []
    assert house.counted("winnow_recoveries_total", via="agent", result="given") == 0


async def test_hostile_bodies_are_refused(house):
    """A body that is no request is answered 422 and quotes nothing of it."""
    for content in (b"", b"{", b"[]", b'{"handle": 5}', b'{"handle": "secret", "start": -1}', b'{"handle": "secret", "run": "\\u0000"}',
                    b'{"handle": "' + b"x" * 300 + b'"}', b'{"handle": "secret", "event_id": "no"}', b"\xff\xfe"):  # fmt: skip
        answer = await house.stage.http.post("/v1/recoveries", content=content)
        assert answer.status_code == 422, content
        assert "secret" not in answer.text
    assert (await house.stage.http.post("/v1/recoveries", content=b"x" * 70_000)).status_code == 413


async def test_another_fleet_gets_nothing(house, other):
    """A key of another fleet finds neither handle nor run nor words, and is answered as for what never was."""
    committed = await house.compact()
    handle = (await house.pruned())[0]["handle"]
    never = {"handle": f"{originals.new_handle()}.e1"}
    for text in (handle, committed.candidate_handle, committed.history_handle, f"{committed.history_handle}.m1"):
        answer, miss = await other.post("/v1/recoveries", json={"handle": text}), await other.post("/v1/recoveries", json=never)
        assert (answer.status_code, answer.json()["detail"]) == (404, miss.json()["detail"])
        assert (await other.get(f"/v1/originals/{text}")).status_code == 404
    assert (await other.get("/v1/pruned-entries", params={"run": "r"})).status_code == 404
    assert (await other.get("/v1/search", params={"q": "flight", "run": "r"})).status_code == 404
    assert (await other.get("/v1/search", params={"q": "flight"})).json()["items"] == []
    assert await house.rows("SELECT FROM recoveries WHERE fleet = $1 OR fleet LIKE $1 || '-%'") == []


async def test_keys_and_roles(house):
    """Without a key nothing is told, and a grader's key reads but asks nothing back."""
    await house.compact()
    handle = (await house.pruned())[0]["handle"]
    async with house.stage.client(None) as nobody:
        for answer in (
            await nobody.post("/v1/recoveries", json={"handle": handle}),
            await nobody.get("/v1/search", params={"q": "flight"}),
            await nobody.get("/v1/pruned-entries", params={"run": "r"}),
        ):
            assert answer.status_code == 401
    key, _ = await house.stage.new_key(role="grader")
    async with house.stage.client(key) as grader:
        assert (await grader.post("/v1/recoveries", json={"handle": handle})).status_code == 403
        assert (await grader.get("/v1/search", params={"q": "flight"})).status_code == 200


async def test_only_what_was_pruned_is_listed(house):
    """In annotate mode the agent keeps its own candidate, so nothing is listed as pruned and no verdict shows."""
    await house.compact(mode=Mode.ANNOTATE)
    assert await house.pruned() == []
    assert {hit["pruned"] for hit in await house.search("Lisbon")} == {None}
    await house.compact(run="s")
    assert {hit["pruned"] for hit in await house.search("Lisbon", run="s")} == {True}
    assert {hit["pruned"] for hit in await house.search("HAT136", run="s") if hit["what"] == "entry"} == {False}


async def test_lists_are_paged(house):
    """Pages follow each other without a gap or a repetition, and a cursor that is none is refused."""
    for index in range(1, 4):
        await house.compact(SUMMARY.replace("Friday", f"day {index}"), index=index)
    everything = await house.pruned()
    assert len(everything) == 6
    assert [e["index"] for e in everything] == [3, 3, 2, 2, 1, 1]
    shown, cursor = [], None
    while True:
        page = (
            await house.stage.http.get("/v1/pruned-entries", params={"run": "r", "limit": 4} | ({"cursor": cursor} if cursor else {}))
        ).json()
        shown += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert shown == everything
    found = await house.search("rebook day flight")
    shown, cursor = [], None
    while True:
        page = (
            await house.stage.http.get("/v1/search", params={"q": "rebook day flight", "limit": 2} | ({"cursor": cursor} if cursor else {}))
        ).json()
        shown += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert shown == found
    assert page["complete"]
    for path in ("/v1/pruned-entries?run=r", "/v1/search?q=x", "/v1/boundaries?run=r"):
        for cursor in ("x", "AAAA", "MjAyNi0wMS0wMVQwMDowMDowMCswMDowMB94", "MDAwMS0wMS0wMVQwMDowMDowMCsyMzo1OR81"):
            answer = await house.stage.http.get(f"{path}&cursor={cursor}")
            assert (answer.status_code, answer.json()["reason"]) == (422, "bad_cursor"), (path, cursor)


async def test_hostile_queries_find_nothing(house):
    """A query is words, whatever signs it is made of: it finds nothing, and harms nothing."""
    await house.compact()
    for query in (
        "*" * 1000, "the and of", "%_%'; DROP TABLE runs; --", "\\", "(((((", "a" * 1000, "日本語", "\x00", "\u202e", "🤷" * 99, ":*&|!",
    ):  # fmt: skip
        assert await house.search(query) == [], query
    assert (await house.stage.http.get("/v1/search", params={"q": "x" * 1001})).status_code == 422
    assert len(await house.search("über-desk")) == 1


async def test_a_search_does_not_find_itself(house):
    """What the recovery tools gave is not found again: an agent that searches twice would read its own first search."""
    listed = "rebook via Lisbon was found"
    await house.compact(history=(output(1, FLIGHT), tool_result(2, listed, "winnow_search_history")))
    assert {hit["what"] for hit in await house.search("Lisbon")} == {"entry"}


async def test_too_many_searches_are_told_to_come_back(house):
    """Beyond what the gateway searches at once the answer is 503, and it is counted."""
    await house.compact()
    gateway = house.stage.service
    searches = gateway._server._server.config.app._app.state.parts.gateway._searches
    held = [await searches.acquire() for _ in range(4)]
    answer = await house.stage.http.get("/v1/search", params={"q": "flight"})
    assert (answer.status_code, answer.json()["reason"], "retry-after" in answer.headers) == (503, "overloaded", True)
    assert house.counted("winnow_recovery_searches_total", tool="search_history", result="refused") == 1
    for _ in held:
        searches.release()
    answers = await asyncio.gather(*(house.search("flight") for _ in range(3)))
    assert all(answers)


async def test_what_was_not_searched_is_said(house, monkeypatch):
    """Where histories are larger than one search reads, entries are searched all the same, and the answer says that it is not complete."""
    await house.compact()
    monkeypatch.setattr("winnow.storage.search.MOST_BYTES", 10)
    page = (await house.stage.http.get("/v1/search", params={"q": "HAT136 seat"})).json()
    assert ([hit["what"] for hit in page["items"]], page["complete"], page["boundaries"]) == (["entry"], False, 1)


async def test_entries_are_read_as_far_as_there_is_room(house, monkeypatch):
    """Where summaries hold more entries than one search reads, the newest are searched, and the answer says that it is not complete."""
    await house.compact()
    await house.compact(SUMMARY.replace("Lisbon", "Porto"), index=2)
    for name, most in (("MOST_ENTRIES", 3), ("MOST_ENTRY_BYTES", len(SUMMARY.encode()))):
        with monkeypatch.context() as patched:
            patched.setattr(f"winnow.storage.search.{name}", most)
            page = (await house.stage.http.get("/v1/search", params={"q": "Lisbon Porto"})).json()
        (entry,) = [hit for hit in page["items"] if hit["what"] == "entry"]
        assert ("Porto" in entry["excerpt"], page["complete"], page["boundaries"]) == (True, False, 2), name
