"""Limits of size, time and number, and hostile requests."""

import asyncio
import gzip
import json
import socket

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.harness import eventually
from tests.integration.gateway.conftest import body
from winnow.contracts import limits


def _problem(answer, status, reason):
    assert (answer.status_code, answer.json()["reason"]) == (status, reason), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["instance"] == answer.headers["x-request-id"]


async def test_what_is_no_boundary_is_422(stage):
    """Each wrong body has a reason, names the field and quotes nothing."""
    cases = [
        (b"", "invalid"),
        (b"{bad", "invalid"),
        (b"[]", "invalid"),
        (b"null", "invalid"),
        (b'"x"', "invalid"),
        (b"{}", "invalid"),
        (b"\xff\xfe", "invalid"),
        (b'{"candidate": "\\ud800"}', "invalid"),
        (b"[" * 100_000, "invalid"),
        (b'{"a":' * 50_000, "invalid"),
        (json.dumps(body(index=0)).encode(), "invalid"),
        (json.dumps(body(index="one")).encode(), "invalid"),
        (json.dumps(body(run="a\nb")).encode(), "invalid"),
        (json.dumps(body(run="r" * 201)).encode(), "invalid"),
        (json.dumps(body(mode="brutal")).encode(), "invalid"),
        (json.dumps(body(history=[{"i": 0, "kind": "user"}])).encode(), "invalid"),
        (json.dumps(body(candidate=None)).encode(), "invalid"),
        (json.dumps(body(boundary_id="x")).encode(), "invalid"),
        (json.dumps(body(candidate_sha256="0" * 64)).encode(), "hash_mismatch"),
        (json.dumps(body(previous_summary="- a", previous_sha256="0" * 64)).encode(), "hash_mismatch"),
        (json.dumps(body(candidate="x" * (limits.SUMMARY_BYTES + 1))).encode(), "too_large"),
        (json.dumps(body(tokens_before=float("nan"))).encode(), "invalid"),
    ]
    for sent, reason in cases:
        answer = await stage.http.post("/v1/boundaries", content=sent)
        assert answer.json()["reason"] == reason, sent[:60]
        assert answer.status_code == (413 if reason == "too_large" else 422)
        assert "parsed a.csv" not in answer.text


async def test_a_body_above_the_limit_is_413(stage):
    """Refused by its stated length before it is read, and by its real length where that was not stated; the answer says what to do."""

    async def chunks():
        for _ in range(9):
            yield b"x" * limits.MIB

    large = b"x" * (limits.CANDIDATE_BODY_BYTES + 1)
    for content in (large, chunks()):
        answer = await stage.http.post("/v1/boundaries", content=content)
        _problem(answer, 413, "too_large")
        assert "/v1/originals" in answer.json()["detail"]
    answer = await stage.http.post("/v1/runtime-events", content=b"x" * (64 * limits.KIB + 1))
    _problem(answer, 413, "too_large")


async def test_a_boundary_just_below_the_limit_is_taken(stage):
    """8 MiB of messages travel whole."""
    text = "0123456789abcdef" * 500_000
    said = await stage.submit(history=[{"i": 0, "kind": "environment", "text": text}])
    assert said["status"] == "received"


async def test_compressed_bodies_are_refused(stage):
    """No body can unfold in memory, because none may be folded."""
    for encoding in ("gzip", "deflate", "br", "zstd", "gzip, identity"):
        answer = await stage.http.post("/v1/boundaries", content=gzip.compress(b"x" * 100_000), headers={"content-encoding": encoding})
        _problem(answer, 415, "unsupported_encoding")


async def test_unknown_paths_and_methods_are_problems(stage):
    """Also what never reaches a route is a problem document."""
    _problem(await stage.http.get("/v2/boundaries"), 404, "not_found")
    _problem(await stage.http.get("/v1/boundaries/"), 404, "not_found")
    answer = await stage.http.request("PROPFIND", "/v1/boundaries")
    _problem(answer, 405, "method_not_allowed")
    assert (await stage.http.delete("/v1/boundaries")).headers["allow"] in {"GET, POST", "POST, GET", "POST", "GET"}
    _problem(await stage.http.get("/v1/boundaries/not-a-uuid"), 422, "invalid")
    _problem(await stage.http.get("/v1/boundaries", params={"limit": 501}), 422, "invalid")
    _problem(await stage.http.post("/v1/boundaries?wait_ms=-1", json=body()), 422, "invalid")
    _problem(await stage.http.post("/v1/boundaries?wait_ms=1e9", json=body()), 422, "invalid")
    _problem(await stage.http.post("/v1/boundaries?wait_ms=9" + "9" * 5000, json=body()), 422, "invalid")


