"""How much early quickness costs later: each design's worst ratio to the quickest method."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.benchmarks.assure.checks import Check
from tests.benchmarks.assure.sections import ALPHAS, FACTORS, NUS

LATEST = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A design on the frontier."""

    name: str
    #: Worst ratio to the quickest method at each nu: 0, 500, 5,000, 50,000.
    by_nu: tuple[float, ...]
    #: Worst and mean ratio to `spending` where nu >= 500.
    late_worst: float
    late_mean: float
    #: Runs a figure; and at nu = 50,000.
    runs: tuple[int, int]


def points(found: Mapping[str, Sequence[Check]]) -> list[Point]:
    """Compare the designs of the section `frontier` with the methods of `delays` of the same guarantee, and with `spending`."""
    own: dict[str, dict[str, Check]] = {}
    for check in found["frontier"]:
        own.setdefault(check.row, {})[check.column] = check
    # The shipped design is no yardstick for itself: the ratio is to the best of what there was before.
    others = [c for c in found["delays"] if not c.row.startswith(("arl", "patient"))]
    best: dict[str, float] = {column: check.value for column, check in own["spending"].items()}
    for check in others:
        best[check.column] = min(best[check.column], check.value)
    made = []
    for name, checks in own.items():
        ratios = {nu: [checks[c].value / best[c] for c in _columns(nu)] for nu in (*NUS, LATEST)}
        late = [checks[c].value / own["spending"][c].value for nu in (*NUS[1:], LATEST) for c in _columns(nu)]
        made.append(
            Point(
                name=name,
                by_nu=tuple(max(r) for r in ratios.values()),
                late_worst=max(late),
                late_mean=sum(late) / len(late),
                runs=(checks[_columns(0)[0]].runs, max(checks[c].runs for c in _columns(LATEST))),
            )
        )
    return made


def _columns(nu: int) -> list[str]:
    return [f"alpha {alpha:g}, nu {nu:,}, {factor:g}x" for alpha in ALPHAS for factor in FACTORS]
