"""Building a boundary."""

import pytest

from tests.unit.client.answers import candidate, pruned
from winnow.client import InvalidBoundary, action, boundary, notice, output, user
from winnow.client.settle import settle
from winnow.contracts.events import Message
from winnow.contracts.vocabulary import MessageKind, Origin


def test_messages_are_numbered_through_history_and_retained():
    """The span and the retained interaction count as one run of messages."""
    built = boundary(run="r", index=1, candidate="- a", history=[user("hi"), action("ls")], retained=[output("a.txt", tool="shell")])
    assert [m.i for m in (*built.history, *built.retained)] == [0, 1, 2]
    assert built.retained[0].kind is MessageKind.ENVIRONMENT
    assert built.fleet == "default"


def test_numbers_can_go_on_from_an_earlier_boundary():
    """A runtime that counts through the run says where the span begins; numbered messages keep their numbers."""
    own = Message(i=70, kind=MessageKind.USER, text="x")
    built = boundary(run="r", index=2, candidate="- a", history=[notice("n"), own], first_message=40)
    assert [m.i for m in built.history] == [40, 70]


def test_an_output_says_what_it_is():
    """Echoes and errors are told apart from observations."""
    built = boundary(
        run="r", index=1, candidate="- a", history=[output("done", origin=Origin.ECHO), output("no", call_id="c", is_error=True)]
    )
    assert [m.origin for m in built.history] == [Origin.ECHO, Origin.OBSERVATION]
    assert built.history[1].is_error


def test_the_previous_compaction_gives_text_and_id():
    """What the agent carried is the summary of the last compaction, whichever text that was."""
    asked = candidate()
    last = settle(asked, asked.request_sha256(), pruned(asked, asked.request_sha256(), (0, 8)))
    built = boundary(run="r", index=2, candidate="- a", previous=last, fleet="f")
    assert built.previous_summary == last.summary != asked.candidate
    assert built.previous_boundary_id == asked.boundary_id


def test_the_same_content_has_the_same_id():
    """A rebuilt boundary is a resubmission, not a second boundary."""
    assert boundary(run="r", index=1, candidate="- a").boundary_id == boundary(run="r", index=1, candidate="- a").boundary_id


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"index": 0}, "index"),
        ({"index": "first"}, "index"),
        ({"run": "a\nb"}, "run"),
        ({"run": ""}, "run"),
        ({"fleet": "Ünternehmen"}, "fleet"),
        ({"candidate": "x" * (1024 * 1024 + 1)}, "longer than"),
        ({"candidate": 5}, "candidate"),
        ({"candidate": "a\ud800"}, "surrogate"),
        ({"history": [{"kind": "alien", "text": "t"}]}, "history"),
        ({"history": "a text"}, "messages are a list"),
        ({"retained": [None]}, "messages are a list"),
        ({"history": [{"kind": "user", "text": 7}]}, "history"),
        ({"typo": 1}, "typo"),
        ({"first_message": "x"}, "first_message"),
        ({"candidate_sha256": "0" * 64}, "hash"),
        ({"mode": "brutal"}, "mode"),
    ],
)
def test_what_cannot_be_built_says_why(fields, said):
    """The error names the field and quotes no content."""
    with pytest.raises(InvalidBoundary, match=said) as caught:
        boundary(**({"run": "r", "index": 1, "candidate": "- secret-content"} | fields))
    assert "secret-content" not in str(caught.value)
    assert "Field required" not in str(caught.value), "what is filled in is nobody's fault"


def test_a_nul_byte_is_content():
    """Summaries and messages may hold NUL bytes; they are kept."""
    assert boundary(run="r", index=1, candidate="- a\x00b").candidate == "- a\x00b"
