"""How often the verdicts that are only told are right, on cases as agents write them. `pytest -s` prints the misses."""

import pytest

from tests.unit.compaction.analysis.boundaries import action, look, output, summary, user
from tests.unit.judging.told_cases import CASES, INVENTED, REWRITTEN, STALE, Told

TOLD = (STALE, REWRITTEN, INVENTED)


def flags(case: Told) -> set:
    """What is told of a case's entry."""
    messages = [user(at, text) for at, text in enumerate(case.users)]
    for tool, arguments, result in case.acts:
        at = len(messages)
        messages += [action(at, f"[tool call] {tool}: {arguments}"), output(at + 1, result, tool=tool)]
    (one,) = look(summary(case.entry, section=case.section), *messages, task=case.task).entries
    return {finding.kind for finding in one.findings if finding.kind in TOLD}


@pytest.fixture(scope="module")
def told():
    """Each case with what is told of it."""
    return [(case, flags(case)) for case in CASES]


@pytest.mark.parametrize(("kind", "floor"), [(STALE, 0.9), (REWRITTEN, 0.8), (INVENTED, 0.9)])
def test_what_is_so_is_told(told, kind, floor):
    """Most entries that are stale, rewritten or invented are told so."""
    of_kind = [(case, found) for case, found in told if case.right is kind]
    missed = [case.entry for case, found in of_kind if kind not in found]
    print(f"\n{kind}: {len(of_kind) - len(missed)} of {len(of_kind)} found; missed {missed}")  # noqa: T201  shown by pytest -s
    assert len(missed) <= (1.0 - floor) * len(of_kind)


def test_nothing_else_is_told(told):
    """No entry is told what it is not."""
    wrong = [(case.entry, found) for case, found in told if found - {case.right}]
    print(f"\nwrongly told: {wrong}")  # noqa: T201  shown by pytest -s
    assert wrong == []
