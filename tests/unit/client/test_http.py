"""The HTTP transport against a scripted gateway."""

import json
import time
from uuid import UUID, uuid4

import httpx
import pytest

from tests.unit.client.answers import candidate
from winnow.client import Because, HttpTransport, Unheard, WinnowClient
from winnow.client.api import BoundaryPage, BoundaryView, Status
from winnow.client.backoff import Backoff
from winnow.client.testing import unpruned
from winnow.contracts import limits
from winnow.contracts.deadline import Deadline
from winnow.contracts.errors import Conflict, Gone, HashMismatch, NotFound, Permanent, Retryable, TooLarge
from winnow.contracts.events import Candidate, Messages, RuntimeEvent, sha256
from winnow.contracts.vocabulary import Adopted

KEY = "wnw_secret"
QUICK = Backoff(first_s=0.001, most_s=0.002)


class Gateway:
    """Answers requests from a list, then with its last element; keeps what was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        answer = answer(request) if callable(answer) else answer
        if isinstance(answer, Exception):
            raise answer
        return answer

    def transport(self) -> HttpTransport:
        client = httpx.AsyncClient(transport=httpx.MockTransport(self))
        return HttpTransport("http://gateway", KEY, client=client, backoff=QUICK)


def view(asked: Candidate, committed=None) -> BoundaryView:
    return BoundaryView(
        boundary_id=asked.boundary_id,
        fleet=asked.fleet,
        run=asked.run,
        agent=asked.agent,
        index=asked.index,
        status=Status.COMMITTED if committed else Status.RECEIVED,
        candidate_sha256=asked.candidate_sha256,
        result=committed,
    )


def ok(value, status=200, **headers) -> httpx.Response:
    return httpx.Response(status, content=value.model_dump_json().encode(), headers=headers)


def problem(status: int, reason: str = "x", **headers: str) -> httpx.Response:
    body = {"title": "t", "status": status, "reason": reason, "detail": "d"}
    return httpx.Response(status, json=body, headers={k.replace("_", "-"): v for k, v in headers.items()})


def soon(seconds: float = 5.0) -> Deadline:
    return Deadline.after(seconds, time.monotonic)


def done(asked: Candidate) -> httpx.Response:
    return ok(view(asked, unpruned(asked, asked.request_sha256())))


async def ask(gateway: Gateway, asked: Candidate, seconds: float = 5.0):
    return await gateway.transport().ask(asked, asked.request_sha256(), soon(seconds), None)


async def test_one_request_is_enough_where_the_result_comes_in_time():
    """The submission itself waits for the result, with the key and the body that were given."""
    asked = candidate()
    gateway = Gateway(done(asked))
    assert (await ask(gateway, asked)).boundary_id == asked.boundary_id
    (request,) = gateway.requests
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert Candidate.model_validate_json(request.content) == asked
    assert 0 < int(request.url.params["wait_ms"]) < 5000


async def test_an_accepted_boundary_is_waited_for():
    """After 202 the client asks for the boundary until its result is there."""
    asked = candidate()
    gateway = Gateway(ok(view(asked), 202), ok(view(asked)), done(asked))
    await ask(gateway, asked)
    assert [(r.method, r.url.path) for r in gateway.requests] == [
        ("POST", "/v1/boundaries"),
        ("GET", f"/v1/boundaries/{asked.boundary_id}"),
        ("GET", f"/v1/boundaries/{asked.boundary_id}"),
    ]


@pytest.mark.parametrize(
    "trouble",
    [
        httpx.ConnectError("no"),
        httpx.ReadError("broke"),
        problem(429),
        problem(503, retry_after="0"),
        problem(500),
        problem(502),
        problem(408),
    ],
)
async def test_what_may_pass_is_tried_again(trouble):
    """Connections that break, overload and proxies' errors cost time, not the answer; the resubmission is the same request."""
    asked = candidate()
    gateway = Gateway(trouble, trouble, done(asked))
    await ask(gateway, asked)
    assert len({r.content for r in gateway.requests}) == 1
    assert len(gateway.requests) == 3


async def test_a_boundary_that_vanished_is_submitted_again():
    """A gateway that no longer knows the boundary gets it once more."""
    asked = candidate()
    gateway = Gateway(ok(view(asked), 202), problem(404), done(asked))
    await ask(gateway, asked)
    assert [r.method for r in gateway.requests] == ["POST", "GET", "POST"]


