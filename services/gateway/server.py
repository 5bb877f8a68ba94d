"""The web server, inside an event loop that others share."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

from winnow.contracts.errors import Permanent

#: Connections that may queue while all are busy.
BACKLOG = 512
#: Bytes of a request line with its headers.
HEADER_BYTES = 32 * 1024


class TlsFiles(Permanent):
    """The gateway's certificate or key will not do; see WINNOW_GATEWAY_TLS_CERTFILE, _TLS_KEYFILE and _TLS_KEY_PASSWORD."""


def tls_context(certificate: str, key: str, password: str) -> ssl.SSLContext | None:
    """TLS 1.2 or newer with a certificate and its key from PEM files; None where none is named. Raise `TlsFiles`."""
    if not certificate:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        # Without a password the library would ask the terminal for one, and wait.
        context.load_cert_chain(certificate, key or None, password)
    except (OSError, ValueError) as error:
        why = error.reason if isinstance(error, ssl.SSLError) else getattr(error, "strerror", None)
        msg = f"WINNOW_GATEWAY_TLS_CERTFILE and _TLS_KEYFILE are not a certificate and its key in PEM form ({why or 'not PEM'})"
        raise TlsFiles(msg) from None
    return context


class _Server(uvicorn.Server):
    """uvicorn that leaves signals to the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no handlers: several services share this process."""
        yield


class WebServer:
    """Serves an application until it is told to stop, then finishes what runs."""

    def __init__(self, app: ASGIApp, *, host: str, port: int, keepalive_s: int, drain_s: float, tls: ssl.SSLContext | None = None) -> None:
        """`drain_s` seconds may running requests take once `stop` is called; with `tls` it speaks HTTPS."""
        self._scheme = "http" if tls is None else "https"
        self._host = host
        self._port = port
        self._server = _Server(
            uvicorn.Config(
                app,
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                ws="none",
                http="h11",
                h11_max_incomplete_event_size=HEADER_BYTES,
                timeout_keep_alive=keepalive_s,
                timeout_graceful_shutdown=max(1, round(drain_s)),
                backlog=BACKLOG,
                ssl_context_factory=None if tls is None else lambda _config, _default: tls,
            )
        )
        self._socket: socket.socket | None = None
        self._task: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        """Where it listens. Raise `RuntimeError` before `start`."""
        if self._socket is None:
            msg = "the server is not started"
            raise RuntimeError(msg)
        host, port = self._socket.getsockname()[:2]
        return f"{self._scheme}://[{host}]:{port}" if ":" in host else f"{self._scheme}://{host}:{port}"

    @property
    def problem(self) -> str | None:
        """Why nothing is served, or None."""
        return None if self._task is not None and not self._task.done() else "the web server does not run"

    async def start(self) -> None:
        """Listen; returns when requests are served. Raise `OSError` where the port is taken."""
        self._socket = _listening(self._host, self._port)
        self._task = asyncio.get_running_loop().create_task(self._server.serve(sockets=[self._socket]), name="winnow-http")
        while not self._server.started and not self._task.done():  # noqa: ASYNC110  uvicorn tells it in a flag only
            await asyncio.sleep(0.005)
        if self._task.done():
            await self._task

    async def stop(self) -> None:
        """Take no more connections, finish the running requests, end. May be called twice, and after a failed start."""
        self._server.should_exit = True
        task, self._task = self._task, None
        if task is not None:
            await asyncio.gather(task, return_exceptions=True)
        if self._socket is not None:
            self._socket.close()


def _listening(host: str, port: int) -> socket.socket:
    """A listening socket that says it is TCP: asyncio turns Nagle's algorithm off only then, and each answer took 40 ms with it on."""
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(BACKLOG)
        made.setblocking(False)
    except BaseException:
        made.close()
        raise
    return made
