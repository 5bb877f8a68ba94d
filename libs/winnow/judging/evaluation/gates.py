"""Gates as people write them: `auroc.reasoning>=0.9`, `stress_kept.digit_changed<=0.06`."""

import difflib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from winnow.contracts.errors import Permanent
from winnow.contracts.evaluation import Direction, Gate, Metric

#: A metric, perhaps a slice, a comparison and a number. The slice may hold anything but a comparison: `auroc.section=Open TODOs>=0.9`.
_GATE: Final = re.compile(r"\s*([a-z0-9_]{1,100})(?:\.([^<>]{1,200}?))?\s*(>=|<=)\s*([-+0-9.eE]{1,40})\s*")


class BadGate(Permanent):
    """A gate is METRIC[.SLICE]>=NUMBER or <=NUMBER, for example auroc.reasoning>=0.9."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A gate before anything was measured."""

    metric: str
    slice: str
    direction: Direction
    threshold: float

    @classmethod
    def parse(cls, text: str) -> "Condition":
        """Read a gate. Raise `BadGate`."""
        found = _GATE.fullmatch(text[:400])
        try:
            threshold = float(found[4]) if found else math.nan
        except ValueError:
            threshold = math.nan
        if found is None or not math.isfinite(threshold):
            msg = f"gate {text[:100]!r}: write METRIC[.SLICE]>=NUMBER or <=NUMBER, for example auroc.reasoning>=0.9"
            raise BadGate(msg)
        direction = Direction.AT_LEAST if found[3] == ">=" else Direction.AT_MOST
        return cls(metric=found[1], slice=found[2] or "all", direction=direction, threshold=threshold)

    def on(self, metrics: Sequence[Metric]) -> Gate:
        """Judge the gate. Raise `BadGate` where no such figure exists: a misspelt gate must not fail, still less pass, unnoticed."""
        found = next((m for m in metrics if (m.name, m.slice) == (self.metric, self.slice)), None)
        if found is None:
            near = difflib.get_close_matches(f"{self.metric}.{self.slice}", [f"{m.name}.{m.slice}" for m in metrics], n=3, cutoff=0.3)
            msg = f"gate on {self.metric}.{self.slice}: there is no such figure; near are {', '.join(near) or 'none'}"
            raise BadGate(msg)
        return Gate.judge(metric=self.metric, slice=self.slice, direction=self.direction, threshold=self.threshold, observed=found.value)
