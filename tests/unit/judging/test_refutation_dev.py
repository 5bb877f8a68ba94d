"""How well wrong values are found on the development set. `pytest -s` prints the figures."""

import json
from random import Random

import pytest

from tests.harness.data import shared_data
from tests.unit.judging.cases import dev_cases
from winnow.compaction.boundary import examine
from winnow.contracts.vocabulary import FindingKind
from winnow.judging.stress import Case, Stress, stressed
from winnow.judging.verdict import CAPPING

#: Seed of the changes; another one moves the shares by two points.
SEED = 12


def findings(case: Case) -> dict[int, set[FindingKind]]:
    """Kinds of what speaks against each entry."""
    found = examine(
        case.candidate, task=case.task, previous=case.previous, history=case.history, retained=case.retained, profile="openclaw"
    )
    return {entry.n: {finding.kind for finding in entry.findings} for entry in found.analysis.entries}


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return dev_cases()


@pytest.fixture(scope="module")
def natural(cases):
    """Of every entry of the set as it is: kinds, and whether it has a source."""
    lines = [json.loads(raw) for raw in shared_data("sourcebench", "dev.jsonl").read_text("utf-8").splitlines()]
    return [
        (kinds[label["n"]], bool(label["source"]))
        for case, line in zip(cases, lines, strict=True)
        if (kinds := findings(case)) is not None
        for label in line["entries"]
    ]


def test_natural_entries_are_hardly_ever_capped(natural):
    """Fewer than one of a hundred entries with a source is capped, and nothing without one."""
    sourced = [bool(kinds & CAPPING) for kinds, source in natural if source]
    print(f"\ncapped: {sum(sourced)} of {len(sourced)} with a source")  # noqa: T201  shown by pytest -s
    assert sum(sourced) <= 0.01 * len(sourced)


def test_flags_are_rare_on_natural_entries(natural):
    """Stale, rewritten and invented entries are rare: at most one of two hundred is told so."""
    others = sum(bool(kinds - CAPPING) for kinds, _ in natural)
    print(f"\nflagged: {others} of {len(natural)}")  # noqa: T201  shown by pytest -s
    assert others <= 0.005 * len(natural)


@pytest.mark.parametrize(("kind", "at_most"), [(Stress.DIGIT_CHANGED, 0.07), (Stress.NUMBER_SWAPPED, 0.18)])
def test_changed_values_are_found(cases, kind, at_most):
    """Where one digit, or one number, of a supported entry is changed, few entries stay uncapped, whatever their p."""
    left = total = 0
    for changed in stressed(kind, cases, Random(SEED)):
        kinds = findings(changed.case)
        total += len(changed.entries)
        left += sum(not kinds[n] & CAPPING for n in changed.entries)
    print(f"\n{kind.value}: {left / total:.3f} of {total} uncapped")  # noqa: T201  shown by pytest -s
    assert left / total <= at_most
