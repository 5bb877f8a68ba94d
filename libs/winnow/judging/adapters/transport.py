"""Bytes to an endpoint and back: no redirects, no compressed answers, none beyond a size, an end in time whatever the other side does."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import httpx

from winnow.contracts.deadline import Deadline
from winnow.contracts.errors import Permanent
from winnow.contracts.limits import MIB
from winnow.judging.adapters.failures import Failed, Failure

T = TypeVar("T")

#: Bytes of an answer at most: 20,000 entries of 40 bytes are 0.8 MB.
MOST_BYTES = 4 * MIB
#: Connections to one endpoint: as many as a boundary's requests in flight, for a few boundaries at once.
CONNECTIONS = 32


class BadEndpoint(Permanent):
    """The URL of a judge is not one that a key may be sent to; give the whole https:// URL of its endpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """An HTTP answer, read whole. `headers` has lower-case names."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport(Protocol):
    """Sends one request."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """POST `body`; return the answer, whatever its status. Raise `Failed` (connect, malformed, body_too_large). Ends when cancelled."""
        ...

    async def close(self) -> None:
        """Let go of connections; may be called twice."""
        ...


def checked(url: str, *, allow_insecure: bool = False) -> str:
    """`url`, where it is a whole https URL without credentials in it. Raise `BadEndpoint`; `allow_insecure` lets http pass, for tests."""
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL:
        raise BadEndpoint from None
    schemes = {"https", "http"} if allow_insecure else {"https"}
    if parsed.scheme not in schemes or not parsed.host or parsed.userinfo or parsed.fragment:
        raise BadEndpoint
    return url


class HttpTransport:
    """The real one. The client is opened with the first request, on the loop that runs then."""

    def __init__(self, client: Callable[[], httpx.AsyncClient] | None = None) -> None:
        """`client` makes another client, for own TLS or proxy settings; redirects stay off whatever it says."""
        self._make = client or _client
        self._client: httpx.AsyncClient | None = None

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """POST; see the port."""
        client = self._client = self._client or self._make()
        own = {"content-type": "application/json", "accept": "application/json", "accept-encoding": "identity"}
        try:
            async with client.stream("POST", url, content=body, headers={**own, **headers}, follow_redirects=False) as response:
                if response.headers.get("content-encoding", "identity").lower() not in {"", "identity"}:
                    raise Failed(Failure.MALFORMED)  # not asked for, and a few bytes of it may be gigabytes
                return Reply(status=response.status_code, headers=dict(response.headers.items()), body=await _body(response))
        except httpx.TimeoutException:
            raise Failed(Failure.TIMEOUT) from None
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError):
            raise Failed(Failure.CONNECT) from None

    async def close(self) -> None:
        """Close the client."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def _client() -> httpx.AsyncClient:
    """Without time-outs of its own: the caller's deadline covers connecting and the whole body."""
    return httpx.AsyncClient(
        timeout=None,  # noqa: S113  `within` ends it
        follow_redirects=False,
        limits=httpx.Limits(max_connections=CONNECTIONS),
    )


async def _body(response: httpx.Response) -> bytes:
    """The body, as long as it is no longer than any answer."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in response.aiter_raw():
        size += len(chunk)
        if size > MOST_BYTES:
            raise Failed(Failure.BODY_TOO_LARGE)
        chunks.append(chunk)
    return b"".join(chunks)


async def within(deadline: Deadline, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`, or `Failed` (timeout) when the deadline passes, even where `work` does not heed its cancellation.

    A caller that is cancelled cancels `work`.
    """
    task = asyncio.ensure_future(work)
    try:
        done, _ = await asyncio.wait({task}, timeout=deadline.remaining())
    except asyncio.CancelledError:
        task.cancel()
        raise
    if task in done:
        return task.result()
    task.add_done_callback(_heard)
    task.cancel()
    raise Failed(Failure.TIMEOUT)


def _heard(task: "asyncio.Future[Any]") -> None:
    """Take the error of a task that nobody waits for any more, so that the loop does not complain of it."""
    if not task.cancelled():
        task.exception()
