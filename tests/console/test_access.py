"""Who may see what in the console, what a hostile tenant gets, and what every answer forbids the browser."""

import re
from datetime import UTC, datetime
from uuid import uuid4

import httpx

from services.gateway.app import build
from services.gateway.console.settings import ConsoleSettings
from services.gateway.settings import GatewaySettings
from tests.console.place import NO_BROKER
from winnow.storage import api_keys
from winnow.storage.originals import Kind
from winnow.storage.settings import DatabaseSettings
from winnow.telemetry import Telemetry


async def test_nobody_sees_a_page_without_signing_in(place):
    """Every page leads to the form, which remembers where one wanted to go; news are not told either."""
    async with place.stranger() as http:
        for page in (*place.pages, "/console/events"):
            answer = await http.get(page)
            assert answer.status_code == 303, page
            assert answer.headers["location"].startswith("/console/sign-in?next=/console/"), page
        assert (await http.get("/console")).headers["location"] == "/console/sign-in"
        for form in place.forms:
            assert (await place.send(http, form)).headers["location"] == "/console/sign-in"
        handle = (await place.handles())[Kind.CANDIDATE]
        assert (await http.get(f"/console/fleets/{place.fleet}/originals/{handle}")).status_code == 303
    assert (await place.replays(), await place.held_because(), await place.looks()) == (0, None, [])


async def test_a_role_sees_what_it_may(place):
    """Every key reads its fleet; dead letters and the audit trail are for auditors and operators."""
    for role in ("runtime", "grader", "auditor", "operator"):
        async with place.person(role) as http:
            for page in place.pages:
                wanted = 403 if re.search("dead-letters|audit", page) and role in {"runtime", "grader"} else 200
                assert (await http.get(page)).status_code == wanted, (role, page)


async def test_another_tenant_finds_nothing(place):
    """To a key of another fleet the fleet, its boundary and its letter are not there: by their own address, or by that of his own fleet."""
    for role in ("runtime", "auditor", "operator"):
        rival = f"r{uuid4().hex[:12]}"
        async with place.person(role, fleet=rival) as http:
            for page in place.pages:
                answer = await http.get(page)
                assert answer.status_code == 404, (role, page)
                assert str(place.boundary) not in answer.text
            own = f"/console/fleets/{rival}"
            assert (await http.get(f"{own}/boundaries/{place.boundary}")).status_code == 404
            assert (await http.get(f"{own}/dead-letters/{place.letter}")).status_code == (403 if role == "runtime" else 404)
            assert place.fleet not in (await http.get("/console")).text
            token = await place.token(http)
            for form in (f"{own}/dead-letters/{place.letter}/replay", *place.forms):
                wanted = 404 if role == "operator" or place.fleet in form else 403
                assert (await place.send(http, form, token=token)).status_code == wanted, (role, form)
            for handle in (await place.handles()).values():
                for at in (own, f"/console/fleets/{place.fleet}"):
                    answer = await http.get(f"{at}/originals/{handle}")
                    assert (answer.status_code, "HAT136" in answer.text) == (404, False)
    assert (await place.replays(), await place.held_because(), await place.looks()) == (0, None, [])


async def test_the_cookie_is_no_key_and_cannot_be_made(place):
    """It is out of reach of scripts and other sites, holds no secret, is refused as a bearer, and no altered one opens anything."""
    secret = await place.key("operator")
    async with place.stranger() as http:
        answer = await http.post("/console/sign-in", data={"key": secret, "next": "/console"})
        said = answer.headers["set-cookie"]
        assert {"HttpOnly", "SameSite=strict", "Path=/console"} <= {part.strip() for part in said.split(";")}
        assert secret not in said
        cookie = http.cookies["winnow_session"]
        assert (await http.get("/console")).status_code == 200
        assert (await http.get("/v1/runs", headers={"authorization": f"Bearer {cookie}"})).status_code == 401
        assert (await http.get("/v1/runs")).status_code == 401
        version, digest, ends, nonce, mac = cookie.split(".")
        forged = (
            "", "x" * 10_000, cookie[:-1] + ("0" if cookie[-1] != "0" else "1"), cookie + ".x",
            ".".join((version, digest, str(int(ends) + 9), nonce, mac)), ".".join((version, "0" * 64, ends, nonce, mac)),
            ".".join((version, digest, ends, "0" * 32, mac)),
        )  # fmt: skip
        http.cookies.clear()
        for one in forged:
            assert (await http.get("/console", headers={"cookie": f"winnow_session={one}"})).status_code == 303, one


