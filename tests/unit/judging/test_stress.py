"""Stress transformations: what is changed, what stays, and for which entries the truth is certain."""

import re
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.compaction.analysis.boundaries import action, output, user
from tests.unit.judging.cases import dev_cases
from winnow.compaction.parse import parse
from winnow.contracts.vocabulary import MessageKind
from winnow.judging.stress import TRUTHS, Case, Labelled, Stress, Stressed, Truth, stressed


def case(run: str, *entries: str, said: str = "", domain: str = "", previous: str | None = None, env: bool = True) -> Case:
    """A boundary with one output; all its entries are supported by it, or else by the previous summary."""
    candidate = "## Decisions\n" + "".join(f"- {entry}\n" for entry in entries)
    parsed = parse(candidate, profile="openclaw")
    return Case(
        run=run,
        domain=domain,
        task="the task",
        previous=previous,
        history=(user(0, "please"), action(1, "look"), output(2, said, tool=f"tool_of_{run}")),
        retained=(),
        candidate=candidate,
        entries=tuple(Labelled(n=entry.n, span=entry.span, env=env, prev=not env) for entry in parsed.entries),
    )


def changed(kind: Stress, *cases: Case, seed: int = 1) -> list[Stressed]:
    return list(stressed(kind, cases, Random(seed)))


@pytest.mark.parametrize(
    ("kind", "entries"),
    [
        (Stress.OTHER_DOMAIN, range(258, 269)),
        (Stress.SAME_DOMAIN, range(240, 269)),
        (Stress.INTO_TASK, range(268, 269)),
        (Stress.PREVIOUS_SWAPPED, range(212, 218)),
        (Stress.DIGIT_CHANGED, range(430, 431)),
        (Stress.NUMBER_SWAPPED, range(395, 418)),
    ],
)
def test_populations_of_the_development_set(kind, entries):
    """268 entries rest on outputs alone and 217 on the previous summary, less those without a clean donor; 430 hold a number to change."""
    assert sum(len(found.entries) for found in changed(kind, *dev_cases())) in entries


def test_outputs_of_another_run_take_the_place_of_all_outputs():
    """Every output says what a donor's output says, under its tool; what others said stays."""
    own, donor = case("a", "Flight HAT136 costs 152", said="HAT136: 152"), case("b", "Gate is open", said="the gate opened")
    first = changed(Stress.SAME_DOMAIN, own, donor)[0]
    assert first.truth is Truth.NO_SOURCE
    assert first.entries == (1,)
    assert [(m.text, m.tool) for m in first.case.history] == [("please", None), ("look", None), ("the gate opened", "tool_of_b")]
    assert first.case.candidate == own.candidate


def test_a_donor_that_holds_a_value_is_rejected():
    """An entry whose value every donor holds is left out, and no donor is its own run's or of the wrong domain."""
    own = case("a", "Flight HAT136", "Flight HAT272", said="x", domain="air")
    near = case("b", "x", said="hat136 flies", domain="air")
    same_run = case("a", "x", said="nothing", domain="air")
    other = case("c", "x", said="nothing", domain="sea")
    assert [
        found.entries for found in changed(Stress.SAME_DOMAIN, own, near, same_run, other) if found.case.candidate == own.candidate
    ] == [(2,)]
    assert [found.entries for found in changed(Stress.OTHER_DOMAIN, own, near, other) if found.case.candidate == own.candidate] == [(1, 2)]


def test_a_previous_summary_with_a_line_of_the_same_words_is_rejected():
    """A rule without a value that a donor's summary states, too, in about the same words is not certain to be unsupported there."""
    own = case("a", "One tool call at a time, no reply with it", previous="- x", env=False)
    same, other = case("b", "x", previous="- rain\n- One tool call at a time; no reply"), case("c", "x", previous="- It rains")
    assert [found.case.previous for found in changed(Stress.PREVIOUS_SWAPPED, own, same, other) if found.case.run == "a"] == ["- It rains"]
    assert not [found for found in changed(Stress.PREVIOUS_SWAPPED, own, same) if found.case.run == "a"]


def test_moved_outputs_stand_in_the_task_alone():
    """The outputs' texts stand behind the task, and H and R hold none."""
    (found,) = changed(Stress.INTO_TASK, case("a", "Flight HAT136", said="HAT136 flies"))
    assert found.case.task == "the task\nHAT136 flies"
    assert all(m.kind is not MessageKind.ENVIRONMENT for m in found.case.history)


def test_previous_summary_is_anothers():
    """An entry that the previous summary alone supports is seen with another run's previous summary."""
    own = case("a", "Flight HAT136", previous="- Flight HAT136", env=False)
    donors = case("b", "x", previous="- It rains"), case("c", "x")
    (found,) = [found for found in changed(Stress.PREVIOUS_SWAPPED, own, *donors) if found.case.candidate == own.candidate]
    assert found.case.previous == "- It rains"


def test_one_digit_changes_and_thousands_separators_stay():
    """Exactly one digit of one known number differs; separators, and numbers that no source holds, stay."""
    own = case("a", "Costs $4,875 in room 99", "Nothing known: 77", said="price: 4875")
    for seed in range(20):
        (found,) = changed(Stress.DIGIT_CHANGED, own, seed=seed)
        assert found.truth is Truth.VALUE_WRONG
        assert found.entries == (1,)
        new = re.fullmatch(r"- Costs \$(\d,\d{3}) in room 99\s*", found.case.text_of(1))
        assert new is not None
        assert sum(a != b for a, b in zip(new[1], "4,875", strict=True)) == 1
        assert not new[1].startswith("0")
        assert found.case.text_of(2).startswith("- Nothing known: 77")


def test_a_number_is_swapped_for_one_of_an_output():
    """The new number has the same length, stands in an output and not in the entry; without one the entry is left out."""
    own = case("a", "Seats 152 and 153", "Seat 44", said="152 153 207 44 9999")
    for seed in range(20):
        (found,) = changed(Stress.NUMBER_SWAPPED, own, seed=seed)
        assert found.entries == (1,)
        assert set(re.findall(r"\d+", found.case.text_of(1))) in ({"152", "207"}, {"207", "153"})


@pytest.mark.parametrize("kind", list(Stress))
def test_the_same_seed_gives_the_same_changes(kind):
    """Changes depend on cases and seed alone, and every kind says what it makes certain."""
    cases = dev_cases()[:6]
    assert changed(kind, *cases) == changed(kind, *cases)
    assert kind in TRUTHS


LINES = st.lists(st.text("ab é,12345\U0001f600", min_size=1, max_size=30).map(lambda t: f"x{t}"), min_size=1, max_size=6)


@given(lines=LINES, said=st.text("1234567890 ", max_size=60), seed=st.integers(0, 9))
def test_spans_follow_the_changed_candidate(lines, said, seed):
    """Whatever changes, the spans still cut the entries out of the candidate, and only the named ones differ."""
    own = case("a", *lines, said=said)
    for kind in (Stress.DIGIT_CHANGED, Stress.NUMBER_SWAPPED):
        for found in changed(kind, own, seed=seed):
            again = parse(found.case.candidate, profile="openclaw")
            assert [(e.n, e.span) for e in again.entries] == [(e.n, e.span) for e in found.case.entries]
            different = {e.n for e in own.entries if own.text_of(e.n) != found.case.text_of(e.n)}
            assert different == set(found.entries)
