"""API keys: 256 random bits, shown once, kept as a hash, bound to one fleet."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A stored key, without its secret. `role` is `runtime`, `grader` or `operator`."""

    key_id: UUID
    fleet: str
    name: str
    role: str
    created_at: datetime
    revoked_at: datetime | None
    last_used_at: datetime | None


async def create(tx: AsyncConnection, fleet: str, *, name: str, role: str = "runtime", by: str, now: datetime) -> tuple[str, ApiKey]:
    """Make a key for an existing fleet; the secret (`wnw_...`) is returned here and never again."""
    raise NotImplementedError


async def verify(tx: AsyncConnection, secret: str, *, now: datetime) -> ApiKey | None:
    """The key that `secret` is, or None (unknown, malformed or revoked). `last_used_at` moves at most once a minute."""
    raise NotImplementedError


async def listed(tx: AsyncConnection, fleet: str | None = None) -> list[ApiKey]:
    """Keys by fleet and age, revoked ones included."""
    raise NotImplementedError


async def revoke(tx: AsyncConnection, key_id: UUID, *, by: str, now: datetime) -> ApiKey:
    """Revoke a key; it stays revoked. Raise `NotFound`."""
    raise NotImplementedError
