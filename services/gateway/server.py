"""The web server, inside an event loop that others share."""

import asyncio
import contextlib
import socket
from collections.abc import Iterator

import uvicorn
from starlette.types import ASGIApp

#: Connections that may queue while all are busy.
BACKLOG = 512
#: Bytes of a request line with its headers.
HEADER_BYTES = 32 * 1024


class _Server(uvicorn.Server):
    """uvicorn that leaves signals to the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no handlers: several services share this process."""
        yield


class WebServer:
    """Serves an application until it is told to stop, then finishes what runs."""

    def __init__(self, app: ASGIApp, *, host: str, port: int, keepalive_s: int, drain_s: float) -> None:
        """`drain_s` seconds may running requests take once `stop` is called."""
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
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

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
