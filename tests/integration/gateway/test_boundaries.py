"""Submitting boundaries and waiting for their results over HTTP."""

import asyncio
import json
from uuid import uuid4

import pytest

from tests.harness import eventually
from tests.integration.gateway.conftest import body
from tests.unit.client.answers import decision
from winnow.contracts.events import Candidate, Text, sha256
from winnow.contracts.vocabulary import Decision, Mode, Outcome, Reason


def of(stage, **fields) -> Candidate:
    return Candidate.model_validate(body(fleet=stage.fleet, **fields))


async def test_202_means_stored(stage):
    """When the answer comes, boundary, originals and the record for the bus are committed."""
    said = await stage.submit(task="T", history=[{"i": 0, "kind": "user", "text": "hi"}], previous_summary="- before")
    assert said["status"] == "received"
    async with stage.db.transaction() as tx:
        rows = await tx.exec_driver_sql("SELECT topic, key, run, body IS NOT NULL FROM outbox WHERE fleet = $1", (stage.fleet,))
        assert rows.all() == [("winnow.boundary.candidate.v1", f"{stage.fleet}/r", "r", True)]
        originals = await tx.exec_driver_sql("SELECT count(*) FROM originals WHERE fleet = $1", (stage.fleet,))
        assert originals.scalar_one() == 4
        boundaries = await tx.exec_driver_sql("SELECT boundary_id::text FROM boundaries WHERE fleet = $1", (stage.fleet,))
        assert boundaries.scalars().all() == [said["boundary_id"]]


async def test_the_result_comes_with_the_submission(stage):
    """With `wait_ms`, the answer is the committed result as soon as it is there."""
    asked = of(stage)
    request = asyncio.create_task(stage.http.post("/v1/boundaries?wait_ms=20000", json=body()))
    await eventually(lambda: stage.service._watch.waiting == 1)
    committed = await stage.commit(asked)
    answer = await request
    assert answer.status_code == 200
    assert answer.json()["status"] == "committed"
    assert answer.json()["result"] == json.loads(committed.model_dump_json())


async def test_a_read_waits_too(stage):
    """GET with `wait_ms` waits for the same thing; without, it tells how far the boundary is."""
    said = await stage.submit()
    path = f"/v1/boundaries/{said['boundary_id']}"
    assert (await stage.http.get(path)).json()["status"] == "received"
    assert (await stage.http.get(path, params={"wait_ms": 30})).json()["result"] is None
    requests = [asyncio.create_task(stage.http.get(path, params={"wait_ms": 20000})) for _ in range(5)]
    await eventually(lambda: stage.service._watch.waiting == 5)
    await stage.commit(of(stage))
    assert {(await r).json()["status"] for r in requests} == {"committed"}
    assert stage.service._watch.waiting == 0


async def test_a_lost_notification_is_made_up_for(stage):
    """Where Postgres's word is lost, a look at the table finds the result."""
    await stage.submit()
    asked = of(stage)
    stage.service._watch._notified = lambda payload: None
    stage.service._watch._connected = lambda: None
    request = asyncio.create_task(stage.http.get(f"/v1/boundaries/{asked.boundary_id}?wait_ms=20000"))
    await eventually(lambda: stage.service._watch.waiting == 1)
    await stage.db.close()
    async with stage.db.transaction() as tx:
        await tx.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'winnow-listen' AND datname = current_catalog"
        )
    await stage.commit(asked)
    assert (await request).json()["status"] == "committed"


async def test_a_resubmission_finds_what_is_there(stage):
    """The same boundary again is the same row and the same result, whatever its deadline; nothing is published twice."""
    await stage.submit()
    again = await stage.submit(deadline="2030-01-01T00:00:00Z")
    await stage.commit(of(stage))
    third = await stage.http.post("/v1/boundaries", json=body())
    assert third.status_code == 200
    assert third.json()["boundary_id"] == again["boundary_id"]
    async with stage.db.transaction() as tx:
        rows = await tx.exec_driver_sql("SELECT count(*) FROM outbox WHERE fleet = $1", (stage.fleet,))
        assert rows.scalar_one() == 1


async def test_the_same_id_with_other_content_is_a_conflict(stage):
    """409, and the first content stays."""
    same = str(uuid4())
    await stage.submit(boundary_id=same)
    answer = await stage.http.post("/v1/boundaries", json=body(boundary_id=same, candidate="- other"))
    assert (answer.status_code, answer.json()["reason"]) == (409, "id_conflict")
    assert (await stage.http.get(f"/v1/boundaries/{same}")).json()["candidate_sha256"] == sha256(body()["candidate"])


async def test_many_submit_the_same_at_once(stage):
    """Twenty copies at one moment are one boundary and one record for the bus."""
    answers = await asyncio.gather(*(stage.http.post("/v1/boundaries", json=body()) for _ in range(20)))
    assert {a.status_code for a in answers} == {202}
    assert len({a.json()["boundary_id"] for a in answers}) == 1
    async with stage.db.transaction() as tx:
        rows = await tx.exec_driver_sql("SELECT count(*) FROM outbox WHERE fleet = $1", (stage.fleet,))
        assert rows.scalar_one() == 1


async def test_a_shadow_gives_no_verdicts(stage):
    """In shadow mode the result has no decisions; they stand in the entries for people to read."""
    await stage.submit(mode="shadow")
    asked = of(stage, mode="shadow")
    await stage.commit(asked, mode=Mode.SHADOW, decisions=(decision(1, (8, 32), Decision.PRUNED),))
    answer = (await stage.http.get(f"/v1/boundaries/{asked.boundary_id}")).json()
    assert answer["result"]["decisions"] == []
    assert answer["mode"] == "shadow"


