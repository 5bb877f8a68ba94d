"""Distil (dshakes/distil): the experiments of its paper and of its repository whose counts are public."""

from typing import Final

from winnow.assurance.reproduction import distil_runs as runs
from winnow.assurance.reproduction import distil_served as served
from winnow.assurance.reproduction import distil_turns as turns
from winnow.assurance.reproduction.figures import Publication
from winnow.assurance.reproduction.sources import FILES, fingerprint


def publication() -> Publication:
    """The experiments, with the data that they are computed from."""
    return Publication(
        name="distil",
        title="Distil: published figures, computed again from published counts",
        experiments={
            "E2": turns.e2,
            "E3": runs.e3,
            "E5": turns.e5,
            "E7": runs.e7,
            "E8": runs.e8,
            "E9": turns.e9,
            "E10": runs.e10,
            "E11": runs.e11,
            "E13": turns.e13,
            "E14": runs.e14,
            "served": served.served,
            "provider": served.provider,
            "shadow": served.shadow,
            "retention": served.retention,
            "zero-loss": turns.zero_loss,
        },
        data=tuple(fingerprint(name) for name in FILES),
        notes=NOTES,
    )


NOTES: Final = (
    "No model was called: these are counts that were published, or that follow from published rates and intervals (seed_counts.json).",
    "`seed` names the published rules; the exact binomial bound stands beside them.",
    "LLMLingua-2's 2.4 % in E8 rests on 16 of 500 completed runs; gate@12 for Haiku in E11 is its gate@6 result of E8 and counts once.",
    "E1 and E4 are rates without their raw matrix: nothing can be computed from them.",
)