async def test_a_retry_after_beyond_the_deadline_ends_the_wait_at_once():
    """An overloaded gateway that asks for more time than there is costs the agent nothing further."""
    gateway = Gateway(problem(429, retry_after="60"))
    begun = time.monotonic()
    with pytest.raises(Unheard) as caught:
        await ask(gateway, candidate(), 30)
    assert caught.value.because is Because.OVERLOADED
    assert len(gateway.requests) == 1
    assert time.monotonic() - begun < 25


@pytest.mark.parametrize(
    ("answer", "because"),
    [
        (problem(401), Because.UNAUTHORISED),
        (problem(403), Because.UNAUTHORISED),
        (problem(413), Because.TOO_LARGE),
        (problem(422), Because.INVALID_BOUNDARY),
        (problem(400), Because.INVALID_BOUNDARY),
        (httpx.Response(418), Because.INVALID_ANSWER),
        (httpx.Response(302, headers={"location": "http://elsewhere"}), Because.INVALID_ANSWER),
        (httpx.Response(200, content=b"<html>hello"), Because.INVALID_ANSWER),
        (httpx.Response(202, content=b""), Because.INVALID_ANSWER),
        (httpx.Response(200, content=b"\xff\x00"), Because.INVALID_ANSWER),
        (httpx.ConnectError("no"), Because.UNREACHABLE),
        (problem(503), Because.OVERLOADED),
    ],
)
async def test_what_no_retry_mends_has_a_reason(answer, because):
    """Each answer that is none has its own code."""
    with pytest.raises(Unheard) as caught:
        await ask(Gateway(answer), candidate(), 0.1)
    assert caught.value.because is because


async def test_a_conflict_is_a_conflict():
    """409 is the caller's own error."""
    with pytest.raises(Conflict):
        await ask(Gateway(problem(409)), candidate())


async def test_an_endless_answer_is_cut():
    """A server that sends without end is not read into memory."""

    async def endless():
        while True:
            yield b" " * 1_000_000

    with pytest.raises(Unheard) as caught:
        await ask(Gateway(lambda _: httpx.Response(200, content=endless())), candidate())
    assert caught.value.because is Because.INVALID_ANSWER


async def test_messages_above_the_limit_go_first():
    """A candidate that is too large to travel stores its messages and sends a claim check; the request is the same request."""
    big = [{"i": i, "kind": "environment", "text": "x" * 1_000_000} for i in range(9)]
    asked = candidate(history=big)
    stored: dict[str, bytes] = {}

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/originals":
            stored["content"] = request.content
            claim = {"fleet": "f", "handle": "h" * 32, "sha256": sha256(request.content), "size": len(request.content)}
            return httpx.Response(201, json=claim)
        return done(Candidate.model_validate_json(request.content))

    gateway = Gateway(answer)
    committed = await ask(gateway, asked)
    assert Messages.model_validate_json(stored["content"]).history == asked.history
    assert len(gateway.requests[1].content) < limits.KIB * 10
    assert committed.request_sha256 == asked.request_sha256()


@pytest.mark.parametrize(
    ("answer", "because"),
    [
        (problem(413), Because.TOO_LARGE),
        (problem(401, "unauthorised"), Because.UNAUTHORISED),
        (httpx.Response(201, json={"fleet": "f", "handle": "h" * 32, "sha256": "0" * 64, "size": 1}), Because.INVALID_ANSWER),
    ],
)
async def test_messages_that_cannot_be_stored_leave_a_reason(answer, because):
    """Where the claim check fails the agent learns why, and nothing is submitted."""
    gateway = Gateway(answer)
    with pytest.raises(Unheard) as caught:
        await ask(gateway, candidate(history=[{"i": 0, "kind": "user", "text": "x" * 9_000_000}]), 2)
    assert caught.value.because is because
    assert {r.url.path for r in gateway.requests} == {"/v1/originals"}


async def test_a_candidate_that_nothing_makes_small_is_too_large():
    """A task above the limit has no way to travel; no request is made."""
    gateway = Gateway(problem(500))
    with pytest.raises(Unheard) as caught:
        await ask(gateway, candidate(task="x" * 9_000_000))
    assert caught.value.because is Because.TOO_LARGE
    assert gateway.requests == []


