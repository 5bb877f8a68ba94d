"""Who may see and do what in the console, what a hostile tenant gets, and what every answer forbids the browser."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import quote
from uuid import UUID, uuid4

import httpx
import pytest
from asyncpg import InsufficientPrivilegeError

from services.gateway.app import GatewayService, build
from services.gateway.console.settings import ConsoleSettings
from services.gateway.settings import GatewaySettings
from tests.harness.pipeline import Stages, candidate
from tests.harness.waiting import eventually
from winnow.contracts.vocabulary import Reason
from winnow.messaging.settings import KafkaSettings
from winnow.storage import api_keys, dead_letters, erase, fleets, originals, raw, streams
from winnow.storage.database import Database
from winnow.storage.dead_letters import NewDeadLetter
from winnow.storage.originals import Kind
from winnow.storage.settings import DatabaseSettings
from winnow.telemetry import Telemetry

#: Nothing listens here: pages need no broker.
NO_BROKER = KafkaSettings(kafka_bootstrap_servers="127.0.0.1:1", idempotence="off")
SECRET = "s" * 40
TEXT = "## Decisions\n- Flight HAT136 costs $152\n- Surely the customer likes the aisle\n"


@dataclass
class Place:
    """A gateway with a boundary and a dead letter of one fleet, and people of several."""

    service: GatewayService
    db: Database
    fleet: str
    boundary: UUID
    letter: int

    async def key(self, role: str = "operator", *, fleet: str | None = None) -> str:
        now = datetime.now(UTC)
        async with self.db.transaction() as tx:
            await fleets.ensure(tx, [fleet or self.fleet], default=fleets.Point(), now=now)
            secret, _ = await api_keys.create(tx, fleet or self.fleet, name=role, role=role, by="test", now=now)
        return secret

    def stranger(self) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.service.url, timeout=30)

    @asynccontextmanager
    async def person(self, role: str = "operator", *, fleet: str | None = None) -> AsyncIterator[httpx.AsyncClient]:
        """Somebody who has signed in through the form."""
        async with self.stranger() as http:
            answer = await http.post("/console/sign-in", data={"key": await self.key(role, fleet=fleet)})
            assert answer.status_code == 303, answer.text
            yield http

    @property
    def pages(self) -> list[str]:
        """Every page of the fleet."""
        root = f"/console/fleets/{self.fleet}"
        rest = ("runs", "boundaries", f"boundaries/{self.boundary}", "streams", "stream?name=harm", "certificates", "alerts", "judges",
                "dead-letters", f"dead-letters/{self.letter}", "audit")  # fmt: skip
        return [root, *(f"{root}/{one}" for one in rest)]

    async def token(self, http: httpx.AsyncClient) -> str:
        found = re.search(r'name="token" value="([0-9a-f]{64})"', (await http.get("/console")).text)
        assert found
        return found[1]

    @property
    def forms(self) -> list[str]:
        """Where every form of the fleet goes."""
        return [f"/console/fleets/{self.fleet}/{one}" for one in (f"dead-letters/{self.letter}/replay", "hold", "release")]

    def send(self, http: httpx.AsyncClient, form: str, **fields: str):
        return http.post(form, data={"because": "mended", "confirmed": "yes"} | fields, headers=self.headers)

    def replay(self, http: httpx.AsyncClient, **fields: str):
        return self.send(http, self.forms[0], **fields)

    headers = {"sec-fetch-site": "same-origin"}  # noqa: RUF012  a test's constant

    async def replays(self) -> int:
        async with self.db.transaction() as tx:
            return (await dead_letters.get(tx, self.letter)).replays

    async def held_because(self) -> str | None:
        async with self.db.transaction() as tx:
            return (await fleets.load(tx, [self.fleet]))[self.fleet].held_because

    async def audited(self, kind: str) -> list[tuple[str, str, str, str]]:
        """Action, role of the actor, reason and outcome of the fleet's audit rows of one kind, oldest first."""
        query = "SELECT action, actor, because, outcome FROM audit_log WHERE fleet = $1 AND action LIKE $2 || '.%' ORDER BY id"
        async with self.db.transaction() as tx:
            rows = await raw.fetch(tx, query, self.fleet, kind)
        return [(r["action"], r["actor"].partition(":")[0], r["because"], r["outcome"]) for r in rows]

    async def handles(self) -> dict[Kind, str]:
        async with self.db.transaction() as tx:
            return await originals.handles_of(tx, self.fleet, self.boundary)

    async def looks(self) -> list[tuple[str, str | None]]:
        async with self.db.transaction() as tx:
            rows = await raw.fetch(
                tx, "SELECT kind, part FROM recoveries WHERE fleet = $1 AND event_id IS NULL AND via = 'gateway' ORDER BY id", self.fleet
            )
        return [(r["kind"], r["part"]) for r in rows]


