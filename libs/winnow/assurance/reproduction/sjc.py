"""What follows from the counts that the paper on Source-Judged Compaction prints: intervals and tests, no runs of our own."""

from typing import Final

import numpy as np

from winnow.assurance import bounds, paired
from winnow.assurance.paired import Pairs
from winnow.assurance.reproduction.figures import Publication, figure, wording
from winnow.contracts.evaluation import Claim, Interval

_SOURCE: Final = "Source-Judged Compaction"
#: Failed runs that the paper's failure analysis counts, failed runs analysed, and failed runs before exclusions.
_TRACED, _ANALYSED, _FAILED = 29, 35, 44
#: Tasks gained under Pass^3 by benchmark: (tasks, gains of the two settings, exact two-sided p in the best case).
_GAINS: Final = ((168, (15, 12)), (95, (5, 2)))
#: At threshold .5, "supported" as the judge says it.
_PRECISION, _RECALL = 0.969, 0.642


def failures(_: np.random.Generator) -> list[Claim]:
    """The share that the failure analysis prints, with an interval, and with the exclusions put back."""
    analysed = Interval(
        lo=bounds.exact_lower(_TRACED, _ANALYSED, 0.025), hi=bounds.exact(_TRACED, _ANALYSED, 0.025), level=0.95, method="Clopper–Pearson"
    )
    all_failed = Interval(
        lo=bounds.exact_lower(_TRACED, _FAILED, 0.025), hi=bounds.exact(_TRACED, _FAILED, 0.025), level=0.95, method="Clopper–Pearson"
    )
    return [
        wording(
            "failures.analysed",
            "The failure analysis counts 29 of 35 failed runs, 83 %.",
            0.83,
            _TRACED / _ANALYSED,
            holds=round(_TRACED / _ANALYSED, 2) == 0.83,  # noqa: PLR2004  as printed
            interval=analysed,
            definition="29 of 35 failed runs; nine were excluded before; printed without an interval",
            source=_SOURCE,
        ),
        wording(
            "failures.all",
            "The 83 % are a share of all failed runs.",
            0.83,
            _TRACED / _FAILED,
            holds=False,
            interval=all_failed,
            definition="29 of the 44 failed runs before nine exclusions, if none of the nine does: the other end of what the counts allow",
            source=_SOURCE,
        ),
    ]


def gains(_: np.random.Generator) -> list[Claim]:
    """The gains under Pass^3 in the best case for them: no task was lost, so every discordant pair is a gain."""
    claims = []
    for tasks, gained in _GAINS:
        for count in gained:
            best = Pairs(lost=0, gained=count, n=tasks)
            p = paired.mcnemar(best)
            low, high = paired.tango(best)
            claims.append(
                wording(
                    f"pass3.{count}_of_{tasks}",
                    f"Pruning gains {count} of {tasks} tasks under Pass^3.",
                    f"+{count} of {tasks}",
                    p,
                    holds=p <= 0.05,  # noqa: PLR2004  the usual level
                    definition=(
                        f"exact two-sided McNemar p in the best case, no task lost; the losses are not printed. {count} gains and b losses "
                        f"give a larger p for every b > 0. Change by Tango, 95 %: [{100 * low:+.1f}, {100 * high:+.1f}] pp"
                    ),
                    source=_SOURCE,
                )
            )
    return claims


def supported(_: np.random.Generator) -> list[Claim]:
    """How many entries are supported for each one that the judge scores so."""
    return [
        figure(
            "supported.ratio",
            "At .5 the judge's `supported` has precision 96.9 % and recall 64.2 %.",
            1.51,
            _PRECISION / _RECALL,
            tolerance=0.005,
            definition=(
                "truly supported over scored supported = precision/recall: 1.51 times as many entries are supported as are scored so, "
                "and pruning at .5 removes a third of the supported ones"
            ),
            source=_SOURCE,
        )
    ]


def publication() -> Publication:
    """What is computed from the printed counts."""
    return Publication(
        name="sjc",
        title="Source-Judged Compaction: what follows from the printed counts",
        experiments={"failures": failures, "gains": gains, "supported": supported},
        data=(),
        notes=(
            "Counts are those that the paper prints; nothing was run again.",
            "A McNemar p above .05 in the best case: the printed gain alone shows no effect; it does not show that there is none.",
        ),
    )
