"""The choice of an operating point by what pruning does to outcomes: a bound on harm, and optionally non-inferiority, level by level."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from winnow.assurance import pvalues, selection
from winnow.assurance.paired import Comparison, Pairs, compare
from winnow.assurance.samples import probability


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A level of pruning, measured on paired tasks."""

    name: str
    pairs: Pairs
    #: Share of tokens or cost saved; NaN where it was not measured.
    savings: float = math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """The tests of one candidate."""

    candidate: Candidate
    #: Exact p-value of H0: harm over all tasks >= alpha.
    p_harm: float
    #: The non-inferiority test; None where no margin was asked for.
    comparison: Comparison | None
    certified: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The outcome, with every test. margin, interval and the number of candidates are part of what a record has to state."""

    alpha: float
    delta: float
    margin: float | None
    delta_margin: float
    tested: tuple[Tested, ...]
    #: Place of the operating point; None: keep the full context.
    chosen: int | None

    @property
    def candidate(self) -> Candidate | None:
        """The operating point; None: keep the full context."""
        return None if self.chosen is None else self.tested[self.chosen].candidate


def choose(
    candidates: Sequence[Candidate], *, alpha: float, delta: float = 0.05, margin: float | None = None, delta_margin: float = 0.025
) -> Choice:
    """Walk from the mildest candidate; go on while harm is shown to be at most alpha and, where asked, the change to be above -margin.

    The first failure stops. Both tests of a level must pass, so none needs a correction. The operating point is the certified candidate
    with the highest savings. Starting at the aggressive end instead, and taking the first pass, chooses an infeasible level several times
    as often as the test's error says (`published.aggressive_first`).
    """
    alpha, delta = probability("alpha", alpha), probability("delta", delta)
    comparisons = [None if margin is None else compare(c.pairs, margin=margin, delta=delta_margin) for c in candidates]
    p_values = [pvalues.exact(c.pairs.lost, c.pairs.n, alpha) for c in candidates]
    passes = [p <= delta and (test is None or test.non_inferior) for p, test in zip(p_values, comparisons, strict=True)]
    # A failed level has the p-value 1: the fixed sequence then stops where either test does.
    certified = selection.fixed_sequence([0.0 if passed else 1.0 for passed in passes], delta)
    tested = tuple(
        Tested(candidate=c, p_harm=p, comparison=test, certified=passed)
        for c, p, test, passed in zip(candidates, p_values, comparisons, certified, strict=True)
    )
    chosen = selection.most_saving([c.savings for c in candidates], certified)
    return Choice(alpha=alpha, delta=delta, margin=margin, delta_margin=delta_margin, tested=tested, chosen=chosen)