async def test_a_result_above_its_topics_limit_is_given_whole(stage):
    """A committed event that travels as a claim check is resolved for the reader."""
    await stage.submit()
    asked = of(stage)
    many = tuple(decision(n, (8, 32)).model_copy(update={"explanation": "x" * 500}) for n in range(1, 3000))
    await stage.commit(asked, decisions=many, mode=Mode.ANNOTATE)
    answer = (await stage.http.get(f"/v1/boundaries/{asked.boundary_id}")).json()
    assert len(answer["result"]["decisions"]) == 2999


async def test_a_rejection_is_a_result(stage):
    """A rejected boundary ends the wait, without a summary."""
    await stage.submit()
    asked = of(stage)
    await stage.commit(asked, outcome=Outcome.REJECTED, reason=Reason.TOO_LARGE, summary=None, committed_sha256=None)
    answer = (await stage.http.get(f"/v1/boundaries/{asked.boundary_id}?wait_ms=5000")).json()
    assert (answer["outcome"], answer["reason"], answer["result"]["summary"]) == ("rejected", "too_large", None)


async def test_pages_of_boundaries_and_runs(stage):
    """Keyset pages cover everything once, newest first; a cursor of another kind is refused."""
    for n in range(1, 8):
        await stage.submit(index=n, run=f"r{n % 2}", boundary_at=f"2026-11-{10 + n}T00:00:00Z")
    seen, cursor = [], None
    while True:
        page = (await stage.http.get("/v1/boundaries", params={"limit": 3} | ({"cursor": cursor} if cursor else {}))).json()
        seen += [b["index"] for b in page["items"]]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert seen == [7, 6, 5, 4, 3, 2, 1]
    of_run = (await stage.http.get("/v1/boundaries", params={"run": "r1"})).json()
    assert [b["index"] for b in of_run["items"]] == [7, 5, 3, 1]
    runs = (await stage.http.get("/v1/runs", params={"limit": 1})).json()
    assert runs["items"][0]["run"] == "r1"
    assert runs["items"][0]["boundaries"] == 4
    rest = (await stage.http.get("/v1/runs", params={"cursor": runs["next_cursor"]})).json()
    assert [r["run"] for r in rest["items"]] == ["r0"]
    for path in ("/v1/boundaries", "/v1/runs"):
        bad = await stage.http.get(path, params={"cursor": "\x00nonsense"})
        assert (bad.status_code, bad.json()["reason"]) == (422, "bad_cursor")


async def test_entries_of_a_boundary_nobody_knows(stage):
    """404 for an id that this fleet has not."""
    for path in (f"/v1/boundaries/{uuid4()}", f"/v1/boundaries/{uuid4()}/entries"):
        answer = await stage.http.get(path)
        assert (answer.status_code, answer.json()["reason"]) == (404, "not_found")


async def test_nul_bytes_are_content(stage):
    """Summaries and messages with NUL bytes are stored and come back exactly."""
    text = "- a\x00b\n"
    said = await stage.submit(candidate=text, history=[{"i": 0, "kind": "environment", "text": "\x00"}], task="\x00")
    assert said["candidate_sha256"] == sha256(text)
    asked = of(stage, candidate=text, history=[{"i": 0, "kind": "environment", "text": "\x00"}], task="\x00")
    await stage.commit(asked, summary=Text.of(text))
    answer = (await stage.http.get(f"/v1/boundaries/{said['boundary_id']}")).json()
    assert answer["result"]["summary"]["text"] == text


@pytest.mark.parametrize("gateway_settings", [{"gateway_max_waiting": 1}])
async def test_beyond_the_places_nobody_is_made_to_wait(stage):
    """When all places for waiting are taken, the answer comes at once."""
    first = asyncio.create_task(stage.http.post("/v1/boundaries?wait_ms=20000", json=body()))
    await eventually(lambda: stage.service._watch.waiting == 1)
    second = await stage.http.post("/v1/boundaries?wait_ms=20000", json=body(index=2))
    assert second.status_code == 202
    await stage.commit(of(stage))
    assert (await first).status_code == 200


@pytest.mark.parametrize("gateway_settings", [{"gateway_wait_cap_ms": 50}])
async def test_a_wait_is_capped(stage):
    """Whoever asks for an hour gets the cap."""
    answer = await stage.http.post("/v1/boundaries?wait_ms=3600000", json=body())
    assert answer.status_code == 202


async def test_who_waits_is_answered_at_shutdown(stage):
    """A stopping gateway answers waiting submissions with 202 and then ends."""
    request = asyncio.create_task(stage.http.post("/v1/boundaries?wait_ms=50000", json=body()))
    await eventually(lambda: stage.service._watch.waiting == 1)
    async with asyncio.timeout(20):
        await stage.service.stop()
    assert (await request).status_code == 202


async def test_a_postgres_that_drops_connections_is_survived(stage):
    """Connections that the server ended are made anew within the request."""
    await stage.submit()
    async with stage.db.transaction() as tx:
        await tx.exec_driver_sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'winnow-gateway' AND datname = current_catalog"
        )
    assert (await stage.submit(index=2))["index"] == 2


async def test_the_word_of_postgres_is_enough(stage, monkeypatch):
    """A commit wakes who waits without any look at the table."""
    monkeypatch.setattr("services.gateway.watch.LOOK_S", 3600)
    await eventually(lambda: stage.service._watch.listening)
    await stage.submit()
    request = asyncio.create_task(stage.http.get(f"/v1/boundaries/{of(stage).boundary_id}?wait_ms=30000"))
    await eventually(lambda: stage.service._watch.waiting == 1)
    await asyncio.sleep(1.1)  # the look that was already under way
    await stage.commit(of(stage))
    async with asyncio.timeout(10):
        assert (await request).json()["status"] == "committed"
