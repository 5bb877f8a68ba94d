"""The proxy as an ASGI application: one upstream, everything passed on as it is, compactions of known hosts judged on the way back."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from typing import Any

import httpx

from winnow.client.hosts.bridge import Bridge
from winnow.client.proxy.recognise import Compaction, recognised, with_last
from winnow.client.proxy.styles import Answer, Style, style_of
from winnow.contracts import limits

log = logging.getLogger("winnow.client.proxy")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

#: Bytes of a request that is looked at; a larger one is passed on as it comes. A context of a million tokens has about 4 MiB.
REQUEST_BYTES = 32 * limits.MIB
#: Bytes of an answer that is judged; what is larger is no summary, and is passed on as it comes.
ANSWER_BYTES = 8 * limits.MIB
#: Seconds to open a connection to the upstream. Reading has no limit of ours: the host has its own.
CONNECT_S = 10.0

#: Headers that belong to one connection (RFC 9110, section 7.6.1); `expect` is answered here, and `host` is the upstream's.
_HOP = frozenset(
    {b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"te", b"trailer", b"transfer-encoding", b"upgrade"}
    | {b"expect", b"host"}
)
#: Headers of ours that the upstream need not see.
_OURS = frozenset({b"x-winnow-run"})
_OK = 200


class Proxy:
    """Passes requests on to one upstream. `bridges` makes the bridge of a host, so that each has its own profile.

    Fails open: whatever goes wrong with recognising or judging, the host gets the upstream's bytes. Logs no header and no content.
    """

    def __init__(self, upstream: str, bridges: Callable[[str], Bridge], *, client: httpx.AsyncClient | None = None) -> None:
        """`upstream` is the model provider's base URL, for example `https://api.openai.com`; `client` replaces the HTTP client."""
        url = httpx.URL(upstream)
        if url.scheme not in {"http", "https"} or not url.host:
            msg = "upstream must be a provider's base URL, for example https://api.openai.com"
            raise ValueError(msg)
        self._upstream = upstream.rstrip("/")
        self._bridges = bridges
        self._client = client

    def __repr__(self) -> str:
        """Where it goes."""
        return f"<Proxy({self._upstream})>"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "websocket":  # a host that tries one first goes on over HTTP
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                self._client = self._client or httpx.AsyncClient(timeout=httpx.Timeout(None, connect=CONNECT_S), follow_redirects=False)
                await send({"type": "lifespan.startup.complete"})
            else:
                if self._client is not None:
                    await self._client.aclose()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        body, whole = await _head(receive)
        style = style_of(scope["path"]) if scope["method"] == "POST" and whole else None
        found = _look(style, body, scope) if style is not None else None
        relay = asyncio.ensure_future(self._relay(scope, body if whole else _all(body, receive), style, found, send))
        # Who hangs up is no longer waited for: an upstream that streams for minutes would be paid for nothing.
        gone = asyncio.ensure_future(_gone(receive)) if whole else None
        try:
            await asyncio.wait({relay, gone} if gone else {relay}, return_when=asyncio.FIRST_COMPLETED)
            if relay.done():
                relay.result()
        finally:
            for task in (relay, gone):
                if task is not None and not task.done():
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)

    async def _relay(
        self, scope: Scope, body: bytes | AsyncIterator[bytes], style: Style | None, found: Compaction | None, send: Send
    ) -> None:
        """Ask the upstream and give its answer back."""
        headers = [(name, value) for name, value in scope["headers"] if name not in _HOP | _OURS]
        if found is not None:  # its answer is read, so it must not be compressed
            headers = [(name, value) for name, value in headers if name != b"accept-encoding"] + [(b"accept-encoding", b"identity")]
        try:
            request = httpx.Request(scope["method"], self._upstream + _target(scope), headers=headers, content=body)
            if self._client is None:
                raise httpx.ConnectError("the proxy was not started")
            response = await self._client.send(request, stream=True)
        except (httpx.TransportError, httpx.InvalidURL) as exc:
            await _refuse(send, f"the upstream cannot be reached ({type(exc).__name__})")
            return
        try:
            if found is None or style is None or response.status_code != _OK:
                await _pass(response, response.aiter_raw(), send)
            else:
                await self._judged(response, style, found, send)
        finally:
            await response.aclose()

    async def _judged(self, response: httpx.Response, style: Style, found: Compaction, send: Send) -> None:
        """Read the summary, have it judged, and answer with the committed text; with the same bytes where that is the candidate."""
        parts: list[bytes] = []
        size = 0
        stream = response.aiter_raw()
        async for part in stream:
            parts.append(part)
            size += len(part)
            if size > ANSWER_BYTES:
                self._bridges(found.host).bypassed(found.run, "answer_too_large")
                await _pass(response, _chain(parts, stream), send)
                return
        body = b"".join(parts)
        made = await self._rewritten(body, style, found, encoded=response.headers.get("content-encoding", "identity") != "identity")
        await _pass(response, _chain([made], None), send, length=len(made))

    async def _rewritten(self, body: bytes, style: Style, found: Compaction, *, encoded: bool) -> bytes:
        """The answer with the committed text in it; `body` itself where that cannot or need not be."""
        bridge = self._bridges(found.host)
        try:
            answer = None if encoded else Answer.of(body)
            candidate = style.summary(answer) if answer is not None else None
            if answer is None or candidate is None:
                bridge.bypassed(found.run, "no_summary_in_answer")
                return body
            span = with_last(found.span, bridge.last_summary(found.run))
            text = await bridge.judged_async(candidate, lambda: span, run=found.run, compressor=found.compressor)
            if text == candidate:
                return body
            if not text.strip():  # a host takes an empty answer for a failure
                bridge.bypassed(found.run, "empty_summary")
                return body
            return style.replaced(answer, candidate, text)
        except Exception:  # an answer that is not as its API says
            log.exception("proxy_failed", extra={"host": found.host})
            bridge.bypassed(found.run, "adapter_failed")
            return body


