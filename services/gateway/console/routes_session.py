"""Signing in with an API key, and out."""

from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, Request, Response

from services.gateway.console.console import COOKIE, Console, SignedIn, Viewer, console_of
from services.gateway.console.pages import ROOT, SIGN_IN, PageRoute, redirect
from services.gateway.keys import address_of, admit, allow
from services.gateway.parts import parts_of
from services.gateway.problems import ProblemError
from winnow.client.api import ProblemReason
from winnow.contracts import limits
from winnow.contracts.access import Right
from winnow.contracts.events import sha256

router = APIRouter(include_in_schema=False, route_class=PageRoute)

#: Bytes of a form: a key, a reason of a few lines, a token.
FORM_BYTES = 16 * limits.KIB
#: Characters of a person's reason, as over the API.
REASON_CHARS = 500


async def form_of(request: Request) -> dict[str, str]:
    """The fields of a form that one of our own pages sent. Raise `ProblemError`.

    A browser says where a request comes from in `Sec-Fetch-Site`, or at least in `Origin`; a program that says neither has no cookies.
    """
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin")
    ours = site in {"same-origin", "none"} if site is not None else origin is None or _host(origin) == request.headers.get("host")
    if not ours:
        raise ProblemError(ProblemReason.FORBIDDEN, "the form was sent from another site; open the console and send it from there")
    async with parts_of(request).bodies.read(request, FORM_BYTES) as body:
        try:
            fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=20)
        except ValueError:
            raise ProblemError(ProblemReason.INVALID, "the form has more fields than any of ours") from None
    return {name: values[0] for name, values in fields.items()}


def _host(origin: str) -> str:
    """Host and port of an origin; empty for what is none."""
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return ""


async def signed_form(request: Request, viewer: Viewer) -> dict[str, str]:
    """The same, with the token of the viewer's session. Raise `ProblemError`."""
    fields = await form_of(request)
    if not console_of(request).sessions.sent(viewer.session, fields.get("token", "")):
        raise ProblemError(ProblemReason.FORBIDDEN, "the form is not of this session; load the page again and repeat")
    return fields


async def reasoned_form(request: Request, viewer: Viewer, *, confirmed: str | None = None) -> dict[str, str]:
    """The fields of a form of the viewer's session whose reason, `because`, is there, as one line.

    Raise `ProblemError` where there is none, or where it lacks the confirmation that `confirmed` says in words.
    """
    fields = await signed_form(request, viewer)
    because = " ".join(fields.get("because", "").split())[:REASON_CHARS]
    if not because:
        raise ProblemError(ProblemReason.INVALID, "say why: the reason goes into the audit trail")
    if confirmed is not None and fields.get("confirmed") != "yes":
        raise ProblemError(ProblemReason.INVALID, f"confirm that {confirmed}, then send the form again")
    return fields | {"because": because}


@router.get(SIGN_IN)
async def ask(request: Request, next: str = "") -> Response:  # noqa: A002  the name in the address
    """The form that asks for a key."""
    return _form(console_of(request), next)


@router.post(SIGN_IN)
async def sign_in(request: Request) -> Response:
    """Begin a session with a key that works."""
    console = console_of(request)
    fields = await form_of(request)
    secret, place = fields.get("key", "").strip(), fields.get("next", "")
    try:
        key = allow(await admit(console.keys, request.app.state.quotas, secret, address_of(request)), Right.READ)
    except ProblemError as problem:
        if problem.reason is ProblemReason.UNAUTHORISED:
            return _form(console, place, problem="This key is unknown, revoked or expired.")
        raise
    request.scope["winnow.fleet"] = key.fleet
    session = console.sessions.begin(sha256(secret))
    answer = redirect(_within(place))
    answer.set_cookie(
        COOKIE,
        console.sessions.cookie(session),
        max_age=round(console.settings.console_session_h * 3600),
        path=ROOT,
        secure=console.settings.console_cookie_secure or request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return answer


@router.post(f"{ROOT}/sign-out")
async def sign_out(request: Request, viewer: SignedIn) -> Response:
    """Forget the session in this browser."""
    await signed_form(request, viewer)
    answer = redirect(SIGN_IN)
    answer.delete_cookie(COOKIE, path=ROOT, httponly=True, samesite="strict")
    return answer


def _form(console: Console, place: str, *, problem: str | None = None) -> Response:
    said = {"next": _within(place), "problem": problem, "viewer": None, "fleet": None}
    return console.pages.render("sign_in.html", said, status=200 if problem is None else 401)


def _within(place: str) -> str:
    """Where to go after signing in: a page of the console, never somebody else's."""
    local = (place == ROOT or place.startswith((f"{ROOT}/", f"{ROOT}?"))) and place.isprintable() and place.isascii() and "\\" not in place
    return place if local and "//" not in place else ROOT
