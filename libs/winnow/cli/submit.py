"""`winnow submit`: send boundaries through the gateway, as an agent runtime would."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from winnow.cli.exits import ExitCode, code_of
from winnow.cli.terminal import Terminal
from winnow.contracts.errors import WinnowError
from winnow.contracts.vocabulary import Mode, Outcome, Rules

if TYPE_CHECKING:
    from winnow.client.api import BoundaryView


def submit(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Boundaries, one JSON object a line; - is standard input.")],
    *,
    fleet: Annotated[
        str | None, typer.Option(envvar="WINNOW_FLEET", help="The API key's fleet; left out: that of `winnow up`, else default.")
    ] = None,
    mode: Annotated[Mode, typer.Option(help="The most that may happen; the fleet's operating point may be milder.")] = Mode.SHADOW,
    rules: Annotated[Rules, typer.Option(help="Which system judges.")] = Rules.WINNOW,
    wait: Annotated[float, typer.Option(min=0.0, max=600.0, help="Seconds to wait for each result; 0: only submit.")] = 30.0,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON a boundary: the gateway's answer.")] = False,
) -> None:
    """Submit boundaries and show what became of them. The same boundary again gives the stored result.

    A line is a boundary as `winnow judge` takes it, with `run` and `index` where there are several. Nothing is reported as adopted: no
    agent goes on with it. The exit code is the worst of all lines: 1 bad line or rejected, 4 conflict, 5 unreachable.
    """
    from winnow.cli.boundary_lines import read_lines, source_of
    from winnow.cli.connection import gateway, running
    from winnow.cli.gateway import Gateway

    terminal = Terminal()
    if fleet is None:
        found = running()
        fleet = found.fleet if found else "default"
    worst = ExitCode.OK
    with source_of(file) as lines, Gateway(*gateway()) as api:
        for number, line in read_lines(lines):
            try:
                if isinstance(line, WinnowError):
                    raise line
                view = api.submit(line.event(fleet=fleet, mode=mode, rules=rules), wait_s=wait)
            except WinnowError as exc:
                terminal.error(f"{file}, line {number}: {exc}")
                worst = max(worst, code_of(exc))
                if code_of(exc) is ExitCode.UNAVAILABLE:
                    break  # the rest would wait for nothing, line by line
                continue
            if view.outcome is Outcome.REJECTED:
                worst = max(worst, ExitCode.FAILURE)
            _tell(terminal, view, as_json=as_json)
    if worst:
        raise SystemExit(int(worst))


def _tell(terminal: Terminal, view: "BoundaryView", *, as_json: bool) -> None:
    """The gateway's answer to one boundary."""
    from winnow.cli.show import headline

    if as_json:
        terminal.json(view.model_dump(mode="json"))
        return
    terminal.show(headline(view))
    if view.result is None:
        terminal.show(Text(f"  not committed yet; see: winnow show {view.boundary_id} --wait 60", style="yellow"))
