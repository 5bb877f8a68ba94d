"""How rows are named: a boundary by fleet and id, a stream by fleet and name, an original by fleet and hash."""

from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from winnow.contracts.events import sha256


class Key(NamedTuple):
    """A boundary. Sortable: batches are locked in key order, so that two of them never deadlock."""

    fleet: str
    boundary_id: UUID

    @property
    def token(self) -> str:
        """How the commit channel names it: every login of the database may listen there, an SQL reader of another fleet too."""
        return sha256(f"{self.fleet}/{self.boundary_id}")


class StreamKey(NamedTuple):
    """A stream of a fleet. Sortable, as boundaries are."""

    fleet: str
    stream: str


class ContentKey(NamedTuple):
    """An original: the SHA-256 (lower-case hex) of its bytes, within a fleet."""

    fleet: str
    sha256: str


class Stage(StrEnum):
    """A stage whose answer is stored with the exact bytes that were published."""

    EVIDENCE = "evidence"
    SCORES = "scores"
    COMMITTED = "committed"
