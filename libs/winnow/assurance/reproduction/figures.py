"""How a published figure and the one found are put side by side."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import numpy as np

from winnow.contracts.errors import NotFound
from winnow.contracts.evaluation import (
    Cell,
    Claim,
    DataFingerprint,
    EvaluationKind,
    EvaluationRecord,
    Exposure,
    Grader,
    GraderKind,
    Interval,
    ReproductionVerdict,
    Subject,
    Table,
)

#: Makes the claims of one experiment; the generator is for what is drawn at random.
Experiment = Callable[[np.random.Generator], list[Claim]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """A publication whose figures are computed again."""

    name: str
    title: str
    #: Experiments by their published number.
    experiments: Mapping[str, Experiment]
    data: tuple[DataFingerprint, ...]
    notes: tuple[str, ...]

    def chosen(self, names: Sequence[str]) -> list[str]:
        """The experiments asked for, all where none is.

        Raises:
            NotFound: there is none of that name; the text lists them.
        """
        by_upper = {name.upper(): name for name in self.experiments}
        missing = [name for name in names if name.upper() not in by_upper]
        if missing:
            raise NotFound(f"{self.name} has no experiment {missing[0][:40]!r}; there are: {', '.join(self.experiments)}")
        return [by_upper[name.upper()] for name in names] or list(self.experiments)


def figure(
    name: str,
    statement: str,
    published: Cell,
    observed: Cell,
    *,
    definition: str,
    source: str,
    tolerance: float = 0.0,
    other: bool = False,
) -> Claim:
    """A figure: reproduced where found within `tolerance` of the published one, with another definition where `other` says so."""
    if isinstance(published, int | float) and isinstance(observed, int | float):
        near = abs(observed - published) <= tolerance + 1e-12
    else:
        near = observed == published
    verdict = ReproductionVerdict.OTHER_DEFINITION if other else ReproductionVerdict.REPRODUCED
    return Claim(
        name=name,
        statement=statement,
        source=source,
        published=published,
        observed=round(observed, 6) if isinstance(observed, float) else observed,
        verdict=verdict if near else ReproductionVerdict.DOES_NOT_HOLD,
        definition=definition,
    )


def wording(
    name: str,
    statement: str,
    published: Cell,
    observed: Cell,
    *,
    holds: bool,
    definition: str,
    source: str,
    interval: Interval | None = None,
) -> Claim:
    """A claim in words: `holds` is what the numbers say of it, and `definition` why."""
    return Claim(
        name=name,
        statement=statement,
        source=source,
        published=published,
        observed=round(observed, 6) if isinstance(observed, float) else observed,
        interval=interval,
        verdict=ReproductionVerdict.REPRODUCED if holds else ReproductionVerdict.DOES_NOT_HOLD,
        definition=definition,
    )


def record(
    publication: Publication,
    names: Sequence[str],
    *,
    id: UUID,  # noqa: A002  the record's field
    now: datetime,
    seed: int,
    command: str = "",
    software: Mapping[str, str] | None = None,
) -> EvaluationRecord:
    """Compute experiments again and put their claims into a record, with a table of verdicts. It has no gates: nothing was asked of them.

    Each experiment has a generator of its own, so one alone gives what it gives among all.

    Raises:
        NotFound: an experiment of that name is not there.
    """
    chosen = publication.chosen(names)
    places = {name: place for place, name in enumerate(publication.experiments)}
    claims = [
        claim
        for name in chosen
        for claim in publication.experiments[name](np.random.default_rng(np.random.SeedSequence([seed, places[name]])))
    ]
    counted = [(verdict.value, sum(claim.verdict is verdict for claim in claims)) for verdict in ReproductionVerdict]
    rows = [(claim.name, claim.published, claim.observed, claim.verdict.value, claim.definition) for claim in claims]
    return EvaluationRecord(
        id=id,
        kind=EvaluationKind.REPRODUCTION,
        created_at=now,
        title=publication.title,
        command=command,
        software=dict(software or {}),
        data=publication.data,
        subject=Subject(kind="publication", name=publication.name),
        grader=Grader(kind=GraderKind.RULE, name="as published"),
        exposure=Exposure.NOT_FITTED,
        seed=seed,
        tables=(
            Table(name="verdicts", title="How many claims, by verdict", columns=("verdict", "claims"), rows=tuple(counted)),
            Table(
                name="claims",
                title="Published figures and what computing them again gave",
                columns=("claim", "published", "found", "verdict", "definition"),
                rows=tuple(rows),
            ),
        ),
        claims=tuple(claims),
        notes=publication.notes,
    )
