"""From a study of a judge to its evaluation record: figures, gates, tables, and what must be said beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

import numpy as np

from winnow.contracts.evaluation import (
    Cell,
    Compressor,
    DataFingerprint,
    EvaluationKind,
    EvaluationRecord,
    Exposure,
    Grader,
    GraderKind,
    Metric,
    Subject,
    Table,
)
from winnow.judging.evaluation import tables
from winnow.judging.evaluation.gates import Condition
from winnow.judging.evaluation.study import Study, measured

#: Below it percentile intervals by group are known to cover too rarely.
_FEW_GROUPS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """What the record says besides the figures; all of it comes from the caller."""

    id: UUID
    created_at: datetime
    command: str
    software: Mapping[str, str]
    data: DataFingerprint
    grader: Grader
    compressor: Compressor | None
    exposure: Exposure


def record_of(study: Study, header: Header, conditions: Sequence[Condition] = ()) -> EvaluationRecord:
    """Compute all figures and tables. Raise `BadGate` for a gate on a figure that does not exist."""
    found = measured(study)
    parameters: dict[str, Cell] = {"tau": study.tau, "folds": study.folds, **study.parameters}
    return EvaluationRecord(
        id=header.id,
        kind=EvaluationKind.JUDGE,
        created_at=header.created_at,
        title=f"Judge {study.judge.name} ({study.judge.version}) on {header.data.source}",
        command=header.command,
        software=dict(header.software),
        data=(header.data,),
        subject=Subject(kind="judge", name=study.judge.name, version=study.judge.version, parameters=parameters),
        compressor=header.compressor,
        grader=header.grader,
        exposure=header.exposure,
        seed=study.seed,
        metrics=tuple(found),
        gates=tuple(condition.on(found) for condition in conditions),
        tables=tuple(_tables(study, found)),
        warnings=tuple(_warnings(study, header)),
        notes=tuple(_notes(study)),
    )


def _tables(study: Study, found: Sequence[Metric]) -> list[Table]:
    """All tables of a study."""
    samples, tau = study.samples, study.tau
    made = [
        tables.of_slices(found),
        tables.of_sections(samples, tau),
        tables.of_verdicts(samples, tau),
        tables.of_findings(samples),
        tables.of_calibration(samples),
        tables.of_histogram(samples),
        tables.of_sweep(samples),
    ]
    if study.stress is not None:
        made.append(tables.of_stress(study.stress, tau))
    if study.repetition is not None:
        made.append(tables.of_repetition(study.repetition, tau))
    if study.other is not None:
        made += tables.of_disagreement(samples, study.other.samples, tau, study.other.tau)
    return [*made, tables.of_errors(samples, tau), tables.of_curves(samples)]


def _warnings(study: Study, header: Header) -> list[str]:
    """What makes the figures say less than they seem to."""
    found = []
    if header.exposure is Exposure.TRAINED_ON:
        found.append(
            "The judge was fitted on this very data: its figures flatter. Give --folds run or --folds domain to fit it again without "
            "each fold, or evaluate on data that it has not seen."
        )
    if header.exposure is Exposure.UNKNOWN:
        found.append("Whether the judge had seen this data is not known.")
    if header.grader.kind is GraderKind.SYNTHETIC:
        found.append("The labels are true by construction, and of constructed cases only: they say nothing of natural errors.")
    if header.grader.kind is GraderKind.UNSTATED:
        found.append("Who labelled the data is not stated.")
    if study.unjudged:
        found.append(f"{study.unjudged} boundaries had no answer at all; their entries count as unscored and are kept.")
    if study.unshuffled:
        found.append(f"{study.unshuffled} boundaries could not be reordered and are not in the order figures.")
    if not np.isfinite(study.samples.correct).any():
        found.append("The data has no label `correct`: nothing here says whether what a source says is true.")
    groups = len(set((study.samples.scenario if study.by_scenario else study.samples.run).tolist()))
    if groups < _FEW_GROUPS:
        found.append(f"Only {groups} {'scenarios' if study.by_scenario else 'runs'}: bootstrap intervals of so few groups are too narrow.")
    return found


def _notes(study: Study) -> list[str]:
    """Definitions that a reader needs."""
    found = [
        "A source is not the truth: an entry is sourced where an environment output or the previous summary says it.",
        "score is p after caps; keep means score >= tau, and an entry without an answer is kept.",
        "reasoning: sections of decisions and open work, without the user's own asks; forward: sections of plans and asks.",
        "Precision and average precision depend on the share of sourced entries: compare them on the same data only.",
    ]
    if study.folds is not None:
        found.append(f"Leave-one-{study.folds}-out: each {study.folds} was scored by a judge fitted on the others.")
    return found
