"""One boundary: the candidate beside what was committed of it, each entry with why, the texts around it, and all of it as files."""

import asyncio
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Request, Response
from sqlalchemy.ext.asyncio import AsyncConnection

from services.gateway.console.console import SignedIn, console_of
from services.gateway.console.live import page
from services.gateway.console.pages import HEADERS, ROOT, PageRoute
from services.gateway.console.views import summaries
from services.gateway.problems import ProblemError
from services.gateway.routes_originals import handed_over
from winnow.client.api import ProblemReason
from winnow.contracts.vocabulary import Decision
from winnow.storage import boundaries, boundary_trail, entries, glance, originals
from winnow.storage.boundaries import Boundary
from winnow.storage.keys import ContentKey, Key
from winnow.storage.originals import Kind

router = APIRouter(include_in_schema=False, route_class=PageRoute)

#: Characters of a whole text that is shown beside the entries.
TEXT_CHARS = 60_000
#: Originals that a page offers as files.
FILES = frozenset({Kind.TASK, Kind.HISTORY, Kind.PREVIOUS, Kind.CANDIDATE, Kind.COMMITTED})


@router.get(ROOT + "/fleets/{fleet}/originals/{handle}")
async def original(request: Request, viewer: SignedIn, fleet: str, handle: Annotated[str, Path(max_length=200)]) -> Response:
    """An original or a part of it as a file, byte for byte; that it was looked at is noted, as over the API."""
    viewer.within(fleet)
    return await handed_over(request, fleet, handle, more=HEADERS)


@router.get(ROOT + "/fleets/{fleet}/boundaries/{boundary_id}")
async def boundary(request: Request, viewer: SignedIn, fleet: str, boundary_id: Annotated[UUID, Path()]) -> Response:
    """What was asked, what was decided for each entry, and what came of it."""
    viewer.within(fleet)
    key = Key(fleet, boundary_id)
    async with console_of(request).reading.of(fleet) as tx:
        marks = {fleet: await glance.marks(tx, fleet)}
        found = (await boundaries.load(tx, [key])).get(key)
        if found is None:
            raise ProblemError(ProblemReason.NOT_FOUND, "there is no such boundary in this fleet")
        history = await entries.history(tx, key)
        texts = await _texts(tx, found)
        trail = await boundary_trail.load(tx, found)
        handles = await originals.handles_of(tx, fleet, boundary_id)
    kept = sum(1 for h in history if h.decision is not None and h.decision.decision is Decision.KEPT)
    pruned = sum(1 for h in history if h.decision is not None and h.decision.decision is Decision.PRUNED)

    def made() -> Response:
        candidate = texts["candidate"]
        return page(
            request,
            viewer,
            "boundary.html",
            fleet=fleet,
            marks=marks,
            boundary=found,
            rows=summaries.stretches(candidate or b"", history, found),
            unseen=max(0, len(history) - summaries.MOST_ENTRIES),
            kept=kept,
            pruned=pruned,
            gone=candidate is None,
            texts={name: None if data is None else data.decode("utf-8", "replace") for name, data in texts.items()},
            text_chars=TEXT_CHARS,
            trail=trail,
            # What is left of them: a text of which nothing is stored any more has no file either.
            handles={kind.value: handle for kind, handle in handles.items() if kind in FILES and texts.get(kind.value, b"") is not None},
        )

    return await asyncio.to_thread(made)  # hundreds of entries take a tenth of a second, in which nobody else would be served


async def _texts(tx: AsyncConnection, found: Boundary) -> dict[str, bytes | None]:
    """The texts of a boundary that are still stored."""
    hashes = {
        "candidate": found.candidate_sha256,
        "committed": found.committed_sha256,
        "previous": found.previous_sha256,
        "task": found.task_sha256,
    }
    stored = await originals.get(tx, [ContentKey(found.fleet, one) for one in hashes.values() if one is not None])
    return {name: None if one is None else stored.get(ContentKey(found.fleet, one)) for name, one in hashes.items()}
