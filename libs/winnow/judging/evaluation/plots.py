"""Plots of a judge's evaluation record as SVG texts, drawn from its tables. Needs matplotlib (the extra `plots`), imported when drawing."""

import io
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from winnow.contracts.evaluation import Cell, EvaluationRecord, Table
from winnow.judging.evaluation.documents import visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Colours that people with colour-blindness tell apart (Okabe and Ito 2008).
_BLUE, _ORANGE, _GREEN, _GREY = "#0072b2", "#d55e00", "#009e73", "#8c959f"
#: Inches.
_SIZE: Final = (4.6, 3.6)
#: The XML head, which has no place inside a page.
_HEAD: Final = re.compile(r"^.*?(?=<svg)", re.DOTALL)


def drawable() -> bool:
    """Whether matplotlib is there."""
    try:
        import matplotlib as _  # noqa: F401, ICN001, PLC0415  asked for, not used
    except ImportError:
        return False
    return True


def of(record: EvaluationRecord) -> dict[str, str]:
    """SVG images by title: one for each table of the record that has a plot. The same record gives the same bytes."""
    made = {}
    for title, name, draw in _PLOTS:
        table = record.table(name)
        if table is not None and table.rows:
            made[title] = _svg(title, table, draw)
    return made


def _svg(title: str, table: Table, draw: Callable[["Axes", Table], None]) -> str:
    """One image. No date, no random ids: equal figures give equal bytes."""
    from matplotlib import rc_context  # noqa: PLC0415  heavy, and an extra
    from matplotlib.figure import Figure  # noqa: PLC0415  the same

    with rc_context({"svg.hashsalt": title, "svg.fonttype": "none", "font.size": 9, "font.family": "sans-serif"}):
        figure = Figure(figsize=_SIZE, layout="constrained")
        axes = figure.subplots()
        axes.spines[["top", "right"]].set_visible(False)
        draw(axes, table)
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Title": title})
    return _HEAD.sub("", text.getvalue(), count=1)


def column(table: Table, name: str) -> list[Any]:
    """The cells of a column."""
    at = table.columns.index(name)
    return [row[at] for row in table.rows]


def _where(table: Table, name: str, value: Cell) -> Table:
    """The rows whose column `name` has `value`."""
    at = table.columns.index(name)
    return table.model_copy(update={"rows": tuple(row for row in table.rows if row[at] == value)})


def _numbers(cells: Sequence[Any]) -> list[float]:
    """Cells as numbers, NaN where nothing is defined."""
    return [float("nan") if cell is None else float(cell) for cell in cells]


def _calibration(axes: "Axes", table: Table) -> None:
    """Sourced share against mean score."""
    axes.plot([0, 1], [0, 1], color=_GREY, linewidth=1, linestyle="--")
    for name, colour, mark in (("all", _BLUE, "o"), ("reasoning", _ORANGE, "s")):
        part = _where(table, "slice", name)
        axes.plot(_numbers(column(part, "mean score")), _numbers(column(part, "sourced")), color=colour, marker=mark, label=name)
    axes.set(xlabel="mean score", ylabel="sourced share", xlim=(0, 1), ylim=(0, 1))
    axes.legend(frameon=False)


def _curve(x: str, y: str) -> Callable[["Axes", Table], None]:
    """A curve of all and one of reasoning entries."""

    def draw(axes: "Axes", table: Table) -> None:
        for name, colour in (("all", _BLUE), ("reasoning", _ORANGE)):
            part = _where(table, "slice", name)
            axes.plot(_numbers(column(part, x)), _numbers(column(part, y)), color=colour, label=name, drawstyle="steps-post")
        axes.set(xlabel=x, ylabel=y, xlim=(0, 1), ylim=(0, 1.01))
        axes.legend(frameon=False)

    return draw


def _histogram(axes: "Axes", table: Table) -> None:
    """Entries by score, stacked; forward-looking sections are hatched."""
    left = _numbers(column(table, "from"))
    width = _numbers(column(table, "to"))[0] - left[0]
    base = [0.0] * len(left)
    parts = (
        ("other, sourced", _BLUE, ""),
        ("forward, sourced", _BLUE, "////"),
        ("other, unsourced", _ORANGE, ""),
        ("forward, unsourced", _ORANGE, "////"),
    )
    for name, colour, hatch in parts:
        height = _numbers(column(table, name))
        axes.bar(left, height, width, bottom=base, align="edge", color=colour, hatch=hatch, edgecolor="white", linewidth=0.4, label=name)
        base = [a + b for a, b in zip(base, height, strict=True)]
    axes.set(xlabel="score", ylabel="entries", xlim=(0, 1))
    axes.legend(frameon=False, fontsize=7)


def _sweep(axes: "Axes", table: Table) -> None:
    """Precision, recall and pruned share by threshold."""
    tau = _numbers(column(table, "tau"))
    for name, colour in (("precision", _BLUE), ("recall", _GREEN), ("pruned", _ORANGE)):
        axes.plot(tau, _numbers(column(table, name)), color=colour, label=name)
        axes.plot(tau, _numbers(column(table, f"reasoning {name}")), color=colour, linestyle="--", label=f"{name}, reasoning")
    axes.axvspan(0.3, 0.7, color=_GREY, alpha=0.15, linewidth=0)
    axes.set(xlabel="tau", xlim=(0, 1), ylim=(0, 1.01))
    axes.legend(frameon=False, fontsize=7)


def _forest(axes: "Axes", table: Table) -> None:
    """AUROC of every slice with its interval."""
    rows = [row for row in zip(*(column(table, name) for name in ("slice", "auroc", "auroc lo", "auroc hi")), strict=True) if row[1]]
    for at, (_, value, lo, hi) in enumerate(rows):
        if lo is not None and hi is not None:
            axes.plot([lo, hi], [at, at], color=_GREY, linewidth=1.5)
        axes.plot([value], [at], marker="o", color=_BLUE)
    axes.set_yticks(range(len(rows)), [visible(str(row[0]))[:28].replace("$", r"\$") for row in rows], fontsize=7)
    axes.invert_yaxis()
    axes.set(xlabel="AUROC", xlim=(min([0.5, *(row[2] or row[1] for row in rows)]), 1.005))


def _stress(axes: "Axes", table: Table) -> None:
    """Share still kept after each change, beside the same entries unchanged."""
    names = [str(name).replace("_", " ") for name in column(table, "change")]
    places = range(len(names))
    axes.barh([at - 0.2 for at in places], _numbers(column(table, "kept")), 0.38, color=_ORANGE, label="kept after the change")
    axes.barh([at + 0.2 for at in places], _numbers(column(table, "kept unchanged")), 0.38, color=_BLUE, label="kept unchanged")
    axes.set_yticks(list(places), names, fontsize=7)
    axes.invert_yaxis()
    axes.set(xlabel="share of entries", xlim=(0, 1))
    axes.legend(frameon=False, fontsize=7)


#: Title, table and drawing of each plot, in the order of the page.
_PLOTS: Final[tuple[tuple[str, str, Callable[["Axes", Table], None]], ...]] = (
    ("AUROC by slice, 95 % intervals", "slices", _forest),
    ("Calibration", "calibration", _calibration),
    ("Scores; forward-looking sections are hatched", "histogram", _histogram),
    ("Threshold: precision, recall, pruned share", "sweep", _sweep),
    ("ROC", "curves", _curve("false positive rate", "recall")),
    ("Precision and recall", "curves", _curve("recall", "precision")),
    ("Stress: kept though the truth is certain", "stress", _stress),
)
