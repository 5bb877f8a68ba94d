"""What certificates are bound to, and whether they cover what a fleet serves: one answer for pruner, console and `winnow doctor`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.storage import raw

#: What a certificate says of a thing that it was not told, and so is not bound to.
NOT_STATED = "not stated"
#: Newest boundaries of a fleet among which the last one is looked for that its judge judged at its operating point.
LOOK_BACK = 100

#: SQL: the bindings of the certificates `c` of a fleet that are live at $2, as JSON. See `read`.
LIVE = """
(SELECT coalesce(jsonb_agg(jsonb_build_object('judge', c.judge, 'judge_version', c.judge_version, 'tau', c.tau, 'compressor', c.compressor,
    'operating_point', c.record #>> '{certificate,operating_point}', 'until', extract(epoch FROM c.expires_at))), '[]')
FROM certificates c WHERE c.fleet = f.fleet AND c.revoked_at IS NULL AND c.issued_at <= $2 AND c.expires_at > $2)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What a boundary was served by, or, where `known` is false, all that an operating point says of the boundaries to come."""

    judge: str
    tau: float
    operating_point: int
    judge_version: str = ""
    compressor: str | None = None
    #: Judge version and compressor are known: they belong to a boundary.
    known: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What a live certificate is bound to, as far as it names it."""

    judge: str
    judge_version: str
    tau: float
    operating_point: str | None
    compressor: str
    #: Seconds since 1970 when it ends.
    until: float = 0.0

    def departures(self, served: Served) -> tuple[str, ...]:
        """In what a boundary was served otherwise; empty where the certificate covers it."""
        found = [] if self.judge == served.judge else ["judge"]
        if served.known and self.judge == served.judge and self.judge_version not in {NOT_STATED, served.judge_version}:
            found.append("judge version")
        if self.tau != served.tau:
            found.append("threshold")
        if self.operating_point not in {None, str(served.operating_point)}:
            found.append("operating point")
        if served.known and self.compressor != NOT_STATED and _spelt(self.compressor) != _spelt(served.compressor or ""):
            found.append("compressor")
        return tuple(found)


def _spelt(compressor: str) -> str:
    """A compressor's name: `--compressor NAME:VERSION` is stored with a blank, and hosts write either."""
    return " ".join(compressor.replace(":", " ").split())


def read(said: Iterable[dict[str, object]]) -> tuple[Binding, ...]:
    """The bindings in what `LIVE` gives."""
    return tuple(Binding(**one) for one in said)  # type: ignore[arg-type]  # columns of the table, and its CHECKs


def uncovered(bindings: Sequence[Binding], served: Served) -> str | None:
    """Why no certificate covers what was served, by what the nearest one departs in; None: one does."""
    least = min((binding.departures(served) for binding in bindings), key=len, default=("judge", "threshold"))
    return f"no valid certificate for this {' and '.join(least)}" if least else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Whether a fleet is certified for what it serves: its operating point, and what its last judged boundary was served by."""

    fleet: str
    #: Its operating point demands it: what is not covered is not pruned.
    required: bool
    #: Why it is not certified; None: it is.
    because: str | None
    #: When the last certificate that covers it ends.
    until: datetime | None


# The last boundary that the fleet's own judge judged: what a fallback answered says nothing of the next.
_STANDINGS = f"""
SELECT f.fleet, p.id, p.judge, p.tau, p.require_certificate, last.judge_version, last.compressor, last.fleet IS NOT NULL AS known,
    {LIVE} AS certificates
FROM fleets f JOIN operating_points p ON p.id = f.operating_point
LEFT JOIN LATERAL (
    SELECT b.* FROM (SELECT * FROM boundaries b WHERE b.fleet = f.fleet ORDER BY b.boundary_at DESC, b.boundary_id DESC LIMIT $3) AS b
    WHERE b.operating_point = p.id AND b.judge = p.judge AND b.fallback_for IS NULL AND b.outcome IN ('judged', 'judged_partial')
    ORDER BY b.boundary_at DESC, b.boundary_id DESC LIMIT 1) AS last ON true
WHERE $1::text[] IS NULL OR f.fleet = ANY ($1) ORDER BY f.fleet
"""  # noqa: S608  built from constants


async def standings(tx: AsyncConnection, fleets: Sequence[str] | None = None, *, now: datetime) -> list[Standing]:
    """Whether each fleet, or each that is named, is certified at `now`. An unknown one is left out."""
    return [_standing(row) for row in await raw.fetch(tx, _STANDINGS, None if fleets is None else list(fleets), now, LOOK_BACK)]


def _standing(row: raw.Record) -> Standing:
    served = Served(
        judge=row["judge"],
        tau=row["tau"],
        operating_point=row["id"],
        judge_version=row["judge_version"] or "",
        compressor=row["compressor"],
        known=row["known"],
    )
    bindings = read(row["certificates"])
    ends = [binding.until for binding in bindings if not binding.departures(served)]
    return Standing(
        fleet=row["fleet"],
        required=row["require_certificate"],
        because=uncovered(bindings, served),
        until=datetime.fromtimestamp(max(ends), UTC) if ends else None,
    )
