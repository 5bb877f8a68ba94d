"""The MCP server, asked by the SDK's own client: as a process on standard input and output, and over HTTP."""

import asyncio
import base64
import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx
import pytest
import uvicorn
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult

from tests.integration.recovery.conftest import FLIGHT, SUMMARY, House, output
from winnow.client.mcp import make_app
from winnow.contracts.events import sha256
from winnow.contracts.places import NOTICE
from winnow.storage import originals


@asynccontextmanager
async def over_stdio(house: House, state: str, *, key: str | None = None, run: str | None = None) -> AsyncIterator[ClientSession]:
    """A session with `winnow mcp` as a process of its own, as a host starts it."""
    env = {
        "PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), "WINNOW_GATEWAY_URL": house.stage.service.url,
        "WINNOW_API_KEY": key or house.stage.key, "WINNOW_STATE_DIR": state,
    }  # fmt: skip
    more = ["--run", run] if run else []
    server = StdioServerParameters(command=sys.executable, args=["-m", "winnow.cli", "mcp", *more], env=env)
    async with stdio_client(server) as (reading, writing), ClientSession(reading, writing) as session:
        await session.initialize()
        yield session


def text_of(result: CallToolResult) -> str:
    (content,) = result.content
    return content.text


async def test_an_agent_gets_back_what_was_pruned(house, tmp_path):
    """Over stdio an agent sees what was pruned, gets its exact bytes, and each miss is an error that says what to do."""
    committed = await house.compact()
    exact = bytes(range(256))
    binary = (await house.stage.http.post("/v1/originals", content=exact)).json()["handle"]
    long = "".join(f"{n} rows, über\n" for n in range(9_000))
    big = await house.compact(run="big", history=(output(1, long),))
    async with over_stdio(house, str(tmp_path), run="r") as session:
        listed = {tool.name: tool for tool in (await session.list_tools()).tools}
        assert set(listed) == {"expand", "search_history", "pruned_entries"}
        assert listed["expand"].inputSchema["required"] == ["handle"]

        pruned = text_of(await session.call_tool("pruned_entries", {}))
        notice, first, second = pruned.split("\n")
        assert notice == NOTICE
        assert "rebook via Lisbon" in first
        handle = second.split(" ", 1)[0]
        result = await session.call_tool("expand", {"handle": handle})
        assert (text_of(result), result.isError) == ("- call the über-desk\n", False)
        assert result.meta == {
            "winnow/handle": handle, "winnow/kind": "candidate", "winnow/source": False, "winnow/sha256": sha256(text_of(result)),
            "winnow/start": 0, "winnow/end": 22, "winnow/size": 22,
        }  # fmt: skip
        assert "asked back since" in text_of(await session.call_tool("pruned_entries", {"run": "r", "limit": 2}))

        found = text_of(await session.call_tool("search_history", {"query": "seat 14C"})).split("\n")
        assert found[0] == NOTICE
        assert text_of(await session.call_tool("expand", {"handle": found[1].split(" ", 1)[0]})) == FLIGHT
        nothing = await session.call_tool("search_history", {"query": "zzz"})
        assert (text_of(nothing).startswith(f"{NOTICE}\nNothing"), nothing.isError) == (True, False)
        assert text_of(await session.call_tool("expand", {"handle": committed.candidate_handle})) == SUMMARY

        given = await session.call_tool("expand", {"handle": binary})
        assert base64.b64decode(given.content[0].resource.blob) == exact
        assert NOTICE in given.content[1].text

        whole, start = "", 0
        while True:
            part = await session.call_tool("expand", {"handle": f"{big.history_handle}.m1", "start": start})
            whole += part.content[0].text
            start = part.meta["winnow/end"]
            if start == part.meta["winnow/size"]:
                break
            assert f"start={start}" in part.content[1].text
        assert whole == long

        for name, arguments, says in (
            ("expand", {"handle": originals.new_handle()}, "not_found"),
            ("expand", {"handle": f"{committed.candidate_handle}.e99"}, "no entry 99"),
            ("expand", {"handle": "made up"}, "not a handle"),
            ("expand", {"handle": committed.candidate_handle, "start": 10**6}, "bytes"),
            ("expand", {}, "handle"), ("expand", {"handle": 5}, "handle"), ("expand", {"handle": handle, "start": "x"}, "start"),
            ("expand", {"handle": "x" * 300}, "Nothing was recovered"), ("expand", {"handle": "\x00" * 9}, "not a handle"),
            ("pruned_entries", {"run": "nobody's"}, "no such run"), ("pruned_entries", {"run": ["r"]}, "run"),
            ("pruned_entries", {"cursor": "made up"}, "cursor"), ("search_history", {"query": "x" * 2000}, "Nothing was recovered"),
            ("search_history", {"query": ""}, "query"), ("search_history", {"query": "x", "limit": -1}, "limit"),
            ("no_such_tool", {}, "no tool"),
        ):  # fmt: skip
            miss = await session.call_tool(name, arguments)
            assert miss.isError, (name, arguments)
            assert says in text_of(miss), (name, arguments, text_of(miss))

    rows = await house.rows("SELECT part, run FROM recoveries WHERE fleet = $1 AND event_id IS NOT NULL ORDER BY id LIMIT 2")
    assert rows == [{"part": "e3", "run": "r"}, {"part": "m1", "run": "r"}]
    assert house.counted("winnow_recoveries_total", via="agent", result="not_found") >= 2


