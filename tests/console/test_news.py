"""News for open pages: marks, bounded in number, and ended with the gateway."""

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx

from tests.console.place import TEXT
from tests.harness.pipeline import Stages, candidate
from tests.harness.waiting import eventually


async def test_news_are_marks_and_bounded(place):
    """A stream says that something changed and not what; a fourth of three streams is told to come back; one that ends makes room."""
    async with place.person("auditor") as http:
        page = await http.get(f"/console/fleets/{place.fleet}")
        found = re.search(r'data-marks="([^"]*)"', page.text)
        assert found
        shown = json.loads(found[1].replace("&#34;", '"'))
        async with http.stream("GET", "/console/events") as first:
            assert first.headers["content-type"].startswith("text/event-stream")
            lines = first.aiter_lines()
            assert await _marks(lines) == shown
            async with http.stream("GET", "/console/events"), http.stream("GET", "/console/events"):
                refused = await http.get("/console/events")
                assert (refused.status_code, refused.headers["retry-after"]) == (429, "15")
            await Stages(place.db).one(candidate(TEXT, fleet=place.fleet, run="another"))
            async with asyncio.timeout(20):
                news = await _marks(lines)
            assert news[place.fleet]["boundaries"] != shown[place.fleet]["boundaries"]
            assert news[place.fleet]["alerts"] == shown[place.fleet]["alerts"]
        await eventually(lambda: _opens(http), 20, what="room for another stream")


async def test_a_burst_of_pages_takes_the_streams_that_there_are(place):
    """Of thirty pages that ask at once three hear of changes, every other is told when to ask again, and pages go on being served."""
    async with place.person("auditor") as http, AsyncExitStack() as stack:
        answers = await asyncio.gather(*(stack.enter_async_context(http.stream("GET", "/console/events")) for _ in range(30)))
        assert Counter(answer.status_code for answer in answers) == {200: 3, 429: 27}
        assert {answer.headers.get("retry-after") for answer in answers if answer.status_code == 429} == {"15"}
        for answer in answers:
            if answer.status_code == 200:
                assert place.fleet in await _marks(answer.aiter_lines())
        assert (await http.get("/console")).status_code == 200


async def test_a_gateway_that_stops_ends_its_streams(place):
    """A page that listens holds up no shutdown."""
    async with place.person("auditor") as http, http.stream("GET", "/console/events") as listening:
        lines = listening.aiter_lines()
        await _marks(lines)
        async with asyncio.timeout(10):
            await asyncio.gather(place.service.stop(), _rest(lines))


async def _marks(lines: AsyncIterator[str]) -> dict:
    async for line in lines:
        if line.startswith("data: "):
            return json.loads(line.removeprefix("data: "))
    raise AssertionError


async def _opens(http: httpx.AsyncClient) -> bool:
    async with http.stream("GET", "/console/events") as answer:
        return answer.status_code == 200


async def _rest(lines: AsyncIterator[str]) -> None:
    async for _ in lines:
        pass
