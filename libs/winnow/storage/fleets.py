"""Fleets: operating points, holds, and the gate that the pruner reads inside its own transaction."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.errors import NotFound
from winnow.contracts.vocabulary import Mode
from winnow.storage import audit, raw
from winnow.storage.bindings import LIVE, Binding, Served, read, uncovered
from winnow.storage.values import storable, storable_or_none

#: Operating points that a stage remembers: a few hundred bytes each, and thousands of fleets have no more than one in use.
KNOWN_POINTS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What an operating point says. Both demands are false by default, and then shown as uncertified and unwatched."""

    mode: Mode = Mode.ENFORCE
    tau: float = 0.5
    judge: str = "local"
    require_certificate: bool = False
    hold_if_monitor_stale: bool = False
    #: Prune what is listed as open although an output shows it done.
    prune_stale: bool = False


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
    #: Live certificates, one of which must cover what a boundary was served by; None: none is required.
    certificates: tuple[Binding, ...] | None = None

    def serving(self, served: Served) -> "Gate":
        """The gate as it stands for a boundary: held where certificates are required and none covers it."""
        if self.held or self.certificates is None:
            return self
        because = uncovered(self.certificates, served)
        return self if because is None else replace(self, held=True, because=because)


_FLEETS = """
SELECT f.fleet, f.held_since, f.held_because, f.held_by, p.id, p.mode, p.tau, p.judge, p.require_certificate, p.hold_if_monitor_stale,
    p.prune_stale, p.created_at, p.created_by, p.because
FROM fleets f JOIN operating_points p ON p.id = f.operating_point
"""

_POINTS = """
INSERT INTO operating_points (fleet, mode, tau, judge, require_certificate, hold_if_monitor_stale, created_at, created_by, because,
    prune_stale)
SELECT f, $2, $3, $4, $5, $6, $7, $8, $9, $10 FROM unnest($1::text[]) AS f ORDER BY f
RETURNING id, fleet
"""

# FOR SHARE: hold and release wait for the pruners that have read the gate, and the next pruner waits for them.
_GATE = f"""
SELECT f.fleet, f.held_since IS NOT NULL AS held, f.held_because, p.id, p.mode, p.tau, p.judge, p.require_certificate,
    p.hold_if_monitor_stale, p.prune_stale, p.created_at, p.created_by, p.because,
    CASE WHEN p.require_certificate THEN {LIVE} END AS certificates,
    p.hold_if_monitor_stale AND NOT EXISTS (SELECT FROM monitor_heartbeats h WHERE h.at >= $3) AS unwatched
FROM fleets f JOIN operating_points p ON p.id = f.operating_point
WHERE f.fleet = ANY($1::text[]) ORDER BY f.fleet FOR SHARE OF f
"""  # noqa: S608  built from constants


def _point(row: raw.Record) -> OperatingPoint:
    """The operating point of a row."""
    return OperatingPoint(
        id=row["id"],
        fleet=row["fleet"],
        point=Point(
            mode=Mode(row["mode"]),
            tau=row["tau"],
            judge=row["judge"],
            require_certificate=row["require_certificate"],
            hold_if_monitor_stale=row["hold_if_monitor_stale"],
            prune_stale=row["prune_stale"],
        ),
        created_at=row["created_at"],
        created_by=row["created_by"],
        because=row["because"],
    )


def _fleet(row: raw.Record) -> Fleet:
    """The fleet of a row."""
    return Fleet(
        fleet=row["fleet"],
        operating_point=_point(row),
        held_since=row["held_since"],
        held_because=row["held_because"],
        held_by=row["held_by"],
    )


async def ensure(tx: AsyncConnection, fleets: Iterable[str], *, default: Point, now: datetime) -> dict[str, Fleet]:
    """Create fleets that are not there, each with `default` as its first operating point; return all of them."""
    wanted = sorted(set(fleets))
    found = await load(tx, wanted)
    missing = [f for f in wanted if f not in found]
    if missing:
        rows = await raw.fetch(
            tx,
            "INSERT INTO fleets (fleet, created_at) SELECT f, $2 FROM unnest($1::text[]) AS f ORDER BY f"
            " ON CONFLICT DO NOTHING RETURNING fleet",
            missing,
            now,
        )
        await _set(tx, [r["fleet"] for r in rows], default, by="default", because="first seen", now=now)
        found |= await load(tx, missing)
    return found


async def _set(tx: AsyncConnection, fleets: list[str], point: Point, *, by: str, because: str | None, now: datetime) -> dict[str, int]:
    """Give fleets, whose rows are locked, an operating point; return their numbers."""
    if not fleets:
        return {}
    rows = await raw.fetch(
        tx, _POINTS, fleets, point.mode, point.tau, storable(point.judge), point.require_certificate, point.hold_if_monitor_stale, now,
        storable(by), storable_or_none(because), point.prune_stale,
    )  # fmt: skip
    ids = {r["fleet"]: r["id"] for r in rows}
    await raw.execute(
        tx,
        "UPDATE fleets f SET operating_point = n.id FROM unnest($1::text[], $2::bigint[]) AS n(fleet, id) WHERE n.fleet = f.fleet",
        *raw.columns(sorted(ids.items()), 2),
    )
    return ids


async def load(tx: AsyncConnection, fleets: Iterable[str]) -> dict[str, Fleet]:
    """The fleets that are there."""
    rows = await raw.fetch(tx, _FLEETS + " WHERE f.fleet = ANY($1::text[])", sorted(set(fleets)))
    return {r["fleet"]: _fleet(r) for r in rows}


