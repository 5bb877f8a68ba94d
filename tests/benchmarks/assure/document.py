"""The tables and plots of `docs/assurance-tables.md`, from the figures of a run."""

from collections.abc import Iterable, Mapping, Sequence

from tests.benchmarks.assure import plots
from tests.benchmarks.assure.checks import Check
from tests.benchmarks.assure.frontier import points
from tests.benchmarks.assure.sections import ALPHAS, FACTORS, NUS, bound
from tests.benchmarks.figures import machine
from tests.harness.data import REPOSITORY

DOCS = REPOSITORY / "docs"
TABLES = DOCS / "assurance-tables.md"

_HEAD = """# The monitor by simulation

Written by `make assure`; `docs/assurance.md` says what the methods are and what follows. Each cell is the simulated figure and, in
brackets, the one that was specified: simulated beforehand by an independent implementation. `patient` is what ships; it came later and has
none. A mark **!** is a figure outside its tolerance: false alarms .004 or three standard errors, and delta and three of them at most;
mean delays 8 % or three standard errors; quantiles and families of streams 10 % or three standard errors. Delays leave out the runs that
alarmed before the change, and count an undetected change as 15,000 units (graded and paired: 10,000). Everything is seeded.
"""


def write(found: Mapping[str, Sequence[Check]]) -> None:
    """Write the document and its plots."""
    parts = [_HEAD, _summary(found), _false_alarms(found["pfa"]), _delays(found["delays"]), _frontier(found)]
    titles = {
        "kinds": "Every kind of loss",
        "elsewhere": "Other budgets, changes and pasts",
        "other": "Graded and paired losses",
        "power": "Half and nine tenths of the runs",
        "streams": "A hundred streams, delta .05 for all",
        "recovery": "Recovery after an alarm",
        "change": "Where the change was",
        "clusters": "Turns folded as if independent",
    }
    notes = {
        "kinds": "Mean delay of `patient` to that of `spending`, the worst of three sizes of change (1.5, 2 and 3 times the budget; "
        "paired: .10, .15, .25 under .05), by nu: at most 1.02 from the first unit, at most 1.10 later, but for a budget of "
        ".30 after 50,000 units. Last: share of streams with an alarm within 20,000 units at a risk of exactly the budget.",
        "elsewhere": "Mean delays at other budgets, sizes of change and pasts; binary losses.",
        "other": "Mean delays by nu and by the mean loss afterwards.",
        "power": "Units to the alarm after a change at 1,000 from half the budget.",
        "streams": "alpha .10, `grid7`, change at 500 to twice the budget, the others exactly at it; in the last column all drift.",
        "recovery": "Units until the e-process accepts, delta .05; below, how often it accepts a risk of exactly the budget within 5,000.",
        "change": "Units between the located and the true change at 2,000; how often the likely window holds it. Monitor `spending`.",
        "clusters": "Rate of alarms over 500 runs of 10 turns, at a risk of exactly .10, by intra-class correlation.",
    }
    for name, title in titles.items():
        parts.append(f"## {title}\n\n{notes[name]}\n")
        for table in dict.fromkeys(c.table for c in found[name]):
            if ": " in table:
                parts.append(f"**{table.partition(': ')[2]}**\n")
            parts.append(_pivot([c for c in found[name] if c.table == table]))
    parts.append(f"Simulated on {machine()}.\n")
    TABLES.write_text("\n".join(parts))
    plots.frontier(points(found), DOCS / "assurance-frontier.svg")
    plots.delays({**_by_row(found["delays"]), **_by_row(found["frontier"])}, DOCS / "assurance-delays.svg")


def _summary(found: Mapping[str, Sequence[Check]]) -> str:
    compared = [c for checks in found.values() for c in checks if c.expected is not None or c.most is not None]
    outside = [c for c in compared if not c.ok]
    lines = [f"{len(compared)} figures compared, {len(outside)} outside their tolerance."]
    lines += [f"- {c.table}, {c.row}, {c.column}: {_number(c.value)}, specified {_number(c.expected)}" for c in outside]
    return "\n".join(lines) + "\n"


