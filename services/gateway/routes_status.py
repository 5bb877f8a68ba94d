"""Alive, ready, metrics: for supervisors and Prometheus, without a key."""

import json

from fastapi import APIRouter, Request, Response

from services.gateway.parts import parts_of
from winnow.messaging.health import examine, vital
from winnow.telemetry.metrics import CONTENT_TYPE

router = APIRouter(tags=["status"])


@router.get("/livez", summary="Alive", response_class=Response, responses={503: {"description": "Restart it."}})
async def livez(request: Request) -> Response:
    """200 while the process can mend itself."""
    return await _health(request, alive=True)


@router.get("/readyz", summary="Ready", response_class=Response, responses={503: {"description": "Send requests elsewhere."}})
async def readyz(request: Request) -> Response:
    """200 while boundaries are taken: the database answers and the gateway does not stop. Kafka may be away: the outbox keeps them."""
    return await _health(request, alive=False)


@router.get("/metrics", summary="Metrics", response_class=Response)
async def metrics(request: Request) -> Response:
    """Metrics in the Prometheus text format."""
    return Response(parts_of(request).telemetry.metrics.render(), media_type=CONTENT_TYPE)


async def _health(request: Request, *, alive: bool) -> Response:
    checks = parts_of(request).checks()
    health = await examine(vital(checks) if alive else checks)
    body = {"status": "ok" if health.well else "unavailable", "checks": {n: p or "ok" for n, p in health.problems.items()}}
    return Response(json.dumps(body), 200 if health.well else 503, media_type="application/json")
