"""Originals: exact bytes by handle, and uploads for claim checks."""

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response
from pydantic import ValidationError

from services.gateway.keys import Reader, Submitter
from services.gateway.parts import parts_of
from services.gateway.problems import ProblemError
from winnow.client.api import ProblemReason
from winnow.contracts import limits
from winnow.contracts.envelope import explain
from winnow.contracts.events import ClaimCheck, Messages

router = APIRouter(tags=["originals"])


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
    request: Request, key: Reader, handle: Annotated[str, Path(max_length=200, description="A handle of this fleet.")]
) -> Response:
    """The exact bytes that a handle stands for. `ETag` is their SHA-256. 410 where they have expired or were erased."""
    found = await parts_of(request).gateway.original(key.fleet, handle)
    etag = f'"{found.sha256}"'
    headers = {"etag": etag, "content-disposition": "attachment", "winnow-kind": found.kind.value}
    if etag in {tag.strip() for tag in request.headers.get("if-none-match", "").split(",")}:
        return Response(None, 304, headers)
    return Response(found.data, 200, headers, media_type="application/octet-stream")


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
