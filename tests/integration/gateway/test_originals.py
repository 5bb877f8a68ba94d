"""Originals: exact bytes in and out, and claim checks."""

import asyncio
from datetime import UTC, datetime
from uuid import uuid4

from tests.integration.gateway.conftest import body
from winnow.contracts import limits
from winnow.contracts.events import Candidate, Messages, sha256
from winnow.storage import originals

EXACT = bytes(range(256)) * 3 + b"\r\n\x00"


async def test_bytes_come_back_exactly(stage):
    """What was stored is what is given back, with its hash as ETag, and the recovery is noted."""
    claim = (await stage.http.post("/v1/originals", content=EXACT)).json()
    assert claim == {"fleet": stage.fleet, "handle": claim["handle"], "sha256": sha256(EXACT), "size": len(EXACT)}
    answer = await stage.http.get(f"/v1/originals/{claim['handle']}")
    assert answer.content == EXACT
    assert answer.headers["etag"] == f'"{sha256(EXACT)}"'
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["x-content-type-options"] == "nosniff"
    known = await stage.http.get(f"/v1/originals/{claim['handle']}", headers={"if-none-match": f'"x", "{sha256(EXACT)}"'})
    assert (known.status_code, known.content) == (304, b"")
    async with stage.db.transaction() as tx:
        rows = await tx.exec_driver_sql("SELECT via FROM recoveries WHERE fleet = $1", (stage.fleet,))
        assert set(rows.scalars()) == {"gateway"}


async def test_what_is_gone_is_410(stage):
    """Expired and erased handles are told apart from those that never were."""
    now = datetime.now(UTC)
    gone = originals.new_handle()
    async with stage.db.transaction() as tx:
        content = originals.Content.of(stage.fleet, b"old")
        await originals.put(tx, [content])
        new = originals.NewHandle(handle=gone, fleet=stage.fleet, sha256=content.sha256, kind=originals.Kind.TASK, expires_at=now)
        await originals.put_handles(tx, [new])
    answer = await stage.http.get(f"/v1/originals/{gone}")
    assert (answer.status_code, answer.json()["reason"]) == (410, "gone")
    never = await stage.http.get(f"/v1/originals/{originals.new_handle()}")
    assert (never.status_code, never.json()["reason"]) == (404, "not_found")


async def test_messages_are_stored_in_canonical_form(stage):
    """JSON messages have one stored form, whatever their spelling, so that the claim check and the inline form are one request."""
    messages = {"history": [{"kind": "user", "i": 0, "text": "hi", "is_error": False, "unknown": 1}], "retained": []}
    claim = (await stage.http.post("/v1/originals", json=messages)).json()
    assert claim["sha256"] == sha256(Messages.model_validate(messages).content())
    said = await stage.http.post("/v1/boundaries", json=body(messages=claim))
    assert said.status_code == 202
    inline = await stage.http.post("/v1/boundaries", json=body(history=messages["history"]))
    assert inline.status_code == 202
    assert inline.json()["boundary_id"] == said.json()["boundary_id"]


async def test_what_is_not_taken_as_an_original(stage):
    """Empty bodies, JSON that holds no messages and more than 64 MiB are refused."""
    for content, headers, status in (
        (b"", {}, 422),
        (b"{bad", {"content-type": "application/json"}, 422),
        (b'{"history": [1]}', {"content-type": "application/json; charset=utf-8"}, 422),
    ):
        answer = await stage.http.post("/v1/originals", content=content, headers=headers)
        assert answer.status_code == status
    port = int(stage.service.url.rsplit(":", 1)[1])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    stated = limits.ORIGINAL_BYTES + 1
    writer.write(
        f"POST /v1/originals HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {stage.key}\r\ncontent-length: {stated}\r\n\r\n".encode()
    )
    async with asyncio.timeout(10):
        assert b" 413 " in await reader.readline()
    writer.close()
    await writer.wait_closed()


async def test_a_claim_must_be_true(stage):
    """A claim check whose handle, hash or size is wrong is refused before anything is stored."""
    claim = (await stage.http.post("/v1/originals", content=Messages().content())).json()
    for change, reason in (
        ({"handle": originals.new_handle()}, "claim_lost"),
        ({"sha256": "0" * 64}, "hash_mismatch"),
        ({"size": 1}, "hash_mismatch"),
    ):
        answer = await stage.http.post("/v1/boundaries", json=body(messages=claim | change))
        assert (answer.status_code, answer.json()["reason"]) == (422, reason)
    both = await stage.http.post("/v1/boundaries", json=body(messages=claim, history=[{"i": 0, "kind": "user", "text": "x"}]))
    assert both.status_code == 422


async def test_a_claim_costs_no_memory(stage, monkeypatch):
    """A claim check is compared with what is stored without loading it: many at once, of 64 MiB each, would not fit."""
    claim = (await stage.http.post("/v1/originals", content=Messages().content())).json()

    async def loaded(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(originals, "resolve", loaded)
    assert (await stage.http.post("/v1/boundaries", json=body(messages=claim))).status_code == 202


async def test_a_large_upload_does_not_hold_up_others(stage):
    """While 32 MiB are stored, small requests are answered."""
    upload = asyncio.create_task(stage.http.post("/v1/originals", content=EXACT * 43_000))
    answers = []
    while not upload.done():
        answers.append((await stage.http.get("/v1/runs")).status_code)
    assert (await upload).status_code == 201
    assert set(answers) == {200}


async def test_a_committed_boundary_gives_its_candidate_back(stage):
    """The handles in a result lead to the exact candidate and messages."""
    text = body()["candidate"]
    said = await stage.submit()
    asked = Candidate.model_validate(body(fleet=stage.fleet))
    handle = originals.new_handle()
    async with stage.db.transaction() as tx:
        new = originals.NewHandle(
            handle=handle, fleet=stage.fleet, sha256=sha256(text), kind=originals.Kind.CANDIDATE, boundary_id=asked.boundary_id
        )
        await originals.put_handles(tx, [new])
    await stage.commit(asked, candidate_handle=handle)
    result = (await stage.http.get(f"/v1/boundaries/{said['boundary_id']}")).json()["result"]
    answer = await stage.http.get(f"/v1/originals/{result['candidate_handle']}")
    assert answer.content == text.encode()
    assert answer.headers["winnow-kind"] == "candidate"
    assert (await stage.http.get(f"/v1/originals/{uuid4().hex}")).status_code == 404