async def test_a_revoked_key_ends_its_sessions(place):
    """Nobody has to sign out: the next page asks for a key."""
    secret = await place.key("auditor")
    async with place.stranger() as http:
        await http.post("/console/sign-in", data={"key": secret})
        assert (await http.get("/console")).status_code == 200
        async with place.db.transaction() as tx:
            key = await api_keys.verify(tx, secret, now=datetime.now(UTC))
            assert key
            await api_keys.revoke(tx, key.key_id, by="test", now=datetime.now(UTC))
        assert (await http.get("/console")).status_code == 303


async def test_signing_in_leads_nowhere_else(place):
    """Only a page of the console is where one goes next."""
    key = await place.key()
    elsewhere = (
        "https://elsewhere.example/", "//elsewhere.example/", "/console//elsewhere", "/console/\\elsewhere", "/console/\r\nset-cookie: a=b",
        "/consolex", "/v1/runs",
    )  # fmt: skip
    async with place.stranger() as http:
        for asked, given in (("/console/fleets/a?b=1",) * 2, *((one, "/console") for one in elsewhere)):
            answer = await http.post("/console/sign-in", data={"key": key, "next": asked})
            assert answer.headers["location"] == given, asked


async def test_wrong_keys_are_refused_and_not_repeated(place):
    """A form with anything but a good key is answered 401, in the same words, and never shows what was typed."""
    async with place.stranger() as http:
        for typed in ("", "wnw_" + "x" * 43, "<script>", "\x00" * 40, "k" * 15_000):
            answer = await http.post("/console/sign-in", data={"key": typed})
            assert answer.status_code == 401
            assert "unknown, revoked or expired" in answer.text
            assert not typed or typed not in answer.text
        assert (await http.post("/console/sign-in", data={"key": "k" * 40_000})).status_code == 413
        assert (
            await http.post("/console/sign-in", data={"key": await place.key()}, headers={"sec-fetch-site": "cross-site"})
        ).status_code == 403
        assert (await http.post("/console/sign-in", data={"key": "k"}, headers={"origin": "http://["})).status_code == 403
        assert (await http.post("/console/sign-in", data={f"f{n}": "x" for n in range(30)})).status_code == 422


async def test_every_page_forbids_what_it_does_not_need(place):
    """No inline script or style, no other origin, no frame, no cache, no referrer for others: on pages, errors, files and redirects."""
    async with place.person("operator") as http:
        for page in (
            *place.pages,
            "/console",
            "/console/sign-in",
            "/console/nothing/here",
            "/console/static/console.js",
            "/console/static/x",
        ):
            answer = await http.get(page)
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert answer.headers["x-frame-options"] == "DENY"
            assert answer.headers["referrer-policy"] == "same-origin"
            assert answer.headers["x-content-type-options"] == "nosniff"
            if answer.headers["content-type"].startswith("text/html"):
                assert answer.headers["cache-control"] == "no-store"
                assert re.findall(r"<style|\sstyle=|\son\w+=|javascript:|<script(?![^>]*\ssrc=\"/console/static/)", answer.text) == []
                assert re.findall(r"(?:src|href|action)=\"(?!/console|#|\?)", answer.text) == []
        for wrong in (
            "/console/static/..%2fsessions.py",
            "/console/static/%2e%2e/settings.py",
            "/console/fleets/x%00y",
            "/console/static/",
        ):
            assert (await http.get(wrong)).status_code == 404


async def test_strange_addresses_are_answered_as_pages(place):
    """Whatever stands in an address is found, not found, or not valid: never a failure of the gateway, and always a page."""
    root = f"/console/fleets/{place.fleet}"
    strange = (
        "boundaries/not-a-uuid", "boundaries?cursor=%00", "boundaries?cursor=eA", "boundaries?run=%00", "boundaries?run=" + "x" * 5000,
        "runs?cursor=%F0", "alerts?before=never", "alerts?before=2026-01-01T00:00:00", "dead-letters?before=x",
        "alerts?before=0001-01-01T00:00:00%2B14:00", "alerts?before=9999-12-31T23:59:59-10:00",
        "dead-letters/99999999999999999999", "dead-letters/-1", "stream", "stream?name=%00", "stream?name=%ED%A0%80", "nothing",
    )  # fmt: skip
    async with place.person("operator") as http:
        for one in strange:
            answer = await http.get(f"{root}/{one}")
            assert answer.status_code in {200, 404, 422}, (one, answer.status_code)
            assert answer.headers["content-type"].startswith("text/html"), one


async def test_without_the_console_there_is_none(database):
    """Where it is turned off nothing answers below /console, and the API does."""
    service = build(
        Telemetry.plain("gateway"), NO_BROKER, DatabaseSettings(database_url=database.dsn), GatewaySettings(gateway_port=0),
        ConsoleSettings(console=False),
    )  # fmt: skip
    await service.start()
    try:
        async with httpx.AsyncClient(base_url=service.url) as http:
            assert (await http.get("/console")).status_code == 404
            assert (await http.get("/livez")).status_code == 200
    finally:
        await service.stop()
