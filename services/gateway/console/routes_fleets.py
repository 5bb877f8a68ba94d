"""Fleets at a glance, one fleet, its runs and its boundaries."""

from datetime import timedelta

from fastapi import APIRouter, Request, Response
from sqlalchemy.ext.asyncio import AsyncConnection

from services.gateway.console.console import SignedIn, console_of
from services.gateway.console.live import page
from services.gateway.console.pages import ROOT, PageRoute
from services.gateway.problems import ProblemError
from winnow.client.api import ProblemReason
from winnow.storage import alerts, boundaries, fleets, glance, runs
from winnow.storage.fleets import Fleet
from winnow.storage.glance import Counts, Waiting

router = APIRouter(include_in_schema=False, route_class=PageRoute)

#: What "lately" is in numbers and in charts.
LATELY = timedelta(days=1)
CHART = timedelta(days=14)
ALERTS = timedelta(days=7)
#: Age of the drift monitor's last sign of life from when on a fleet is shown as unwatched; the pruner's own default.
ALIVE = timedelta(seconds=60)
#: Rows of a page.
ROWS = 50
#: Rows of the lists on a fleet's first page.
FEW = 12


@router.get(ROOT)
async def glances(request: Request, viewer: SignedIn) -> Response:
    """Every fleet of the key, one row each."""
    console = console_of(request)
    since = console.now() - LATELY
    rows: list[tuple[Fleet, Counts, Waiting]] = []
    marks = {}
    for name in viewer.fleets:
        async with console.reading.of(name) as tx:
            marks[name] = await glance.marks(tx, name)
            found = (await fleets.load(tx, [name])).get(name)
            waiting = await _waiting(tx, request, name)
            if found is not None and waiting is not None:
                rows.append((found, await glance.counts(tx, name, since=since), waiting))
    return page(request, viewer, "fleets.html", marks=marks, rows=rows)


@router.get(ROOT + "/fleets/{fleet}")
async def fleet(request: Request, viewer: SignedIn, fleet: str) -> Response:
    """One fleet: its operating point, what came in, how it ended, and what waits for somebody."""
    console = console_of(request)
    viewer.within(fleet)
    now = console.now()
    async with console.reading.of(fleet) as tx:
        marks = {fleet: await glance.marks(tx, fleet)}
        found = (await fleets.load(tx, [fleet])).get(fleet)
        waiting = await _waiting(tx, request, fleet)
        if found is None or waiting is None:
            raise ProblemError(ProblemReason.NOT_FOUND, "this fleet is not there any more")
        return page(
            request,
            viewer,
            "fleet.html",
            fleet=fleet,
            marks=marks,
            state=found,
            waiting=waiting,
            counts=await glance.counts(tx, fleet, since=now - LATELY),
            days=await glance.days(tx, fleet, since=now - CHART),
            recent=(await boundaries.page(tx, fleet, limit=FEW)).boundaries,
            alerts=await alerts.page(tx, fleet, limit=5),
        )


@router.get(ROOT + "/fleets/{fleet}/runs")
async def run_list(request: Request, viewer: SignedIn, fleet: str, cursor: str | None = None) -> Response:
    """Runs of a fleet, the most recently active first."""
    viewer.within(fleet)
    async with console_of(request).reading.of(fleet) as tx:
        marks = {fleet: await glance.marks(tx, fleet)}
        found = await runs.page(tx, fleet, cursor=cursor, limit=ROWS)
    return page(
        request, viewer, "runs.html", fleet=fleet, marks=marks, runs=found.runs, next_cursor=found.next_cursor, first=cursor is None
    )


@router.get(ROOT + "/fleets/{fleet}/boundaries")
async def boundary_list(request: Request, viewer: SignedIn, fleet: str, run: str | None = None, cursor: str | None = None) -> Response:
    """Boundaries of a fleet or of one run, newest first."""
    viewer.within(fleet)
    async with console_of(request).reading.of(fleet) as tx:
        marks = {fleet: await glance.marks(tx, fleet)}
        found = await boundaries.page(tx, fleet, run=run, cursor=cursor, limit=ROWS)
    return page(
        request, viewer, "boundaries.html", fleet=fleet, marks=marks, run=run, boundaries=found.boundaries, next_cursor=found.next_cursor,
        first=cursor is None,
    )  # fmt: skip


async def _waiting(tx: AsyncConnection, request: Request, name: str) -> Waiting | None:
    now = console_of(request).now()
    return await glance.waiting(tx, name, since=now - ALERTS, now=now, alive_since=now - ALIVE)
