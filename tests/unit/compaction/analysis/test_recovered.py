"""What Winnow gave back is known when it comes back, whatever a host makes of its tool's name."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.compaction.boundary import examine
from winnow.compaction.recovered import given_key, is_recovery_tool, keys_of, may_be_recovered, relabelled
from winnow.contracts.events import Message
from winnow.contracts.places import NOTICE
from winnow.contracts.vocabulary import MessageKind, Origin, ProvenanceClass, Rules

ENVIRONMENT = MessageKind.ENVIRONMENT


def message(text: str, tool: str | None = None, origin: Origin = Origin.OBSERVATION, kind: MessageKind = ENVIRONMENT) -> Message:
    return Message(i=1, kind=kind, text=text, tool=tool, origin=origin)


@pytest.mark.parametrize(
    ("tool", "ours"),
    [
        ("mcp__winnow__expand", True), ("winnow_expand", True), ("Winnow.search_history", True), ("functions.winnow-pruned-entries", True),
        ("mcp_winnow_searchHistory", True), ("x" * 500 + "winnow_expand", True), ("expand", False), ("search_history", False),
        ("mcp__other__expand", False), ("winnow_expand_all", False), ("shell", False), ("", False), ("é\x00" * 99, False),
    ],
)  # fmt: skip
def test_our_tools_by_name(tool, ours):
    """A tool of ours is known with any prefix that a host puts before it, and no other is."""
    assert is_recovery_tool(tool) is ours


def test_what_is_looked_up():
    """Only outputs of tools that could be ours, or of no named tool, are looked up."""
    assert may_be_recovered(message("x", "expand"))
    assert may_be_recovered(message("x", None))
    assert may_be_recovered(message("x", "read_file", Origin.RECOVERY))
    assert not may_be_recovered(message("x", "read_file"))
    assert not may_be_recovered(message("x", "expand", Origin.ECHO))
    assert not may_be_recovered(message("x", None, kind=MessageKind.USER))
    assert keys_of([message(" x \n", "expand"), message("x", "shell"), message(" \n", "expand")]) == {given_key("x")}


@pytest.mark.parametrize("tool", ["mcp__winnow__expand", "expand", None])
@pytest.mark.parametrize("said", [Origin.OBSERVATION, Origin.RECOVERY])
def test_the_bytes_decide(tool, said):
    """A given text is an observation where an environment had said it, and recovered otherwise, whatever host and tool say."""
    asked = [message("\n12 rows ", tool, said)]
    assert relabelled(asked, {given_key("12 rows"): True})[0].origin is Origin.OBSERVATION
    assert relabelled(asked, {given_key("12 rows"): False})[0].origin is Origin.RECOVERY
    unknown = relabelled(asked, {})[0].origin
    assert unknown is (Origin.RECOVERY if tool == "mcp__winnow__expand" or said is Origin.RECOVERY else Origin.OBSERVATION)


def test_the_notice_is_known_through_any_tool():
    """What begins with the notice is no observation, wrapped in a little markup or not; further down it is somebody's quotation."""
    for head in ("", '{"result": "', "<output>\n"):
        assert relabelled([message(f"{head}{NOTICE}\n- a plan", "my_tool")], {})[0].origin is Origin.RECOVERY
    assert relabelled([message("x" * 300 + NOTICE, "read_file")], {})[0].origin is Origin.OBSERVATION
    assert relabelled([message(NOTICE, kind=MessageKind.USER)], {})[0].kind is MessageKind.USER


@given(st.lists(st.builds(
    message, st.text(max_size=40), st.none() | st.sampled_from(["expand", "shell", "winnow_expand"]) , st.sampled_from(list(Origin)),
    st.sampled_from(list(MessageKind)),
)), st.booleans())  # fmt: skip
def test_relabelling_changes_origins_alone_and_settles(messages, source):
    """Nothing but the origin of outputs changes, doing it twice changes nothing more, and echoes and sub-agents stay what they are."""
    known = {given_key(m.text): source for m in messages[::2]}
    once = relabelled(messages, known)
    assert relabelled(once, known) == once
    for before, after in zip(messages, once, strict=True):
        assert before.model_copy(update={"origin": after.origin}) == after
        if before.origin not in {Origin.OBSERVATION, Origin.RECOVERY} or before.kind is not ENVIRONMENT:
            assert after is before


def test_only_the_winnow_rules_know_of_it():
    """A recovered text supports nothing under the rules of the whole design; the published system takes every output."""

    def provenance(rules: Rules) -> ProvenanceClass:
        found = examine(
            "## Decisions\n- flight HAT136 costs $152\n", task="", previous=None, retained=(), host="openclaw", rules=rules,
            history=[message("flight HAT136 costs $152", "winnow_expand")],
        )  # fmt: skip
        return found.analysis.entries[0].provenance

    assert provenance(Rules.PUBLISHED) is ProvenanceClass.ENVIRONMENT
    assert provenance(Rules.WINNOW) is ProvenanceClass.AGENT
