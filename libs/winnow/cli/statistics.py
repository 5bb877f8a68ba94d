"""What the commands of assurance share: names with versions, software, and charts of records (with the extra `plots`)."""

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from winnow import __version__
from winnow.contracts.errors import Permanent
from winnow.contracts.evaluation import EvaluationRecord, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Characters of a name that a record carries.
_NAME_CHARS: Final = 200


class BadWord(Permanent):
    """An option has a value that it cannot have; the text says which."""


def named(option: str, text: str) -> tuple[str, str | None]:
    """Read NAME or NAME:VERSION.

    Raises:
        BadWord: a name is missing, too long or not printable.
    """
    name, _, tail = text.partition(":")
    for part in (name, tail or "x"):
        if not part or len(part) > _NAME_CHARS or not part.isprintable():
            msg = f"--{option} {text[:80]!r}: write NAME or NAME:VERSION, at most {_NAME_CHARS} printable characters each"
            raise BadWord(msg)
    return name, tail or None


def software() -> dict[str, str]:
    """Versions that statistics depend on."""
    found = {"winnow": __version__, "python": platform.python_version()}
    for package in ("numpy", "scipy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def draw(place: Path, record: EvaluationRecord) -> None:
    """Draw a record's table of bounds, levels or power into an .svg or .png file. Equal figures give equal bytes.

    Raises:
        Permanent: the file cannot be written, or the record has nothing to draw.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    chart = next(((table, _CHARTS[table.name]) for table in record.tables if table.name in _CHARTS and table.rows), None)
    if chart is None:
        msg = "this record has no table that is drawn; leave --plot out"
        raise Permanent(msg)
    with rc_context({"svg.hashsalt": "winnow", "svg.fonttype": "none"}):
        figure = Figure(figsize=(7.5, 4.5), layout="constrained")
        axes = figure.subplots()
        axes.spines[["top", "right"]].set_visible(False)
        axes.set_title(_words(record.title), fontsize="medium")
        chart[1](axes, chart[0], record)
        try:
            figure.savefig(place, metadata={"Date": None} if place.suffix.lower() == ".svg" else {})
        except OSError as exc:
            msg = f"{place}: {exc.strerror or exc}"
            raise Permanent(msg) from None


def _column(table: Table, name: str) -> list[Any]:
    """The cells of a column."""
    at = table.columns.index(name)
    return [row[at] for row in table.rows]


def _words(text: object) -> str:
    """A text as matplotlib shows it: dollars would begin a formula."""
    return str(text)[:60].replace("$", r"\$")


def _budget(axes: "Axes", record: EvaluationRecord) -> None:
    """The budget as a line."""
    alpha = record.certificate.alpha if record.certificate else record.subject.parameters.get("alpha")
    if isinstance(alpha, int | float):
        axes.axvline(alpha, color="#d55e00", linestyle="--", linewidth=1, label=f"budget {alpha:g}")


def _bounds(axes: "Axes", table: Table, record: EvaluationRecord) -> None:
    """The rate and the upper bound by every method."""
    methods, uppers = _column(table, "method"), _column(table, "upper bound")
    rate = record.metric("risk")
    value = 0.0 if rate is None or rate.value is None else rate.value
    axes.hlines(methods, value, uppers, color="#0072b2", linewidth=2)
    axes.plot(uppers, methods, "|", color="#0072b2", markersize=12)
    axes.axvline(value, color="#8c959f", linewidth=1, label=f"rate {value:.4g}")
    _budget(axes, record)
    axes.invert_yaxis()
    axes.set_xlabel("loss rate, upper bound")
    axes.legend(fontsize="small")


def _levels(axes: "Axes", table: Table, record: EvaluationRecord) -> None:
    """The upper bound of every level, certified ones filled."""
    names = [_words(name) for name in _column(table, "level")]
    uppers, certified = _column(table, "upper bound"), _column(table, "certified")
    colours = ["#009e73" if passed else "#8c959f" for passed in certified]
    axes.barh(range(len(names)), uppers, color=colours)
    axes.set_yticks(range(len(names)), names)
    _budget(axes, record)
    axes.invert_yaxis()
    axes.set_xlabel("upper bound of the risk (green: certified)")
    axes.legend(fontsize="small")


def _power(axes: "Axes", table: Table, record: EvaluationRecord) -> None:
    """Power over units, or the share of alarms over units."""
    units, shares = _column(table, "units"), _column(table, "share")
    axes.plot(units, shares, color="#0072b2")
    axes.axhline(0.9, color="#d55e00", linestyle="--", linewidth=1, label="nine in ten")
    axes.set(xlabel="units", ylabel=_words(table.title), ylim=(0, 1.02))
    axes.legend(fontsize="small")
    del record


def _arms(axes: "Axes", table: Table, record: EvaluationRecord) -> None:
    """A bandit's evidence for and against each level."""
    names = [_words(name) for name in _column(table, "level")]
    places = range(len(names))
    axes.barh([place - 0.2 for place in places], _column(table, "evidence for (log10)"), 0.4, color="#009e73", label="for the level")
    axes.barh([place + 0.2 for place in places], _column(table, "evidence against (log10)"), 0.4, color="#d55e00", label="against it")
    axes.set_yticks(list(places), names)
    axes.invert_yaxis()
    axes.set_xlabel("evidence (log10)")
    axes.legend(fontsize="small")
    del record


_CHARTS: Final = {"arms": _arms, "bounds": _bounds, "levels": _levels, "power": _power}