@pytest.mark.parametrize("gateway_settings", [{"gateway_body_timeout_s": 0.2}])
async def test_a_body_that_does_not_arrive_is_408(stage):
    """A client that stops in the middle of its body is let go, with a reason."""
    port = int(stage.service.url.rsplit(":", 1)[1])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"POST /v1/boundaries HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {stage.key}\r\ncontent-length: 1000\r\n\r\n{{"
    writer.write(head.encode())
    async with asyncio.timeout(10):
        answer = await reader.readuntil(b"\r\n\r\n")
    assert b" 408 " in answer.splitlines()[0]
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize("gateway_settings", [{"gateway_lag_limit": 10, "gateway_retry_after_s": 7}])
async def test_a_pipeline_that_is_behind_gets_no_more(stage, monkeypatch):
    """Above the lag limit new boundaries are 429 with the time to wait; everything else works, also resubmission of what is stored."""
    said = await stage.submit()
    stage.service._relay._lag._lags = {("judge", "t"): 11}
    answer = await stage.http.post("/v1/boundaries", json=body(index=2))
    _problem(answer, 429, "overloaded")
    assert answer.headers["retry-after"] == "7"
    assert (await stage.http.get(f"/v1/boundaries/{said['boundary_id']}")).status_code == 200
    stage.service._relay._lag._lags = {("judge", "t"): 10}
    stage.service._relay._depth = 0
    assert (await stage.http.post("/v1/boundaries", json=body(index=2))).status_code == 202


@pytest.mark.parametrize("gateway_settings", [{"gateway_max_requests": 2}])
async def test_beyond_the_number_of_requests_is_503(stage):
    """Two wait, the third is sent away at once, health is still told."""
    waiting = [asyncio.create_task(stage.http.post("/v1/boundaries?wait_ms=30000", json=body(index=n))) for n in (1, 2)]
    await eventually(lambda: stage.service._watch.waiting == 2)
    answer = await stage.http.get("/v1/runs")
    _problem(answer, 503, "overloaded")
    assert answer.headers["retry-after"] == "1"
    assert (await stage.http.get("/livez")).status_code == 200
    stage.service._watch.drain()
    assert {(await w).status_code for w in waiting} == {202}


@pytest.mark.parametrize("gateway_settings", [{"gateway_body_budget_mib": 80}])
async def test_bodies_share_a_budget(stage):
    """Many large uploads at once are sent away rather than kept in memory, and the budget comes back."""
    stage.service._server._server.config.app._app.state.parts.bodies._budget = 10 * limits.MIB
    uploads = [stage.http.post("/v1/originals", content=bytes([n]) * (4 * limits.MIB)) for n in range(6)]
    codes = sorted(a.status_code for a in await asyncio.gather(*uploads))
    assert set(codes) <= {201, 503}
    assert 201 in codes
    assert stage.service._server._server.config.app._app.state.parts.bodies.held == 0
    assert (await stage.http.post("/v1/originals", content=b"x" * limits.MIB)).status_code == 201


@pytest.mark.parametrize("gateway_settings", [{"gateway_body_budget_mib": 80}])
async def test_who_does_not_read_holds_memory_for_a_while_only(stage, monkeypatch):
    """Answers share the budget of bodies: beyond it the next is sent away, and a client that stops reading is let go after its time."""
    monkeypatch.setattr("services.gateway.routes_originals.SEND_S", 1.0)
    bodies = stage.service._server._server.config.app._app.state.parts.bodies
    size = 50 * limits.MIB
    monkeypatch.setattr("services.gateway.routes_originals.SEND_BYTES_A_SECOND", size)
    claim = (await stage.http.post("/v1/originals", content=b"x" * size)).json()
    port = int(stage.service.url.rsplit(":", 1)[1])
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
    writer.write(f"GET /v1/originals/{claim['handle']} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {stage.key}\r\n\r\n".encode())
    await eventually(lambda: bodies.held == size)
    _problem(await stage.http.get(f"/v1/originals/{claim['handle']}"), 503, "overloaded")
    await eventually(lambda: bodies.held == 0)
    assert len((await stage.http.get(f"/v1/originals/{claim['handle']}")).content) == size
    writer.close()
    assert reader is not None


