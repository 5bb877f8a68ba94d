"""`winnow watch`: boundaries as they are committed."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from winnow.cli.connection import Unreachable
from winnow.cli.terminal import Terminal

if TYPE_CHECKING:
    from winnow.cli.gateway import Gateway
    from winnow.client.api import BoundaryView

#: Runs that are looked at: more than are active at once in a trial. An older run comes back into view with its next boundary.
RUNS = 100
#: Boundaries of one run that are looked at each time.
BOUNDARIES = 100


def watch(
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", help="Only this run.")] = None,
    *,
    interval: Annotated[float, typer.Option(min=0.1, max=60.0, help="Seconds between two looks.")] = 1.0,
    count: Annotated[int | None, typer.Option(min=1, help="End after so many boundaries.")] = None,
    past: Annotated[bool, typer.Option("--past", help="Begin with what is committed already.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON a boundary.")] = False,
) -> None:
    """Print each boundary of the fleet when it is committed, until Ctrl-C. An outage is said and waited out."""
    from winnow.cli.connection import gateway
    from winnow.cli.gateway import Gateway
    from winnow.cli.show import headline

    terminal = Terminal()
    with Gateway(*gateway()) as api:
        watcher = Watcher(api, run)
        if not past:
            watcher.skip()
        if not as_json:
            terminal.note(f"… waiting for boundaries{'' if run is None else ' of this run'}; Ctrl-C ends")
        shown = 0
        lost = False
        while True:
            try:
                for view in watcher.fresh():
                    if as_json:
                        terminal.json(view.model_dump(mode="json"))
                    else:
                        terminal.show(headline(view))
                    shown += 1
                    if shown == count:
                        return
                lost = False
            except Unreachable as exc:
                if not lost:
                    terminal.note(f"{exc}; waiting for it", style="yellow")
                lost = True
            time.sleep(interval)


class Watcher:
    """Finds what was committed since the last look."""

    def __init__(self, api: "Gateway", run: str | None) -> None:
        """Watch one run, or all."""
        self._api, self._run = api, run
        self._seen: set[UUID] = set()
        self._settled: dict[str, int] = {}  # run -> its boundaries when all of them were committed and seen

    def skip(self) -> None:
        """Take everything that is committed now for seen."""
        for _ in self.fresh():
            pass

    def fresh(self) -> Iterator["BoundaryView"]:
        """Boundaries that were committed since the last look, in the order of their run. Raise `Unreachable`."""
        if self._run is not None:
            yield from self._unseen(self._committed(self._run))
            return
        for one in reversed(self._api.runs(limit=RUNS).items):
            if self._settled.get(one.run) != one.boundaries:
                views = self._committed(one.run)
                yield from self._unseen(views)
                if len(views) >= min(one.boundaries, BOUNDARIES):
                    self._settled[one.run] = one.boundaries

    def _committed(self, run: str) -> list["BoundaryView"]:
        """The newest committed boundaries of a run, in order."""
        views = self._api.boundaries(run, limit=BOUNDARIES).items
        return sorted((view for view in views if view.committed_at is not None), key=lambda view: view.index)

    def _unseen(self, views: list["BoundaryView"]) -> Iterator["BoundaryView"]:
        """Those that were not seen before."""
        for view in views:
            if view.boundary_id not in self._seen:
                self._seen.add(view.boundary_id)
                yield view
