"""Style, scripts, and the stream that tells open pages of news."""

from collections.abc import AsyncIterator
from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from services.gateway.console.console import SignedIn, console_of
from services.gateway.console.feed import Feed
from services.gateway.console.pages import HEADERS, ROOT, PageRoute, failed
from services.gateway.problems import ProblemError, overloaded
from winnow.client.api import ProblemReason

router = APIRouter(include_in_schema=False, route_class=PageRoute)

_FOLDER = Path(__file__).parent / "static"
#: What there is, by the name in the address: nothing that a caller writes becomes a path.
_FILES = {
    "console.css": ("console.css", "text/css; charset=utf-8"),
    "console.js": ("console.js", "text/javascript; charset=utf-8"),
    "charts.js": ("charts.js", "text/javascript; charset=utf-8"),
    "uplot.js": ("vendor/uplot.min.js", "text/javascript; charset=utf-8"),
    "uplot.css": ("vendor/uplot.min.css", "text/css; charset=utf-8"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
}
#: Seconds that a browser may keep a file without asking: short, since a new release changes them under the same names.
KEEP_S = 300
#: Seconds after which a page without a stream asks for one again; `console.js` has the same.
ASK_S = 15


@router.get(ROOT + "/static/{name}")
async def static(name: str) -> Response:
    """One file."""
    if name not in _FILES:
        raise ProblemError(ProblemReason.NOT_FOUND, "there is no such file")
    path, kind = _FILES[name]
    content = (_FOLDER / path).read_bytes()  # 50 KB at most, from the page cache
    return Response(content, 200, HEADERS | {"cache-control": f"max-age={KEEP_S}"}, media_type=kind)


@router.get(ROOT + "/events")
async def events(request: Request, viewer: SignedIn) -> Response:
    """Server-sent events: that something of the viewer's fleets has changed. 429 where too many listen; the page then asks now and then."""
    feed = console_of(request).feed
    told = await feed.marks(viewer.fleets)  # a database that is away is an answer, not a stream that breaks off
    refused = failed(request, overloaded("too many pages hear of changes at once", ASK_S))
    return Listening(feed.stream(viewer.fleets, told), feed, refused)


class Listening(StreamingResponse):
    """A stream as long as it has a seat, which it takes when it begins: what is never sent holds none."""

    def __init__(self, events: AsyncIterator[str], feed: Feed, refused: Response) -> None:
        """`refused` is sent in its place where there is no seat."""
        super().__init__(events, 200, HEADERS | {"x-accel-buffering": "no"}, media_type="text/event-stream")
        self._feed = feed
        self._refused = refused

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream, or that there is no room for it."""
        with self._feed.seat() as given:
            await (super().__call__ if given else self._refused)(scope, receive, send)
