"""The outermost layer of the gateway: whose trace the line of a request names."""

import contextlib
import io
import json
import logging
from dataclasses import replace

import pytest

from services.gateway.shell import Shell
from winnow.telemetry import Log, Telemetry, TelemetrySettings
from winnow.telemetry.logs import handler

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
OTHER = "1bf7651916cd43dd8448eb211c80319c"


def parent(trace: str) -> str:
    return f"00-{trace}-{SPAN}-01"


async def lines_of(app, headers: list[tuple[bytes, bytes]]) -> list[dict]:
    """What is written of one request."""
    stream, logger = io.StringIO(), logging.getLogger("winnow.test_shell")
    made = handler(TelemetrySettings(log_format="json"), stream)
    logger.addHandler(made)
    logger.propagate = False
    logger.setLevel(logging.INFO)
    scope = {"type": "http", "method": "GET", "path": "/v1/boundaries", "headers": headers}

    async def send(_message):
        """Nobody reads the answer."""

    try:
        shell = Shell(app, replace(Telemetry.plain("gateway"), log=Log(logger)), most_requests=1)
        with contextlib.suppress(ZeroDivisionError):
            await shell(scope, None, send)
    finally:
        logger.removeHandler(made)
        logger.propagate = True
    return [json.loads(line) for line in stream.getvalue().splitlines()]


async def fine(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})


async def broken(scope, receive, send):
    raise ZeroDivisionError


async def spanned(scope, receive, send):
    """A route that made a span of its own."""
    scope["winnow.context"] = Telemetry.plain().traces.from_carrier({"traceparent": parent(OTHER)})
    await fine(scope, receive, send)


@pytest.mark.parametrize(
    ("app", "events", "trace"),
    [(fine, ["http_request"], TRACE), (broken, ["http_error", "http_request"], TRACE), (spanned, ["http_request"], OTHER)],
)
async def test_the_lines_of_a_request_name_its_trace(app, events, trace):
    """The caller's trace, or that of the span that the request had; also where it fails."""
    lines = await lines_of(app, [(b"traceparent", parent(TRACE).encode())])
    assert [line["event"] for line in lines] == events
    assert [line["trace_id"] for line in lines] == [trace] * len(events)


@pytest.mark.parametrize("value", [b"", b"\xff\xfe", b"00-zz-zz-01", parent(TRACE).encode() * 1000])
async def test_a_broken_trace_header_costs_nothing_but_the_trace(value):
    """Any bytes: the line is written without a trace."""
    [line] = await lines_of(fine, [(b"traceparent", value)])
    assert "trace_id" not in line
