"""Who speaks."""

import pytest

from tests.unit.compaction.analysis.boundaries import action, notice, output, user
from winnow.compaction.boundary import examine
from winnow.compaction.roles import Role, echoes, is_echo_tool, origin_of, role_of
from winnow.contracts.vocabulary import Origin, Rules


@pytest.mark.parametrize(
    ("message", "winnow", "published"),
    [
        (action(0, "x"), Role.AGENT, Role.AGENT),
        (user(0, "x"), Role.USER, Role.USER),
        (notice(0, "x"), Role.TASK, Role.TASK),
        (output(0, "x"), Role.SOURCE, Role.SOURCE),
        (output(0, "x", origin=Origin.ECHO), Role.AGENT, Role.SOURCE),
        (output(0, "x", origin=Origin.SUBAGENT), Role.AGENT, Role.SOURCE),
        (output(0, "x", origin=Origin.RECOVERY), Role.AGENT, Role.SOURCE),
        (output(0, "x", origin=Origin.HOST_NOTICE), Role.TASK, Role.SOURCE),
        (output(0, "x", tool="TodoWrite"), Role.AGENT, Role.SOURCE),
        (output(0, "x", tool="mcp__notes__think"), Role.AGENT, Role.SOURCE),
        (output(0, "x", tool="functions.update_plan"), Role.AGENT, Role.SOURCE),
        (output(0, "x", tool="write_file"), Role.SOURCE, Role.SOURCE),
        (output(0, "x", tool="search_plans"), Role.SOURCE, Role.SOURCE),
    ],
)
def test_only_observations_are_sources(message, winnow, published):
    """Echoes, sub-agents, host notices and recovered bytes are no source; the published system takes every output for one."""
    assert role_of(message, Rules.WINNOW) is winnow
    assert role_of(message, Rules.PUBLISHED) is published


def test_the_hosts_word_stands():
    """An origin that the host gave is not changed by the tool's name, and a tool without a name is no echo."""
    assert origin_of(output(0, "x", tool="think", origin=Origin.SUBAGENT), Rules.WINNOW) is Origin.SUBAGENT
    assert origin_of(output(0, "x", tool="think"), Rules.PUBLISHED) is Origin.OBSERVATION
    assert not is_echo_tool("")


def test_a_profile_adds_echo_tools_of_its_host():
    """What a profile's own echo tools return is the agent's word; other tools, origins that the host gave, and other kinds stay."""
    messages = [
        output(0, "noted", tool="mcp__hermes__Memory"),
        output(1, "x", tool="memory", origin=Origin.SUBAGENT),
        output(2, "x", tool="memory_search"),
        output(3, "x"),
        action(4, "memory"),
    ]
    found = echoes(messages, {"memory"})
    assert [message.origin for message in found] == [Origin.ECHO, *(message.origin for message in messages[1:])]
    assert [message.text for message in found] == [message.text for message in messages]
    assert echoes(messages, frozenset()) is messages


@pytest.mark.parametrize(
    ("head", "sources"), [("[CONTEXT COMPACTION]\n## Key Decisions", ("agent", ())), ("## Notes", ("environment", ("environment",)))]
)
def test_a_note_is_no_source_where_the_profile_says_so(head, sources):
    """The same output of a tool `memory` is the agent's word under Hermes and a source under a host that nothing is known of."""
    found = examine(
        f"{head}\n- Use port 8443 for staging-relay\n",
        task="t",
        previous=None,
        history=[action(0, "note it"), output(1, "saved: use port 8443 for staging-relay", tool="memory")],
        retained=[],
    )
    entry = found.analysis.entries[-1]
    assert (entry.provenance, entry.sources) == sources
