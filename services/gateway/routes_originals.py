"""Originals: exact bytes by handle, and uploads for claim checks."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import ValidationError
from starlette.types import Receive, Scope, Send

from services.gateway.keys import Reader, Submitter
from services.gateway.parts import parts_of
from services.gateway.problems import ProblemError
from winnow.client.api import ProblemReason
from winnow.contracts import limits
from winnow.contracts.envelope import explain
from winnow.contracts.errors import Gone, NotFound
from winnow.contracts.events import ClaimCheck, Messages, sha256
from winnow.contracts.places import Place
from winnow.storage.originals import Kind
from winnow.storage.recovery import Found
from winnow.telemetry.metrics import Metrics

router = APIRouter(tags=["originals"])

#: Seconds that a client may take for an answer of any size, and the bytes a second that it must take of a large one: who stops reading
#: would hold 64 MiB of memory for as long as it likes.
SEND_S = 30.0
SEND_BYTES_A_SECOND = 256 * limits.KIB
#: Bytes that are handed to the server at once; what it has taken is in memory a second time.
PIECE_BYTES = 256 * limits.KIB


@router.get(
    "/v1/originals/{handle}",
    summary="Recover an original",
    response_class=Response,
    responses={
        200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}, "description": "Exact bytes."},
        304: {"description": "The client has these bytes: `If-None-Match` names their hash."},
    },
)
async def recover(
    request: Request,
    key: Reader,
    handle: Annotated[str, Path(max_length=200, description="A handle of this fleet, or a part: `<handle>.e5` or `<handle>.m12`.")],
) -> Response:
    """The exact bytes that a handle, or a part of what it stands for, gives back. `ETag` is their SHA-256. 410 where they are gone.

    `<handle>.e5` is entry 5 of a candidate, `<handle>.m12` the text of message 12 of a history. For people and programs that look; an
    agent that asks for what was pruned uses `POST /v1/recoveries`.
    """
    return await handed_over(request, key.fleet, handle)


async def handed_over(request: Request, fleet: str, handle: str, *, more: Mapping[str, str] | None = None) -> Response:
    """The bytes of a place of `fleet` for somebody who looks, with `more` headers. Raise `NotFound`, `Gone`, `ProblemError`."""
    parts = parts_of(request)
    with counted(parts.telemetry.metrics, "look") as given, ExitStack() as holding:
        place = Place.parse(handle)
        described = await parts.gateway.described(fleet, place)
        holding.enter_context(parts.bodies.hold(described.size))
        found = await parts.gateway.look(fleet, place)
        headers = headers_of(found) | dict(more or {})
        if headers["etag"] in {tag.strip() for tag in request.headers.get("if-none-match", "").split(",")}:
            return Response(None, 304, headers)
        given(len(found.data))
        return HeldResponse(found.data, headers, until=holding.pop_all())


@contextmanager
def counted(metrics: Metrics, via: str) -> Iterator[Callable[[int], None]]:
    """Count what becomes of a request for bytes; the caller says how many it gives. A miss is never counted as anything else."""
    result = "failed"
    try:
        yield lambda size: metrics.count("winnow_recovered_bytes_total", size, via=via)
        result = "given"
    except NotFound:
        result = "not_found"
        raise
    except Gone:
        result = "gone"
        raise
    finally:
        metrics.count("winnow_recoveries_total", via=via, result=result)


def headers_of(found: Found) -> dict[str, str]:
    """What is said of the bytes of a place beside them."""
    headers = {
        "etag": f'"{sha256(found.data)}"',
        "content-disposition": f'attachment; filename="{_file_name(found)}"',
        "winnow-kind": found.original.kind.value,
        "winnow-source": "true" if found.source else "false",
    }
    if found.original.boundary_id is not None:
        headers["winnow-boundary-id"] = str(found.original.boundary_id)
    if len(found.data) < found.size:
        headers["content-range"] = f"bytes {found.start}-{found.end - 1}/{found.size}" if found.data else f"bytes */{found.size}"
    return headers


def _file_name(found: Found) -> str:
    """What a browser calls the file: nothing that a caller wrote stands in it."""
    kind, part = found.original.kind, found.place.suffix
    whose = "" if found.original.boundary_id is None else f"-{found.original.boundary_id}"
    return f"{kind.value}{whose}{'' if part is None else f'-{part}'}.{'json' if kind is Kind.HISTORY and part is None else 'txt'}"


class HeldResponse(Response):
    """Bytes that count towards the memory for bodies until the client has them, or was too slow."""

    def __init__(self, data: bytes, headers: dict[str, str], *, until: ExitStack) -> None:
        """`until` is closed when they are sent, at the latest after their time: then the connection ends."""
        super().__init__(data, 206 if "content-range" in headers else 200, headers, media_type="application/octet-stream")
        self._until = until
        self._most_s = SEND_S + len(data) / SEND_BYTES_A_SECOND

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  the interface of an application
        """Send, piece by piece: the server takes the next one when the client has taken the last. Then let go."""
        with self._until, suppress(TimeoutError):  # a cut answer, and the server closes the connection
            async with asyncio.timeout(self._most_s):
                await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
                for at in range(0, len(self.body), PIECE_BYTES):
                    await send({"type": "http.response.body", "body": self.body[at : at + PIECE_BYTES], "more_body": True})
                await send({"type": "http.response.body", "body": b""})


@router.post(
    "/v1/originals",
    summary="Store an original",
    status_code=201,
    response_model=ClaimCheck,
    response_description="The claim check: put it into a boundary's `messages`.",
)
async def store(request: Request, key: Submitter) -> Response:
    """Store messages that are too large to travel in a boundary, at most 64 MiB, and get the claim check for them.

    `application/json` is validated as messages and stored in canonical form; any other content type is stored byte for byte. An upload
    that no boundary claims expires after a week.
    """
    parts = parts_of(request)
    async with parts.bodies.read(request, limits.ORIGINAL_BYTES) as body:
        if not body:
            raise ProblemError(ProblemReason.INVALID, "the body is empty")
        content = body
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json":
            content = await parts.in_thread(_canonical, body)
        claim = await parts.gateway.store(key.fleet, content)
    return Response(claim.model_dump_json(), 201, media_type="application/json")


def _canonical(body: bytes) -> bytes:
    """The stored form of messages. Raise `ProblemError`."""
    try:
        return Messages.model_validate_json(body).content()
    except ValidationError as exc:
        raise ProblemError(ProblemReason.INVALID, explain(exc)[:1000]) from None