async def test_originals_are_exact_or_an_error():
    """Bytes come back as they are; another hash, another fleet's handle and an erased one are errors of their own."""
    transport = Gateway(httpx.Response(200, content=b"\x00\xff", headers={"etag": f'"{sha256(bytes([0, 255]))}"'})).transport()
    assert await transport.original("h" * 32, soon()) == b"\x00\xff"
    with pytest.raises(HashMismatch):
        await Gateway(httpx.Response(200, content=b"x", headers={"etag": '"0"'})).transport().original("h" * 32, soon())
    with pytest.raises(NotFound):
        await Gateway(problem(404)).transport().original("h" * 32, soon())
    with pytest.raises(Gone):
        await Gateway(problem(410)).transport().original("h" * 32, soon())
    with pytest.raises(Permanent):
        await Gateway(problem(401, "unauthorised")).transport().original("h" * 32, soon())
    with pytest.raises(TooLarge):
        await Gateway(problem(413)).transport().store(b"x", soon())
    with pytest.raises(Retryable):
        await Gateway(problem(500)).transport().original("h" * 32, soon(0.05))
    with pytest.raises(Retryable):
        await Gateway(httpx.ConnectError("no")).transport().original("h" * 32, soon(0.05))


async def test_a_handle_cannot_leave_its_path():
    """A hostile handle is quoted, not followed."""
    gateway = Gateway(problem(404))
    with pytest.raises(NotFound):
        await gateway.transport().original("../../admin?x=1#y", soon())
    assert gateway.requests[0].url.raw_path == b"/v1/originals/..%2F..%2Fadmin%3Fx%3D1%23y"


async def test_history_follows_pages():
    """The client reads page after page until the end or the number that was asked."""
    asked = candidate()

    def answer(request: httpx.Request) -> httpx.Response:
        more = request.url.params.get("cursor") is None
        return ok(BoundaryPage(items=(view(asked),), next_cursor="c" if more else None))

    gateway = Gateway(answer)
    async with WinnowClient(gateway.transport()) as client:
        assert len(await client.history("r")) == 2
        assert len(await client.history("r", most=1)) == 1


async def test_reports_are_stored_before_they_count():
    """Only 202 is a delivery; what is refused for good is told apart from what may pass."""
    event = RuntimeEvent(event_id=uuid4(), fleet="f", run="r", kind="run_ended", at="2026-11-30T00:00:00Z")
    gateway = Gateway(httpx.Response(202, json={}))
    await gateway.transport().report(event)
    assert gateway.requests[0].url.path == "/v1/runtime-events"
    assert json.loads(gateway.requests[0].content)["event_id"] == str(event.event_id)
    with pytest.raises(Permanent):
        await Gateway(problem(422)).transport().report(event)
    with pytest.raises(Retryable):
        await Gateway(problem(429)).transport().report(event)


async def test_an_agent_goes_on_through_a_dead_gateway():
    """End to end: nothing listens, the agent has its candidate within its deadline."""
    async with WinnowClient(HttpTransport("http://127.0.0.1:1", KEY), drain_s=0) as client:
        result = await client.compact(candidate(), deadline_s=0.3)
    assert (result.source, result.bypassed_because) == (Adopted.CANDIDATE, Because.UNREACHABLE)


@pytest.mark.parametrize("url", ["gateway:8484", "ftp://x", "", "http://", None])
def test_a_url_that_is_none_is_refused_at_once(url):
    """A typing error is not an outage."""
    with pytest.raises(ValueError, match="url"):
        HttpTransport(url, KEY)


def test_a_key_that_was_never_set_is_told():
    """A variable that is not set gives None; the error says where keys come from."""
    with pytest.raises(ValueError, match="winnow keys create"):
        HttpTransport("http://x", None)


def test_a_key_with_a_line_end_is_refused_and_no_key_is_shown():
    """A pasted line end would break the header; the key never shows in a representation."""
    with pytest.raises(ValueError, match="api_key"):
        HttpTransport("http://x", "wnw_\n")
    assert KEY not in repr(HttpTransport("http://x", KEY))


async def test_a_boundary_is_read_back():
    """The view holds the result where there is one."""
    asked = candidate()
    transport = Gateway(done(asked)).transport()
    assert (await transport.boundary(UUID(str(asked.boundary_id)), soon())).result is not None
