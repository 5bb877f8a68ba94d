"""The way to Winnow over HTTP, through the gateway."""

import asyncio
import random
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar
from urllib.parse import quote
from uuid import UUID

import httpx
from pydantic import ValidationError

from winnow.client.api import BoundaryPage, BoundaryView, Problem, PrunedPage, RecoveryRequest, RunPage, SearchPage
from winnow.client.backoff import Backoff, retry_after
from winnow.client.recovery import Recovered
from winnow.client.result import Because, Unheard
from winnow.client.transport import Report
from winnow.contracts import limits
from winnow.contracts.deadline import Deadline
from winnow.contracts.errors import Conflict, Gone, HashMismatch, NotFound, Permanent, Retryable, TooLarge
from winnow.contracts.events import Candidate, ClaimCheck, Committed, Model, RuntimeEvent, sha256

M = TypeVar("M", bound=Model)

#: Milliseconds that one request asks the gateway to wait: below the 30 to 60 s after which proxies in between give up.
WAIT_MS = 20_000
#: Bytes of a JSON answer at most. A committed event has under 1 MiB; a page of 500 boundaries about 0.5 MB.
ANSWER_BYTES = 16 * limits.MIB
#: Seconds to open a connection. A host that drops packets must leave time for a second try.
CONNECT_S = 3.0
#: Seconds beyond the gateway's own wait that an answer may take.
SLACK_S = 5.0
#: Seconds. An answer that comes sooner than this was not waited for.
SOON_S = 0.1

