"""Who may do what: keys, roles, fleets."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from tests.integration.gateway.conftest import body
from winnow.storage import api_keys


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", "Bearer wnw_", "Bearer wnw_" + "A" * 43, "Basic eDp5", "Bearer x\ty", "Bearer " + "w" * 20_000, "wnw_x"],
)
async def test_without_a_key_that_works_there_is_401(stage, authorization):
    """No key, half a key and somebody's guess are the same answer, with the way to do it right."""
    async with stage.client(None) as http:
        headers = {} if authorization is None else {"authorization": authorization}
        answer = await http.get("/v1/runs", headers=headers)
    assert (answer.status_code, answer.json()["reason"]) == (401, "unauthorised")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("gateway_settings", [{"gateway_key_cache_s": 0}])
async def test_a_revoked_key_is_refused(stage):
    """Without the cache, a key ends with its revocation."""
    secret, key_id = await stage.new_key()
    async with stage.client(secret) as http:
        assert (await http.get("/v1/runs")).status_code == 200
        async with stage.db.transaction() as tx:
            await api_keys.revoke(tx, key_id, by="test", now=datetime.now(UTC))
        assert (await http.get("/v1/runs")).status_code == 401


async def test_a_key_is_remembered_for_a_moment(stage):
    """Requests with a known key do not ask the database for it, which is why a revocation takes up to the cache's time."""
    async with stage.client(stage.key) as http:
        assert (await http.get("/v1/runs")).status_code == 200
        stage.service._server._server.config.app._app.state.keys._database = None
        assert (await http.get("/v1/runs")).status_code == 200


async def test_a_fleet_sees_itself_alone(stage):
    """Another fleet's boundary, entries, runs and originals are not there, whoever knows their names."""
    said = await stage.submit()
    claim = (await stage.http.post("/v1/originals", content=b"mine")).json()
    secret, _ = await stage.new_key(f"g{uuid4().hex[:12]}")
    async with stage.client(secret) as other:
        assert (await other.get(f"/v1/boundaries/{said['boundary_id']}")).status_code == 404
        assert (await other.get(f"/v1/boundaries/{said['boundary_id']}/entries")).status_code == 404
        assert (await other.get(f"/v1/originals/{claim['handle']}")).status_code == 404
        assert (await other.get("/v1/runs")).json()["items"] == []
        assert (await other.get("/v1/boundaries", params={"run": "r"})).json()["items"] == []
        stolen = await other.post("/v1/boundaries", json=body(messages=claim))
        assert stolen.status_code == 422
        stolen = await other.post("/v1/boundaries", json=body(messages=claim | {"fleet": stage.fleet + "x"}))
        assert stolen.status_code == 422


async def test_the_fleet_is_the_keys(stage):
    """A body that names the key's fleet is fine, another one is 403, on every path that takes a fleet."""
    assert (await stage.http.post("/v1/boundaries", json=body(fleet=stage.fleet))).status_code == 202
    event = {"event_id": str(uuid4()), "run": "r", "kind": "run_ended", "at": "2026-11-30T00:00:00Z"}
    observation = {"event_id": str(uuid4()), "stream": "s", "unit": "r", "sampled": {"probability": 1, "at": "2026-11-30T00:00:00Z"}}
    for path, sent in (("boundaries", body()), ("runtime-events", event), ("observations", observation)):
        for fleet in ("other", "", 7, "*"):
            answer = await stage.http.post(f"/v1/{path}", json=sent | {"fleet": fleet})
            assert (answer.status_code, answer.json()["reason"]) == (403, "other_fleet"), (path, fleet)


async def test_a_grader_reads_and_observes(stage):
    """A grader's key sends observations and reads; it submits nothing."""
    secret, _ = await stage.new_key(role="grader")
    async with stage.client(secret) as grader:
        assert (await grader.get("/v1/runs")).status_code == 200
        sampled = {"event_id": str(uuid4()), "stream": "s", "unit": "r", "sampled": {"probability": 1, "at": "2026-11-30T00:00:00Z"}}
        assert (await grader.post("/v1/observations", json=sampled)).status_code == 202
        for path, sent in (("boundaries", body()), ("originals", {}), ("runtime-events", {"run": "r", "kind": "run_ended"})):
            answer = await grader.post(f"/v1/{path}", json=sent)
            assert (answer.status_code, answer.json()["reason"]) == (403, "forbidden"), path


