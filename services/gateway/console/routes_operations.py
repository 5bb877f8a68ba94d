"""What operators do to a fleet, dead letters and their replay, the audit trail, and the judges."""

import asyncio
from contextlib import suppress
from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import Field

from services.gateway import operating
from services.gateway.console.console import SignedIn, console_of
from services.gateway.console.live import page
from services.gateway.console.pages import ROOT, PageRoute, redirect
from services.gateway.console.routes_session import reasoned_form
from services.gateway.console.views import letters
from services.gateway.parts import parts_of
from services.gateway.problems import ProblemError
from winnow.client.api import ProblemReason
from winnow.contracts.access import Right
from winnow.messaging.showing import names
from winnow.storage import audit, dead_letters, fleets, glance, judge_reports

router = APIRouter(include_in_schema=False, route_class=PageRoute)

#: A number that the table can have.
RowId = Annotated[int, Field(ge=1, lt=2**63)]
#: Rows of a page.
ROWS = 50
#: What the page of judges looks back on.
JUDGES = timedelta(days=30)


@router.post(ROOT + "/fleets/{fleet}/hold")
async def hold(request: Request, viewer: SignedIn, fleet: str) -> Response:
    """Let nothing be pruned until the fleet is released; where it is held already, the first reason stays."""
    key = viewer.within(fleet, Right.OPERATE)
    fields = await reasoned_form(request, viewer)
    await parts_of(request).operating.hold(key, fields["because"])
    return redirect(f"{ROOT}/fleets/{fleet}")


@router.post(ROOT + "/fleets/{fleet}/release")
async def release(request: Request, viewer: SignedIn, fleet: str) -> Response:
    """End the hold that the person has read of: the fleet's own mode counts again, and streams that had alarmed begin a new epoch."""
    key = viewer.within(fleet, Right.OPERATE)
    fields = await reasoned_form(request, viewer, confirmed="what held it is mended")
    async with console_of(request).reading.of(fleet) as tx:
        state = (await fleets.load(tx, [fleet])).get(fleet)
    if state is not None and state.held_since is not None and fields.get("since") != state.held_since.isoformat():
        raise ProblemError(ProblemReason.INVALID, "the fleet is held for another reason by now; load its page again, and read it first")
    await parts_of(request).operating.release(key, fields["because"])
    return redirect(f"{ROOT}/fleets/{fleet}")


@router.get(ROOT + "/fleets/{fleet}/dead-letters")
async def letter_list(request: Request, viewer: SignedIn, fleet: str, before: RowId | None = None) -> Response:
    """Records of the fleet that could not be handled, newest first."""
    viewer.within(fleet, Right.AUDIT)
    async with console_of(request).reading.of(fleet) as tx:
        marks = {fleet: await glance.marks(tx, fleet)}
        found = await dead_letters.page(tx, fleet=fleet, before_id=before, limit=ROWS, bodies=False)
    older = found[-1].id if len(found) == ROWS else None
    rows = list(zip(found, await asyncio.to_thread(names, [one.letter.run for one in found]), strict=True))
    return page(request, viewer, "dead_letters.html", fleet=fleet, marks=marks, letters=rows, older=older, first=before is None)


@router.get(ROOT + "/fleets/{fleet}/dead-letters/{letter_id}")
async def letter(request: Request, viewer: SignedIn, fleet: str, letter_id: RowId) -> Response:
    """One dead letter: why, its headers, and its body as far as a page goes."""
    viewer.within(fleet, Right.AUDIT)
    console = console_of(request)
    async with console.reading.of(fleet) as tx:
        marks = {fleet: await glance.marks(tx, fleet)}
        found = await operating.letter_of(tx, fleet, letter_id)
    shown = await asyncio.to_thread(letters.shown, found)
    obstacle = operating.obstacle(found, console.topic_prefix)
    return page(request, viewer, "dead_letter.html", fleet=fleet, marks=marks, letter=found, shown=shown, obstacle=obstacle)


@router.post(ROOT + "/fleets/{fleet}/dead-letters/{letter_id}/replay")
async def replay(request: Request, viewer: SignedIn, fleet: str, letter_id: RowId) -> Response:
    """Put the original body on its topic again, through the outbox, and write down who did it and why."""
    key = viewer.within(fleet, Right.OPERATE)
    because = (await reasoned_form(request, viewer, confirmed="the cause is mended"))["because"]
    console = console_of(request)
    try:
        async with console.reading.of(fleet, writes=True) as tx:
            await operating.replay(
                tx, fleet, letter_id, by=key.actor, because=because, topic_prefix=console.topic_prefix, now=console.now()
            )  # fmt: skip
    except Exception as error:
        # The error is what matters; where the database is away, nothing can be written about it.
        with suppress(Exception):
            async with console.reading.of(fleet, writes=True) as tx:
                await operating.failed(tx, key, "dead_letter.replay", because, error, now=console.now())
        raise
    return redirect(f"{ROOT}/fleets/{fleet}/dead-letters/{letter_id}")


@router.get(ROOT + "/fleets/{fleet}/audit")
async def trail(request: Request, viewer: SignedIn, fleet: str, before: RowId | None = None) -> Response:
    """What operators, commands and services did to the fleet, newest first."""
    viewer.within(fleet, Right.AUDIT)
    async with console_of(request).reading.of(fleet) as tx:
        marks = {fleet: await glance.marks(tx, fleet)}
        found = await audit.page(tx, fleet=fleet, before_id=before, limit=ROWS)
    older = found[-1].id if len(found) == ROWS else None
    return page(request, viewer, "audit.html", fleet=fleet, marks=marks, trail=found, older=older, first=before is None)


@router.get(ROOT + "/fleets/{fleet}/judges")
async def judges(request: Request, viewer: SignedIn, fleet: str) -> Response:
    """What judges cost, how long they took, and how often two of them disagree."""
    viewer.within(fleet)
    console = console_of(request)
    since = console.now() - JUDGES
    async with console.reading.of(fleet) as tx:
        marks = {fleet: await glance.marks(tx, fleet)}
        uses = await judge_reports.uses(tx, fleet, since=since)
        days = await judge_reports.days(tx, fleet, since=since)
        pairs = await judge_reports.disagreements(tx, fleet, since=since)
    return page(request, viewer, "judges.html", fleet=fleet, marks=marks, uses=uses, days=days, pairs=pairs, look_back=JUDGES.days)
