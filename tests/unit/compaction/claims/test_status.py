"""Claimed outcomes against what the last run said."""

import pytest

from tests.unit.compaction.analysis.boundaries import look, output, summary
from winnow.contracts.vocabulary import FindingKind

FAILED = "tests/test_a.py F\n==== 3 failed, 37 passed in 1.2s ===="
PASSED = "==== 40 passed in 1.1s ===="


def false(entry, *said):
    (one,) = look(summary(entry), *(output(at, text, tool="shell") for at, text in enumerate(said))).entries
    return [(finding.claim, finding.said, finding.message) for finding in one.findings if finding.kind is FindingKind.CONTRADICTED]


@pytest.mark.parametrize(
    ("entry", "claim"),
    [
        ("All tests pass", "all tests pass"),
        ("Refactored the parser; the full test suite passes.", "the full test suite passes"),
        ("[x] fix the failing tests", "fix the failing tests"),
        ("Last run: 2 failed", "2 failed"),
        ("[x] the tests are green", "the tests are green"),
    ],
)
def test_a_success_that_the_last_run_does_not_show_is_contradicted(entry, claim):
    """Success claimed over a failing last run is refuted, with both sides and the output's number."""
    ((found, said, message),) = false(entry, PASSED, "listing", FAILED)
    assert (found, said, message) == (claim, "3 failed", 2)


@pytest.mark.parametrize(
    "entry",
    [
        "All tests pass", "[x] fix the failing tests", "40 passed", "Earlier run had 3 failed tests",
    ],
)  # fmt: skip
def test_a_claim_that_the_last_run_shows_is_left_alone(entry):
    """The last run decides: what failed before and passes now is no contradiction."""
    assert false(entry, FAILED, PASSED) == []


@pytest.mark.parametrize(
    "entry",
    [
        "[ ] Make sure all tests pass", "All tests should pass", "Run it until the tests pass", "3 failed, 37 passed", "3 tests failed",
        "The tests do not pass", "The user passed the test file", "Fix the failing tests", "Check whether the build succeeded",
    ],
)  # fmt: skip
def test_what_is_no_claim_of_success_is_left_alone(entry):
    """Wishes, plans, true counts and negations are not refuted by a failing run."""
    assert false(entry, FAILED) == []


def test_without_a_run_nothing_is_refuted():
    """An output without an outcome disproves nothing."""
    assert false("All tests pass", "a listing with the word error in it") == []


LINTED = "src/a.py:3: F401\nFound 3 errors in 1 file"


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("All tests pass", (PASSED, LINTED)),
        ("[x] fix the failing tests", (PASSED, LINTED)),
        ("The build passes", ("build succeeded", FAILED)),
        ("The build passes", ("build failed", PASSED)),
        ("Unit tests pass, of the integration tests 3 failed", (PASSED, FAILED)),
    ],
)
def test_a_run_of_something_else_refutes_nothing(entry, said):
    """A linter says nothing of tests and tests nothing of the build; a failure that the entry itself tells is no contradiction."""
    assert false(entry, *said) == []


@pytest.mark.parametrize(
    ("entry", "said", "failure"),
    [("All tests pass", (FAILED, LINTED), "3 failed"), ("The build passes", ("build failed",), "build failed")],
)
def test_the_last_run_of_the_same_thing_refutes(entry, said, failure):
    """What ran after it does not hide it."""
    assert [(told, message) for _, told, message in false(entry, *said)] == [(failure, 0)]