@pytest.fixture
async def place(database) -> AsyncIterator[Place]:
    fleet = f"f{uuid4().hex[:12]}"
    async with Database(database.dsn) as db:
        committed = await Stages(db).one(candidate(TEXT, fleet=fleet))
        letter = NewDeadLetter(
            topic="winnow.runtime.v1", partition=0, offset=uuid4().int % 10**9, key=f"{fleet}/r".encode(), value=b'{"a": 1}', headers=(),
            reason=Reason.INVALID, error="no", service="drift_monitor", fleet=fleet, run="r",
        )  # fmt: skip
        async with db.transaction() as tx:
            await streams.register(tx, fleet, "harm", config={}, weight=None, now=datetime.now(UTC))
            (stored,) = await dead_letters.add(tx, [letter], now=datetime.now(UTC))
        service = build(
            Telemetry.plain("gateway"), NO_BROKER, DatabaseSettings(database_url=database.dsn),
            GatewaySettings(gateway_port=0, gateway_key_cache_s=0), ConsoleSettings(console_secret=SECRET, console_max_streams=3),
        )  # fmt: skip
        await service.start()
        try:
            yield Place(service=service, db=db, fleet=fleet, boundary=committed.boundary_id, letter=stored.id)
        finally:
            async with asyncio.timeout(30):
                await service.stop()


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


async def test_the_database_itself_keeps_dead_letters_apart(place):
    """In the gateway's role another fleet's letters are neither seen nor changed, and a letter cannot be given to another fleet."""
    async with place.db.fleet_transaction("somebody-else") as tx:
        assert await dead_letters.page(tx, fleet=place.fleet) == []
        await dead_letters.mark_replayed(tx, [place.letter], now=datetime.now(UTC))
    assert await place.replays() == 0
    for statement in ("UPDATE dead_letters SET fleet = 'x'", "DELETE FROM dead_letters", "SELECT * FROM audit_log"):
        with pytest.raises(InsufficientPrivilegeError):
            async with place.db.fleet_transaction(place.fleet) as tx:
                await raw.execute(tx, statement)


async def test_an_operator_replays_once_a_form(place):
    """The body waits in the outbox under a new id, the letter counts its replay, and the audit trail names the key and the reason."""
    async with place.person("operator") as http:
        answer = await place.replay(http, token=await place.token(http), because="table \x00 is\nback")
        assert (answer.status_code, await place.replays()) == (303, 1)
    async with place.db.transaction() as tx:
        rows = await raw.fetch(tx, "SELECT topic, key, run FROM outbox WHERE fleet = $1", place.fleet)
        assert [tuple(r) for r in rows] == [("winnow.runtime.v1", f"{place.fleet}/r", "r")]
        query = "SELECT actor, because, details FROM audit_log WHERE action = 'dead_letter.replay' AND fleet = $1"
        (audited,) = await raw.fetch(tx, query, place.fleet)
    assert audited["actor"].startswith("operator:")
    assert (audited["because"], audited["details"]["dead_letter"]) == ("table \ufffd is back", place.letter)


async def test_a_replay_that_fails_is_written_down(place):
    """What an operator asked for and did not get stands in the audit trail as failed, with the key and the reason."""
    async with place.person("operator") as http:
        form = {"because": "mended", "confirmed": "yes", "token": await place.token(http)}
        answer = await http.post(f"/console/fleets/{place.fleet}/dead-letters/{2**62}/replay", data=form, headers=place.headers)
        assert answer.status_code == 404
    async with place.db.transaction() as tx:
        query = "SELECT actor, because, outcome FROM audit_log WHERE action = 'dead_letter.replay' AND fleet = $1"
        (audited,) = await raw.fetch(tx, query, place.fleet)
    assert audited["actor"].startswith("operator:")
    assert (audited["because"], audited["outcome"]) == ("mended", "failed")


async def test_an_operator_holds_and_releases_a_fleet(place):
    """The pruner's gate is held and free again, the first reason stays, and the audit trail names the key and each reason."""
    now = datetime.now(UTC)
    async with place.person("operator") as http:
        token = await place.token(http)
        _, hold, release = place.forms
        assert "Hold the fleet" in (await http.get(place.pages[0])).text
        for because in ("new \x00\ncompressor", "another"):
            answer = await place.send(http, hold, token=token, because=because, confirmed="")
            assert (answer.status_code, answer.headers["location"]) == (303, place.pages[0])
        assert await place.held_because() == "new \ufffd compressor"
        page = (await http.get(place.pages[0])).text
        assert "Release the fleet" in page
        assert "Hold the fleet" not in page
        assert (await place.send(http, release, token=token, confirmed="")).status_code == 422
        async with place.db.transaction() as tx:
            assert (await fleets.gate(tx, [place.fleet], now=now, stale_after=timedelta(minutes=1)))[place.fleet].held
        assert (await place.send(http, release, token=token)).status_code == 303
        assert (await place.send(http, release, token=token)).status_code == 303
    assert await place.held_because() is None
    done = [("fleet.hold", "operator", "new \ufffd compressor", "done"), ("fleet.release", "operator", "mended", "done")]
    assert await place.audited("fleet") == done


