"""Pages of people who have signed in: what all of them show, and how a script knows that one is out of date."""

import json
from collections.abc import Mapping

from fastapi import Request, Response

from services.gateway.console.console import Viewer, console_of
from services.gateway.console.feed import marked


def page(
    request: Request, viewer: Viewer, template: str, *, fleet: str | None = None, marks: Mapping[str, Mapping[str, str]], **values: object
) -> Response:
    """The page of `template` for `viewer`.

    `marks`: those of the fleets that it shows, read before everything else on it, so that no change in between is missed.
    """
    if fleet is not None:
        request.scope["winnow.fleet"] = fleet
    shown = json.dumps({name: marked(kinds) for name, kinds in marks.items()})
    return console_of(request).pages.render(template, {**values, "viewer": viewer, "fleet": fleet, "marks": shown})
