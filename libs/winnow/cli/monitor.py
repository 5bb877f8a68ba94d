"""`winnow monitor`: watch files of losses for drift, offline."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from winnow.assurance.designs import DEFAULT, METHODS
from winnow.cli.exits import ExitCode
from winnow.cli.terminal import Terminal, cell, table
from winnow.contracts.errors import WinnowError

if TYPE_CHECKING:
    from winnow.assurance.changepoint import ChangeWindow
    from winnow.assurance.config import MonitorConfig
    from winnow.assurance.monitor import State

#: Places of a change that are compared at most; a longer file is compared block by block, in a 4,000th of its length.
PLACES = 4_000

Files = Annotated[list[str], typer.Argument(metavar="FILE...", help="One loss a line, in sampling order; - is standard input.")]


def monitor(  # noqa: PLR0913  the options of a command
    files: Files,
    *,
    alpha: Annotated[float, typer.Option(metavar="A", help="Risk budget: bet against a mean loss of at most A.")],
    delta: Annotated[float, typer.Option(metavar="D", help="Chance of a false alarm, ever.")] = 0.05,
    method: Annotated[str, typer.Option(metavar="NAME", help=f"Which bets: {', '.join(METHODS)}.")] = DEFAULT,
    lo: Annotated[float, typer.Option(help="Smallest loss: 0, or -1 for paired differences.")] = 0.0,
    horizon: Annotated[int | None, typer.Option(metavar="N", help="Bound false alarms within N units only, and end there.")] = None,
    arl: Annotated[float | None, typer.Option(metavar="N", help="Bound only the mean number of units to a false alarm, by N.")] = None,
    warn_alpha: Annotated[float | None, typer.Option(metavar="A", help="A second, lower budget that warns first.")] = None,
    binary: Annotated[bool, typer.Option("--binary", help="Losses are 0 or 1 (paired: -1, 0, 1); refuse any other.")] = False,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the evidence into an .svg or .png file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON a file.")] = False,
) -> None:
    """Watch losses for a risk above the budget, with a guarantee that holds at every look.

    Each file is a stream of its own. A loss is a number in [0, 1] (or in [-1, 1]) for one run or session, never for one turn. A file that
    cannot be read or has a bad line is named on standard error, the rest goes on and the exit code is 1. An alarm is a result, not a
    failure: the exit code stays 0.

    Examples: `winnow monitor losses.txt --alpha .05`, `winnow monitor fleet/*.txt --alpha .1 --delta .01 --json`,
    `winnow monitor - --alpha .05 --lo -1 --plot evidence.svg < paired.txt`
    """
    from winnow.assurance.config import MonitorConfig
    from winnow.cli import loss_lines

    terminal = Terminal()
    config = MonitorConfig(
        alpha=alpha,
        delta=delta,
        lo=lo,
        mode="horizon" if horizon is not None else "arl" if arl is not None else "lifetime",
        horizon=horizon,
        arl=arl,
        method=method,
        warn_alpha=warn_alpha,
        binary=binary,
    )
    _ready_to_plot(plot)
    failed = False
    watched = []
    rows = table("file", "units", "alarm at", "evidence (log10)", "p-value", "change likely at")
    for name in files:
        try:
            losses = loss_lines.read(name, config)
            found = Watched(name, losses, config)
        except WinnowError as exc:
            terminal.error(str(exc))
            failed = True
            continue
        if as_json:
            terminal.json(found.as_value())
        else:
            rows.add_row(*[cell(v, style) for v, style in found.row()])
        if plot is not None:
            watched.append(found)
    if not as_json:
        terminal.show(rows)
        terminal.note(_promise(config))
    if plot is not None and watched:
        from winnow.cli.monitor_plot import Drawn, draw

        draw(plot, config, [Drawn(w.name, w.losses) for w in watched])
    if failed:
        raise SystemExit(int(ExitCode.FAILURE))


class Watched:
    """One file and what the monitor says of it."""

    def __init__(self, name: str, losses: Any, config: "MonitorConfig") -> None:  # noqa: ANN401  a sequence of floats
        """Fold the losses, up to the alarm or the horizon."""
        from winnow.assurance.monitor import fold, initial

        self.name = name
        self.losses = losses
        self.state: State = fold(config, initial(config), losses if config.horizon is None else losses[: config.horizon])
        self.window = self._window()

    def _window(self) -> "ChangeWindow | None":
        """Where the change likely was, of all units up to the alarm."""
        from winnow.assurance.blocks import of_losses
        from winnow.assurance.changepoint import change_window

        return None if self.state.alarm_at is None else change_window(of_losses(self.losses[: self.state.alarm_at], PLACES))

    def as_value(self) -> dict[str, Any]:
        """The line of JSON; this form is kept. Units are counted from 1; after an alarm the evidence is that of the alarm."""
        return {
            "file": self.name,
            "n": len(self.losses),
            "alarm": self.state.alarm_at,
            "log_e": self.state.log_evidence,
            "change_window": [self.window.first, self.window.last] if self.window else None,
        } | ({"warning": self.state.warned_at} if self.state.warn else {})

    def row(self) -> list[tuple[str, str]]:
        """The cells of the table, with their styles."""
        import math

        at, window = self.state.alarm_at, self.window
        style = {"alarm": "bold red", "warn": "yellow", "ok": ""}[self.state.status]
        warned = f"warned at {self.state.warned_at:,}" if self.state.warned_at else "none"
        return [
            (self.name, ""),
            (f"{len(self.losses):,}", ""),
            (f"{at:,}" if at else warned, style),
            (f"{self.state.log_evidence / math.log(10):+.2f}", ""),
            (f"{self.state.p_value:.2g}", ""),
            ((f"{window.best:,} ({window.first:,} to {window.last:,})" if window else ""), ""),
        ]


def _promise(config: "MonitorConfig") -> str:
    """What an alarm, and its absence, mean."""
    if config.mode == "arl":
        return (
            f"Guarantee class arl: within the budget {config.alpha:g}, false alarms are on the mean at least {config.arl:,.0f} units apart."
        )
    when = "ever" if config.horizon is None else f"within {config.horizon:,} units"
    return (
        f"Guarantee class anytime: while the mean loss is at most {config.alpha:g}, the chance of an alarm {when} is at most "
        f"{config.delta:g} a file. No alarm is no proof that the budget is kept."
    )


def _ready_to_plot(plot: Path | None) -> None:
    """Refuse a plot that could not be drawn before the work, not after it."""
    if plot is not None:
        from winnow.cli.monitor_plot import check

        check(plot)
