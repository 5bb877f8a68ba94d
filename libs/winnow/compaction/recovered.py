"""What Winnow gave back and meets again in a history: a source only where an environment said it, or a plan would become its own evidence.

Results of the recovery tools are known by the tool's name, by the line that lists begin with, or by their text, which Winnow remembers. An
output of an environment that was recovered byte for byte is that output again; everything else that was recovered is the agent's own.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from winnow.contracts.events import Message
from winnow.contracts.places import NOTICE
from winnow.contracts.vocabulary import MessageKind, Origin

#: Characters at the head of an output in which the notice is looked for: hosts wrap outputs in a few characters of JSON or markup.
_HEAD_CHARS: Final = 200
#: Names of the recovery tools, without anything but letters.
_TOOLS: Final = ("expand", "searchhistory", "prunedentries")
_OURS: Final = tuple(f"winnow{tool}" for tool in _TOOLS)
#: Characters of a tool's name that are looked at: the end of it says which tool of which server it is.
_TOOL_CHARS: Final = 100
_NO_LETTERS: Final = re.compile(r"[^a-z]+")


def given_key(text: str) -> str:
    """Identity of a given text: 32 hex digits of its hash, without the blanks around it, which hosts trim."""
    return hashlib.sha256(text.strip().encode("utf-8", "surrogatepass")).hexdigest()[:32]


def is_recovery_tool(tool: str) -> bool:
    """Whether a tool of this name is one of Winnow's, with whatever prefix a host gives it: `mcp__winnow__expand`, `winnow_expand`."""
    return _letters(tool).endswith(_OURS)


def may_be_recovered(message: Message) -> bool:
    """Whether an output can be a recovery, so that its text is worth a look-up; most boundaries have none."""
    if message.kind is not MessageKind.ENVIRONMENT or message.origin not in {Origin.OBSERVATION, Origin.RECOVERY}:
        return False
    return message.origin is Origin.RECOVERY or message.tool is None or _letters(message.tool).endswith(_TOOLS)


def keys_of(messages: Sequence[Message]) -> set[str]:
    """Identities of the texts to look up: whether Winnow gave them, and as what."""
    return {given_key(m.text) for m in messages if may_be_recovered(m) and m.text.strip()}


def relabelled(messages: Sequence[Message], given: Mapping[str, bool]) -> tuple[Message, ...]:
    """`messages` with the origins that they really have.

    Args:
        messages: H or R.
        given: of the texts that Winnow gave (by `given_key`), whether an environment had returned them.
    """
    return tuple(_relabelled(message, given) for message in messages)


def _relabelled(message: Message, given: Mapping[str, bool]) -> Message:
    """One message; what is not concerned stays the same object."""
    if message.kind is not MessageKind.ENVIRONMENT or message.origin not in {Origin.OBSERVATION, Origin.RECOVERY}:
        return message
    source = given.get(given_key(message.text)) if may_be_recovered(message) else None
    if source is not None:
        origin = Origin.OBSERVATION if source else Origin.RECOVERY
    else:
        ours = message.tool is not None and is_recovery_tool(message.tool)
        origin = Origin.RECOVERY if ours or NOTICE in message.text[:_HEAD_CHARS] else message.origin
    return message if origin is message.origin else message.model_copy(update={"origin": origin})


@lru_cache(maxsize=1024)
def _letters(tool: str) -> str:
    """The letters of a tool's name. Remembered: a span has hundreds of outputs of a few tools."""
    return _NO_LETTERS.sub("", tool[-_TOOL_CHARS:].lower())
