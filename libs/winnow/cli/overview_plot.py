"""Charts of many streams and of alerts: `winnow streams list --plot` and `winnow alerts --plot`. Need matplotlib (the extra `plots`)."""

import math
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from winnow.cli.monitor_plot import save
from winnow.cli.terminal import plain
from winnow.contracts.errors import Permanent

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Rows of a chart at most: more could not be read.
ROWS: Final = 60

_COLOURS: Final = {"alarm": "#d55e00", "held": "#d55e00", "raised": "#d55e00", "warn": "#e69f00", "released": "#009e73"}


class Meter(NamedTuple):
    """A stream's evidence and the level that is its alarm, as natural logarithms; None: none yet."""

    name: str
    status: str
    log_evidence: float | None
    log_level: float | None


class Moment(NamedTuple):
    """One alert."""

    at: datetime
    fleet: str
    kind: str


def meters(place: Path, streams: Sequence[Meter]) -> None:
    """Draw each stream's log10 evidence as a bar, and its alarm level as a mark. Raise `Permanent` where that is not possible."""
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "winnow", "svg.fonttype": "none"}):
        figure, axes = _figure([stream.name for stream in streams])
        values = [(stream.log_evidence or 0.0) / math.log(10) for stream in streams]
        axes.barh(range(len(streams)), values, color=[_COLOURS.get(stream.status, "#0072b2") for stream in streams])
        levels = [(row, s.log_level / math.log(10)) for row, s in enumerate(streams) if s.log_level is not None]
        axes.plot([level for _, level in levels], [row for row, _ in levels], "|", color="#d55e00", markersize=10, label="alarm level")
        axes.set_xlabel("evidence, log10")
        if levels:
            axes.legend(fontsize="small")
        save(figure, place)


def timeline(place: Path, alerts: Sequence[Moment]) -> None:
    """Draw alerts over time, a row a fleet. Raise `Permanent` where that is not possible."""
    from matplotlib import rc_context

    fleets = sorted({alert.fleet for alert in alerts})
    with rc_context({"svg.hashsalt": "winnow", "svg.fonttype": "none"}):
        figure, axes = _figure(fleets)
        for kind in sorted({alert.kind for alert in alerts}):
            some = [(alert.at, fleets.index(alert.fleet)) for alert in alerts if alert.kind == kind]
            axes.plot([at for at, _ in some], [row for _, row in some], "o", color=_COLOURS.get(kind, "#0072b2"), label=kind)  # type: ignore[arg-type]  # moments are values of an axis
        axes.set_xlabel("UTC")
        axes.tick_params("x", rotation=30)
        axes.legend(fontsize="small")
        save(figure, place)


def _figure(rows: Sequence[str]) -> "tuple[Figure, Axes]":
    """A chart with a row for each name."""
    from matplotlib.figure import Figure

    if not rows or len(rows) > ROWS:
        raise Permanent(f"a chart holds 1 to {ROWS} rows, not {len(rows)}; choose with --fleet, or leave --plot out")
    figure = Figure(figsize=(9, 1.5 + 0.3 * len(rows)), layout="constrained")
    axes = figure.subplots()
    axes.set_yticks(range(len(rows)), [plain(name, 60).replace("$", r"\$") for name in rows])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    return figure, axes