_OK, _ACCEPTED, _CREATED, _PART = 200, 202, 201, 206
_BECAUSE = {
    401: Because.UNAUTHORISED,
    403: Because.UNAUTHORISED,
    413: Because.TOO_LARGE,
    400: Because.INVALID_BOUNDARY,
    415: Because.INVALID_BOUNDARY,
    422: Because.INVALID_BOUNDARY,
}
_CONFLICT, _NOT_FOUND, _GONE = 409, 404, 410
#: Answers that a later try may better: time-outs, overload, and whatever a proxy says of a gateway that restarts.
_LATER = frozenset({408, 425, 429, 500, 502, 503, 504})
_OVERLOAD = frozenset({429, 503})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An HTTP answer, read whole."""

    status: int
    headers: httpx.Headers
    body: bytes
    #: Seconds that it took.
    seconds: float


class HttpTransport:
    """Talks to a gateway. Retries what may pass, inside the deadline, and honours `Retry-After`."""

    def __init__(
        self,
        url: str,
        api_key: str,
        *,
        wait_ms: int = WAIT_MS,
        backoff: Backoff | None = None,
        client: httpx.AsyncClient | None = None,
    ) -> None:
        """`url` is the gateway's base URL, `api_key` a key of one fleet (`wnw_...`).

        `client` replaces the HTTP client, for own TLS or proxy settings; it then stays open at `close`.
        """
        # None is what `os.environ.get` gives where a variable is not set.
        if httpx.URL(url or "").scheme not in {"http", "https"} or not httpx.URL(url).host:
            msg = "url must be the gateway's, for example http://127.0.0.1:8484"
            raise ValueError(msg)
        if api_key is None:
            raise ValueError("api_key is missing; `winnow keys create` makes one, and `winnow env` prints that of `winnow up`")
        if not (api_key.isascii() and api_key.isprintable()):
            raise ValueError("api_key holds characters that no key has; was it pasted with a line end?")
        self._url = url.rstrip("/")
        self._key = api_key
        self._wait_ms = wait_ms
        self._backoff = backoff or Backoff()
        self._client = client
        self._own = client is None

    def __repr__(self) -> str:
        """Where it goes, without the key."""
        return f"<HttpTransport({self._url})>"

    async def start(self) -> None:
        """Open the connection pool; connects with the first call."""
        if self._client is None:
            self._client = httpx.AsyncClient(limits=httpx.Limits(max_connections=200, max_keepalive_connections=50))

    async def close(self) -> None:
        """Close the connection pool, where it is our own."""
        if self._client is not None and self._own:
            client, self._client = self._client, None
            await client.aclose()

    async def ask(self, candidate: Candidate, request_sha256: str, deadline: Deadline, traceparent: str | None) -> Committed:
        """Submit, then wait on the gateway until the result is there; see `Transport.ask`."""
        del request_sha256  # the gateway computes it itself
        body = await self._submission(candidate, deadline)
        headers = {"content-type": "application/json"} | ({"traceparent": traceparent} if traceparent else {})
        tries = _Tries(self._backoff)
        accepted = False
        while not deadline.passed:
            params = {"wait_ms": max(0, min(self._wait_ms, int(deadline.remaining() * 1000) - 50))}
            try:
                if accepted:
                    answer = await self._send("GET", f"/v1/boundaries/{candidate.boundary_id}", deadline, params=params)
                else:
                    answer = await self._send("POST", "/v1/boundaries", deadline, params=params, content=body, headers=headers)
            except httpx.TransportError:
                await tries.pause(deadline, Because.UNREACHABLE)
                continue
            except TimeoutError:  # connected, and nothing came: the deadline is over
                break
            if answer.status in {_OK, _ACCEPTED}:
                view = self._read(BoundaryView, answer)
                if view.result is not None:
                    return view.result
                accepted = True
                if answer.seconds < SOON_S:  # a gateway that drains does not wait: do not ask it in a hot loop
                    await asyncio.sleep(min(SOON_S, deadline.remaining()))
            else:
                accepted = accepted and answer.status != _NOT_FOUND  # erased meanwhile, or another database: submit again
                await tries.pause(deadline, _because(answer), answer)
        raise Unheard(tries.because)

    async def report(self, event: Report) -> None:
        """Hand an event to the gateway, which stores it before it answers."""
        path = "/v1/runtime-events" if isinstance(event, RuntimeEvent) else "/v1/observations"
        deadline = Deadline.after(SLACK_S, asyncio.get_running_loop().time)
        answer = await self._once("POST", path, deadline, content=event.model_dump_json().encode(), headers=_JSON)
        if answer.status != _ACCEPTED:
            _raise(answer)

    async def original(self, handle: str, deadline: Deadline) -> bytes:
        """The exact bytes of an original, checked against the hash that the gateway states."""
        answer = await self._patient("GET", f"/v1/originals/{quote(handle, safe='')}", deadline, most=limits.ORIGINAL_BYTES)
        stated = answer.headers.get("etag", "").strip('"')
        if stated and sha256(answer.body) != stated:
            raise HashMismatch
        return answer.body

    async def store(self, content: bytes, deadline: Deadline) -> ClaimCheck:
        """Store an original and get the claim check for it. Raise `TooLarge`, `Permanent` or `Retryable`."""
        headers = {"content-type": "application/octet-stream"}
        return self._read(ClaimCheck, await self._patient("POST", "/v1/originals", deadline, content=content, headers=headers))

    async def boundary(self, boundary_id: UUID, deadline: Deadline) -> BoundaryView:
        """One boundary, with its result where there is one."""
        return self._read(BoundaryView, await self._patient("GET", f"/v1/boundaries/{boundary_id}", deadline))

    async def history(self, run: str, cursor: str | None, deadline: Deadline) -> BoundaryPage:
        """One page of a run's boundaries."""
        params = {"run": run} | ({"cursor": cursor} if cursor else {})
        return self._read(BoundaryPage, await self._patient("GET", "/v1/boundaries", deadline, params=params))

    async def recover(self, asked: RecoveryRequest, deadline: Deadline) -> Recovered:
        """The exact bytes of a place, checked against the hash that the gateway states."""
        body = asked.model_dump_json(exclude_none=True).encode()
        answer = await self._patient("POST", "/v1/recoveries", deadline, most=limits.ORIGINAL_BYTES, content=body, headers=_JSON)
        if sha256(answer.body) != answer.headers.get("etag", "").strip('"'):
            raise HashMismatch
        try:
            return Recovered.of(asked.handle, answer.body, {name.lower(): value for name, value in answer.headers.items()})
        except ValueError:
            raise Unheard(Because.INVALID_ANSWER, "the answer does not say what it gives") from None

    async def search(self, query: str, run: str | None, cursor: str | None, limit: int, deadline: Deadline) -> SearchPage:
        """One page of places in the history."""
        params = {"q": query, "limit": str(limit)} | _named(run=run, cursor=cursor)
        return self._read(SearchPage, await self._patient("GET", "/v1/search", deadline, params=params))

    async def pruned(self, run: str, cursor: str | None, limit: int, deadline: Deadline) -> PrunedPage:
        """One page of what was pruned of a run."""
        params = {"run": run, "limit": str(limit)} | _named(cursor=cursor)
        return self._read(PrunedPage, await self._patient("GET", "/v1/pruned-entries", deadline, params=params))

    async def runs(self, cursor: str | None, limit: int, deadline: Deadline) -> RunPage:
        """One page of the fleet's runs."""
        params = {"limit": str(limit)} | _named(cursor=cursor)
        return self._read(RunPage, await self._patient("GET", "/v1/runs", deadline, params=params))

    async def _submission(self, candidate: Candidate, deadline: Deadline) -> bytes:
        """The body to send: the candidate, or its claim check where it is too large to travel whole."""
        body = candidate.model_dump_json().encode()
        if len(body) <= limits.CANDIDATE_BODY_BYTES:
            return body
        return (await claimed(candidate, self, deadline)).model_dump_json().encode()

    async def _patient(self, method: str, path: str, deadline: Deadline, **request: Any) -> Answer:  # noqa: ANN401  httpx's own arguments
        """One request, tried again while that may help. Raise the error that the answer stands for."""
        tries = _Tries(self._backoff)
        while True:
            try:
                answer = await self._once(method, path, deadline, **request)
            except Retryable:
                if not await tries.pause_quietly(deadline, None):
                    raise
                continue
            if answer.status in {_OK, _CREATED, _PART}:
                return answer
            if answer.status not in _LATER or not await tries.pause_quietly(deadline, answer):
                _raise(answer)

    async def _once(self, method: str, path: str, deadline: Deadline, **request: Any) -> Answer:  # noqa: ANN401  httpx's own arguments
        """One request; a broken connection is `Retryable`."""
        try:
            return await self._send(method, path, deadline, **request)
        except (httpx.TransportError, TimeoutError) as exc:
            msg = f"the gateway cannot be reached ({type(exc).__name__})"
            raise Retryable(msg) from exc

    async def _send(self, method: str, path: str, deadline: Deadline, *, most: int = ANSWER_BYTES, **request: Any) -> Answer:  # noqa: ANN401
        """One request and its whole answer, of at most `most` bytes, before the deadline. Raise `httpx.TransportError`, `TimeoutError`."""
        if self._client is None:
            raise Unheard(Because.CLOSED)
        headers = {"authorization": f"Bearer {self._key}", "accept": "application/json, application/problem+json, */*"}
        timeout = httpx.Timeout(max(deadline.remaining(), 0.001) + SLACK_S, connect=min(CONNECT_S, max(deadline.remaining(), 0.001)))
        request["headers"] = headers | request.get("headers", {})
        begun = deadline.clock()
        async with (
            asyncio.timeout(deadline.remaining()),
            self._client.stream(method, self._url + path, timeout=timeout, **request) as response,
        ):
            parts: list[bytes] = []
            size = 0
            async for part in response.aiter_bytes():
                size += len(part)
                if size > most:
                    raise Unheard(Because.INVALID_ANSWER, f"the answer has more than {most} bytes")
                parts.append(part)
            body = b"".join(parts)
            return Answer(status=response.status_code, headers=response.headers, body=body, seconds=deadline.clock() - begun)

    def _read(self, model: type[M], answer: Answer) -> M:
        """The value in an answer. Raise `Unheard` where it is none: another server answers at this URL."""
        try:
            return model.model_validate_json(answer.body)
        except ValidationError as exc:
            msg = f"the answer is no {model.__name__} ({exc.error_count()} errors)"
            raise Unheard(Because.INVALID_ANSWER, msg) from None