async def test_who_may_not_act_cannot_even_with_a_token(place):
    """A key that may only look is refused every form, whatever it sends, and its pages have none."""
    for role in ("runtime", "grader", "auditor"):
        async with place.person(role) as http:
            token = await place.token(http)
            for form in place.forms:
                assert (await place.send(http, form, token=token)).status_code == 403
            assert 'name="because"' not in (await http.get(place.pages[0])).text
    assert (await place.replays(), await place.held_because()) == (0, None)


#: What is wrong with a form or its headers, and the answer.
WRONG_FORMS = (
    ({"token": ""}, {}, 403),
    ({"token": "0" * 64}, {}, 403),
    ({"token": "\ud800"}, {}, 403),
    ({"confirmed": ""}, {}, 422),
    ({"because": "  \n"}, {}, 422),
    ({}, {"sec-fetch-site": "cross-site"}, 403),
    ({}, {"sec-fetch-site": "same-site"}, 403),
    ({}, {"sec-fetch-site": None, "origin": "https://elsewhere.example"}, 403),
    ({}, {"sec-fetch-site": None, "origin": "null"}, 403),
)


async def test_a_form_that_no_page_of_the_session_made_does_nothing(place):
    """Without the session's token, without a confirmation and a reason, or from another site, nothing is replayed."""
    async with place.person("operator") as http:
        token = await place.token(http)
        for fields, headers, status in WRONG_FORMS:
            data = {"because": "mended", "confirmed": "yes", "token": token} | fields
            sent = {k: v for k, v in (place.headers | headers).items() if v is not None}
            for form in place.forms:
                if form.endswith("hold") and "confirmed" in fields:
                    continue  # to hold needs no confirmation: it is the safe side
                answer = await http.post(
                    form,
                    content="&".join(f"{k}={quote(v, errors='surrogatepass')}" for k, v in data.items()),
                    headers=sent | {"content-type": "application/x-www-form-urlencoded"},
                )
                assert answer.status_code == status, (form, fields, headers)
    assert (await place.replays(), await place.held_because()) == (0, None)


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


async def test_a_token_is_good_for_its_own_session_alone(place):
    """What one session's page carries is refused in another session of the same fleet."""
    async with place.person("operator") as one, place.person("operator") as other:
        assert (await place.replay(one, token=await place.token(other))).status_code == 403
    assert await place.replays() == 0


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


async def test_news_are_marks_and_bounded(place):
    """A stream says that something changed and not what; a fourth of three streams is told to come back; one that ends makes room."""
    async with place.person("auditor") as http:
        page = await http.get(f"/console/fleets/{place.fleet}")
        found = re.search(r'data-marks="([^"]*)"', page.text)
        assert found
        shown = json.loads(found[1].replace("&#34;", '"'))
        async with http.stream("GET", "/console/events") as first:
            assert first.headers["content-type"].startswith("text/event-stream")
            lines = first.aiter_lines()
            assert await _marks(lines) == shown
            async with http.stream("GET", "/console/events"), http.stream("GET", "/console/events"):
                refused = await http.get("/console/events")
                assert (refused.status_code, refused.headers["retry-after"]) == (429, "15")
            await Stages(place.db).one(candidate(TEXT, fleet=place.fleet, run="another"))
            async with asyncio.timeout(20):
                news = await _marks(lines)
            assert news[place.fleet]["boundaries"] != shown[place.fleet]["boundaries"]
            assert news[place.fleet]["alerts"] == shown[place.fleet]["alerts"]
        await eventually(lambda: _opens(http), 20, what="room for another stream")


async def test_a_burst_of_pages_takes_the_streams_that_there_are(place):
    """Of thirty pages that ask at once three hear of changes, every other is told when to ask again, and pages go on being served."""
    async with place.person("auditor") as http, AsyncExitStack() as stack:
        answers = await asyncio.gather(*(stack.enter_async_context(http.stream("GET", "/console/events")) for _ in range(30)))
        assert Counter(answer.status_code for answer in answers) == {200: 3, 429: 27}
        assert {answer.headers.get("retry-after") for answer in answers if answer.status_code == 429} == {"15"}
        for answer in answers:
            if answer.status_code == 200:
                assert place.fleet in await _marks(answer.aiter_lines())
        assert (await http.get("/console")).status_code == 200


async def _marks(lines: AsyncIterator[str]) -> dict:
    async for line in lines:
        if line.startswith("data: "):
            return json.loads(line.removeprefix("data: "))
    raise AssertionError


async def _opens(http: httpx.AsyncClient) -> bool:
    async with http.stream("GET", "/console/events") as answer:
        return answer.status_code == 200


async def test_a_gateway_that_stops_ends_its_streams(place):
    """A page that listens holds up no shutdown."""
    async with place.person("auditor") as http, http.stream("GET", "/console/events") as listening:
        lines = listening.aiter_lines()
        await _marks(lines)
        async with asyncio.timeout(10):
            await asyncio.gather(place.service.stop(), _rest(lines))


async def _rest(lines: AsyncIterator[str]) -> None:
    async for _ in lines:
        pass


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
