"""Fleets: operating points, holds, and the gate that the pruner reads inside its own transaction."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.vocabulary import Mode


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What an operating point says. Both demands are false by default, and then shown as uncertified and unwatched."""

    mode: Mode = Mode.ENFORCE
    tau: float = 0.5
    judge: str = "local"
    require_certificate: bool = False
    hold_if_monitor_stale: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatingPoint:
    """A stored operating point; never changed, only followed by another."""

    id: int
    fleet: str
    point: Point
    created_at: datetime
    created_by: str
    because: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """A fleet as it stands: its operating point and whether it is held."""

    fleet: str
    operating_point: OperatingPoint
    held_since: datetime | None
    held_because: str | None
    held_by: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """May the pruner enforce? While held, the effective mode is at most `annotate`."""

    fleet: str
    held: bool
    because: str | None


async def ensure(tx: AsyncConnection, fleets: Iterable[str], *, default: Point, now: datetime) -> dict[str, Fleet]:
    """Create fleets that are not there, each with `default` as its first operating point; return all of them."""
    raise NotImplementedError


async def load(tx: AsyncConnection, fleets: Iterable[str]) -> dict[str, Fleet]:
    """The fleets that are there."""
    raise NotImplementedError


async def all_fleets(tx: AsyncConnection) -> list[Fleet]:
    """Every fleet, by name."""
    raise NotImplementedError


async def points(tx: AsyncConnection, ids: Iterable[int]) -> dict[int, OperatingPoint]:
    """Operating points by id: later stages use the one that the retriever stamped."""
    raise NotImplementedError


async def set_point(tx: AsyncConnection, fleet: str, point: Point, *, by: str, because: str | None, now: datetime) -> OperatingPoint:
    """Make `point` the fleet's current operating point, with an audit row. Raise `NotFound` for an unknown fleet."""
    raise NotImplementedError


async def hold(tx: AsyncConnection, fleet: str, *, by: str, because: str, now: datetime, alert_id: str | None = None) -> bool:
    """Hold a fleet, with an audit row. False where it was held already: the first reason stays."""
    raise NotImplementedError


async def release(tx: AsyncConnection, fleet: str, *, by: str, because: str, now: datetime) -> bool:
    """Release a fleet, with an audit row. False where it was not held."""
    raise NotImplementedError


async def gate(tx: AsyncConnection, fleets: Iterable[str], *, now: datetime, stale_after: timedelta) -> dict[str, Gate]:
    """Read, FOR SHARE, whether each fleet is held: until this transaction ends nobody holds or releases it.

    Held also where the current operating point requires a certificate and no valid one is there, or demands a live monitor and the last
    heartbeat is older than `stale_after`. An unknown fleet is held: no readable state never means free.
    """
    raise NotImplementedError


async def heartbeat(tx: AsyncConnection, monitor: str, *, now: datetime) -> None:
    """The drift monitor is alive."""
    raise NotImplementedError
