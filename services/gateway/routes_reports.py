"""What runtimes and graders report."""

from datetime import UTC, datetime
from uuid import uuid4

from fastapi import APIRouter, Request, Response

from services.gateway.bodies import parse
from services.gateway.keys import Observer, Submitter
from services.gateway.parts import parts_of, traced
from winnow.client.api import Accepted
from winnow.contracts import limits
from winnow.contracts.events import Observation, RuntimeEvent

router = APIRouter(tags=["reports"])

#: Bytes of a report. The largest field is a reason of 500 characters.
REPORT_BYTES = 64 * limits.KIB


@router.post("/v1/runtime-events", summary="Report a runtime event", status_code=202, response_model=Accepted)
async def runtime_event(request: Request, key: Submitter) -> Response:
    """Say what a runtime did: `adopted`, `bypassed`, `recovered`, `run_ended`. Stored before it is answered, once by `event_id`.

    `event_id` and `at` are filled in where they are missing; without an `event_id` a repetition counts twice.
    """
    parts = parts_of(request)
    async with parts.bodies.read(request, REPORT_BYTES) as body:
        event = await parse(RuntimeEvent, body, key.fleet, {"event_id": str(uuid4()), "at": datetime.now(UTC).isoformat()})
        with traced(request, "runtime_event", event.boundary_id) as traceparent:
            await parts.gateway.runtime_event(event, traceparent)
    return Response(Accepted(event_id=event.event_id).model_dump_json(), 202, media_type="application/json")


@router.post("/v1/observations", summary="Report an observation", status_code=202, response_model=Accepted)
async def observation(request: Request, key: Observer) -> Response:
    """Say that a unit of a stream was sampled or graded, for the drift monitor. Stored before it is answered, once by `event_id`."""
    parts = parts_of(request)
    async with parts.bodies.read(request, REPORT_BYTES) as body:
        event = await parse(Observation, body, key.fleet)
        with traced(request, "observation", event.boundary_id) as traceparent:
            await parts.gateway.observation(event, traceparent)
    return Response(Accepted(event_id=event.event_id).model_dump_json(), 202, media_type="application/json")
