"""Explanations: one line that a person can check."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.compaction.analysis.boundaries import action, dev, look, output, summary, user
from tests.unit.judging.evidence import SAID, entry, evidence, of, value
from winnow.contracts.vocabulary import ProvenanceClass, Verdict
from winnow.judging.explanation import LINE_CHARS, explain
from winnow.judging.local import score


def told(*messages, text, **more):
    (found,) = score(of(look(summary(text), *messages, **more)))
    return found


def test_values_of_an_output_are_named_with_their_place():
    """Values first seen in an output are counted and named with message and tool, and the passages that hold them are cited."""
    seen = output(14, "flight HAT136 $152 on 2024-05-24", tool="search_direct_flight")
    found = told(output(3, "ok"), seen, text="Retry with HAT136, $152 on 2024-05-24", task="Book a flight")
    assert found.explanation == "3 values first seen in output #14 (search_direct_flight): HAT136, $152, 2024-05-24"
    assert len(found.passages) == 1


def test_carried_entry_names_the_entry_of_m():
    """A carried entry names the entry of the previous summary that it rests on and how much of it that covers."""
    found = told(text="The server encrypts the same flag", previous=summary("zebra", "The server encrypts the same flag"))
    assert found.explanation == "carried from entry 2 of the previous summary (1.00)"


def test_task_values_are_said_to_stand_there():
    """Values of the task are said to stand in the task."""
    found = told(output(0, "ok"), text="Fix fields.py and base.py", task="There is a bug in fields.py and base.py")
    assert found.verdict is Verdict.UNSOURCED
    assert found.explanation == "both values stand in the task, no output adds to them: fields.py, base.py"


def test_user_and_agent_are_named_by_message():
    """A user turn's and an action's values are named with their message."""
    assert told(user(5, "it is for Mia Li"), text="Wants it for Mia Li").explanation.startswith("first said in user turn #5: Mia")
    assert told(action(6, "I choose zeta-44"), text="Chose zeta-44").explanation == "first said in action #6: zeta-44"


def test_nothing_found_is_said():
    """Where nobody says anything of it, the explanation says so, with the values that nobody says."""
    assert told(text="Zebra quokka").explanation == "neither task, span nor previous summary says it"
    assert told(text="Zebra XY99").explanation == "1 value said nowhere: XY99"


@pytest.mark.parametrize("kind", list(ProvenanceClass))
@given(text=st.text(min_size=1, max_size=300), tool=st.none() | st.text(min_size=1, max_size=200).filter(str.isprintable))
def test_explanation_is_one_short_printable_line(kind, text, tool):
    """Whatever values and tools are called, every class is explained in one printable line of at most 200 characters."""
    values = (value(text, kind, 3, tool), value(text + "x", kind, 3, tool))
    for verdict in (Verdict.SOURCED, Verdict.UNSOURCED):
        line, _ = explain(entry(provenance=kind, sources=(kind,), values=values), verdict, {})
        assert 0 < len(line) <= LINE_CHARS
        assert line.isprintable()


def test_every_real_entry_is_explained():
    """Every entry of the development set gets an explanation that cites only passages that exist."""
    for boundary in dev()[::6]:
        found = boundary.analyse()
        for one in score(of(found)):
            assert one.explanation.isprintable()
            assert len(one.explanation) <= LINE_CHARS
            assert all(1 <= cited <= len(found.passages) for cited in one.passages)


def test_verdict_and_class_that_disagree_are_explained():
    """A supported entry below one half says that the support is too little, an entry above it without a class says what it rests on."""
    weak = entry(sources=(ProvenanceClass.PREVIOUS,), provenance=ProvenanceClass.PREVIOUS, previous_entry=2, previous_similarity=0.5)
    (found,) = score(evidence(weak))
    assert found.explanation == "too little support: carried from entry 2 of the previous summary (0.50)"
    (found,) = score(evidence(entry(features=SAID)))
    assert found.explanation.startswith("worded like outputs or the previous summary; ")