def _false_alarms(checks: Sequence[Check]) -> str:
    text = "## False alarms\n\nShare of streams with an alarm by the unit named, at a risk of exactly alpha, and of .9 alpha; delta .05.\n"
    for alpha in ALPHAS:
        text += f"\n**alpha {alpha:g}**\n\n" + _pivot(
            [c for c in checks if c.column.startswith(f"alpha {alpha:g},")], cut=f"alpha {alpha:g}, "
        )
    return text


def _delays(checks: Sequence[Check]) -> str:
    text = (
        "## Mean delay after the change\n\nBinary losses, healthy at half the budget. Last: ln(1/delta)/KL, the least mean delay from the "
        "first unit of any method with these false alarms that always finds the change.\n"
    )
    for alpha in ALPHAS:
        head = [f"nu {nu:,}, {f:g}x" for nu in NUS for f in FACTORS]
        least = "| ln(1/delta)/KL | " + " | ".join(_number(bound(alpha, f)) for _ in NUS for f in FACTORS) + " | |\n"
        chosen = [c for c in checks if c.column.startswith(f"alpha {alpha:g},")]
        text += f"\n**alpha {alpha:g}**\n\n" + _pivot(chosen, cut=f"alpha {alpha:g}, ", columns=head).rstrip("\n") + "\n" + least
    return text + "\n![Mean delay by nu](assurance-delays.svg)\n"


def _frontier(found: Mapping[str, Sequence[Check]]) -> str:
    text = (
        "## The frontier between early and late\n\nWorst ratio of the mean delay to that of the quickest method before (all rows above but "
        "`patient`, and `arl`, whose promise is weaker), over 1.5x, 2x, 3x and alpha .05, .10, .15, by nu; and worst and mean ratio "
        "to `spending` where nu >= 500. `opening` is the share of the capital that is staked on the first unit.\n\n"
        "| design | nu 0 | 500 | 5,000 | 50,000 | worst of all | late: worst to `spending` | late: mean | runs (nu 50,000) |\n"
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|\n"
    )
    for p in points(found):
        name = f"**{p.name}**, ships" if p.name == "patient" else p.name
        cells = [f"{v:.2f}" for v in (*p.by_nu, max(p.by_nu), p.late_worst, p.late_mean)]
        text += f"| {name} | " + " | ".join(cells) + f" | {p.runs[0]:,} ({p.runs[1]:,}) |\n"
    return text + "\n![The frontier](assurance-frontier.svg)\n"


def _pivot(checks: Sequence[Check], cut: str = "", columns: Sequence[str] | None = None) -> str:
    """A table of rows by columns, the number of runs in the last one."""
    columns = columns or list(dict.fromkeys(c.column.removeprefix(cut) for c in checks))
    cells = {(c.row, c.column.removeprefix(cut)): c for c in checks}
    lines = ["| | " + " | ".join(columns) + " | runs |", "|---|" + "--:|" * (len(columns) + 1)]
    for row in dict.fromkeys(c.row for c in checks):
        shown = [_cell(cells.get((row, column))) for column in columns]
        runs = max(c.runs for c in checks if c.row == row)
        lines.append(f"| {row} | " + " | ".join(shown) + f" | {runs:,} |")
    return "\n".join(lines) + "\n"


def _cell(check: Check | None) -> str:
    if check is None:
        return ""
    expected = "" if check.expected is None else f" ({_number(check.expected)})"
    return f"{_number(check.value)}{expected}{'' if check.ok else ' **!**'}"


def _number(value: float | None) -> str:
    """Whole units from ten on, three digits behind the point below one."""
    if value is None:
        return ""
    return f"{value:,.0f}" if value >= 10 else f"{value:.3f}"


def _by_row(checks: Iterable[Check]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for check in checks:
        found.setdefault(check.row, {})[check.column] = check.value
    return found
