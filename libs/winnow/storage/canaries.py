"""Donors of canaries: entries of a fleet's latest boundaries that had a source of their own."""

from collections.abc import Collection

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.judging.canaries import Donor
from winnow.storage import raw

#: Boundaries of a fleet that are looked at, and entries of each that are taken: enough for any boundary to find one, and one cheap query.
BOUNDARIES, ENTRIES = 12, 4

# The latest boundaries come from the index on (fleet, boundary_at); their children from one partition each, by their keys. An entry that
# output and judge agree on, of one line's length; the least numbered would always be of the first section, so they are mixed by their key.
_DONORS = """
SELECT f.fleet, b.run, e.section, e.text
FROM unnest($1::text[]) AS f(fleet)
CROSS JOIN LATERAL (
    SELECT fleet, boundary_id, boundary_at, run FROM boundaries
    WHERE fleet = f.fleet AND outcome = 'judged' ORDER BY boundary_at DESC, boundary_id DESC LIMIT $2
) b
CROSS JOIN LATERAL (
    SELECT e.section, e.text FROM decisions d
    JOIN entries e ON e.fleet = d.fleet AND e.boundary_id = d.boundary_id AND e.boundary_at = d.boundary_at AND e.n = d.n
    WHERE d.fleet = b.fleet AND d.boundary_id = b.boundary_id AND d.boundary_at = b.boundary_at AND d.verdict = 'sourced'
        AND d.root_source = 'environment' AND e.provenance = 'environment' AND length(e.text) <= 310
    ORDER BY e.text_key LIMIT $3
) e
ORDER BY f.fleet, b.boundary_at DESC, b.boundary_id
"""


async def donors(tx: AsyncConnection, fleets: Collection[str]) -> dict[str, tuple[Donor, ...]]:
    """Entries of each fleet's latest boundaries, whatever their run; never of another fleet. A fleet without any is left out."""
    found: dict[str, list[Donor]] = {}
    if fleets:
        for row in await raw.fetch(tx, _DONORS, sorted(set(fleets)), BOUNDARIES, ENTRIES):
            found.setdefault(row["fleet"], []).append(Donor(run=row["run"], section=row["section"], text=row["text"]))
    return {fleet: tuple(of_fleet) for fleet, of_fleet in found.items()}
