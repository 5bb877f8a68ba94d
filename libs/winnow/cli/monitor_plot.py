"""The evidence chart of `winnow monitor` and `winnow streams`. Needs matplotlib (the extra `plots`)."""

import math
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from winnow.assurance.blocks import of_losses
from winnow.assurance.changepoint import change_window
from winnow.assurance.config import MonitorConfig
from winnow.assurance.monitor import fold, initial
from winnow.contracts.errors import Permanent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Points of a curve at most, and blocks whose mean loss is shown.
POINTS: Final = 1_000
BLOCKS: Final = 60
#: Streams in one chart at most: more could not be told apart.
STREAMS: Final = 10


class Drawn(NamedTuple):
    """One stream of a chart."""

    name: str
    losses: Sequence[float]
    #: With which each unit was drawn; None: all with the smallest one.
    probabilities: Sequence[float] | None = None


def check(place: Path) -> None:
    """Refuse what cannot be drawn.

    Raises:
        Permanent: another ending than .svg or .png, or matplotlib is not installed.
    """
    if place.suffix.lower() not in {".svg", ".png"}:
        raise Permanent(f"{place}: a plot is an .svg or .png file; give a name with that ending")
    if find_spec("matplotlib") is None:
        raise Permanent("matplotlib is not installed; install it with: pip install 'winnow-compaction[plots]'")


def draw(place: Path, config: MonitorConfig, streams: Sequence[Drawn]) -> None:
    """Draw log10 evidence over the units, the alarm level, the likely change of a single stream, and the mean loss of blocks below.

    Raises:
        Permanent: the file cannot be written, or there are more than ten streams.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    if len(streams) > STREAMS:
        raise Permanent(f"a chart holds at most {STREAMS} streams, not {len(streams)}; draw fewer files at once")
    with rc_context({"svg.hashsalt": "winnow", "svg.fonttype": "none"}):  # the same losses give the same bytes
        figure = Figure(figsize=(9, 5.5), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(3, 2))
        for name, losses, probabilities in streams:
            units, evidence, alarm = _curve(config, losses, probabilities)
            (line,) = above.plot(units, evidence, linewidth=1.2, label=Path(name).name[:60].replace("$", r"\$"))
            if alarm is not None:
                above.plot([alarm], [evidence[-1]], "o", color=line.get_color())
            blocks = of_losses(losses, BLOCKS)
            ends = _ends([b.n for b in blocks])
            below.step(ends, [b.total / b.n for b in blocks], where="pre", color=line.get_color(), linewidth=1)
            window = change_window(of_losses(losses[:alarm], POINTS)) if alarm is not None and len(streams) == 1 else None
            if window:
                for axes in (above, below):
                    axes.axvspan(window.first, window.last, alpha=0.15, color="tab:red", label="likely change")
        above.axhline(math.log10(config.level), color="tab:red", linestyle="--", linewidth=1, label="alarm level")
        below.axhline(config.alpha, color="tab:red", linestyle="--", linewidth=1)
        above.set(ylabel="evidence, log10", title=f"budget {config.alpha:g}, {config.method}")
        below.set(xlabel="unit", ylabel="mean loss of a block")
        above.legend(loc="upper left", fontsize="small")
        save(figure, place)


def save(figure: "Figure", place: Path) -> None:
    """Write a chart; equal charts are equal bytes as SVG. Raise `Permanent` where that is not possible."""
    try:
        figure.savefig(place, metadata={"Date": None} if place.suffix.lower() == ".svg" else {})
    except OSError as exc:
        raise Permanent(f"{place}: {exc.strerror or exc}") from None


def _curve(
    config: MonitorConfig, losses: Sequence[float], probabilities: Sequence[float] | None
) -> tuple[list[int], list[float], int | None]:
    """Units, log10 evidence, and the alarm."""
    state = initial(config)
    end = len(losses) if config.horizon is None else min(len(losses), config.horizon)
    step = max(1, end // POINTS)
    units, evidence = [0], [state.log_evidence / math.log(10)]
    for at in range(0, end, step):
        some = slice(at, min(end, at + step))
        state = fold(config, state, losses[some], None if probabilities is None else probabilities[some])
        units.append(state.n)
        evidence.append(state.log_evidence / math.log(10))
        if state.alarm_at is not None:
            break
    return units, evidence, state.alarm_at


def _ends(sizes: Sequence[int]) -> list[int]:
    """Last unit of each block."""
    ends: list[int] = []
    for size in sizes:
        ends.append(size + (ends[-1] if ends else 0))
    return ends
