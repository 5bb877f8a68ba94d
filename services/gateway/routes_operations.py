"""For operators: hold, release, erase, replay. For auditors: the trail of it, and dead letters."""

import asyncio
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel

from services.gateway.bodies import parse_plain
from services.gateway.keys import Auditor, Operator
from services.gateway.parts import parts_of
from winnow.client.api import (
    AuditEntry,
    AuditPage,
    DeadLetterPage,
    DeadLetterView,
    ErasedView,
    EraseRequest,
    HoldView,
    OperatorRequest,
    ReleaseView,
)
from winnow.contracts import limits
from winnow.messaging.showing import names

router = APIRouter(tags=["operations"])

#: Bytes of a request: a name of a run and a reason.
REQUEST_BYTES = 16 * limits.KIB
#: The largest number of a row: bigint.
MOST_ID = 2**63 - 1

Before = Annotated[int | None, Query(ge=1, le=MOST_ID, description="Only what is older than this number: the last one of the page before.")]
Limit = Annotated[int, Query(ge=1, le=500, description="Rows of a page at most.")]


@router.post("/v1/hold", summary="Hold the fleet", response_model=HoldView)
async def hold(request: Request, key: Operator) -> Response:
    """Let nothing be pruned until the fleet is released. Boundaries are judged and committed as they were written."""
    parts = parts_of(request)
    async with parts.bodies.read(request, REQUEST_BYTES) as body:
        asked = parse_plain(OperatorRequest, body)
    return _json(HoldView(held=True, changed=await parts.operating.hold(key, asked.because)))


@router.post("/v1/release", summary="Release the fleet", response_model=ReleaseView)
async def release(request: Request, key: Operator) -> Response:
    """End a hold: the fleet's own mode counts from the next boundary on, and streams that had alarmed begin a new epoch."""
    parts = parts_of(request)
    async with parts.bodies.read(request, REQUEST_BYTES) as body:
        asked = parse_plain(OperatorRequest, body)
    done = await parts.operating.release(key, asked.because)
    return _json(ReleaseView(held=False, changed=done.released, streams=done.streams))


@router.post("/v1/erasures", summary="Erase a run", response_model=ErasedView)
async def erase(request: Request, key: Operator) -> Response:
    """Erase a run for good: rows, originals, handles, dead letters and queued events. A whole fleet is erased by `winnow erase` alone."""
    parts = parts_of(request)
    async with parts.bodies.read(request, REQUEST_BYTES) as body:
        asked = parse_plain(EraseRequest, body)
    done = await parts.operating.erase(key, asked.run, asked.because)
    return _json(
        ErasedView(
            boundaries=done.boundaries,
            originals=done.originals,
            handles=done.handles,
            dead_letters=done.dead_letters,
            outbox=done.outbox,
            runtime_events=done.runtime_events,
            observations=done.observations,
        )
    )


@router.get("/v1/dead-letters", summary="List dead letters", response_model=DeadLetterPage)
async def letters(request: Request, key: Auditor, before: Before = None, limit: Limit = 50) -> Response:
    """Records of the fleet that could not be handled, newest first, without their bodies."""
    found = await parts_of(request).operating.letters(key.fleet, before, limit)
    runs = await asyncio.to_thread(names, [one.letter.run for one in found])
    items = tuple(
        DeadLetterView(
            id=one.id,
            topic=one.letter.topic,
            partition=one.letter.partition,
            offset=one.letter.offset,
            reason=one.letter.reason,
            error=one.letter.error,
            service=one.letter.service,
            run=run,
            created_at=one.created_at,
            replayed_at=one.replayed_at,
            replays=one.replays,
        )
        for one, run in zip(found, runs, strict=True)
    )
    return _json(DeadLetterPage(items=items, next_before=items[-1].id if len(items) == limit else None))


@router.post("/v1/dead-letters/{letter_id}/replay", summary="Replay a dead letter", status_code=202, response_class=Response)
async def replay(
    request: Request, key: Operator, letter_id: Annotated[int, Path(ge=1, le=MOST_ID, description="Number of the dead letter.")]
) -> Response:
    """Put its body on its topic again, once the cause is mended. What is still bad becomes a dead letter again."""
    parts = parts_of(request)
    async with parts.bodies.read(request, REQUEST_BYTES) as body:
        asked = parse_plain(OperatorRequest, body)
    await parts.operating.replay(key, letter_id, asked.because)
    return Response(None, 202)


@router.get("/v1/audit", summary="Read the audit trail", response_model=AuditPage)
async def trail(
    request: Request,
    key: Auditor,
    action: Annotated[
        str | None, Query(max_length=64, pattern=r"^[a-z_.]+$", description="One action (`fleet.hold`) or one kind (`fleet`).")
    ] = None,
    before: Before = None,
    limit: Limit = 50,
) -> Response:
    """Who did what to the fleet, when and why, and how it ended, newest first."""
    found = await parts_of(request).operating.trail(key.fleet, action, before, limit)
    items = tuple(
        AuditEntry(
            id=one.id,
            at=one.at,
            action=one.action,
            actor=one.actor,
            because=one.because,
            outcome=one.outcome.value,
            details=dict(one.details),
        )
        for one in found
    )
    return _json(AuditPage(items=items, next_before=items[-1].id if len(items) == limit else None))


def _json(value: BaseModel) -> Response:
    """The value, serialised once: the framework would validate and serialise it anew."""
    return Response(value.model_dump_json(), media_type="application/json")
