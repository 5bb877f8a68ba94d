"""`winnow mcp`: give an agent back what compaction removed from its context."""

import asyncio
import os
from typing import Annotated

import typer

from winnow import __version__
from winnow.cli.terminal import Terminal
from winnow.contracts.errors import Permanent


class NoMcp(Permanent):
    """The MCP server needs the extra `mcp`: pip install "winnow-compaction[mcp]"."""


def mcp(
    *,
    run: Annotated[
        str | None,
        typer.Option(envvar="WINNOW_RUN", metavar="RUN", help="The run that the agent is; left out: the agent says which it means."),
    ] = None,
    http: Annotated[bool, typer.Option("--http", help="Serve streamable HTTP on loopback instead of standard input and output.")] = False,
    port: Annotated[int, typer.Option(min=1, max=65535, help="With --http: port to listen on.")] = 8486,
) -> None:
    """Serve the tools expand, search_history and pruned_entries over MCP.

    On standard input and output, started by an agent's host, with the key in WINNOW_API_KEY (that of the running `winnow up` otherwise).
    With --http at http://127.0.0.1:8486/mcp; there each caller sends its own key as `Authorization: Bearer wnw_...`, and this process
    holds none. An agent sees the fleet of the key and nothing else.
    """
    try:
        from winnow.client import mcp as serving
    except ModuleNotFoundError as exc:
        if exc.name is not None and exc.name.partition(".")[0] in {"mcp", "starlette"}:
            raise NoMcp from None
        raise
    from winnow.cli.connection import gateway

    try:
        if http:
            asyncio.run(_over_http(_gateway_url(), port))
            return

        async def over_stdio() -> None:
            from winnow.client import HttpTransport, WinnowClient

            async with WinnowClient(HttpTransport(*gateway())) as client:
                await serving.serve_stdio(client, version=__version__, run=run)

        asyncio.run(over_stdio())
    except ValueError as exc:
        raise Permanent(str(exc)) from None


def _gateway_url() -> str:
    """Where callers' keys are checked: WINNOW_GATEWAY_URL, else the running `winnow up`. Raise `NotConnected`."""
    from winnow.cli.connection import NotConnected, running

    found = running()
    url = os.environ.get("WINNOW_GATEWAY_URL") or (found.gateway_url if found else None)
    if url is None:
        raise NotConnected("no gateway: start `winnow up` in another terminal, or set WINNOW_GATEWAY_URL")
    return url


async def _over_http(url: str, port: int) -> None:
    """Serve on loopback until interrupted."""
    import httpx
    import uvicorn

    from winnow.client.mcp import PATH, make_app

    hosts = [f"127.0.0.1:{port}", f"localhost:{port}"]
    async with httpx.AsyncClient() as pool:
        app = make_app(url, version=__version__, hosts=hosts, http=pool)
        Terminal().note(f"http://127.0.0.1:{port}{PATH} to {url}; Ctrl-C ends it")
        config = uvicorn.Config(
            app, host="127.0.0.1", port=port, log_level="warning", access_log=False, server_header=False, date_header=False
        )
        await uvicorn.Server(config).serve()
