"""The HTTP API, put together from its routes."""

import json
import sys

from fastapi import FastAPI

from services.gateway import (
    openapi,
    problems,
    routes_boundaries,
    routes_operations,
    routes_originals,
    routes_recovery,
    routes_reports,
    routes_status,
)
from services.gateway.console import routes as console_routes
from services.gateway.console.console import Console
from services.gateway.parts import Parts


def make_api(parts: Parts | None = None, console: Console | None = None) -> FastAPI:
    """The API over `parts`; without any, it can only describe itself. With a `console`, its pages too."""
    app = FastAPI(title="Winnow", docs_url=None, redoc_url=None, openapi_url="/openapi.json", redirect_slashes=False)
    app.state.parts = parts
    app.state.keys = parts.keys if parts is not None else None
    app.state.quotas = parts.quotas if parts is not None else None
    problems.install(app)
    for module in (routes_boundaries, routes_originals, routes_recovery, routes_reports, routes_operations, routes_status):
        app.include_router(module.router)
    openapi.describe(app)
    if console is not None:
        console_routes.install(app, console)
    return app


if __name__ == "__main__":  # `python -m services.gateway.api > docs/openapi.json`
    sys.stdout.write(json.dumps(make_api().openapi(), indent=2, ensure_ascii=False, sort_keys=True) + "\n")
