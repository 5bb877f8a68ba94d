"""Pages as answers: templates, the headers that keep a page to itself, and what is left of a request that failed."""

from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException

from services.gateway.console.views import numbers, text, wording
from services.gateway.parts import parts_of
from services.gateway.problems import KINDS, ProblemError, request_id_of, translate
from winnow.client.api import ProblemReason

#: Scripts, styles, images, forms and connections of our own origin; nothing inline, nothing of others, in nobody's frame.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    # Not `no-referrer`: under it browsers say `Origin: null` of our own forms, which is then all that older ones, and plain HTTP, say.
    "referrer-policy": "same-origin",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
ROOT = "/console"
SIGN_IN = f"{ROOT}/sign-in"
_FOLDER = Path(__file__).parent / "templates"


class SignInError(Exception):
    """Nobody has signed in, or the session or its key has ended: the person is asked to."""


class Pages:
    """Renders templates."""

    def __init__(self) -> None:
        """Templates are read when they are first asked for, and kept."""
        # Everything is escaped, whatever the file is called: summaries, runs and error texts are written by others.
        made = self._environment = Environment(
            loader=FileSystemLoader(_FOLDER),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        made.filters |= {
            "visible": text.visible,
            "line": text.line,
            "told": text.told,
            "count": numbers.count,
            "percent": numbers.percent,
            "seconds": numbers.seconds,
            "milliseconds": numbers.milliseconds,
            "usd": numbers.usd,
            "size": numbers.size,
            "score": numbers.score,
            "number": numbers.number,
            "evidence": numbers.evidence,
            "moment": numbers.moment,
            "words": wording.words,
        }
        made.globals |= {"wording": wording, "way": numbers.way}

    def render(self, template: str, values: Mapping[str, object], *, status: int = 200) -> Response:
        """The page of `template`."""
        body = self._environment.get_template(template).render(values)
        return Response(body, status, HEADERS, media_type="text/html; charset=utf-8")


class PageRoute(APIRoute):
    """A route whose errors are pages: a person reads them."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, and around it what becomes of its errors."""
        handle = super().get_route_handler()

        async def handled(request: Request) -> Response:
            try:
                return await handle(request)
            except SignInError:
                return redirect(SIGN_IN if request.method != "GET" or request.url.path == ROOT else f"{SIGN_IN}?next={_quoted(request)}")
            except (RequestValidationError, HTTPException):
                return failed(request, ProblemError(ProblemReason.NOT_FOUND, "there is no such page"))
            except Exception as exc:  # noqa: BLE001  a person sees a page, whatever went wrong
                problem = translate(exc)
                if problem is None:  # a defect of ours: told to the people who mend it, as the outermost layer does for the API
                    route, number = self.path, request_id_of(request)
                    parts_of(request).telemetry.log.error("http_error", exc=exc, route=route, request_id=number)
                    problem = ProblemError(ProblemReason.INTERNAL, "a defect of the gateway; its log has the request id")
                return failed(request, problem)

        return handled


def redirect(place: str) -> Response:
    """See another page: by GET, whatever this was."""
    return Response(None, 303, HEADERS | {"location": place})


def _quoted(request: Request) -> str:
    asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return quote(asked, safe="/")


def failed(request: Request, problem: ProblemError) -> Response:
    """A page that says what went wrong."""
    pages: Pages = request.app.state.console.pages
    title = KINDS[problem.reason][1]
    said = {"title": title, "detail": problem.detail, "request_id": request_id_of(request), "viewer": None, "fleet": None}
    made = pages.render("failed.html", said, status=problem.status)
    made.headers.update(problem.headers)
    return made
