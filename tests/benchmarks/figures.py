"""Figures, the table that shows them, and the two places that they are written to: `var/bench.json` and the README."""

import json
import operator
import os
import platform
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.harness.data import REPOSITORY

RESULTS = REPOSITORY / "var" / "bench.json"
README = REPOSITORY / "README.md"
START, END = "<!-- bench:start -->", "<!-- bench:end -->"

_COMPARE: dict[str, Callable[[float, float], bool]] = {"<=": operator.le, ">=": operator.ge}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One measured figure.

    `goal` reads `value >= 100` or `ratio <= 3`; None where the figure is shown for the record. `ratio` is value / baseline, or for
    speed-ups how many times faster than the baseline: its name says which.
    """

    name: str
    value: float
    unit: str
    baseline: float | None = None
    ratio: float | None = None
    goal: str | None = None

    @property
    def met(self) -> bool | None:
        """Whether the goal is reached; None where there is none."""
        if self.goal is None:
            return None
        what, how, bound = self.goal.split()
        measured = self.value if what == "value" else self.ratio
        return measured is not None and _COMPARE[how](measured, float(bound))


def against(name: str, value: float, unit: str, baseline: float, *, goal: str | None = None, inverse: bool = False) -> Figure:
    """Make a figure beside its baseline; `inverse`: the ratio is how many times smaller it is."""
    ratio = baseline / value if inverse else value / baseline
    return Figure(name=name, value=value, unit=unit, baseline=baseline, ratio=ratio, goal=goal)


def number(value: float | None) -> str:
    """Three significant digits, without an exponent."""
    if value is None:
        return ""
    if value == 0:
        return "0"
    magnitude = abs(value)
    if magnitude >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if magnitude >= 10 else f"{value:.2f}" if magnitude >= 0.1 else f"{value:.3g}"


def row(figure: Figure) -> list[str]:
    """Return the cells of a figure."""
    met = {True: "yes", False: "NO", None: ""}[figure.met]
    ratio = "" if figure.ratio is None else f"{number(figure.ratio)}×"
    return [figure.name, number(figure.value), figure.unit, number(figure.baseline), ratio, figure.goal or "", met]


HEAD = ["figure", "value", "unit", "baseline", "ratio", "goal", "met"]


def table(figures: Sequence[Figure]) -> str:
    """Return a plain table."""
    rows = [HEAD, *map(row, figures)]
    widths = [max(len(r[i]) for r in rows) for i in range(len(HEAD))]
    right = {1, 3, 4}
    lines = [
        "  ".join(c.rjust(w) if i in right else c.ljust(w) for i, (c, w) in enumerate(zip(r, widths, strict=True))).rstrip() for r in rows
    ]
    lines.insert(1, "  ".join("-" * w for w in widths))
    return "\n".join(lines)


def markdown(figures: Iterable[Figure]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(HEAD) + " |", "|---|--:|---|--:|--:|---|---|"]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row(f)) + " |" for f in figures]
    return "\n".join(lines)


def load(path: Path = RESULTS) -> list[Figure]:
    """Read the figures of the last run; none where there was no run."""
    if not path.exists():
        return []
    return [Figure(**entry) for entry in json.loads(path.read_text())]


def merged(old: Sequence[Figure], new: Sequence[Figure]) -> list[Figure]:
    """Return `old` with the figures of the same name replaced, and what is new behind them: `--only` keeps the other figures."""
    fresh = {f.name: f for f in new}
    kept = [fresh.pop(f.name, f) for f in old]
    return [*kept, *fresh.values()]


def write(figures: Sequence[Figure], path: Path = RESULTS) -> None:
    """Write the figures as JSON, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    entries: list[dict[str, Any]] = [asdict(f) for f in figures]
    fresh = path.with_suffix(".new")
    fresh.write_text(json.dumps(entries, indent=1) + "\n")
    fresh.replace(path)


def machine() -> str:
    """Return what it was measured on."""
    model = next((line.partition(":")[2].strip() for line in _cpuinfo() if line.startswith("model name")), platform.machine())
    return f"{len(os.sched_getaffinity(0))} cores of {model}, Python {platform.python_version()}"


def _cpuinfo() -> list[str]:
    path = Path("/proc/cpuinfo")
    return path.read_text().splitlines() if path.exists() else []


def into_readme(figures: Sequence[Figure], path: Path = README) -> None:
    """Put the table between the two markers.

    Raises:
        ValueError: the markers are not there, or not in order.
    """
    text = path.read_text()
    head, start, rest = text.partition(START)
    _, end, tail = rest.partition(END)
    if not start or not end:
        message = f"{path.name} has no {START} … {END}"
        raise ValueError(message)
    path.write_text(f"{head}{START}\n{markdown(figures)}\n\nMeasured with `make bench` on {machine()}.\n{END}{tail}")
