"""Originals: exact bytes, stored once a fleet by content, and the random handles that give them back."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Self
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.storage.keys import ContentKey


class Kind(StrEnum):
    """What a handle's original is."""

    TASK = "task"
    HISTORY = "history"
    CANDIDATE = "candidate"
    PREVIOUS = "previous"
    COMMITTED = "committed"
    EVENT = "event"  # the body of an event above its topic's limit


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """Bytes to keep. Build with `Content.of`, which computes the hash."""

    fleet: str
    sha256: str
    data: bytes

    @classmethod
    def of(cls, fleet: str, data: bytes | str) -> Self:
        """Hash `data` (a text as UTF-8)."""
        raise NotImplementedError

    @property
    def key(self) -> ContentKey:
        """Fleet and hash."""
        return ContentKey(self.fleet, self.sha256)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewHandle:
    """A handle to store. `handle` comes from `new_handle()`, so that an event's body can name it before the transaction."""

    handle: str
    fleet: str
    sha256: str
    kind: Kind
    boundary_id: UUID | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What a handle gives back: exact bytes, hash checked."""

    handle: str
    fleet: str
    sha256: str
    kind: Kind
    boundary_id: UUID | None
    data: bytes


def new_handle() -> str:
    """A random handle of 192 bits, 32 url-safe characters."""
    raise NotImplementedError


async def put(tx: AsyncConnection, contents: Iterable[Content]) -> None:
    """Store what is not stored yet. What is stored already is touched, so that collection leaves it alone for an hour.

    Raise `TooLarge` above `limits.ORIGINAL_BYTES`.
    """
    raise NotImplementedError


async def get(tx: AsyncConnection, keys: Iterable[ContentKey]) -> dict[ContentKey, bytes]:
    """The exact bytes of originals; unknown keys are left out. Raise `HashMismatch` where stored bytes do not have their hash."""
    raise NotImplementedError


async def put_handles(tx: AsyncConnection, handles: Sequence[NewHandle]) -> None:
    """Store handles; a handle that is stored already is left as it is."""
    raise NotImplementedError


async def handles_of(tx: AsyncConnection, fleet: str, boundary_id: UUID) -> dict[Kind, str]:
    """The live handles of a boundary (no expiry is looked at)."""
    raise NotImplementedError


async def resolve(tx: AsyncConnection, fleet: str, handle: str, *, now: datetime) -> Resolved:
    """Give back the bytes of a handle. Raise `NotFound` (also for another fleet's handle), `Gone` where it is expired or erased."""
    raise NotImplementedError
