"""Counts of the composition analysis, by hand; in SQL they are compared with the views."""

import pytest

from winnow.contracts.vocabulary import RootSource, SectionClass
from winnow.judging.evaluation import composed
from winnow.judging.evaluation.composition import EntryRow, compose

CLASSES = {"Decisions": SectionClass.MIXED, "Open TODOs": SectionClass.FORWARD, "Pending user asks": SectionClass.FORWARD}


def row(summary, n, section, text, score, *, root=RootSource.ENVIRONMENT, run="r", enforced=False, decision="kept", **more):
    return EntryRow(
        fleet="f", run=run, summary=summary, boundary_index=more.get("index", summary), enforced=enforced, n=n, section=section,
        section_class=CLASSES[section], text=text, score=score, root=root, decision=decision,
    )  # fmt: skip


ROWS = [
    row(1, 1, "Decisions", "- take the cheapest", 0.9),
    row(1, 2, "Open TODOs", "- call the airline", 0.1, root=RootSource.NONE, decision="pruned"),
    row(1, 3, "Pending user asks", "- a refund", 0.2, root=RootSource.NONE, decision="pruned"),
    row(2, 1, "Decisions", "- take the cheapest!", 0.8),
    row(2, 2, "Open TODOs", "- call the airline", 0.9, root=RootSource.NONE, decision="kept"),
    row(2, 3, "Open TODOs", "- pack the bags", 0.3, root=RootSource.NONE, decision="pruned"),
    row(3, 1, "Decisions", "- take the cheapest!", None, root=RootSource.PREVIOUS_UNKNOWN),
    row(1, 1, "Open TODOs", "- wait", 0.1, run="s", enforced=True, root=None, decision=None),
]


@pytest.fixture
def found():
    return compose(ROWS, len)


def test_shares_by_score_and_by_root(found):
    """Unsupported is a score below 0.5; by root the carried plan stays unsupported; unknown roots and missing scores are not counted."""
    watched = found[False]
    todos = watched.sections["section=Open TODOs"]
    assert (todos.score.n, todos.score.of, todos.root.n, todos.root.of) == (3, 2, 3, 3)
    assert (watched.sections["all"].score.n, watched.sections["all"].score.of, watched.unscored) == (6, 3, 1)
    assert watched.sections["all"].root.n == 6
    assert (watched.sections["reasoning"].score.n, watched.sections["forward"].score.n) == (5, 4)
    assert found[True].sections["all"].score.n == 1
    number, everything, reasoning = watched.stages["1"]
    assert (number.n, everything.score.of, reasoning.score.of) == (1, 2, 1)
    assert watched.stages["later"][1].score.n == 0


def test_persistence(found):
    """The reworded decision stays for two summaries, the plan for one, the ask for none."""
    shares = {key: (share.n, share.of) for key, share in found[False].persistence.items()}
    assert shares["all", "score", False, 1] == (1, 1)
    assert shares["all", "score", False, 2] == (1, 1)
    assert shares["all", "score", True, 1] == (3, 1)
    assert shares["reasoning", "score", True, 1] == (2, 1)
    assert shares["all", "root", True, 2] == (2, 0)
    assert ("all", "score", True, 3) not in shares


def test_carried_and_regenerated(found):
    """Of three carried entries two match exactly; the new unsupported plan was written anew."""
    assert (found[False].exact["all"].n, found[False].exact["all"].of) == (3, 2)
    assert (found[False].regenerated["all"].n, found[False].regenerated["all"].of) == (1, 1)


def test_decisions_and_tokens(found):
    """Pruned entries, their tokens and the forward share of them; where nothing was decided nothing is counted."""
    watched = found[False]
    assert (watched.pruned.n, watched.pruned.of) == (7, 3)
    assert watched.tokens_cut == len("- call the airline") + len("- a refund") + len("- pack the bags")
    assert watched.forward_pruned.value == 1.0
    assert found[True].pruned.n == 0
    assert watched.kept["section=Open TODOs", True].value == 0.5


def test_runs_can_come_in_blocks(found):
    """Whole runs counted one after another give the same."""
    onto = compose(ROWS[:7], len)
    assert compose(ROWS[7:], len, onto) == found


def test_tables_and_figures(found):
    """Every table is rectangular and names its regime; the published figures stand beside ours."""
    made = {table.name: table for table in composed.tables_of(found)}
    assert {row[0] for row in made["composition_sections"].rows} == {"watched", "enforced"}
    beside = {row[0]: row[1:] for row in made["composition_published"].rows}
    assert beside["entries"] == (26_881, 7)
    assert beside["open TODOs unsupported"] == (0.677, pytest.approx(2 / 3))
    assert beside["pending user asks unsupported"] == (0.861, 1.0)
    assert beside["carried entries that match exactly"] == (0.9, pytest.approx(2 / 3))
    figures = {metric.label: metric.value for metric in composed.figures_of(found)}
    assert figures["unsupported.reasoning"] == pytest.approx(2 / 5)
    assert figures["unsupported.enforced all"] == 1.0
    assert composed.tables_of({}) == []
