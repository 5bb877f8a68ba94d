"""Places: an original, or one part of it, as an agent names it to get it back.

`<handle>` is all of an original. `<handle>.e5` is entry 5 of the candidate that the handle stands for, `<handle>.m12` the text of message
12 of the history. A part is as hard to guess as its handle, belongs to the same fleet, and expires and is erased with it.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Self

from winnow.contracts.errors import NotFound

#: First line of whatever Winnow tells an agent about originals besides their exact bytes: lists, excerpts, notes. It is known by it when it
#: comes back in a history, whichever tool it passed through, and is no source.
NOTICE: Final = "[winnow: recovered context, no evidence by itself]"
#: Characters of a place at most: a handle, a full stop, a letter and nine digits.
PLACE_CHARS: Final = 75
_PLACE: Final = re.compile(r"([A-Za-z0-9_-]{22,64})(?:\.([em])([0-9]{1,9}))?", re.ASCII)


class Part(StrEnum):
    """What a place is a part of."""

    ENTRY = "e"  # an entry of a candidate, by its number in the summary, from 1
    MESSAGE = "m"  # a message of a history, by its number `i` in the run


@dataclass(frozen=True, slots=True)
class Place:
    """An original by its handle, or a numbered part of it."""

    handle: str
    part: Part | None = None
    n: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """The place that `text` names. Raise `NotFound` for what no place looks like: a guess deserves no better answer than a miss."""
        found = _PLACE.fullmatch(text) if len(text) <= PLACE_CHARS else None
        if found is None:
            raise NotFound("this is not a handle; take one from search_history or pruned_entries, as it stands there")
        handle, part, n = found.groups()
        return cls(handle) if part is None else cls(handle, Part(part), int(n))

    @property
    def suffix(self) -> str | None:
        """The part without the handle, for example `e5`; None for the whole original."""
        return None if self.part is None else f"{self.part.value}{self.n}"

    def __str__(self) -> str:
        return self.handle if self.part is None else f"{self.handle}.{self.suffix}"
