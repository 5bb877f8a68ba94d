"""Recover on demand: what an agent asks back, searches, and is told of what was pruned."""

from collections.abc import Mapping
from contextlib import ExitStack
from time import perf_counter
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ValidationError

from services.gateway.keys import Reader, Submitter
from services.gateway.parts import Parts, parts_of, traced
from services.gateway.problems import ProblemError
from services.gateway.routes_originals import HeldResponse, counted, headers_of
from winnow.client.api import (
    ProblemReason,
    PrunedEntry,
    PrunedPage,
    RecoveryRequest,
    SearchHit,
    SearchPage,
)
from winnow.compaction.search import QUERY_CHARS
from winnow.contracts import limits
from winnow.contracts.envelope import explain
from winnow.contracts.places import Place
from winnow.storage.search import MOST_ROWS, Hit, Pruned

router = APIRouter(tags=["recovery"])

Cursor = Annotated[str | None, Query(max_length=1000, description="`next_cursor` of the page before.")]
Limit = Annotated[int, Query(ge=1, le=MOST_ROWS, description="Rows of a page at most.")]
_BYTES = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_SOURCE = {
    "description": "`true`: what an environment returned; it is a source when it comes back in a history.",
    "schema": {"type": "string"},
}
_GIVEN: Mapping[int | str, dict[str, Any]] = {
    200: {"content": _BYTES, "description": "All of it, byte for byte; `ETag` is the SHA-256.", "headers": {"Winnow-Source": _SOURCE}},
    206: {"content": _BYTES, "description": "The bytes that `Content-Range` says.", "headers": {"Winnow-Source": _SOURCE}},
}


@router.post(
    "/v1/recoveries",
    summary="Ask back",
    response_class=Response,
    responses=dict(_GIVEN),
)
async def recover(request: Request, key: Submitter) -> Response:
    """The exact bytes of an original, or of a part of one, for the agent that asks.

    The recovery is stored and told as the runtime event `recovered` before the bytes are given. An entry that is asked back is kept for the
    rest of the run that it belongs to, wherever it comes again in the same words.
    """
    parts = parts_of(request)
    async with parts.bodies.read(request, limits.INLINE_TEXT_BYTES) as body:
        try:
            asked = RecoveryRequest.model_validate_json(body)
        except ValidationError as exc:
            raise ProblemError(ProblemReason.INVALID, explain(exc)[:1000]) from None
    with counted(parts.telemetry.metrics, "agent") as given, ExitStack() as holding:
        described = await parts.gateway.described(key.fleet, Place.parse(asked.handle))
        holding.enter_context(parts.bodies.hold(described.size))
        with traced(request, "recover", described.boundary_id) as traceparent:
            found = await parts.gateway.recover(key.fleet, asked, traceparent)
        given(len(found.data))
        return HeldResponse(found.data, headers_of(found), until=holding.pop_all())


@router.get("/v1/search", summary="Search history", response_model=SearchPage)
async def search_history(
    request: Request,
    key: Reader,
    q: Annotated[str, Query(min_length=1, max_length=QUERY_CHARS, description="Words to look for; any of them may occur.")],
    run: Annotated[str | None, Query(max_length=200, description="In this run alone; left out: in all runs of the fleet.")] = None,
    cursor: Cursor = None,
    limit: Limit = 10,
) -> Response:
    """Places in messages and summary entries that hold words of the query, best first, with a line of each.

    The newest 200 boundaries are searched, as far as their histories have 8 MiB together; `complete` says whether that was all. Words are
    compared by their stems, identifiers also by their parts; a query of signs and function words alone finds nothing.
    """
    parts = parts_of(request)
    result, began = "refused", perf_counter()
    try:
        found = await parts.gateway.search(key.fleet, q, run=run, cursor=cursor, limit=limit)
        result = "found" if found.hits else "nothing"
    finally:
        _searched(parts, "search_history", result)
    parts.telemetry.metrics.observe("winnow_recovery_search_seconds", perf_counter() - began)
    page = SearchPage(
        items=tuple(map(_hit, found.hits)), next_cursor=found.next_cursor, boundaries=found.boundaries, complete=found.complete
    )
    return _json(page)


@router.get("/v1/pruned-entries", summary="List pruned entries", response_model=PrunedPage)
async def pruned_entries(
    request: Request,
    key: Reader,
    run: Annotated[str, Query(min_length=1, max_length=200, description="The run.")],
    cursor: Cursor = None,
    limit: Limit = 20,
) -> Response:
    """What was pruned from the summaries of a run, with why and a handle to ask it back, the newest boundary first.

    Only where the mode was `enforce`: elsewhere the agent still has its own candidate.
    """
    parts = parts_of(request)
    result = "refused"
    try:
        found = await parts.gateway.pruned(key.fleet, run, cursor, limit)
        result = "found" if found.entries else "nothing"
    finally:
        _searched(parts, "pruned_entries", result)
    return _json(PrunedPage(items=tuple(map(_entry, found.entries)), next_cursor=found.next_cursor))


def _searched(parts: Parts, tool: str, result: str) -> None:
    parts.telemetry.metrics.count("winnow_recovery_searches_total", tool=tool, result=result)


def _json(value: BaseModel) -> Response:
    return Response(value.model_dump_json(), media_type="application/json")


def _hit(hit: Hit) -> SearchHit:
    return SearchHit(
        handle=str(hit.place),
        what="entry" if hit.kind is None else "message",
        run=hit.run,
        boundary_id=hit.boundary_id,
        index=hit.boundary_index,
        excerpt=hit.excerpt,
        score=hit.score,
        kind=hit.kind,
        origin=hit.origin,
        tool=hit.tool,
        section=hit.section,
        pruned=hit.pruned,
    )


def _entry(found: Pruned) -> PrunedEntry:
    return PrunedEntry(
        handle=str(found.place),
        run=found.run,
        boundary_id=found.boundary_id,
        index=found.boundary_index,
        n=found.n,
        section=found.section,
        excerpt=found.excerpt,
        reason=found.reason,
        score=found.score,
        explanation=found.explanation,
        asked_back=found.asked_back,
    )
