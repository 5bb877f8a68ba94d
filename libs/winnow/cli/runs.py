"""`winnow runs`: what came in."""

from typing import Annotated

import typer

from winnow.cli.exits import ExitCode
from winnow.cli.terminal import Terminal, cell, minute, plain, table


def runs(
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="List the boundaries of this run; left out: list runs.")] = None,
    *,
    limit: Annotated[int, typer.Option(min=1, max=500, help="Rows.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON a row.")] = False,
) -> None:
    """List the runs of the fleet, the most recently active first, or the boundaries of one run."""
    from winnow.cli.connection import gateway
    from winnow.cli.gateway import Gateway

    terminal = Terminal()
    with Gateway(*gateway()) as api:
        if run is None:
            page = api.runs(limit=limit)
            if as_json:
                for one in page.items:
                    terminal.json(one.model_dump(mode="json"))
                return
            rows = table("run", "agent", "boundaries", "first", "last", "ended")
            for one in page.items:
                times = (minute(at) for at in (one.first_at, one.last_at, one.ended_at))
                rows.add_row(cell(one.run), cell(one.agent), cell(one.boundaries), *(cell(at) for at in times))
            terminal.show(rows if page.items else "no runs yet; submit a boundary, or try `winnow demo`")
            if page.next_cursor:
                terminal.note(f"only the {limit} most recent; see --limit")
            return
        boundaries = api.boundaries(run, limit=limit)
    if not boundaries.items:
        terminal.fail(f"there is no run {plain(run, 80)!r} in this fleet; `winnow runs` lists them", ExitCode.NOT_FOUND)
    if as_json:
        for view in boundaries.items:
            terminal.json(view.model_dump(mode="json"))
        return
    rows = table("boundary", "#", "outcome", "mode", "pruned", "entries", "committed")
    for view in boundaries.items:
        outcome = view.outcome.value + (f" ({view.reason.value})" if view.reason else "") if view.outcome else view.status.value
        marks = "".join(f" {mark}" for mark, there in (("held", view.held), ("late", view.late)) if there)
        values = (view.boundary_id, view.index, outcome + marks, view.mode, view.pruned, view.entries, minute(view.committed_at))
        rows.add_row(*(cell(value) for value in values))
    terminal.show(rows)
