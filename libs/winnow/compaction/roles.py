"""Who speaks in a boundary: only what the environment itself returned is a source."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import IntEnum
from typing import Final

from winnow.compaction.text import word_set
from winnow.contracts.events import Message
from winnow.contracts.vocabulary import MessageKind, Origin, Rules


class Role(IntEnum):
    """The speaker of a text, as far as sources are concerned."""

    TASK = 0  # P, and the host's own notices: visible or written by the host, never a source
    USER = 1  # a user turn of the span
    AGENT = 2  # the agent's own words, also where a tool, another model or Winnow gives them back
    PREVIOUS = 3  # M
    SOURCE = 4  # an environment output


#: Tools that return what the agent typed, by what they are for, as hosts name them, without case, `_` and `-`. Write and edit tools
#: are not here: their acknowledgement is the result of an act, and what it repeats of the call is the agent's by first mention. Read,
#: search and run tools are not either: all that they return is an output's.
ECHO_CLASSES: Final[Mapping[str, frozenset[str]]] = {
    "lists of work": word_set(
        "todowrite todoread writetodos todo todos updatetodos updatetodolist managetodolist taskcreate taskupdate tasklist"
    ),
    "plans": word_set("updateplan plan writeplan createplan enterplanmode exitplanmode"),
    "thoughts": word_set("think thinking thinktool sequentialthinking reflect scratchpad"),
    "notes": word_set("savememory memorywrite remember recall"),  # `recall` is OpenHands': the agent's own notes
}
#: All of them.
ECHO_TOOLS: Final = frozenset[str]().union(*ECHO_CLASSES.values())


def is_echo_tool(tool: str, tools: AbstractSet[str] = ECHO_TOOLS) -> bool:
    """Whether a tool of this name gives back the agent's own words; a prefix such as `mcp__server__` or `functions.` is ignored."""
    name = tool.rsplit("__", 1)[-1].rsplit(".", 1)[-1].rsplit("/", 1)[-1]
    return name.lower().replace("_", "").replace("-", "") in tools


def echoes(messages: Sequence[Message], tools: AbstractSet[str]) -> Sequence[Message]:
    """Messages in which what a host's own echo tools return says so; the origin that a host gave itself stands.

    `tools` are those that the host's profile adds to `ECHO_TOOLS` (`Profile.echo_tools`).
    """
    if not tools:
        return messages
    return [message.model_copy(update={"origin": Origin.ECHO}) if _echoed(message, tools) else message for message in messages]


def _echoed(message: Message, tools: AbstractSet[str]) -> bool:
    """Whether a message is called an observation and comes from one of the tools."""
    observed = message.kind is MessageKind.ENVIRONMENT and message.origin is Origin.OBSERVATION
    return observed and message.tool is not None and is_echo_tool(message.tool, tools)


def origin_of(message: Message, rules: Rules) -> Origin:
    """What an environment message really is: the host's word, and under `winnow` the known echo tools by name."""
    if rules is Rules.WINNOW and message.origin is Origin.OBSERVATION and message.tool is not None and is_echo_tool(message.tool):
        return Origin.ECHO
    return message.origin


def role_of(message: Message, rules: Rules) -> Role:
    """The role of a message of H or R.

    Under `published` every environment message is a source, whatever its origin.
    """
    if message.kind is not MessageKind.ENVIRONMENT:
        return _OF_KIND[message.kind]
    if rules is Rules.PUBLISHED:
        return Role.SOURCE
    return _OF_ORIGIN[origin_of(message, rules)]


_OF_KIND = {MessageKind.ACTION: Role.AGENT, MessageKind.USER: Role.USER, MessageKind.NOTICE: Role.TASK}
_OF_ORIGIN = {
    Origin.OBSERVATION: Role.SOURCE,
    Origin.HOST_NOTICE: Role.TASK,
    Origin.ECHO: Role.AGENT,
    Origin.SUBAGENT: Role.AGENT,
    Origin.RECOVERY: Role.AGENT,
}
