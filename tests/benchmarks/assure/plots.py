"""The two charts of `docs/assurance-tables.md`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.assure.frontier import Point
from tests.benchmarks.assure.sections import bound


def frontier(points: Sequence[Point], place: Path) -> None:
    """Early against late: nearer to the lower left corner is better."""
    figure, axes = _figure()
    for family, marker in (("spending", "s"), ("patient", "o")):
        chosen = [p for p in points if p.name.startswith(family)]
        chosen.sort(key=lambda p: p.late_worst)
        axes.plot([p.by_nu[0] for p in chosen], [p.late_worst for p in chosen], marker=marker, linewidth=1, label=family)
        for p in chosen:
            label = p.name.partition("opening ")[2] or f"{p.name} as it is"
            axes.annotate(label, (p.by_nu[0], p.late_worst), textcoords="offset points", xytext=(6, 4), fontsize="small")
    axes.margins(x=0.15)  # room for the names
    axes.axhline(1.10, color="tab:red", linestyle="--", linewidth=1, label="10 % later")
    axes.set(
        xlabel="drift from the first unit: worst delay to the quickest method",
        ylabel="drift after 500 units or more: worst delay to spending",
    )
    axes.legend()
    _save(figure, place)


def delays(by_row: Mapping[str, Mapping[str, float]], place: Path) -> None:
    """Delay by age of the stream: alpha .10, a doubling."""
    figure, axes = _figure()
    nus = (0, 500, 5_000, 50_000)
    for name in ("patient", "spending", "grid7", "seed", "plain", "ONS (reference)"):
        values = {nu: by_row[name].get(f"alpha 0.1, nu {nu:,}, 2x") for nu in nus}
        known = [(max(nu, 50), v) for nu, v in values.items() if v is not None]
        axes.plot([nu for nu, _ in known], [v for _, v in known], marker="o", linewidth=1.2, label=name)
    axes.axhline(bound(0.10, 2.0), color="black", linestyle=":", linewidth=1, label="ln(1/delta)/KL")
    axes.set(xscale="log", yscale="log", xlabel="healthy units before the change (leftmost: none)", ylabel="mean delay, units")
    axes.set_title("budget .10, from .05 to .20")
    axes.legend()
    _save(figure, place)


def _figure() -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    return figure, figure.subplots()


def _save(figure: Any, place: Path) -> None:
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "winnow", "svg.fonttype": "none"}):
        figure.savefig(place, metadata={"Date": None})
