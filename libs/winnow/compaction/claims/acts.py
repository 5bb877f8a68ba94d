"""What the agent did in the span, and what came back: calls of tools with their outputs, in order."""

import re
from collections.abc import Container, Sequence
from typing import Final, NamedTuple

from winnow.contracts.events import Message
from winnow.contracts.vocabulary import MessageKind

_CALL: Final = re.compile(r"\[tool call\] ([\w.:/-]{1,100}):")
#: Characters of arguments and of a result that are read: a file that was written whole says no more of the act.
_CHARS: Final = 4_000
#: Beginnings and words of a result that failed.
_FAILED: Final = re.compile(
    r"\A\s*(?:\W{0,3}error|failed|fatal|usage:|traceback|bash:|sh:)"
    r"|\btraceback \(most recent"
    r"|\bexit(?:ed with)? (?:code|status):? [1-9]"
    r"|\bcommand not found|\bno such file|\bpermission denied|\bsyntax ?error|\bnot found\s*\Z|\btimed? ?out"
    r"|\b[1-9]\d* (?:failed|errors?)\b"
    r"|\bbuild failed|\bfailed\b[^\n]{0,40}\Z"
)
#: Tools and commands that change something: what was run before them may have to be run again.
_CHANGES: Final = re.compile(
    r"edit|write|create|insert|replace|patch|delete|remove|update|move|rename|commit"
    r"|\b(?:mv|rm|cp|sed -i|tee|git (?:checkout|reset|apply))\b"
)

#: Characters of a command in which its verb stands.
_COMMAND_CHARS: Final = 100


class Act(NamedTuple):
    """One call of a tool."""

    #: Number among the acts of the span.
    number: int
    tool: str  # lower case
    arguments: str  # lower case, blanks squeezed
    #: Position of the output in H and R; None where none came back.
    output: int | None
    answer: Message | None

    @property
    def failed(self) -> bool:
        """Whether nothing came back, or what came back says that it failed."""
        if self.answer is None or self.answer.is_error:
            return True
        text = self.answer.text
        return _FAILED.search((text if len(text) <= 2 * _CHARS else text[:_CHARS] + text[-_CHARS:]).lower()) is not None

    @property
    def changes(self) -> bool:
        """Whether it changes something."""
        return _CHANGES.search(self.tool) is not None or _CHANGES.search(self.arguments[:_COMMAND_CHARS]) is not None


def acts_of(messages: Sequence[Message], sources: Container[int]) -> list[Act]:
    """The agent's calls with their outputs: the k-th call of a message with the k-th output behind it. Linear in the span.

    `sources` are the positions of the messages that are environment outputs.
    """
    found: list[Act] = []
    position = 0
    while position < len(messages):
        message = messages[position]
        position += 1
        if message.kind is not MessageKind.ACTION:
            continue
        outputs: list[int] = []
        while position < len(messages) and messages[position].kind is not MessageKind.ACTION:
            if position in sources:
                outputs.append(position)
            position += 1
        calls = list(_CALL.finditer(message.text))
        for order, call in enumerate(calls):
            end = calls[order + 1].start() if order + 1 < len(calls) else len(message.text)
            arguments = squeezed(message.text[call.end() : min(end, call.end() + _CHARS)])
            at = outputs[order] if order < len(outputs) else None
            found.append(Act(len(found), call[1].lower(), arguments, at, None if at is None else messages[at]))
    return found


def squeezed(text: str) -> str:
    """A text in lower case with single blanks, quotes unescaped."""
    return " ".join(text.lower().replace('\\"', '"').replace("\\n", " ").split())
