"""The best stretch of an entry on a unit of the previous summary."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.compaction.analysis.boundaries import action, look, output, summary
from winnow.compaction.alignment import NOTHING, align

WEIGHTS = [1.0, 1.0, 2.0, 3.0, 0.5]
TOKENS = st.lists(st.integers(0, 4), max_size=12)


def test_what_stands_around_the_best_stretch_costs_nothing():
    """A clause that a unit holds counts in full, however much else the entry says before and behind it."""
    alone = align([2, 3], WEIGHTS, [(frozenset({2, 3}), 2)])
    among = align([0, 0, 0, 2, 3, 1, 1, 1, 1], WEIGHTS, [(frozenset({2, 3}), 2)])
    assert among.stretch == alone.stretch == math.log1p(5.0)


def test_a_gap_costs_its_weight_and_twice_where_strict():
    """A foreign word inside a stretch is paid for; where that is dearer than what follows, the stretch ends before it."""
    found = align([3, 0, 3], WEIGHTS, [(frozenset({3}), 1)])
    assert found.stretch == pytest.approx(math.log1p(5.0))
    assert found.stretch_strict == pytest.approx(math.log1p(4.0))
    assert align([3, 2, 0], WEIGHTS, [(frozenset({3, 0}), 2)]).stretch == pytest.approx(math.log1p(3.0))


def test_no_common_word_is_nothing():
    """A unit without a word of the entry, and no unit at all, give zeros."""
    assert align([0, 1], WEIGHTS, [(frozenset({2}), 1)]) == align([0, 1], WEIGHTS, []) == NOTHING
    assert align([], WEIGHTS, [(frozenset({2}), 1)]) == NOTHING


@given(TOKENS, st.lists(st.frozensets(st.integers(0, 4), min_size=1), max_size=3))
def test_figures_are_bounded_and_more_units_never_lower_them(tokens, held):
    """Shares lie between 0 and 1, the strict stretch is not above the other, and every figure is the best of the units."""
    units = [(one, len(one) + 1) for one in held]
    found = align(tokens, WEIGHTS, units)
    assert all(0.0 <= value <= 1.0 + 1e-12 for value in (found.dice, found.covered))
    assert 0.0 <= found.stretch_strict <= found.stretch
    for unit in units:
        assert all(all_of >= one for all_of, one in zip(found, align(tokens, WEIGHTS, [unit]), strict=True))


def only(found):
    (entry,) = found.entries
    return entry.features


def test_statement_of_the_previous_summary_inside_a_longer_entry():
    """An entry that repeats one statement of the previous summary and adds its own still lies on it."""
    previous = summary("The server encrypts the same flag each time", "Port is 8080")
    found = only(look(summary("The server encrypts the same flag each time; solve.py was written today by hand"), previous=previous))
    other = only(look(summary("The server was restarted and solve.py printed garbage today"), previous=previous))
    assert found["prev_covered"] == 1.0
    assert found["prev_strict"] > 2 * other["prev_strict"]


def test_a_key_of_a_record_makes_a_value_agree():
    """A value counts with a key that an output gives it, also by the key's beginning, but not with another key or in another line."""
    record = output(1, '{"membership": "gold", "name": "Mia"}', tool="get_user")
    assert only(look(summary("She is a gold member"), record))["field_share"] == 1.0
    assert 0.0 < only(look(summary("A gold member wrote today"), record))["field_share"] < 1.0
    assert only(look(summary("She likes gold rings"), record))["field_share"] == 0.0
    assert only(look(summary("exit code 3"), output(1, "exit_code=3 done")))["field_share"] == 1.0
    assert only(look(summary("the code is alpha"), output(1, "code:\nalpha")))["field_share"] == 0.0


