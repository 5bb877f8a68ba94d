"""Real summaries: those of the labelled boundaries, and six that coding agents wrote."""

import json
from pathlib import Path

import pytest

from tests.harness.data import shared_data
from winnow.compaction.parse import parse
from winnow.compaction.prune import render
from winnow.contracts.vocabulary import Rules, SegmentKind


@pytest.fixture(scope="module")
def boundaries() -> list[dict]:
    with shared_data("sourcebench", "dev.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("how", [{}, {"host": "openclaw"}, {"profile": "openclaw"}, {"rules": Rules.PUBLISHED}], ids=str)
def test_labelled_entries_come_out_as_labelled(boundaries: list[dict], how: dict) -> None:
    """All 45 candidates give the labelled entries, by number, section and text, found or named, under both rules."""
    assert len(boundaries) == 45
    for boundary in boundaries:
        parsed = parse(boundary["candidate_summary"], **how)
        assert (parsed.profile, parsed.outcome, parsed.warnings) == ("openclaw", None, ())
        got = [(entry.n, entry.section, entry.text) for entry in parsed.entries]
        assert got == [(entry["n"], entry["section"], entry["text"]) for entry in boundary["entries"]]


def test_no_labelled_summary_seems_cut(boundaries: list[dict]) -> None:
    """Whole summaries, which rarely end in a full stop, are not taken for cut ones."""
    assert not [entry.text for boundary in boundaries for entry in parse(boundary["candidate_summary"]).entries if entry.truncated]


def test_most_cut_summaries_are_noticed(boundaries: list[dict]) -> None:
    """Cut anywhere in the last third, a summary's last entry is marked in a quarter of the cases at least; no other entry ever is."""
    cuts = marked = 0
    for boundary in boundaries:
        text = boundary["candidate_summary"]
        for end in range(len(text) * 2 // 3, len(text), 7):
            entries = parse(text[:end], profile="openclaw").entries
            cuts += 1
            marked += bool(entries and entries[-1].truncated)
            assert not any(entry.truncated for entry in entries[:-1])
    assert marked / cuts > 0.25


@pytest.fixture(scope="module")
def real() -> list[tuple[Path, dict]]:
    return [(path, json.loads(path.read_text(encoding="utf-8"))) for path in sorted(shared_data("real_summaries").glob("*.json"))]


def test_real_summaries_parse(real: list[tuple[Path, dict]]) -> None:
    """Six summaries of Claude Code and pi give their sections and entries; thinking and the console's lines are none."""
    expected = {
        "cc-bookminder-day003-1.json": (55, 7),
        "cc-bookminder-day004-2.json": (47, 7),
        "cc-bookminder-day005-1.json": (43, 7),
        "cc-bookminder-day007-1.json": (38, 7),
        "cc-bookminder-day020-2.json": (96, 9),
        "pi-before-compaction-1.json": (44, 15),
    }
    assert {path.name for path, _ in real} == set(expected)
    for path, record in real:
        parsed = parse(record["summary"], host=record["host"])
        assert (parsed.outcome, parsed.detected) == (None, False)
        assert "".join(segment.text for segment in parsed.segments) == record["summary"]
        headings = sum(segment.kind is SegmentKind.HEADING for segment in parsed.segments)
        assert (path.name, len(parsed.entries), headings) == (path.name, *expected[path.name])
        assert not any("⎿" in entry.text or "chronological" in entry.text for entry in parsed.entries)


def test_claude_code_is_found_in_real_summaries(real: list[tuple[Path, dict]]) -> None:
    """The numbered sections are sign enough, with tags or labels around them, indented or not."""
    for _, record in real:
        if record["host"] == "claude-code":
            assert parse(record["summary"]).segments == parse(record["summary"], host="claude-code").segments


def test_hard_wrapped_lines_stay_with_their_entry(real: list[tuple[Path, dict]]) -> None:
    """A console's hard wrap at column 0 ends no paragraph."""
    record = next(record for path, record in real if path.name == "cc-bookminder-day003-1.json")
    parsed = parse(record["summary"], host="claude-code")
    assert parsed.entries[0].text.count("\n") == 2
    assert parsed.entries[0].text.endswith("to improve the development workflow.")


def test_pruning_real_summaries_keeps_everything_else(real: list[tuple[Path, dict]]) -> None:
    """Without entries, headings, thinking and wrappers are left, byte for byte."""
    for _, record in real:
        parsed = parse(record["summary"], host=record["host"])
        assert render(parsed, []) == "".join(segment.text for segment in parsed.segments if segment.entry is None)