async def test_an_auditor_reads_alone(stage):
    """An auditor's key reads what there is and changes nothing: not by a boundary, an upload, a runtime event or an observation."""
    said = await stage.submit()
    secret, _ = await stage.new_key(role="auditor")
    sampled = {"event_id": str(uuid4()), "stream": "s", "unit": "r", "sampled": {"probability": 1, "at": "2026-11-30T00:00:00Z"}}
    ended = {"run": "r", "kind": "run_ended"}
    async with stage.client(secret) as auditor:
        assert (await auditor.get(f"/v1/boundaries/{said['boundary_id']}")).status_code == 200
        assert (await auditor.get("/v1/runs")).status_code == 200
        for path, sent in (("boundaries", body()), ("originals", {}), ("runtime-events", ended), ("observations", sampled)):
            answer = await auditor.post(f"/v1/{path}", json=sent)
            assert (answer.status_code, answer.json()["reason"]) == (403, "forbidden"), path


@pytest.mark.parametrize("gateway_settings", [{"gateway_key_cache_s": 300}])
async def test_an_expired_key_is_refused(stage):
    """A key ends when it expires, however long verified keys are remembered."""
    soon = datetime.now(UTC) + timedelta(hours=1)
    async with stage.db.transaction() as tx:
        secret, _ = await api_keys.create(tx, stage.fleet, name="short", expires_at=soon, by="test", now=datetime.now(UTC))
    async with stage.client(secret) as http:
        assert (await http.get("/v1/runs")).status_code == 200
        stage.service._server._server.config.app._app.state.keys._now = lambda: soon
        assert (await http.get("/v1/runs")).status_code == 401


async def test_a_key_of_several_fleets(stage):
    """A request means the key's first fleet, or the one that it names; a fleet that the key does not cover is 403, whatever its name."""
    other, stranger = f"g{uuid4().hex[:12]}", f"h{uuid4().hex[:12]}"
    for fleet in (other, stranger):
        await stage.new_key(fleet)
    said = await stage.submit()
    async with stage.db.transaction() as tx:
        secret, _ = await api_keys.create(
            tx, other, also=[stage.fleet], name="both", role="auditor", by="test", now=datetime.now(UTC)
        )  # fmt: skip
    async with stage.client(secret) as http:
        assert (await http.get("/v1/runs")).json()["items"] == []
        named = {"winnow-fleet": stage.fleet}
        assert [r["run"] for r in (await http.get("/v1/runs", headers=named)).json()["items"]] == ["r"]
        assert (await http.get(f"/v1/boundaries/{said['boundary_id']}", headers=named)).status_code == 200
        assert (await http.get(f"/v1/boundaries/{said['boundary_id']}")).status_code == 404
        for fleet in (stranger, "", "*", "'; --", "f" * 64):
            answer = await http.get("/v1/runs", headers={"winnow-fleet": fleet})
            assert (answer.status_code, answer.json()["reason"]) == (403, "other_fleet"), fleet
    assert (await stage.http.get("/v1/runs", headers={"winnow-fleet": other})).status_code == 403


async def test_status_needs_no_key_and_tells_no_content(stage):
    """Supervisors and Prometheus have no key; ids, fleets and runs are in no metric."""
    await stage.submit(run="very-secret-run")
    async with stage.client(None) as http:
        assert (await http.get("/livez")).status_code == 200
        assert (await http.get("/readyz")).json()["checks"]["database"] == "ok"
        text = (await http.get("/metrics")).text
        assert (await http.get("/openapi.json")).json()["openapi"].startswith("3.1")
    assert 'winnow_http_requests_total{method="POST",route="/v1/boundaries",status="202"} 1.0' in text
    assert "very-secret-run" not in text
    assert stage.fleet not in text