def test_an_id_that_a_record_returns_is_a_field():
    """An id that the agent typed counts as the output's where a JSON output gives it back as a field, not where a message repeats it."""
    typed = action(0, 'get_user: {"user_id": "mia_li_3668"}')
    returned = only(look(summary("User `mia_li_3668`"), typed, output(1, '{"user_id": "mia_li_3668", "zip": "92125"}')))
    repeated = only(look(summary("User `mia_li_3668`"), typed, output(1, "read user mia_li_3668")))
    assert (returned["rec_id"], returned["val_near"]) == (1.0, pytest.approx(math.log(2), abs=1e-6))
    assert (repeated["rec_id"], repeated["val_near"]) == (0.0, 0.0)


def test_a_path_is_said_by_whoever_says_its_last_part():
    """A file that an output lists is its own under any folder; one that the agent made stays the agent's where a tool adds the folder."""
    listed = only(look(summary("See `http://host/cgi/forms.pl`"), output(1, "http://host/cgi/forms.pl"), task="Attack http://host"))
    assert listed["val_near"] > 0.0
    made = only(look(summary("Wrote `/repo/reproduce.py`"), action(0, "create reproduce.py"), output(1, "wrote /repo/reproduce.py anew")))
    assert made["val_near"] == 0.0


def test_values_of_the_task_speak_against_the_previous_summary():
    """The share of values that the task names first counts codes twice, and is 0 where an output says them first."""
    found = only(look(summary("Use HAT136 and Boston in Ohio"), output(1, "in Ohio"), task="Fly to Boston with HAT136"))
    assert found["val_task"] == pytest.approx(0.75)
    assert only(look(summary("Use HAT136"), output(1, "HAT136")))["val_task"] == 0.0


def test_codes_that_no_output_holds_count_where_there_is_a_previous_summary():
    """With a previous summary, codes that are in no output are its own; without one nothing is said."""
    entry, span = summary("`HAT136` and `zeta-44` and HAT200"), output(1, "HAT200")
    assert only(look(entry, span, previous=summary("HAT136 is booked")))["out_codes"] == pytest.approx(math.log(3), abs=1e-6)
    assert only(look(entry, span))["out_codes"] == 0.0


def test_outputs_fit_what_is_said_or_they_do_not():
    """Outputs that repeat what agent and user name fit; those of other work do not; with next to nothing said, nobody can tell."""
    asks = action(0, "search flights from Boston to Denver for passenger Mia on Friday with two bags and insurance")
    entry = summary("Something was found")
    assert only(look(entry, asks, output(1, "flights Boston Denver passenger Mia Friday: none")))["out_fits"] == 1.0
    foreign = "commit merge branch rebase upstream origin pushed tags release notes " * 3
    assert only(look(entry, asks, output(1, foreign)))["out_fits"] == 0.0
    assert only(look(entry, asks))["out_fits"] == 0.0
    assert only(look(entry, action(0, "go on"), output(1, foreign)))["out_fits"] == 1.0


def test_what_a_call_writes_is_the_agents():
    """A line that the agent writes in the escaped arguments of a call is the agent's when a tool shows it later."""
    wrote = action(0, '[tool call] write: {"content": "header\\nimport quokka\\n"}')
    assert only(look(summary("Uses quokka"), wrote, output(1, "1: header\n2: import quokka")))["env_mass"] == 0.0


def test_pairs_that_the_task_binds_are_counted_until_a_record_binds_them():
    """Two names that the task binds count against an entry, unless a record returns them together."""
    entry, task = summary("HAT136 on 2024-05-20"), "Book HAT136 for 2024-05-20."
    assert only(look(entry, output(1, "ok"), task=task))["told_pairs"] == 1.0
    record = output(1, '{"flight": "HAT136", "date": "2024-05-20"}')
    assert only(look(entry, record, task=task))["told_pairs"] == 0.0


@pytest.mark.parametrize(
    "hostile", ["=" * 200_000, "a=" * 200_000, ": :" * 100_000, '{"a":' * 80_000, "k: v\n" * 100_000, "\0=\0:" * 50_000]
)
def test_hostile_fields_are_read_in_linear_time(hostile):
    """Hundreds of kilobytes of separators and fields come back within the time limit."""
    features = only(look(summary("a is k with v = a and x=y"), output(1, hostile)))
    assert 0.0 <= features["field_share"] <= 1.0
