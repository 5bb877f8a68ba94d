"""The outermost layer: request ids, limits of concurrency, the access log, metrics, and what is left of an unexpected error."""

import re
import time
from collections.abc import Iterable, MutableMapping
from typing import Any
from uuid import uuid4

from opentelemetry.context import Context
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.gateway.problems import document, overloaded, translate
from winnow.telemetry import Telemetry
from winnow.telemetry.traces import within

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
#: Paths that are answered however much there is to do: a busy process is not a dead one.
_ALWAYS = frozenset({"/livez", "/readyz", "/metrics"})
#: Answers are somebody's content, and never a page.
_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))
_SERVER_ERROR = 500
#: Methods that have a series of their own; others are one.
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Shell:
    """Wraps the API. Bodies never reach the log."""

    def __init__(self, app: ASGIApp, telemetry: Telemetry, *, most_requests: int) -> None:
        """`most_requests` are served at once."""
        self._app = app
        self._telemetry = telemetry
        self._most = most_requests
        self._running = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            return
        request_id = scope["winnow.request_id"] = _request_id(scope["headers"])
        begun = time.monotonic()
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                there = {name.lower() for name, _ in message.get("headers", ())}
                said = ((name.encode(), value.encode()) for name, value in scope.get("winnow.headers", {}).items())
                more = [(b"x-request-id", request_id.encode()), *_HEADERS, *said]
                message["headers"] = [*message.get("headers", ()), *(h for h in more if h[0] not in there)]
            await send(message)

        self._running += 1
        try:
            if self._running > self._most and scope["path"] not in _ALWAYS:
                refusal = overloaded("too many requests at once", 1, status=503)
                await document(refusal, request_id)(scope, receive, answer)
            else:
                await self._app(scope, receive, answer)
        except Exception as exc:
            # The API has answered already; here it is told to the people who mend it. What passes by itself is told by its status alone.
            if translate(exc) is None:
                with within(self._trace(scope)):
                    self._telemetry.log.error("http_error", exc=exc, route=_route(scope), request_id=request_id)  # noqa: TRY400  `exc` is logged
            if status == 0:
                raise
        finally:
            self._running -= 1
            self._told(scope, status, time.monotonic() - begun, request_id)

    def _told(self, scope: Scope, status: int, seconds: float, request_id: str) -> None:
        """One line and two series a request. A client that went away before the answer has the status 499, as elsewhere."""
        method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        route, code = _route(scope), status or 499
        self._telemetry.metrics.count("winnow_http_requests_total", method=method, route=route, status=str(code))
        self._telemetry.metrics.observe("winnow_http_request_seconds", seconds, route=route)
        if scope["path"] in _ALWAYS:
            return
        write = self._telemetry.log.warning if code >= _SERVER_ERROR else self._telemetry.log.info
        with within(self._trace(scope)):
            write(
                "http_request",
                method=method,
                route=route,
                status=code,
                ms=round(seconds * 1000, 1),
                request_id=request_id,
                fleet=scope.get("winnow.fleet"),
            )

    def _trace(self, scope: Scope) -> Context:
        """The trace of a request: of its span where it had one, else its caller's."""
        known: Context | None = scope.get("winnow.context")
        if known is not None:
            return known
        return self._telemetry.traces.extract((name.decode("latin-1"), value) for name, value in scope["headers"])


def _request_id(headers: Iterable[tuple[bytes, bytes]]) -> str:
    """The caller's id where it is a plain word, else a new one."""
    for name, value in headers:
        if name == b"x-request-id":
            said = value.decode("latin-1")
            if _REQUEST_ID.fullmatch(said):
                return said
    return uuid4().hex


def _route(scope: MutableMapping[str, Any]) -> str:
    """The route's template; paths that callers choose never become a label."""
    return str(getattr(scope.get("route"), "path", "unmatched"))
