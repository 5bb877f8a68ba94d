"""Donors of canaries: entries of a fleet's latest boundaries that had a source of their own, and where their texts went."""

from collections.abc import Collection, Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.envelope import decode, decode_claim
from winnow.contracts.events import Evidence, Scores
from winnow.contracts.topics import EVIDENCE, SCORES
from winnow.judging.canaries import Donor
from winnow.storage import originals, raw, stages
from winnow.storage.keys import ContentKey, Key, Stage
from winnow.storage.outputs import output_of
from winnow.storage.stages import StoredOutput
from winnow.storage.values import compress, storable

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


async def note(tx: AsyncConnection, planted: Sequence[tuple[str, str, UUID, datetime]]) -> None:
    """Note which boundaries (id, anchor time) of a fleet hold an entry of a run as a canary: rows of fleet, run, boundary, anchor time."""
    rows = sorted((fleet, storable(run), boundary_id, at) for fleet, run, boundary_id, at in planted)
    if rows:
        await raw.execute(
            tx,
            "INSERT INTO canary_donors (fleet, run, boundary_id, boundary_at)"
            " SELECT * FROM unnest($1::text[], $2::text[], $3::uuid[], $4::timestamptz[]) ON CONFLICT DO NOTHING",
            *raw.columns(rows, 4),
        )


async def forget(tx: AsyncConnection, fleet: str, run: str, *, now: datetime) -> list[str]:
    """Take a run's entries out of what is stored of other runs' boundaries: their answers lose all canaries.

    A repetition publishes them without. Return the hashes of stored bodies that nothing refers to any more. Call it where nobody else can
    put originals.
    """
    rows = await raw.fetch(tx, "DELETE FROM canary_donors WHERE fleet = $1 AND run = $2 RETURNING boundary_id", fleet, storable(run))
    keys = [Key(fleet, UUID(str(row["boundary_id"]))) for row in rows]
    left: list[str] = []
    for stored in (await stages.load_outputs(tx, keys, Stage.EVIDENCE)).values():
        evidence = decode(Evidence, await _body(tx, stored, left, now))
        await _replace(tx, stored, evidence.model_copy(update={"canaries": ()}))
    for stored in (await stages.load_outputs(tx, keys, Stage.SCORES)).values():
        scores = decode(Scores, await _body(tx, stored, left, now))
        await _replace(tx, stored, scores.model_copy(update={"canaries": ()}))
    return left


async def _body(tx: AsyncConnection, stored: StoredOutput, left: list[str], now: datetime) -> bytes:
    """The event's bytes; where they are an original of their own, its handle ends here."""
    if not stored.output.claim:
        return stored.output.body
    claim = decode_claim(stored.output.body)
    key = ContentKey(stored.fleet, claim.sha256)
    found = await originals.get(tx, [key])
    await raw.execute(tx, "UPDATE handles SET erased_at = $2, sha256 = NULL WHERE handle = $1", claim.handle, now)
    left.append(claim.sha256)
    return found[key]


async def _replace(tx: AsyncConnection, stored: StoredOutput, event: Evidence | Scores) -> None:
    """Store another body for an answer. Its id stays: whoever has the first one needs no other."""
    topic = EVIDENCE if isinstance(event, Evidence) else SCORES
    output, overflow = output_of(topic, event, traceparent=stored.output.traceparent)
    if overflow is not None:
        await originals.put(tx, [overflow.content], handles=[overflow.handle])
    body, encoding = compress(output.body)
    await raw.execute(
        tx,
        "UPDATE stage_outputs o SET body = $4, encoding = $5, claim = $6 FROM boundaries b WHERE b.fleet = $1 AND b.boundary_id = $2"
        " AND o.fleet = b.fleet AND o.boundary_id = b.boundary_id AND o.boundary_at = b.boundary_at AND o.stage = $3",
        stored.fleet,
        stored.boundary_id,
        stored.stage,
        body,
        encoding,
        output.claim,
    )
