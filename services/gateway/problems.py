"""Errors as problem documents (RFC 9457). Their texts name fields and never quote content."""

from collections.abc import Mapping

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from winnow.client.api import PROBLEM_TYPE, Problem, ProblemReason
from winnow.contracts.errors import Conflict, Gone, HashMismatch, NotFound, Permanent, Retryable, TooLarge
from winnow.storage.cursors import BadCursor
from winnow.storage.database import transient
from winnow.storage.faults import silence

#: Title and status of each reason.
KINDS: Mapping[ProblemReason, tuple[int, str]] = {
    ProblemReason.INVALID: (422, "The request is not valid"),
    ProblemReason.HASH_MISMATCH: (422, "A hash does not match its content"),
    ProblemReason.CLAIM_LOST: (422, "The claim check names no original of this fleet"),
    ProblemReason.BAD_CURSOR: (422, "The cursor is not valid"),
    ProblemReason.TOO_LARGE: (413, "The content is too large"),
    ProblemReason.ID_CONFLICT: (409, "The boundary id belongs to other content"),
    ProblemReason.UNAUTHORISED: (401, "The API key is missing or not valid"),
    ProblemReason.FORBIDDEN: (403, "The API key may not do this"),
    ProblemReason.OTHER_FLEET: (403, "The body names another fleet than the API key's"),
    ProblemReason.NOT_FOUND: (404, "Not found"),
    ProblemReason.GONE: (410, "It has expired or was erased"),
    ProblemReason.METHOD_NOT_ALLOWED: (405, "The method is not allowed here"),
    ProblemReason.UNSUPPORTED_ENCODING: (415, "The content encoding is not taken"),
    ProblemReason.BODY_TIMEOUT: (408, "The body did not arrive in time"),
    ProblemReason.RATE_LIMITED: (429, "The quota is used up"),
    ProblemReason.OVERLOADED: (429, "There is too much to do"),
    ProblemReason.UNAVAILABLE: (503, "The service is not available now"),
    ProblemReason.INTERNAL: (500, "The gateway failed"),
}
#: Reasons of HTTP errors that the router raises itself.
_BY_STATUS = {404: ProblemReason.NOT_FOUND, 405: ProblemReason.METHOD_NOT_ALLOWED}


class ProblemError(Exception):
    """Ends a request with a problem document."""

    def __init__(self, reason: ProblemReason, detail: str, *, status: int | None = None, headers: Mapping[str, str] | None = None) -> None:
        """`detail` says what happened and what to do; `status` differs from the reason's own only where HTTP wants it so."""
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
        self.status = status or KINDS[reason][0]
        self.headers = dict(headers or {})


def overloaded(detail: str, retry_after_s: int, *, status: int = 429) -> ProblemError:
    """The client should come back after `retry_after_s` seconds."""
    return ProblemError(ProblemReason.OVERLOADED, detail, status=status, headers={"retry-after": str(retry_after_s)})


def translate(exc: Exception) -> ProblemError | None:
    """The problem that an error of the inner layers is; None where it is a defect of ours."""
    if isinstance(exc, ProblemError):
        return exc
    known: list[tuple[type[Exception], ProblemReason]] = [
        (BadCursor, ProblemReason.BAD_CURSOR),
        (Conflict, ProblemReason.ID_CONFLICT),
        (TooLarge, ProblemReason.TOO_LARGE),
        (Gone, ProblemReason.GONE),
        (NotFound, ProblemReason.NOT_FOUND),
        (Permanent, ProblemReason.INVALID),
    ]
    if not isinstance(exc, HashMismatch):  # of stored bytes: a defect of ours, or of a disk
        for kind, reason in known:
            if isinstance(exc, kind):
                return ProblemError(reason, str(exc))
    if isinstance(exc, Retryable) or transient(exc):
        return ProblemError(ProblemReason.UNAVAILABLE, silence(exc), headers={"retry-after": "1"})
    return None


def document(problem: ProblemError, request_id: str | None) -> Response:
    """The problem as a response."""
    body = Problem(
        title=KINDS[problem.reason][1], status=problem.status, reason=problem.reason.value, detail=problem.detail, instance=request_id
    )
    headers = problem.headers | ({"www-authenticate": "Bearer"} if problem.status == 401 else {})  # noqa: PLR2004  Unauthorized
    return Response(body.model_dump_json(exclude_none=True), problem.status, headers, media_type=PROBLEM_TYPE)


def request_id_of(request: Request) -> str | None:
    """The id that the outermost layer gave the request."""
    value: str | None = request.scope.get("winnow.request_id")
    return value


def install(app: FastAPI) -> None:
    """Answer every error of `app` with a problem document; what is a defect of ours is raised on, to be logged outside."""

    async def known(request: Request, exc: Exception) -> Response:
        problem = translate(exc)
        if problem is None:
            raise exc
        return document(problem, request_id_of(request))

    async def invalid(request: Request, exc: Exception) -> Response:
        detail = "the request is not valid"
        if isinstance(exc, RequestValidationError):
            said = [f"{'.'.join(str(p) for p in e['loc'])}: {e['msg']}" for e in exc.errors()[:3]]
            detail = "; ".join(said)[:500]
        return document(ProblemError(ProblemReason.INVALID, detail), request_id_of(request))

    async def http(request: Request, exc: Exception) -> Response:
        status = exc.status_code if isinstance(exc, HTTPException) else 500
        reason = _BY_STATUS.get(status, ProblemReason.INVALID if status < 500 else ProblemReason.INTERNAL)  # noqa: PLR2004  server errors
        headers = (exc.headers or {}) if isinstance(exc, HTTPException) else {}
        detail = "there is no such path; see /openapi.json" if status == 404 else KINDS[reason][1].lower()  # noqa: PLR2004  Not Found
        return document(ProblemError(reason, detail, status=status, headers=headers), request_id_of(request))

    async def internal(request: Request, exc: Exception) -> Response:
        problem = translate(exc)
        if problem is None:
            problem = ProblemError(ProblemReason.INTERNAL, "a defect of the gateway; its log has the request id")
        return document(problem, request_id_of(request))

    app.add_exception_handler(ProblemError, known)
    app.add_exception_handler(Permanent, known)
    app.add_exception_handler(Retryable, known)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(Exception, internal)
