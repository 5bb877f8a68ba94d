"""The HTTP API, put together from its routes."""

from fastapi import FastAPI

from services.gateway import openapi, problems, routes_boundaries, routes_originals, routes_reports, routes_status
from services.gateway.parts import Parts


def make_api(parts: Parts | None = None) -> FastAPI:
    """The API over `parts`; without any, it can only describe itself."""
    app = FastAPI(title="Winnow", docs_url=None, redoc_url=None, openapi_url="/openapi.json", redirect_slashes=False)
    app.state.parts = parts
    app.state.keys = parts.keys if parts is not None else None
    problems.install(app)
    for module in (routes_boundaries, routes_originals, routes_reports, routes_status):
        app.include_router(module.router)
    openapi.describe(app)
    return app