async def test_a_defect_is_a_problem_and_goes_to_the_log_without_content(stage, monkeypatch, caplog):
    """An unexpected error is a 500 with the request id; its text stays inside."""

    async def broken(*_: object) -> None:
        raise RuntimeError("secret-detail")

    monkeypatch.setattr("services.gateway.handlers.Gateway.runs", broken)
    answer = await stage.http.get("/v1/runs", headers={"x-request-id": "mine-1"})
    _problem(answer, 500, "internal")
    assert answer.json()["instance"] == "mine-1"
    assert "secret-detail" not in answer.text
    assert any(r.message == "http_error" for r in caplog.records)


async def test_a_database_that_is_away_is_503(database, stage, monkeypatch):
    """An outage is told as one, with the time of the next try, and ends when the database is back."""
    good = stage.service._database._engine

    class Away:
        def begin(self):
            raise ConnectionRefusedError

        connect = begin
        sync_engine = good.sync_engine

    monkeypatch.setattr("services.gateway.handlers.FIRST_PAUSE_S", 0.001)
    stage.service._database._engine = Away()
    try:
        answer = await stage.http.post("/v1/boundaries", json=body())
        _problem(answer, 503, "unavailable")
        assert answer.headers["retry-after"] == "1"
        assert (await stage.http.get("/readyz")).status_code == 503
        assert (await stage.http.get("/livez")).status_code == 200
    finally:
        stage.service._database._engine = good
    await stage.submit()


async def test_a_request_id_is_taken_or_made(stage):
    """A plain id of the caller is kept; anything else is replaced, never echoed."""
    kept = await stage.http.get("/livez", headers={"x-request-id": "abc.DEF-1_2"})
    assert kept.headers["x-request-id"] == "abc.DEF-1_2"
    for evil in ("a b", "x" * 65, "é".encode("latin-1"), "<script>"):
        answer = await stage.http.get("/livez", headers={"x-request-id": evil})
        assert len(answer.headers["x-request-id"]) == 32


async def test_bytes_that_are_no_http_do_not_stop_the_server(stage):
    """Garbage, half a request and an endless header end their own connection alone."""
    port = int(stage.service.url.rsplit(":", 1)[1])
    for raw in (b"\x16\x03\x01\x02\x00", b"GET", b"GET / HTTP/1.1\r\nx: " + b"a" * 100_000, b"POST /v1/boundaries HTTP/9.9\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", port), 5) as connection:
            connection.sendall(raw)
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(10)
            await asyncio.to_thread(connection.recv, 1)
    assert (await stage.http.get("/livez")).status_code == 200


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_FIELD = st.sampled_from(
    ["run", "index", "candidate", "history", "retained", "messages", "pins", "mode", "deadline", "boundary_id", "task"]
)


async def test_no_json_makes_it_fail(stage):
    """Whatever JSON is sent, the answer is 202, 403, 409 or 422, and never a 500."""
    loop = asyncio.get_running_loop()

    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
    @given(_JSON, st.dictionaries(_FIELD, _JSON, max_size=4))
    def fuzz(anything, changes):
        for sent in (anything, body() | changes):
            post = stage.http.post("/v1/boundaries", content=json.dumps(sent).encode("utf-8", "surrogatepass"))
            answer = asyncio.run_coroutine_threadsafe(post, loop).result(30)
            assert answer.status_code in {202, 403, 409, 413, 422}, (sent, answer.text)

    await asyncio.to_thread(fuzz)


async def test_no_path_or_query_makes_it_fail(stage):
    """Whatever stands in path and query, the answer is one of the documented ones."""
    loop = asyncio.get_running_loop()

    @settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], deadline=None)
    @given(st.text(max_size=60), st.text(max_size=60))
    def fuzz(word, other):
        requests = [
            ("/v1/originals/x", {}, word),
            ("/v1/boundaries", {"run": word, "cursor": other}, ""),
            ("/v1/boundaries", {"limit": word, "wait_ms": other}, ""),
            ("/v1/runs", {"cursor": word}, ""),
        ]
        for path, query, tail in requests:
            quoted = "".join(f"%{b:02X}" for b in tail.encode("utf-8", "replace"))
            params = {name: value.encode("utf-8", "replace").decode() for name, value in query.items()}
            get = stage.http.get(path + quoted, params=params)
            answer = asyncio.run_coroutine_threadsafe(get, loop).result(30)
            assert answer.status_code in {200, 404, 422}, (path, query, tail, answer.text)

    await asyncio.to_thread(fuzz)