async def test_another_fleets_agent_gets_nothing(house, tmp_path):
    """A server with another fleet's key knows neither handles nor runs of this one, and names only its own runs."""
    committed = await house.compact()
    handle = (await house.pruned())[0]["handle"]
    key, _ = await house.stage.new_key(f"{house.fleet}-other")
    async with over_stdio(house, str(tmp_path), key=key) as session:
        for name, arguments in (
            ("expand", {"handle": handle}),
            ("expand", {"handle": committed.history_handle}),
            ("pruned_entries", {"run": "r"}),
            ("search_history", {"query": "flight", "run": "r"}),
        ):
            assert (await session.call_tool(name, arguments)).isError
        assert "Lisbon" not in text_of(await session.call_tool("search_history", {"query": "Lisbon rebook"})).replace("Lisbon rebook", "")
        lost = await session.call_tool("pruned_entries", {})
        assert (lost.isError, text_of(lost)) == (True, "Nothing was recovered: say which run")
    assert await house.rows("SELECT FROM recoveries WHERE fleet = $1") == []


@pytest.fixture
async def endpoint(house) -> AsyncIterator[str]:
    """The server over HTTP on a free port of loopback."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    async with httpx.AsyncClient() as pool:
        app = make_app(house.stage.service.url, version="1", hosts=[f"127.0.0.1:{port}"], http=pool)
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=1))
        task = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.should_exit = True
            await task
            listening.close()


@asynccontextmanager
async def over_http(url: str, key: str) -> AsyncIterator[ClientSession]:
    async with (
        httpx.AsyncClient(headers={"authorization": f"Bearer {key}"}) as http,
        streamable_http_client(url, http_client=http) as (reading, writing, _),
        ClientSession(reading, writing) as session,
    ):
        await session.initialize()
        yield session


async def test_over_http_each_caller_brings_its_key(house, endpoint):
    """Over HTTP a caller sees the fleet of the key that it sends; without one, with a false one or from elsewhere it sees nothing."""
    await house.compact()
    handle = (await house.pruned())[0]["handle"]
    async with over_http(endpoint, house.stage.key) as session:
        assert text_of(await session.call_tool("expand", {"handle": handle})) == "- rebook via Lisbon on Friday\n"
        assert "heard of last: 'r'" in text_of(await session.call_tool("pruned_entries", {}))
    other, _ = await house.stage.new_key(f"{house.fleet}-other")
    for key in (other, "wnw_made_up"):
        async with over_http(endpoint, key) as session:
            miss = await session.call_tool("expand", {"handle": handle})
            assert miss.isError
            assert "Lisbon" not in text_of(miss)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "expand", "arguments": {"handle": handle}}}
    accept = {"accept": "application/json, text/event-stream"}
    key = {"authorization": f"Bearer {house.stage.key}"}
    async with httpx.AsyncClient(base_url=endpoint.removesuffix("/mcp"), headers=accept) as http:
        assert (await http.post("/mcp", json=call)).status_code == 401
        assert (await http.post("/mcp", json=call, headers={"authorization": "Basic x"})).status_code == 401
        assert (await http.post("/elsewhere", json=call, headers=key)).status_code == 404
        assert (await http.post("/mcp", json=call, headers=key | {"origin": "https://evil.example"})).status_code == 403
        assert (await http.post("/mcp", json=call, headers=key | {"host": "evil.example"})).status_code == 421
        assert (await http.post("/mcp", content=b"x" * 100_000, headers=key)).status_code == 413
