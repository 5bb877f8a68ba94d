"""Conditions restated otherwise, and deliverables that nobody asked for."""

import pytest

from tests.unit.compaction.analysis.boundaries import look, output, summary, user
from winnow.contracts.vocabulary import FindingKind, ProvenanceClass

TASK = """You are an airline agent.
- Flights can be cancelled within 24 hours of booking.
- You must obtain explicit user confirmation before any booking change.
- Basic economy flights cannot be modified.
- Send the final invoice to billing@acme.example only after payment was confirmed.
- The user may add bags but not remove them.
"""


def flags(entry, *messages, task=TASK, section="Constraints/Rules"):
    (one,) = look(summary(entry, section=section), *messages, task=task).entries
    return [finding for finding in one.findings if finding.kind in {FindingKind.REWRITTEN_CONSTRAINT, FindingKind.INVENTED_DELIVERABLE}]


@pytest.mark.parametrize(
    ("entry", "change"),
    [
        ("Flights can be cancelled within 48 hours of booking", "amount"),
        ("Obtain explicit user confirmation before any booking change; may be skipped", None),
        ("You may obtain explicit user confirmation before any booking change", "obligation"),
        ("Basic economy flights can be modified", "negation"),
        ("Send the final invoice to finance@acme.example only after payment was confirmed", "recipient"),
    ],
)
def test_a_condition_with_one_thing_changed_is_flagged(entry, change):
    """Another amount, obligation, negation or recipient in a condition of the task is flagged, with the task's own words."""
    found = flags(entry)
    if change is None:
        assert found == []
        return
    (finding,) = found
    assert finding.claim.startswith(f"{change}: ")
    assert finding.by is ProvenanceClass.TASK
    assert finding.said


@pytest.mark.parametrize(
    "entry",
    [
        "Flights can be cancelled within 24 hours of booking",
        "Cancellation only within 24 h",
        "Basic economy flights cannot be modified.",
        "Basic economy cannot be modified, so a new booking is needed for the 2 passengers",
        "The user may add bags but not remove them",
        "Explicit user confirmation before any booking change",
    ],
)
def test_a_condition_restated_is_not_flagged(entry):
    """Word for word, shortened or applied, a condition is left alone."""
    assert flags(entry) == []


def test_a_users_condition_is_named_by_its_turn():
    """What a user said in the span is a condition too; the turn is named."""
    (finding,) = flags(
        "User must not spend more than 900 dollars for the whole trip",
        user(7, "I must not spend more than 500 dollars for the whole trip."),
    )
    assert (finding.by, finding.message) == (ProvenanceClass.USER, 7)
    assert finding.claim.startswith("amount: ")


def test_an_unchanged_condition_elsewhere_settles_it():
    """Where another sentence says it as the entry does, nothing was rewritten."""
    assert (
        flags(
            "Flights can be cancelled within 48 hours of booking", user(3, "Flights can be cancelled within 48 hours of booking, you said.")
        )
        == []
    )


@pytest.mark.parametrize(
    "entry", ["[ ] Write a detailed report for the user", "[ ] Prepare slides for the team", "[ ] Draft an email to the customer"]
)
def test_a_deliverable_that_nobody_asked_for_is_flagged(entry):
    """An artefact that neither task nor user, M or output names is flagged."""
    (finding,) = flags(entry, output(1, "tests pass"), section="Open TODOs", task="Fix the failing test")
    assert finding.kind is FindingKind.INVENTED_DELIVERABLE


@pytest.mark.parametrize(
    ("entry", "task", "said"),
    [
        ("[ ] Write a detailed report for the user", "Fix it and give me a report", ""),
        ("[ ] Prepare slides for the team", "Fix it", "a deck of slides would be nice"),
        ("[ ] Write a script that reproduces the bug", "Fix it", ""),
        ("Wrote a report for the user", "Fix it", ""),
    ],
)
def test_a_deliverable_that_was_asked_for_is_not_flagged(entry, task, said):
    """What task or user name, working files, and reports of what was done are left alone."""
    section = "Open TODOs" if entry.startswith("[") else "Decisions"
    assert flags(entry, user(1, said), section=section, task=task) == []


def test_flags_change_no_score():
    """A flag is told and caps nothing."""
    from tests.unit.judging.evidence import of
    from winnow.judging.local import score

    found = look(summary("Basic economy flights can be modified", section="Constraints/Rules"), task=TASK)
    (one,) = score(of(found))
    assert one.flags == (FindingKind.REWRITTEN_CONSTRAINT,)
    assert one.score == one.p