def _look(style: Style, body: bytes, scope: Scope) -> Compaction | None:
    """The compaction that a request asks for. Whatever it holds, the request is passed on."""
    if b"content-encoding" in {name for name, _ in scope["headers"]}:
        return None
    try:
        value = json.loads(body)
        headers: Mapping[str, str] = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        return recognised(style, value, headers) if isinstance(value, dict) else None
    except (ValueError, RecursionError):  # not JSON, and not ours
        return None
    except Exception:  # a request that is not as its API says
        log.exception("proxy_failed")
        return None


def _target(scope: Scope) -> str:
    """Path and query as they came, undecoded."""
    path: bytes = scope.get("raw_path") or scope["path"].encode()
    return (path + (b"?" + scope["query_string"] if scope["query_string"] else b"")).decode("latin-1")


async def _head(receive: Receive) -> tuple[bytes, bool]:
    """The request's body, and whether it is whole: reading stops above the most that is looked at."""
    parts: list[bytes] = []
    size = 0
    while size <= REQUEST_BYTES:
        message = await receive()
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if not message.get("more_body", False):
            return b"".join(parts), True
    return b"".join(parts), False


async def _all(head: bytes, receive: Receive) -> AsyncIterator[bytes]:
    """A body that is too large to be looked at."""
    yield head
    while True:
        message = await receive()
        yield message.get("body", b"")
        if not message.get("more_body", False):
            return


async def _chain(parts: list[bytes], rest: AsyncIterator[bytes] | None) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
    if rest is not None:
        async for part in rest:
            yield part


async def _gone(receive: Receive) -> None:
    """Return when the caller has hung up."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _pass(response: httpx.Response, body: AsyncIterator[bytes], send: Send, *, length: int | None = None) -> None:
    """Give an answer back as it comes; `length` where the body is another than the upstream's."""
    headers = [(name.lower(), value) for name, value in response.headers.raw if name.lower() not in _HOP]
    if length is not None:
        headers = [(name, value) for name, value in headers if name != b"content-length"] + [(b"content-length", str(length).encode())]
    await send({"type": "http.response.start", "status": response.status_code, "headers": headers})
    async for part in body:
        await send({"type": "http.response.body", "body": part, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _refuse(send: Send, text: str) -> None:
    body = json.dumps({"error": {"message": text, "type": "winnow_proxy"}}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 502, "headers": headers})
    await send({"type": "http.response.body", "body": body})
