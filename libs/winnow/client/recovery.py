"""What an agent gets back from Winnow."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self
from uuid import UUID

_RANGE: Final = re.compile(r"bytes (?:(\d{1,12})-\d{1,12}|\*)/(\d{1,12})", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """The exact bytes of an original or of a part of one, `[start, end)` of the `size` that it has."""

    handle: str
    data: bytes
    start: int
    size: int
    #: What the original is: task, history, candidate, previous, committed or event.
    kind: str
    #: An environment returned these bytes: they are a source when they come back in a history. Nothing else that was recovered is.
    source: bool
    boundary_id: UUID | None = None

    @classmethod
    def of(cls, handle: str, data: bytes, said: Mapping[str, str]) -> Self:
        """From the gateway's answer: its bytes, and its headers by lower-case name."""
        found = _RANGE.fullmatch(said.get("content-range", ""))
        size = int(found[2]) if found else len(data)
        start = 0 if found is None else int(found[1]) if found[1] else size
        boundary = said.get("winnow-boundary-id")
        return cls(
            handle=handle,
            data=data,
            start=start,
            size=size,
            kind=said.get("winnow-kind", ""),
            source=said.get("winnow-source") == "true",
            boundary_id=UUID(boundary) if boundary else None,
        )

    @property
    def end(self) -> int:
        """Where the bytes end in the whole."""
        return self.start + len(self.data)

    @property
    def whole(self) -> bool:
        """These are all bytes of it."""
        return len(self.data) == self.size

    @property
    def text(self) -> str | None:
        """The bytes as text; None where they are not UTF-8: then `data` alone is exact."""
        try:
            return self.data.decode()
        except UnicodeDecodeError:
            return None
