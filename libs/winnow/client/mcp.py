"""The recovery tools over MCP, with the official SDK (extra `mcp`): on standard input and output, or streamable HTTP on loopback.

Over stdio the process has one API key and so one fleet. Over HTTP each request brings its own key, `Authorization: Bearer wnw_...`, which
the gateway checks: the server holds none, and a caller sees the fleet of its key.
"""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

import httpx
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyUrl
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from winnow.client import tools
from winnow.client.client import WinnowClient
from winnow.client.http import HttpTransport

INSTRUCTIONS: Final = (
    "Winnow keeps what compaction removed from your context. Use search_history to find it, pruned_entries to see which summary entries "
    "were removed for want of a source, and expand to get the exact text by its handle. What you recover was true or planned then; check "
    "it before you rely on it."
)
#: Path of the endpoint over HTTP.
PATH: Final = "/mcp"
#: Bytes of a request over HTTP: calls are small.
REQUEST_BYTES: Final = 64 * 1024
_BEARER: Final = re.compile(r"Bearer ([\x21-\x7e]{1,200})", re.IGNORECASE | re.ASCII)

#: Gives the client of a call: the process's own, or one with the key of the request.
ClientOf = Callable[[], AbstractAsyncContextManager[WinnowClient]]


def make_server(client_of: ClientOf, *, version: str, run: str | None = None) -> "Server[Any, Any]":
    """The MCP server with the recovery tools; `run` is the run that its agent is, where that is known."""
    server: Server[Any, Any] = Server("winnow", version=version, instructions=INSTRUCTIONS)

    async def listed() -> list[types.Tool]:
        return [
            types.Tool(
                name=tool.name,
                description=tool.description,
                inputSchema=dict(tool.schema),
                annotations=types.ToolAnnotations(readOnlyHint=tool.name != "expand", destructiveHint=False, openWorldHint=False),
            )
            for tool in tools.TOOLS
        ]

    async def called(name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        async with client_of() as client:
            return _result(await tools.call(client, name, arguments, run=run))

    server.list_tools()(listed)  # type: ignore[no-untyped-call]  # the SDK leaves its decorators untyped
    # `tools.call` checks the arguments itself: the SDK's error would quote them.
    server.call_tool(validate_input=False)(called)
    return server


def _result(answer: tools.Answer) -> types.CallToolResult:
    """The answer as MCP says it. The exact text is a block of its own, so that its bytes are those that are given."""
    content: list[types.ContentBlock] = []
    if answer.base64 is not None:
        uri = AnyUrl(f"winnow://original/{answer.about['handle']}")
        blob = types.BlobResourceContents(uri=uri, mimeType="application/octet-stream", blob=answer.base64)
        content.append(types.EmbeddedResource(type="resource", resource=blob))
    else:
        content.append(types.TextContent(type="text", text=answer.text))
    if answer.note is not None:
        content.append(types.TextContent(type="text", text=answer.note))
    about = {f"winnow/{name}": value for name, value in answer.about.items()}
    return types.CallToolResult.model_validate({"content": content, "isError": answer.error, "_meta": about or None})


async def serve_stdio(client: WinnowClient, *, version: str, run: str | None = None) -> None:
    """Serve on standard input and output until the other side closes them. `client` is open, and stays so."""

    @asynccontextmanager
    async def own() -> AsyncIterator[WinnowClient]:
        yield client

    server = make_server(own, version=version, run=run)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def make_app(gateway_url: str, *, version: str, hosts: list[str], http: httpx.AsyncClient) -> ASGIApp:
    """The ASGI application for streamable HTTP. Without state: a session would outlive the key that opened it.

    Args:
        gateway_url: where keys are checked and questions go.
        version: of this package.
        hosts: values of the header `Host` that are served (`127.0.0.1:8486`): a page in a browser cannot reach a server on loopback by
            a name of its own (DNS rebinding). Requests that say an `Origin` other than these are refused too.
        http: the pool of connections to the gateway; the caller closes it.
    """

    @asynccontextmanager
    async def asking() -> AsyncIterator[WinnowClient]:
        request = server.request_context.request
        key = None if request is None else _key_of(request.headers.get("authorization"))
        async with WinnowClient(HttpTransport(gateway_url, key or "", client=http)) as client:
            yield client

    server = make_server(asking, version=version)
    security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=[f"http://{host}" for host in hosts])
    sessions = StreamableHTTPSessionManager(
        server, stateless=True, json_response=True, security_settings=security, max_request_body_size=REQUEST_BYTES
    )
    return _App(sessions)


class _App:
    """The endpoint: a key first, then MCP."""

    def __init__(self, sessions: StreamableHTTPSessionManager) -> None:
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the life of the application."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        if scope["type"] != "http":
            return
        request = Request(scope)
        if request.url.path.rstrip("/") != PATH:
            await JSONResponse({"error": f"MCP is at {PATH}"}, 404)(scope, receive, send)
        elif _key_of(request.headers.get("authorization")) is None:
            said = {"error": "send `Authorization: Bearer wnw_...`, an API key of the fleet"}
            await JSONResponse(said, 401, {"www-authenticate": "Bearer"})(scope, receive, send)
        else:
            await self._sessions.handle_request(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        """Start and stop with the web server."""
        await receive()
        async with self._sessions.run():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})


def _key_of(authorization: str | None) -> str | None:
    """The key in a header, if there is one."""
    found = _BEARER.fullmatch(authorization) if authorization is not None and len(authorization) <= REQUEST_BYTES else None
    return found[1] if found else None
