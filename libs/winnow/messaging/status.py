"""A few bytes of HTTP for a process without a web server: `/livez`, `/readyz`, `/metrics`, for container health checks and Prometheus."""

import asyncio
import contextlib
import json
from collections.abc import Callable, Sequence

from winnow.messaging.health import Check, examine, vital
from winnow.telemetry import Telemetry
from winnow.telemetry.metrics import CONTENT_TYPE

#: Bytes of a request line with its headers; these endpoints need a hundred.
MAX_REQUEST_BYTES = 8 * 1024
#: Seconds that a client may take to send its request.
REQUEST_S = 5.0


class StatusServer:
    """Answers GET on three paths; one request a connection."""

    def __init__(self, host: str, port: int, checks: Callable[[], Sequence[Check]], telemetry: Telemetry) -> None:
        """`checks` is asked at each request. Port 0 takes a free one: see `port` after `start`."""
        self._host = host
        self._port = port
        self._checks = checks
        self._telemetry = telemetry
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        """The port that is listened on."""
        return int(self._server.sockets[0].getsockname()[1]) if self._server is not None else self._port

    async def start(self) -> None:
        """Listen. Raises `OSError` where the port is taken."""
        self._server = await asyncio.start_server(self._serve, self._host, self._port, limit=MAX_REQUEST_BYTES)

    async def stop(self) -> None:
        """Stop listening; may be called twice."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, TimeoutError):
            try:
                async with asyncio.timeout(REQUEST_S):
                    head = await reader.readuntil(b"\r\n\r\n")
                status, content_type, body = await self._answer(head)
            except (asyncio.LimitOverrunError, asyncio.IncompleteReadError):
                status, content_type, body = "400 Bad Request", "text/plain", b"not a request\n"
            writer.write(
                f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode()
                + body
            )
            await writer.drain()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    async def _answer(self, head: bytes) -> tuple[str, str, bytes]:
        method, _, rest = head.partition(b" ")
        path = rest.partition(b" ")[0].partition(b"?")[0]
        if method not in {b"GET", b"HEAD"}:
            return "405 Method Not Allowed", "text/plain", b"GET only\n"
        if path == b"/metrics":
            return "200 OK", CONTENT_TYPE, self._telemetry.metrics.render()
        if path in {b"/livez", b"/readyz"}:
            checks = self._checks()
            health = await examine(vital(checks) if path == b"/livez" else checks)
            body = json.dumps(
                {"status": "ok" if health.well else "unavailable", "checks": {n: p or "ok" for n, p in health.problems.items()}}
            )
            return "200 OK" if health.well else "503 Service Unavailable", "application/json", body.encode() + b"\n"
        return "404 Not Found", "text/plain", b"/livez, /readyz, /metrics\n"
