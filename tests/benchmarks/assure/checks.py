"""A simulated figure beside what was specified."""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One cell of a table. `expected` None: nothing was specified, the figure is shown for the record."""

    table: str
    row: str
    column: str
    value: float
    expected: float | None = None
    #: Largest admissible distance from `expected`.
    tolerance: float | None = None
    #: Largest admissible value, whatever was expected: a guarantee.
    most: float | None = None
    runs: int

    @property
    def ok(self) -> bool:
        """Whether the figure is within its tolerance and its guarantee."""
        within = self.expected is None or self.tolerance is None or abs(self.value - self.expected) <= self.tolerance
        return within and (self.most is None or self.value <= self.most)


def false_alarms(table: str, row: str, column: str, *, alarms: int, runs: int, delta: float | None, expected: float | None) -> Check:
    """A rate of false alarms: within .004 or three standard errors of what was specified, and of delta, where that is promised."""
    value = alarms / runs
    tolerance = None
    if expected is not None:
        tolerance = max(0.004, 3 * math.sqrt(max(expected, 1 / runs) * (1 - expected) / runs))
    most = None if delta is None else delta + 3 * math.sqrt(delta * (1 - delta) / runs)
    return Check(table=table, row=row, column=column, value=value, expected=expected, tolerance=tolerance, most=most, runs=runs)


def delay(
    table: str, row: str, column: str, *, value: float, runs: int, expected: float | None, share: float = 0.08, error: float = 0.0
) -> Check:
    """A delay: within a share of what was specified, or three standard errors where so few runs cannot do better."""
    tolerance = None if expected is None else max(share * expected, 3 * error, 1.0)
    return Check(table=table, row=row, column=column, value=value, expected=expected, tolerance=tolerance, runs=runs)