def _because(answer: Answer) -> Because:
    """What a failed answer to a submission means, where a later try may succeed. Raise `Conflict` or `Unheard` where none will."""
    if answer.status == _CONFLICT:
        raise Conflict
    if answer.status in _OVERLOAD:
        return Because.OVERLOADED
    if answer.status in _LATER or answer.status == _NOT_FOUND:
        return Because.UNREACHABLE
    raise Unheard(_BECAUSE.get(answer.status, Because.INVALID_ANSWER), _detail(answer))


class _Tries:
    """Counts failed tries of one call, remembers why, and waits between them."""

    def __init__(self, backoff: Backoff) -> None:
        self._backoff = backoff
        self._count = 0
        self.because = Because.DEADLINE

    async def pause(self, deadline: Deadline, because: Because, answer: Answer | None = None) -> None:
        """Wait before the next try; raise `Unheard` at once where the server asks for more time than is left."""
        self.because = because
        if not await self.pause_quietly(deadline, answer):
            raise Unheard(because)

    async def pause_quietly(self, deadline: Deadline, answer: Answer | None) -> bool:
        """Wait before the next try and tell whether there is time for one."""
        self._count += 1
        asked = retry_after(answer.headers.get("retry-after"), lambda: datetime.now(UTC)) if answer is not None else None
        delay = max(asked or 0.0, self._backoff.delay(self._count, random.random()))  # noqa: S311  jitter, not a secret
        if delay >= deadline.remaining():
            return False
        await asyncio.sleep(delay)
        return True


