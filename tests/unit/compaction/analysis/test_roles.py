"""Who speaks."""

import pytest

from tests.unit.compaction.analysis.boundaries import action, notice, output, user
from winnow.compaction.roles import Role, is_echo_tool, origin_of, role_of
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