async def all_fleets(tx: AsyncConnection) -> list[Fleet]:
    """Every fleet, by name."""
    return [_fleet(r) for r in await raw.fetch(tx, _FLEETS + " ORDER BY f.fleet")]


async def points(tx: AsyncConnection, ids: Iterable[int]) -> dict[int, OperatingPoint]:
    """Operating points by id: later stages use the one that the retriever stamped."""
    rows = await raw.fetch(tx, "SELECT * FROM operating_points WHERE id = ANY($1::bigint[])", sorted(set(ids)))
    return {r["id"]: _point(r) for r in rows}


async def _lock(tx: AsyncConnection, fleet: str) -> raw.Record:
    """Lock a fleet's row for a change. Raise `NotFound`."""
    row = await raw.fetch_one(tx, "SELECT fleet, held_since FROM fleets WHERE fleet = $1 FOR NO KEY UPDATE", fleet)
    if row is None:
        msg = f"there is no fleet {fleet!r}; it is created by its first boundary or API key"
        raise NotFound(msg)
    return row


class KnownPoints:
    """Operating points by id, remembered: a stored one never changes."""

    def __init__(self) -> None:
        self._known: dict[int, OperatingPoint] = {}

    async def get(self, tx: AsyncConnection, ids: Iterable[int]) -> dict[int, OperatingPoint]:
        """As `points`; asks the database only for what was not asked for before."""
        wanted = set(ids)
        if missing := wanted - self._known.keys():
            if len(self._known) >= KNOWN_POINTS:
                self._known.clear()
            self._known |= await points(tx, missing)
        return {i: self._known[i] for i in wanted if i in self._known}


async def set_point(tx: AsyncConnection, fleet: str, point: Point, *, by: str, because: str | None, now: datetime) -> OperatingPoint:
    """Make `point` the fleet's current operating point, with an audit row. Raise `NotFound` for an unknown fleet."""
    await _lock(tx, fleet)
    number = (await _set(tx, [fleet], point, by=by, because=because, now=now))[fleet]
    await audit.add(tx, action="fleet.point", by=by, now=now, fleet=fleet, because=because, details={"id": number, **asdict(point)})
    return OperatingPoint(id=number, fleet=fleet, point=point, created_at=now, created_by=by, because=because)


async def hold(tx: AsyncConnection, fleet: str, *, by: str, because: str, now: datetime, alert_id: UUID | None = None) -> bool:
    """Hold a fleet, with an audit row. False where it was held already: the first reason stays. Raise `NotFound`."""
    if (await _lock(tx, fleet))["held_since"] is not None:
        return False
    await raw.execute(
        tx,
        "UPDATE fleets SET held_since = $2, held_because = $3, held_by = $4, hold_alert = $5 WHERE fleet = $1",
        fleet,
        now,
        storable(because),
        storable(by),
        alert_id,
    )
    await audit.add(tx, action="fleet.hold", by=by, now=now, fleet=fleet, because=because, details={"alert_id": alert_id})
    return True


async def release(tx: AsyncConnection, fleet: str, *, by: str, because: str, now: datetime) -> bool:
    """Release a fleet, with an audit row. False where it was not held. Raise `NotFound`."""
    if (await _lock(tx, fleet))["held_since"] is None:
        return False
    await raw.execute(
        tx, "UPDATE fleets SET held_since = NULL, held_because = NULL, held_by = NULL, hold_alert = NULL WHERE fleet = $1", fleet
    )
    await audit.add(tx, action="fleet.release", by=by, now=now, fleet=fleet, because=because)
    return True


async def gate(tx: AsyncConnection, fleets: Iterable[str], *, now: datetime, stale_after: timedelta) -> dict[str, Gate]:
    """Read, FOR SHARE, whether each fleet is held: until this transaction ends nobody holds or releases it.

    Held also where the current operating point requires a certificate and no valid one is there for its judge and threshold, or demands a
    live monitor and no heartbeat is younger than `stale_after`. An unknown fleet is held: no readable state never means free. What a
    certificate is bound to besides is known of each boundary only: see `Gate.serving`.
    """
    wanted = sorted(set(fleets))
    gates = {f: Gate(fleet=f, held=True, because="the fleet is unknown") for f in wanted}
    for row in await raw.fetch(tx, _GATE, wanted, now, now - stale_after):
        bindings = None if row["certificates"] is None else read(row["certificates"])
        point = Served(judge=row["judge"], tau=row["tau"], operating_point=row["id"], known=False)
        uncertified = None if bindings is None else uncovered(bindings, point)
        because = None
        if row["held"]:
            because = row["held_because"]
        elif uncertified is not None:
            because = uncertified
        elif row["unwatched"]:
            because = "the drift monitor gives no sign of life"
        held = row["held"] or uncertified is not None or row["unwatched"]
        gates[row["fleet"]] = Gate(fleet=row["fleet"], held=held, because=because, certificates=bindings)
    return gates


async def heartbeat(tx: AsyncConnection, monitor: str, *, now: datetime) -> None:
    """The drift monitor is alive."""
    await raw.execute(
        tx,
        "INSERT INTO monitor_heartbeats (monitor, at) VALUES ($1, $2) ON CONFLICT (monitor) DO UPDATE"
        " SET at = greatest(monitor_heartbeats.at, excluded.at)",
        storable(monitor),
        now,
    )