_JSON = {"content-type": "application/json"}


async def claimed(candidate: Candidate, gateway: HttpTransport, deadline: Deadline) -> Candidate:
    """The candidate with its messages stored at the gateway and a claim check in their place.

    Raise `Unheard` where that does not help or does not succeed.
    """
    content = candidate.inline_messages().content()
    small = candidate.model_copy(update={"history": (), "retained": ()})
    if len(content) > limits.ORIGINAL_BYTES or len(small.model_dump_json().encode()) > limits.CANDIDATE_BODY_BYTES - limits.KIB:
        raise Unheard(Because.TOO_LARGE)
    try:
        claim = await gateway.store(content, deadline)
    except TooLarge as exc:
        raise Unheard(Because.TOO_LARGE) from exc
    except Permanent as exc:
        raise Unheard(Because.UNAUTHORISED if exc.reason in {"unauthorised", "forbidden"} else Because.INVALID_BOUNDARY) from exc
    except Retryable as exc:
        raise Unheard(Because.UNREACHABLE) from exc
    if claim.sha256 != sha256(content) or claim.fleet != candidate.fleet:
        raise Unheard(Because.INVALID_ANSWER, "the claim check is not of the stored content")
    return small.model_copy(update={"messages": claim})


def _named(**values: str | None) -> dict[str, str]:
    """Parameters that have a value."""
    return {name: value for name, value in values.items() if value is not None}


def _problem(answer: Answer) -> Problem | None:
    try:
        return Problem.model_validate_json(answer.body)
    except ValidationError:
        return None


def _detail(answer: Answer) -> str:
    """What the gateway says, in one line."""
    problem = _problem(answer)
    return f"{answer.status}: {problem.reason}: {problem.detail}" if problem else f"{answer.status}"


def _raise(answer: Answer) -> None:
    """Raise the error that a failed answer stands for."""
    problem = _problem(answer)
    detail = _detail(answer)
    if answer.status in _LATER:
        raise Retryable(detail)
    if answer.status == _NOT_FOUND:
        raise NotFound(detail)
    if answer.status == _GONE:
        raise Gone(detail)
    if answer.status == _CONFLICT:
        raise Conflict(detail)
    if answer.status == 413:  # noqa: PLR2004  Content Too Large
        raise TooLarge(detail)
    raise Permanent(detail, reason=problem.reason if problem else "invalid")
