"""The HTTP side of the commands, against a gateway played by hand."""

import json
from collections.abc import Callable
from uuid import UUID

import httpx
import pytest

from winnow.cli.connection import Unreachable
from winnow.cli.gateway import Gateway
from winnow.cli.watch import Watcher
from winnow.client.api import BoundaryPage, BoundaryView, RunPage, RunView
from winnow.contracts import errors, limits
from winnow.contracts.events import Candidate, Committed, Message, sha256

CANDIDATE = Candidate.model_validate({"fleet": "default", "run": "r", "index": 1, "candidate": "- one\n"})


def view(n: int = 1, *, committed: bool = True, run: str = "r") -> BoundaryView:
    at = "2026-11-30T12:00:00Z"
    result = {
        "fleet": "default", "run": run, "boundary_id": str(UUID(int=n)), "request_sha256": sha256(""), "candidate_sha256": sha256(""),
        "operating_point": 1, "agent": "agent", "index": n, "outcome": "judged", "mode": "shadow", "rules": "winnow", "profile": "openclaw",
        "tau": 0.5, "summary": None, "committed_sha256": None, "committed_at": at,
    }  # fmt: skip
    return BoundaryView.model_validate(
        {
            "boundary_id": str(UUID(int=n)), "fleet": "default", "run": run, "agent": "agent", "index": n, "candidate_sha256": sha256(""),
            "status": "committed" if committed else "received", "committed_at": at if committed else None,
            "result": Committed.model_validate(result) if committed else None,
        }
    )  # fmt: skip


def gateway(answer: Callable[[httpx.Request], httpx.Response]) -> Gateway:
    return Gateway("http://gateway", "wnw_key", transport=httpx.MockTransport(answer))


def ok(value, status: int = 200) -> httpx.Response:
    return httpx.Response(status, content=value.model_dump_json())


def problem(status: int) -> httpx.Response:
    return httpx.Response(status, json={"title": "T", "status": status, "reason": "invalid", "detail": "D"})


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, errors.Permanent), (401, errors.Permanent), (403, errors.Permanent), (404, errors.NotFound), (409, errors.Conflict),
        (410, errors.Gone), (413, errors.TooLarge), (422, errors.Permanent), (429, Unreachable), (500, Unreachable), (503, Unreachable),
    ],
)  # fmt: skip
def test_a_problem_is_raised_as_what_it_means(status, error):
    """Each status becomes the error with its own exit code, and the gateway's words are kept."""
    with gateway(lambda _: problem(status)) as api, pytest.raises(error, match="T: D") as caught:
        api.runs()
    assert type(caught.value) is error


def test_an_answer_that_is_none_of_winnows_is_said_so():
    """A captive portal or another server's page is no gateway."""
    with gateway(lambda _: httpx.Response(200, text="<html>")) as api, pytest.raises(errors.Permanent, match="WINNOW_GATEWAY_URL"):
        api.runs()
    with gateway(lambda _: httpx.Response(418, text="<html>")) as api, pytest.raises(errors.Permanent, match="418"):
        api.runs()


def test_a_gateway_that_does_not_answer_is_unreachable():
    """A refused connection is worth another try later."""

    def refuse(request):
        raise httpx.ConnectError("refused")

    with gateway(refuse) as api, pytest.raises(Unreachable, match="does not answer"):
        api.runs()


@pytest.mark.parametrize(
    ("url", "key"), [("no url", "k"), ("ftp://x", "k"), ("http://", "k"), ("http://a:b:c", "k"), ("http://x", "k\n"), ("http://x", "ké")]
)
def test_a_url_or_key_that_cannot_be_one_is_refused(url, key):
    """A pasted line end or a missing scheme is told, and no traceback is shown."""
    with pytest.raises(errors.Permanent):
        Gateway(url, key).runs()


def test_submitting_posts_once_and_then_asks_until_the_result_is_there():
    """A boundary is posted with the key; the result is waited for by GET."""
    asked = []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append((request.method, request.url.path, request.headers["authorization"]))
        return ok(view(committed=len(asked) == 3), 202 if request.method == "POST" else 200)

    with gateway(answer) as api:
        assert api.submit(CANDIDATE, wait_s=30).result is not None
    path = f"/v1/boundaries/{UUID(int=1)}"
    assert asked == [("POST", "/v1/boundaries", "Bearer wnw_key"), ("GET", path, "Bearer wnw_key"), ("GET", path, "Bearer wnw_key")]


def test_submitting_without_waiting_asks_once():
    """`--wait 0` returns what the gateway says at once."""
    asked = []
    with gateway(lambda request: asked.append(request.url.params["wait_ms"]) or ok(view(committed=False), 202)) as api:
        assert api.submit(CANDIDATE, wait_s=0).result is None
    assert asked == ["0"]


def test_a_boundary_above_the_limit_stores_its_messages_first():
    """The event carries a claim check then, for exactly the bytes that were stored."""
    big = CANDIDATE.model_copy(update={"history": (Message(i=0, kind="environment", text="x" * limits.CANDIDATE_BODY_BYTES),)})
    stored: list[bytes] = []
    posted: list[Candidate] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/originals":
            stored.append(request.content)
            claim = {"fleet": "default", "handle": "h" * 32, "sha256": sha256(request.content), "size": len(request.content)}
            return httpx.Response(201, content=json.dumps(claim))
        posted.append(Candidate.model_validate_json(request.content))
        return ok(view())

    with gateway(answer) as api:
        api.submit(big, wait_s=1)
    assert posted[0].history == ()
    assert posted[0].messages is not None
    assert posted[0].request_sha256() == big.request_sha256()
    assert stored == [big.inline_messages().content()]


class PlayedGateway:
    """Runs and boundaries as they are told."""

    def __init__(self) -> None:
        self.told: dict[str, list[BoundaryView]] = {}
        self.asked = 0

    def runs(self, *, cursor=None, limit=50) -> RunPage:
        return RunPage(items=tuple(RunView(run=run, agent="a", boundaries=len(views)) for run, views in self.told.items()))

    def boundaries(self, run: str, *, cursor=None, limit=50) -> BoundaryPage:
        self.asked += 1
        return BoundaryPage(items=tuple(reversed(self.told[run])))


def indices(watcher: Watcher) -> list[int]:
    return [found.index for found in watcher.fresh()]


def test_watching_gives_each_committed_boundary_once_and_in_order():
    """What waits is given when it is committed, and never a second time."""
    api = PlayedGateway()
    api.told["r"] = [view(1), view(2, committed=False)]
    watcher = Watcher(api, None)
    assert indices(watcher) == [1]
    assert indices(watcher) == []
    api.told["r"] = [view(1), view(2), view(3)]
    assert indices(watcher) == [2, 3]


def test_a_run_in_which_nothing_waits_is_not_asked_again():
    """Only runs with something new cost a request."""
    api = PlayedGateway()
    api.told["r"] = [view(1)]
    watcher = Watcher(api, None)
    watcher.skip()
    asked = api.asked
    assert indices(watcher) == []
    assert api.asked == asked
    api.told["r"].append(view(2))
    assert indices(watcher) == [2]


def test_one_run_can_be_watched_alone():
    """Boundaries of other runs are not looked at."""
    api = PlayedGateway()
    api.told = {"r": [view(1)], "other": [view(2, run="other")]}
    assert indices(Watcher(api, "r")) == [1]
