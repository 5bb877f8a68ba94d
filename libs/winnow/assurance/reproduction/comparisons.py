"""Claims about paired comparisons, as several experiments make them."""

from typing import Any, Final

from winnow.assurance import bounds, paired
from winnow.assurance.paired import Pairs
from winnow.assurance.reproduction.figures import figure, wording
from winnow.contracts.evaluation import Claim

#: Error budget of all published bounds.
DELTA: Final = 0.05
#: Half of the last printed digit: of a rate in per cent with one decimal, and of an interval in percentage points with two.
TENTH, HUNDREDTH = 0.05, 0.005


def pairs_of(counts: dict[str, Any], n: int) -> Pairs:
    """The published counts of one comparison."""
    return Pairs(lost=counts["b"], gained=counts["c"], n=n)


def wald_ends(name: str, pairs: Pairs, printed: tuple[float, float], where: str, tolerance: float = HUNDREDTH) -> list[Claim]:
    """Both ends of a published Wald interval, in percentage points."""
    return [
        figure(
            f"{name}.{end}",
            f"Change in the share solved, {end} end of the 95 % interval, in pp.",
            was,
            100 * value,
            tolerance=tolerance,
            definition=f"Wald ({pairs.lost}, {pairs.gained}, {pairs.n}), as published; never used for non-inferiority here",
            source=where,
        )
        for end, was, value in zip(("low", "high"), printed, paired.wald(pairs), strict=True)
    ]


def non_inferior(name: str, statement: str, pairs: Pairs, where: str, margin: float = 0.05) -> Claim:
    """A published claim of non-inferiority, at 5 pp by the score test."""
    test = paired.compare(pairs, margin=margin)
    return wording(
        name,
        statement,
        "non-inferior",
        f"change in [{100 * test.interval[0]:.2f}, {100 * test.interval[1]:+.2f}] pp",
        holds=test.non_inferior,
        definition=f"{test.method} ({pairs.lost}, {pairs.gained}, {pairs.n}), margin {100 * margin:.0f} pp, one-sided {test.delta}",
        source=where,
    )


def of_solved(name: str, statement: str, harmed: int, solved: int, where: str) -> Claim:
    """A marginal bound that is worded as a conditional one."""
    return wording(
        name,
        statement,
        f"{100 * bounds.seed(harmed, 500, DELTA):.1f} %",
        f"{100 * harmed / solved:.1f} %, at most {100 * bounds.exact(harmed, solved, DELTA):.1f} %",
        holds=False,
        definition=(
            f"{harmed} of the {solved} tasks that the full context solves (seed bound {100 * bounds.seed(harmed, solved, DELTA):.1f} %); "
            "the published bound is over all 500 tasks, and without a second full run it contains re-run noise"
        ),
        source=where,
    )
