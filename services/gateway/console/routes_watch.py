"""What the drift monitor knows: streams with their evidence, certificates, alerts."""

import asyncio
from datetime import UTC, datetime
from uuid import UUID

from fastapi import APIRouter, Request, Response

from services.gateway.console.console import SignedIn, console_of
from services.gateway.console.live import page
from services.gateway.console.pages import ROOT, PageRoute
from services.gateway.console.views import certificates as shown
from services.gateway.console.views.curves import Curve, curve
from services.gateway.problems import ProblemError
from winnow.assurance.refusals import InvalidConfig
from winnow.client.api import ProblemReason
from winnow.storage import alerts, bindings, certificates, epoch_units, epochs, fleets, glance, overview
from winnow.storage.keys import StreamKey

router = APIRouter(include_in_schema=False, route_class=PageRoute)

#: Rows of a page of alerts.
ROWS = 50


@router.get(ROOT + "/fleets/{fleet}/streams")
async def stream_list(request: Request, viewer: SignedIn, fleet: str) -> Response:
    """Streams of a fleet with evidence, level and what may be said of each."""
    viewer.within(fleet)
    async with console_of(request).reading.of(fleet) as tx:
        marks = {fleet: await glance.marks(tx, fleet)}
        found = await overview.streams(tx, fleet)
    found.sort(key=lambda s: (s.verdict != "breached", s.family == "label_free", s.stream))  # what asks for somebody comes first
    return page(request, viewer, "streams.html", fleet=fleet, marks=marks, streams=found)


@router.get(ROOT + "/fleets/{fleet}/stream")
async def stream(request: Request, viewer: SignedIn, fleet: str, name: str) -> Response:
    """One stream: its evidence over its units, and its epochs."""
    viewer.within(fleet)
    key = StreamKey(fleet, name)
    async with console_of(request).reading.of(fleet) as tx:
        marks = {fleet: await glance.marks(tx, fleet)}
        view = next((s for s in await overview.streams(tx, fleet) if s.stream == name), None)
        if view is None:
            raise ProblemError(ProblemReason.NOT_FOUND, "there is no such stream in this fleet")
        try:
            known = await epochs.of(tx, key)
        except InvalidConfig:  # a row was altered: the monitor holds the fleet for it, and the page still says what is known
            known = []
        units = await epoch_units.load(tx, key, known[-1].epoch) if known else None
    drawn: Curve | None = None
    if known and units is not None:
        drawn = await asyncio.to_thread(curve, known[-1].epoch, units)
    return page(
        request, viewer, "stream.html", fleet=fleet, marks=marks, stream=view, epochs=known, curve=drawn, most_units=epoch_units.MOST
    )


@router.get(ROOT + "/fleets/{fleet}/certificates")
async def certificate_list(request: Request, viewer: SignedIn, fleet: str) -> Response:
    """Certificates of a fleet: live, expired, superseded and revoked ones, and whether one covers what it serves."""
    viewer.within(fleet)
    now = console_of(request).now()
    async with console_of(request).reading.of(fleet) as tx:
        marks = {fleet: await glance.marks(tx, fleet)}
        found = await certificates.listed(tx, fleet)
        state = (await fleets.load(tx, [fleet])).get(fleet)
        standing = next(iter(await bindings.standings(tx, [fleet], now=now)), None)
    cards = [shown.shown(one, now) for one in found]
    return page(request, viewer, "certificates.html", fleet=fleet, marks=marks, certificates=cards, state=state, standing=standing)


@router.get(ROOT + "/fleets/{fleet}/alerts")
async def alert_list(
    request: Request, viewer: SignedIn, fleet: str, before: datetime | None = None, behind: UUID | None = None
) -> Response:
    """Alerts of a fleet, newest first."""
    viewer.within(fleet)
    if before is not None and not _dated(before):
        raise ProblemError(ProblemReason.NOT_FOUND, "there is no such page")
    async with console_of(request).reading.of(fleet) as tx:
        marks = {fleet: await glance.marks(tx, fleet)}
        found = await alerts.page(tx, fleet, before=before, behind=behind, limit=ROWS)
    older = found[-1] if len(found) == ROWS else None
    return page(request, viewer, "alerts.html", fleet=fleet, marks=marks, alerts=found, older=older, first=before is None)


def _dated(moment: datetime) -> bool:
    """Whether a moment of an address has a date in UTC: what has none can neither be stored nor compared."""
    try:
        return moment.tzinfo is not None and moment.astimezone(UTC).tzinfo is not None
    except OverflowError:
        return False
