"""Style, scripts, and the stream that tells open pages of news."""

from pathlib import Path

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse

from services.gateway.console.console import SignedIn, console_of
from services.gateway.console.pages import HEADERS, ROOT, PageRoute
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
    """Server-sent events: that something of the viewer's fleets has changed. 503 where too many listen; the page then asks now and then."""
    feed = console_of(request).feed
    if feed.full:
        raise overloaded("too many pages hear of changes at once", 15, status=503)
    headers = HEADERS | {"x-accel-buffering": "no"}
    return StreamingResponse(feed.stream(viewer.fleets), 200, headers, media_type="text/event-stream")
