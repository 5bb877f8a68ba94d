"""Labels joined to entries, and files that are no labelled data."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.unit.judging.evaluation.lines import LABELS, SUMMARY, data, line
from winnow.cli.labelled_lines import BadData, read_data
from winnow.compaction.parse import parse
from winnow.contracts.vocabulary import SectionClass
from winnow.judging.evaluation.labelled import Label, Unmatched, is_reasoning, matched


def test_a_line_becomes_a_boundary():
    """Labels, spans for the stress transformations, run and scenario are those of the line."""
    (boundary,) = read_data(data(line())).boundaries
    assert [(one.n, one.source, one.user) for one in boundary.labels] == [(1, True, False), (2, False, True), (3, False, False)]
    assert [boundary.text_of(entry.n).strip() for entry in boundary.entries] == [one["text"] for one in LABELS]
    assert (boundary.run, boundary.scenario, boundary.by_scenario) == ("run-1", "run-1", False)
    (other,) = read_data(data(line(scenario="s", run=None))).boundaries
    assert (other.run, other.scenario, other.by_scenario) == ("b1", "s", True)


def test_source_is_env_or_prev_where_it_is_left_out():
    """`source` may be left out; with neither it nor env and prev a line is refused."""
    bare = [{k: v for k, v in one.items() if k != "source"} for one in LABELS]
    assert [one.source for one in read_data(data(line(entries=bare))).boundaries[0].labels] == [True, False, False]
    with pytest.raises(BadData, match=r"line 1.*source"):
        read_data(data(line(entries=[{"n": 1, "text": "- x"}])))


def test_numbers_need_not_be_the_parsers():
    """A label whose number is another is found by its text; repeated texts are taken in order; white space does not matter."""
    parsed = parse("## Decisions\n- a\n- b\n- a").entries
    labels = [("- a", Label(n=7, source=True)), ("-  b", Label(n=8, source=False)), ("- a", Label(n=9, source=False))]
    assert [(one.n, one.source) for one in matched(labels, parsed)] == [(1, True), (2, False), (3, False)]
    with pytest.raises(Unmatched):
        matched([("- c", Label(n=1, source=True))], parsed)
    with pytest.raises(Unmatched):
        matched([("- b", Label(n=2, source=True)), ("- b", Label(n=3, source=True))], parsed)


def test_every_bad_line_is_named():
    """Bad lines are named with their numbers, and nothing is measured on the rest."""
    bad = data(line(1)) + b"{\n" + data(line(2, candidate_summary="## Decisions\n- other")) + b"\n" + data(line(1))
    with pytest.raises(BadData) as error:
        read_data(bad)
    text = str(error.value)
    assert "line 2:" in text
    assert "line 3:" in text
    assert "line 5: id 'b1' stands on line 1 already" in text


@pytest.mark.parametrize("text", [b"", b"\n\n", b"[]", b"null", b"\x00", b"\xff\xfe", json.dumps(line())[:-1].encode()])
def test_what_is_no_data_is_refused(text):
    """An empty file and other things than objects end in one clear error."""
    with pytest.raises(BadData):
        read_data(text)


@settings(max_examples=50)
@given(st.binary(max_size=200))
def test_no_bytes_make_the_reader_fail(text):
    """Whatever the file holds, the answer is the one error."""
    with pytest.raises(BadData):
        read_data(text)


@pytest.mark.parametrize(
    ("section", "kind", "reasoning"),
    [
        ("Decisions", SectionClass.MIXED, True),
        ("Open TODOs", SectionClass.FORWARD, True),
        ("Pending user asks", SectionClass.FORWARD, False),
        ("Constraints/Rules", SectionClass.INTENT, False),
        ("Exact identifiers", SectionClass.OBSERVATION, False),
        ("Next", SectionClass.UNKNOWN, False),
    ],
)
def test_reasoning_sections(section, kind, reasoning):
    """Of the published five headings Decisions and Open TODOs are reasoning; the parser gives them these classes."""
    assert is_reasoning(section, kind) is reasoning
    if kind is not SectionClass.UNKNOWN:
        (entry,) = parse(f"## {section}\n- x").entries
        assert is_reasoning(entry.section, entry.section_class) is reasoning


def test_the_summary_of_these_tests_has_the_labelled_entries():
    """The parser finds the entries that the labels of these tests name."""
    assert [entry.text for entry in parse(SUMMARY).entries] == [one["text"] for one in LABELS]
