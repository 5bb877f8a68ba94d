"""Outputs cut to passages, passages gathered to chunks. Offsets are characters of the raw text; nothing is lost between two cuts."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from winnow.compaction.roles import Role, origin_of, role_of
from winnow.contracts.events import Message
from winnow.contracts.vocabulary import Origin, Rules

#: Characters of a passage: the unit that is retrieved (Source-Judged Compaction).
PASSAGE_CHARS = 300
#: Characters of a chunk: what a judge reads around a retrieved passage.
CHUNK_CHARS = 2_000
#: Where a window may end, best first; the cut falls behind the separator.
_SEPARATORS = ("\n", ", ", " ")


class Span(NamedTuple):
    """One passage: a stretch of one output. `message` is the position of the output in H and R, not its number `i`."""

    message: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Output:
    """An environment output that is a source."""

    message: int
    text: str
    tool: str | None
    origin: Origin


def outputs(messages: Sequence[Message], rules: Rules) -> list[Output]:
    """The outputs that are sources, in order of the span."""
    return [
        Output(message=at, text=message.text, tool=message.tool, origin=origin_of(message, rules))
        for at, message in enumerate(messages)
        if role_of(message, rules) is Role.SOURCE
    ]


def cuts(text: str, size: int) -> Iterator[tuple[int, int]]:
    """Yield offsets of consecutive windows of at most `size` characters that together are `text`.

    A window backs up to the last newline, else ", ", else blank in its second half; without any it is cut where it is full.
    """
    at, length = 0, len(text)
    while length - at > size:
        end = at + size
        for separator in _SEPARATORS:
            found = text.rfind(separator, at + size // 2, end)
            if found >= 0:
                end = found + len(separator)
                break
        yield at, end
        at = end
    if at < length:
        yield at, length


def chunks(passages: Sequence[Span], size: int = CHUNK_CHARS) -> list[tuple[int, int]]:
    """Chunks as ranges of passages [first, end): consecutive passages of one output, together at most `size` characters."""
    found: list[tuple[int, int]] = []
    first = 0
    for at, passage in enumerate(passages):
        opening = passages[first]
        if passage.message != opening.message or passage.end - opening.start > size:
            found.append((first, at))
            first = at
    if passages:
        found.append((first, len(passages)))
    return found
