"""Entries with their evidence, scores and decisions, read back."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.events import Entry, EntryDecision, Passage, Score
from winnow.contracts.vocabulary import Decision, RootSource, Verdict
from winnow.storage.keys import Key


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedDecision:
    """What a parent decided for one of its candidate's entries; M's entries are found among these."""

    n: int
    section: str
    text: str
    text_key: str
    decision: Decision
    root_source: RootSource
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryHistory:
    """All of one entry: what it says, what supports it, what was decided."""

    entry: Entry
    passages: tuple[Passage, ...]  # its evidence, best first
    score: Score | None
    judge: str | None
    decision: EntryDecision | None


async def load(tx: AsyncConnection, keys: Sequence[Key]) -> dict[Key, tuple[Entry, ...]]:
    """The entries of boundaries, in order of n, with values, features and evidence links. Boundaries without entries are left out."""
    raise NotImplementedError


async def decisions_of(tx: AsyncConnection, keys: Sequence[Key]) -> dict[Key, tuple[CarriedDecision, ...]]:
    """The decisions of (parent) boundaries in order of n."""
    raise NotImplementedError


async def history(tx: AsyncConnection, key: Key) -> tuple[EntryHistory, ...]:
    """Everything on the entries of one boundary, in order of n."""
    raise NotImplementedError
