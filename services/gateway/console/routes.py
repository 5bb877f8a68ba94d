"""All pages of the console."""

from fastapi import APIRouter, FastAPI

from services.gateway.console import routes_boundary, routes_files, routes_fleets, routes_operations, routes_session, routes_watch
from services.gateway.console.console import Console
from services.gateway.console.pages import ROOT, PageRoute
from services.gateway.problems import ProblemError
from winnow.client.api import ProblemReason

_MODULES = (routes_session, routes_files, routes_fleets, routes_boundary, routes_watch, routes_operations)


def install(app: FastAPI, console: Console) -> None:
    """Serve `console` under /console. Its pages are for people and stand in no API document."""
    app.state.console = console
    for module in _MODULES:
        app.include_router(module.router)
    app.include_router(_rest())


def _rest() -> APIRouter:
    """Whatever else is asked for below /console: a page that says so, not a document of the API."""
    router = APIRouter(include_in_schema=False, route_class=PageRoute)

    @router.get(ROOT + "/{rest:path}")
    async def rest(rest: str) -> None:  # noqa: ARG001  whatever it is
        raise ProblemError(ProblemReason.NOT_FOUND, "there is no such page")

    return router
