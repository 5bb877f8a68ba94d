"""Open work that was done."""

import pytest

from tests.unit.compaction.analysis.boundaries import action, look, output, summary
from winnow.contracts.vocabulary import FindingKind, ProvenanceClass

OK = "12 passed in 0.31s"


def found(entry, *messages, section="Open TODOs"):
    (one,) = look(summary(entry, section=section), *messages).entries
    return [finding for finding in one.findings if finding.kind is FindingKind.STALE]


def call(i, tool, arguments):
    return action(i, f"Let me.\n\n[tool call] {tool}: {arguments}")


@pytest.mark.parametrize(
    ("entry", "tool", "arguments", "result"),
    [
        ("[ ] Run `pytest tests/unit -q`", "shell", "pytest tests/unit -q", OK),
        ("[ ] run the tests: `npm test`", "bash", '{"command": "npm  test"}', "ok"),
        ("[ ] Create `src/retry.py`", "write_file", '{"path": "src/retry.py", "text": "x = 1"}', "written"),
        ("[ ] Cancel reservation K1NW8N", "cancel_reservation", '{"reservation_id": "K1NW8N"}', '{"status": "cancelled"}'),
        ("[ ] Call `update_reservation_flights` for M20IZO with HAT057", "update_reservation_flights",
         '{"reservation_id": "M20IZO", "flights": ["HAT057"]}', '{"reservation_id": "M20IZO"}'),
        ("[ ] run the read-only audit `audit --read-only`", "exec", "audit --read-only", "exit code 0"),
    ],
)  # fmt: skip
def test_work_that_an_output_shows_done_is_stale(entry, tool, arguments, result):
    """A command that ran, a file that was written and a record that a tool changed are no open work; the output is named."""
    (finding,) = found(entry, call(3, tool, arguments), output(4, result, tool=tool))
    assert (finding.by, finding.message, finding.tool) == (ProvenanceClass.ENVIRONMENT, 4, tool)
    assert finding.said == result


@pytest.mark.parametrize(
    ("entry", "arguments", "result"),
    [
        ("[ ] Run `pytest tests/unit -q`", "pytest tests/unit -q", "3 failed, 9 passed"),
        ("[ ] Run `pytest tests/unit -q`", "pytest tests/unit -q", "bash: pytest: command not found"),
        ("[ ] Run `pytest tests/unit -q`", "pytest tests/other", OK),
        ("[ ] Re-run `pytest tests/unit -q`", "pytest tests/unit -q", OK),
        ("[ ] If that fails run `pytest tests/unit -q`", "pytest tests/unit -q", OK),
        ("[ ] Run `python decrypt.py` and read the flag it prints", "python decrypt.py", "gibberish"),
        ("[x] Run `pytest tests/unit -q`", "pytest tests/unit -q", OK),
        ("[ ] Cancel reservation K1NW8N", "cancel K1NW8N", OK),
    ],
)
def test_work_that_is_not_shown_done_is_not_stale(entry, arguments, result):
    """Failures, other commands, repetitions, conditions, work with more to it and checked boxes are left alone."""
    assert found(entry, call(3, "shell", arguments), output(4, result)) == []


def test_what_changed_since_has_to_be_run_again():
    """A run before the last change of a file proves nothing."""
    ran = call(1, "shell", "make check"), output(2, "ok")
    edited = call(3, "edit_file", '{"path": "a.py"}'), output(4, "edited")
    assert found("[ ] Run `make check`", *ran, *edited) == []
    assert len(found("[ ] Run `make check`", *edited, *(m.model_copy(update={"i": m.i + 9}) for m in ran))) == 1


def test_only_open_entries_are_read():
    """A report of the same act is not stale."""
    messages = call(3, "shell", "make check"), output(4, "ok")
    assert found("Ran `make check`", *messages, section="Decisions") == []
    assert found("`make check`", *messages, section="Decisions") == []
