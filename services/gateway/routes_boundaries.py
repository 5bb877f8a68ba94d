"""Submitting boundaries, waiting for their results, reading their history."""

import time
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel

from services.gateway.bodies import parse
from services.gateway.handlers import view
from services.gateway.keys import Reader, Submitter
from services.gateway.parts import Parts, parts_of, traced
from winnow.client.api import BoundaryPage, BoundaryView, EntryList, EntryView, PassageView, RunPage, RunView
from winnow.contracts import limits
from winnow.contracts.deadline import Deadline
from winnow.contracts.events import Candidate
from winnow.storage.entries import EntryHistory
from winnow.storage.runs import Run

router = APIRouter(tags=["boundaries"])

WaitMs = Annotated[
    int,
    Query(ge=0, description="Milliseconds to wait for the result; more than the gateway's cap (60,000 by default) is taken as the cap."),
]
Cursor = Annotated[str | None, Query(max_length=1000, description="`next_cursor` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=500, description="Rows of a page at most.")]
BoundaryId = Annotated[UUID, Path(description="The boundary's id.")]


@router.post(
    "/v1/boundaries",
    summary="Submit a boundary",
    response_model=BoundaryView,
    responses={202: {"model": BoundaryView, "description": "Stored; its result is not there yet. Ask for it with GET."}},
    response_description="Stored, and its result was there in time.",
)
async def submit(request: Request, key: Submitter, wait_ms: WaitMs = 0) -> Response:
    """Store a compaction boundary and, with `wait_ms`, wait for its result.

    Answered only after boundary, originals and the record for the bus are committed. The same boundary again finds its result; the same id
    with other content is 409. The fleet is the API key's; leave `fleet` out. Above 8 MiB store the messages with `POST /v1/originals`.
    """
    parts = parts_of(request)
    parts.admit()
    wait = _wait(parts, wait_ms)
    async with parts.bodies.read(request, limits.CANDIDATE_BODY_BYTES) as body:
        candidate = await parse(Candidate, body, key.fleet)
        with traced(request, "submit", candidate.boundary_id) as traceparent:
            boundary = await parts.gateway.submit(candidate, traceparent)
    if boundary.committed_at is None and (wait.passed or not parts.may_wait()):
        return _json(view(boundary), 202)
    found = await parts.gateway.boundary(key.fleet, candidate.boundary_id, wait)
    return _json(view(found.boundary, found.result), 200 if found.boundary.committed_at is not None else 202)


@router.get("/v1/boundaries/{boundary_id}", summary="Read a boundary", response_model=BoundaryView)
async def read(request: Request, key: Reader, boundary_id: BoundaryId, wait_ms: WaitMs = 0) -> Response:
    """How far a boundary has come and, once it is committed, its result. With `wait_ms`, waits for it."""
    parts = parts_of(request)
    wait = _wait(parts, wait_ms if parts.may_wait() else 0)
    found = await parts.gateway.boundary(key.fleet, boundary_id, wait)
    return _json(view(found.boundary, found.result))


@router.get("/v1/boundaries", summary="List boundaries", response_model=BoundaryPage)
async def listed(
    request: Request,
    key: Reader,
    run: Annotated[str | None, Query(max_length=200, description="Boundaries of this run alone.")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response:
    """Boundaries of the fleet, or of one run, newest first."""
    page = await parts_of(request).gateway.boundaries(key.fleet, run, cursor, limit)
    return _json(BoundaryPage(items=tuple(view(b) for b in page.boundaries), next_cursor=page.next_cursor))


@router.get("/v1/boundaries/{boundary_id}/entries", summary="Read a boundary's entries", response_model=EntryList)
async def history(request: Request, key: Reader, boundary_id: BoundaryId) -> Response:
    """Every entry of a candidate with its score, decision and evidence, also in shadow mode."""
    found = await parts_of(request).gateway.entries(key.fleet, boundary_id)
    return _json(EntryList(boundary_id=boundary_id, items=tuple(map(_entry, found))))


@router.get("/v1/runs", summary="List runs", response_model=RunPage)
async def run_list(request: Request, key: Reader, cursor: Cursor = None, limit: Limit = 50) -> Response:
    """Runs of the fleet, the most recently active first."""
    page = await parts_of(request).gateway.runs(key.fleet, cursor, limit)
    return _json(RunPage(items=tuple(map(_run, page.runs)), next_cursor=page.next_cursor))


def _wait(parts: Parts, wait_ms: int) -> Deadline:
    return Deadline.after(min(wait_ms, parts.settings.gateway_wait_cap_ms) / 1000, time.monotonic)


def _json(value: BaseModel, status: int = 200) -> Response:
    """The value, serialised once: the framework would validate and serialise it anew."""
    return Response(value.model_dump_json(), status, media_type="application/json")


def _run(run: Run) -> RunView:
    return RunView(
        run=run.run, agent=run.agent, boundaries=run.boundaries, first_at=run.first_at, last_at=run.last_at, ended_at=run.ended_at
    )


def _entry(found: EntryHistory) -> EntryView:
    links = {link.passage: link for link in found.entry.evidence}
    passages = [
        PassageView(rank=links[p.id].rank, bm25=links[p.id].bm25, message=p.message, tool=p.tool, text=p.text)
        for p in found.passages
        if p.id in links
    ]
    return EntryView(
        n=found.entry.n,
        section=found.entry.section,
        section_class=found.entry.section_class,
        text=found.entry.text,
        span=found.entry.span,
        provenance=found.entry.provenance,
        score=found.score.score if found.score else None,
        verdict=found.score.verdict if found.score else None,
        explanation=found.score.explanation if found.score else None,
        decision=found.decision.decision if found.decision else None,
        decision_reason=found.decision.reason if found.decision else None,
        root_source=found.decision.root_source if found.decision else None,
        evidence=tuple(passages),
    )
