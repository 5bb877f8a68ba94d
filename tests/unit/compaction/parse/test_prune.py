"""Pruning: whole entries or nothing, scaffold with what hangs on it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from winnow.compaction.openclaw import utf16_units
from winnow.compaction.parse import parse
from winnow.compaction.prune import render, scaffold
from winnow.contracts.limits import MAX_PINS
from winnow.contracts.vocabulary import Rules

NESTED = "**Status**\nRemaining:\n- a\n  - b\n    - c\n- d\n\nOther:\n- e\n"


def test_scaffold_is_all_that_an_entry_hangs_on() -> None:
    """Parents of parents and the lead-in of the outermost bullet are scaffold; entries beside it are not."""
    parsed = parse(NESTED, profile="codex")
    assert scaffold(parsed, [4]) == {1, 2, 3}
    assert scaffold(parsed, [7]) == {6}
    assert scaffold(parsed, []) == frozenset()


def test_a_lead_in_goes_with_its_last_child() -> None:
    """It stays while one bullet of its list is kept, and no longer."""
    parsed = parse(NESTED, profile="codex")
    assert render(parsed, {1, 5}) == "**Status**\nRemaining:\n- d\n\n"
    assert render(parsed, {6, 7}) == "**Status**\n\nOther:\n- e\n"


def test_rendering_without_scaffold_is_an_error() -> None:
    """A kept child without its parent would hang in the air: the caller is told what to add."""
    parsed = parse(NESTED, profile="codex")
    with pytest.raises(ValueError, match="add scaffold"):
        render(parsed, {3})


@pytest.mark.parametrize("n", [0, -1, 8, 10**9])
def test_unknown_numbers_are_an_error(n: int) -> None:
    """Numbers of another parse are refused, not ignored."""
    parsed = parse(NESTED, profile="codex")
    with pytest.raises(ValueError, match="entries 1 to 7"):
        scaffold(parsed, [n])
    with pytest.raises(ValueError, match="entries 1 to 7"):
        render(parsed, {n})


def test_blank_lines_inside_a_list_go_with_the_entry_before() -> None:
    """Removing neighbours leaves no gap in the list, and the blank lines after it separate what follows."""
    parsed = parse("# S\n- a\n\n- b\n\n- c\n\n\nText.\n\nMore.\n")
    assert render(parsed, {1, 4, 5}) == "# S\n- a\n\n\n\nText.\n\nMore.\n"
    assert render(parsed, {3, 5}) == "# S\n- c\n\n\n\nMore.\n"
    assert render(parsed, set()) == "# S\n\n\n\n"


def test_the_last_entry_of_an_element_leaves_the_closing_tag() -> None:
    """An entry that shares its line with tags goes alone."""
    parsed = parse("<state_snapshot>\n<overall_goal>Ship.</overall_goal>\n<task_state>\n- a</task_state>\n</state_snapshot>\n")
    assert render(parsed, set()) == "<state_snapshot>\n<overall_goal></overall_goal>\n<task_state>\n</task_state>\n</state_snapshot>\n"


@given(st.text(alphabet=st.sampled_from("- a\n#\U0001f600\ud800é"), max_size=60), st.integers(0, 3))
@settings(max_examples=100, deadline=None)
def test_pruning_only_shortens(text: str, step: int) -> None:
    """In UTF-16 units, which hosts cap, the output is never longer than the input (T28)."""
    parsed = parse(text)
    kept = {entry.n for entry in parsed.entries if step and entry.n % step == 0}
    assert utf16_units(render(parsed, kept | scaffold(parsed, kept))) <= utf16_units(text)


PINNED = "## Decisions\n- key abcdef99 is old\n- order 4411 of 44112\n## Exact identifiers\n- ABCDEF99\nhttps://x.example/q\n"


def test_host_pins_mark_the_entries_that_hold_them() -> None:
    """A pin is found wherever its text stands, as the host's audit finds it; hashes are compared without case; nothing else is pinned."""
    pins = ["ABCDEF99", "44112", " https://x.example/q ", "", "absent", "Decisions", "KEY"]
    assert [entry.pinned_by for entry in parse(PINNED, pins=pins).entries] == ["host"] * 4
    assert [entry.pinned_by for entry in parse(PINNED, pins=["order 44"]).entries] == [None, "host", None, None]
    assert [entry.pinned_by for entry in parse(PINNED, pins=["Decisions", "KEY", "ORDER"]).entries] == [None] * 4


def test_published_rules_know_no_pins() -> None:
    """Under the published rules nothing is pinned, host pins and audited lines included."""
    text = '## Pending user asks\nLatest user request context: "a"\n- b\n'
    parsed = parse(text, pins=["b"], rules=Rules.PUBLISHED, profile="openclaw")
    assert [(entry.text, entry.pinned_by) for entry in parsed.entries] == [("- b", None)]
    assert {str(segment.kind) for segment in parsed.segments} == {"heading", "prose", "entry"}


def test_too_many_pins_are_a_warning() -> None:
    """Pins beyond the limit are not looked for, and the parse says so."""
    text = "# S\n" + "".join(f"- word{n}x\n" for n in range(MAX_PINS + 9))
    parsed = parse(text, pins=[f"word{n}x" for n in range(MAX_PINS + 9)])
    assert parsed.warnings == ("pins_capped",)
    assert sum(entry.pinned_by is not None for entry in parsed.entries) == MAX_PINS


def test_keys_are_stable_across_summaries() -> None:
    """An entry that moves inside its section, or changes its white space and case, keeps its key; another section or text does not."""
    one = parse("## Decisions\n- Use  the `EU` queue\n- b\n", profile="openclaw").entries
    two = parse("## Decisions\n- b\n- use the `eu` queue\n## Open TODOs\n- b\n", profile="openclaw").entries
    assert one[0].key == two[1].key
    assert one[1].key == two[0].key
    assert two[2].key not in {entry.key for entry in one}
    assert all(len(entry.key) == 32 for entry in one)
