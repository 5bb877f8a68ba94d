"""What a remote judge may see of a boundary: the texts of a request, masked, in the pieces that a request is built from."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from winnow.contracts.events import Message
from winnow.contracts.vocabulary import MessageKind, Origin, Rules
from winnow.judging.adapters.masking import Masker
from winnow.judging.port import JudgeRequest

#: How a task text that holds both marks its system prompt and the user's first message.
_SYSTEM: Final = "SYSTEM PROMPT:"
_USER: Final = re.compile(r"(?:\A|\n)USER:[ \t]*\n?")
#: A user's command that the host keeps from the model, output and all: it is not ours to show to another one.
_EXCLUDED: Final = "!!"


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One message of the retained interaction R."""

    kind: MessageKind
    text: str
    tool: str | None = None
    origin: Origin = Origin.OBSERVATION
    #: A call without a result: it may not be cut away, for it is what the agent waits for.
    pending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One passage of the pooled evidence."""

    id: int
    message: int
    tool: str | None
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One entry, and the passages that were retrieved for it, best first."""

    n: int
    text: str
    passages: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """A boundary as a remote judge may see it."""

    #: The task's instruction (the user's first message), not the system prompt.
    task: str
    #: What the user asked of the compressor (`/compact <focus>`); context.
    focus: str | None
    retained: tuple[Turn, ...]
    previous: str | None
    passages: Mapping[int, Piece]
    items: tuple[Item, ...]


def instruction(task: str) -> str:
    """The instruction of a task text: what follows the first `USER:` line, where the text marks its parts so; else the whole text."""
    if not task.startswith((_SYSTEM, "USER:")):
        return task
    found = _USER.search(task)
    return task if found is None else task[found.end() :]


def material_of(request: JudgeRequest, masker: Masker) -> Material:
    """What of `request` may be sent, masked together so that one secret has one mask.

    Left out: the system prompt, user commands that the host keeps from the model (`!!`) with the outputs that follow them, and under
    `published` rules what the user asked of the compressor, which the published request does not have.
    """
    evidence = request.evidence
    kept = _shown(request.retained)
    focus = evidence.custom_instructions if evidence.rules is Rules.WINNOW else None
    texts = [instruction(request.task), request.previous or "", focus or ""]
    texts += [message.text for message in kept]
    texts += [passage.text for passage in evidence.passages]
    texts += [entry.text for entry in evidence.entries]
    masked = iter(masker.mask([_encodable(text) for text in texts]))
    task, previous, focused = next(masked), next(masked), next(masked)
    pending = _pending(kept)
    turns = tuple(Turn(kind=m.kind, text=next(masked), tool=m.tool, origin=m.origin, pending=at in pending) for at, m in enumerate(kept))
    pieces = {p.id: Piece(id=p.id, message=p.message, tool=p.tool, text=next(masked)) for p in evidence.passages}
    items = tuple(
        Item(
            n=entry.n,
            text=next(masked),
            passages=tuple(link.passage for link in sorted(entry.evidence, key=lambda x: x.rank) if link.passage in pieces),
        )
        for entry in evidence.entries
    )
    return Material(
        task=task,
        focus=None if focus is None else focused,
        retained=turns,
        previous=None if request.previous is None else previous,
        passages=pieces,
        items=items,
    )


def _shown(retained: tuple[Message, ...]) -> list[Message]:
    """R without excluded commands and the outputs that directly follow them."""
    shown: list[Message] = []
    excluded = False
    for message in retained:
        if message.kind is MessageKind.USER:
            excluded = message.text.lstrip().startswith(_EXCLUDED)
        elif message.kind is not MessageKind.ENVIRONMENT:
            excluded = False
        if not excluded:
            shown.append(message)
    return shown


def _pending(retained: list[Message]) -> set[int]:
    """Positions of actions after which no output comes."""
    last = max((at for at, m in enumerate(retained) if m.kind is MessageKind.ENVIRONMENT), default=-1)
    return {at for at, m in enumerate(retained) if m.kind is MessageKind.ACTION and at > last}


def _encodable(text: str) -> str:
    """`text` with a replacement character for each lone surrogate, which UTF-8 cannot carry."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
