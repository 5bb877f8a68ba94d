"""Stored boundaries as the candidates that they were, and what became of them: to run them through a pipeline again and compare."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import ValidationError
from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.errors import HashMismatch, Permanent
from winnow.contracts.events import Candidate, Evidence, Messages
from winnow.contracts.vocabulary import Mode
from winnow.storage import originals, raw, stages
from winnow.storage.boundaries import Boundary, from_row
from winnow.storage.keys import ContentKey, Key, Stage
from winnow.storage.rejudging import Where

#: Committed boundaries in the order in which they were committed. $1 fleets, $2 since, $3 until, $4 runs, $5 rules; NULL: no matter. Runs
#: are taken whole: without its first boundaries, a run's later ones would rest on a text that nobody knows.
_WANTED: Final = (
    " FROM boundaries b WHERE b.committed_at IS NOT NULL AND ($1::text[] IS NULL OR b.fleet = ANY ($1))"
    " AND ($4::text[] IS NULL OR b.run = ANY ($4)) AND EXISTS (SELECT FROM boundaries x WHERE x.fleet = b.fleet AND x.run = b.run"
    " AND ($2::timestamptz IS NULL OR x.boundary_at >= $2) AND ($3::timestamptz IS NULL OR x.boundary_at < $3)"
    " AND ($5::text IS NULL OR x.rules = $5))"
)
_LIST: Final = (
    "SELECT b.fleet, b.boundary_id, b.run, b.operating_point"
    + _WANTED
    + " ORDER BY b.fleet, b.committed_at, b.boundary_index, b.boundary_id"
)
_ENDS: Final = """
SELECT b.fleet, b.boundary_id, e.n, e.text_key, e.section_class, d.decision, d.reason, d.score, d.verdict,
    d.root_source, coalesce(d.pinned_by, e.pinned_by) AS pinned_by, e.text
FROM unnest($1::text[], $2::uuid[]) AS k(fleet, boundary_id)
JOIN boundaries b ON b.fleet = k.fleet AND b.boundary_id = k.boundary_id
JOIN entries e ON e.fleet = b.fleet AND e.boundary_id = b.boundary_id AND e.boundary_at = b.boundary_at
LEFT JOIN decisions d ON d.fleet = b.fleet AND d.boundary_id = b.boundary_id AND d.boundary_at = b.boundary_at AND d.n = e.n
ORDER BY b.boundary_id, e.n
"""
#: Who pinned an entry: what comes from outside the text is told to the other pipeline as a pin of the host.
_OUTSIDE: Final = frozenset({"host", "recovery"})


class NotAgain(Permanent):
    """A boundary cannot be run again, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One boundary to run again: its place, and the operating point that it was judged under."""

    key: Key
    run: str
    operating_point: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryEnd:
    """What became of one entry."""

    n: int
    text_key: str
    section_class: str
    decision: str | None
    reason: str | None
    score: float | None
    verdict: str | None
    root_source: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """What became of one boundary."""

    outcome: str | None
    reason: str | None
    mode: str | None
    judge: str | None
    judge_version: str | None
    committed_sha256: str | None
    entries: tuple[EntryEnd, ...]


async def listed(tx: AsyncConnection, where: Where) -> list[Item]:
    """The committed boundaries that are meant, fleet by fleet in the order in which they were committed: parents before children."""
    rows = await raw.fetch(tx, _LIST, *where.arguments_of_boundaries())
    return [
        Item(key=Key(r["fleet"], r["boundary_id"]), run=r["run"], operating_point=r["operating_point"] or 0)
        for r in rows
        if r["operating_point"]
    ]


async def ends(tx: AsyncConnection, keys: Sequence[Key]) -> dict[Key, End]:
    """What became of boundaries, as it is stored; unknown keys are left out."""
    if not keys:
        return {}
    found = {b.key: b for b in await _boundaries(tx, keys)}
    entries: dict[Key, list[EntryEnd]] = {key: [] for key in found}
    for r in await raw.fetch(tx, _ENDS, *raw.columns(sorted(set(keys)), 2)):
        names = ("n", "text_key", "section_class", "decision", "reason", "score", "verdict", "root_source")
        entries[Key(r["fleet"], r["boundary_id"])].append(EntryEnd(**{name: r[name] for name in names}))
    return {
        key: End(
            outcome=b.outcome,
            reason=b.reason,
            mode=b.effective_mode,
            judge=b.judge,
            judge_version=b.judge_version,
            committed_sha256=b.committed_sha256,
            entries=tuple(entries[key]),
        )
        for key, b in found.items()
    }


async def candidate(tx: AsyncConnection, key: Key) -> Candidate:
    """The boundary as its host sent it, from its originals; its mode is the one that took effect, so that holds need not be played.

    No deadline: nobody waits. Pins of the host and of recoveries are the texts of the entries that they pinned. Raise `NotAgain`.
    """
    found = await _boundaries(tx, [key])
    if not found:
        raise NotAgain("it is not stored any more")
    [b] = found
    hashes = {"task": b.task_sha256, "history": b.history_sha256, "candidate": b.candidate_sha256, "previous": b.previous_sha256}
    try:
        bodies = await originals.get(tx, {ContentKey(b.fleet, sha) for sha in hashes.values() if sha is not None})
    except HashMismatch:
        raise NotAgain("an original is damaged") from None
    texts = {name: None if sha is None else bodies.get(ContentKey(b.fleet, sha)) for name, sha in hashes.items()}
    if any(texts[name] is None and sha is not None for name, sha in hashes.items()):
        raise NotAgain("its originals are gone")
    pinned = [r["text"] for r in await raw.fetch(tx, _ENDS, [key.fleet], [key.boundary_id]) if r["pinned_by"] in _OUTSIDE]
    try:
        messages = Messages.model_validate_json(texts["history"] or b"{}")
        return Candidate.model_validate(
            {
                "fleet": b.fleet, "boundary_id": b.boundary_id, "previous_boundary_id": b.previous_boundary_id, "run": b.run,
                "agent": b.agent, "index": b.boundary_index, "boundary_at": b.boundary_at, "host": b.host, "profile": b.profile,
                "trigger": b.trigger, "mode": b.effective_mode or Mode.SHADOW, "rules": b.rules, "task": _text(texts["task"]) or "",
                "history": messages.history, "retained": messages.retained, "previous_summary": _text(texts["previous"]),
                "candidate": _text(texts["candidate"]), "pins": tuple(dict.fromkeys(p for p in pinned if p)),
                "custom_instructions": await _instructions(tx, key), "compressor": b.compressor, "tokens_before": b.tokens_before,
                "tokens_after": b.tokens_after, "user_turns_survive": b.user_turns_survive,
            }
        )  # fmt: skip
    except (ValidationError, UnicodeDecodeError):
        raise NotAgain("its originals are not what this version reads") from None


async def carry(tx: AsyncConnection, committed: Sequence[tuple[Key, str]]) -> None:
    """Say that an agent carried these texts (by hash) from its boundaries, whatever this pipeline committed.

    For a copy that runs what happened elsewhere again: a child brings the text that its agent really had, and finds its parent by it.
    """
    rows = [(key.fleet, key.boundary_id, sha) for key, sha in committed]
    await raw.execute(
        tx,
        "UPDATE boundaries b SET committed_sha256 = c.sha FROM unnest($1::text[], $2::uuid[], $3::text[]) AS c(fleet, boundary_id, sha)"
        " WHERE b.fleet = c.fleet AND b.boundary_id = c.boundary_id AND b.committed_sha256 IS DISTINCT FROM c.sha",
        *raw.columns(rows, 3),
    )


async def _boundaries(tx: AsyncConnection, keys: Sequence[Key]) -> list[Boundary]:
    sql = (
        "SELECT b.* FROM boundaries b JOIN unnest($1::text[], $2::uuid[]) AS k(fleet, boundary_id)"
        " ON b.fleet = k.fleet AND b.boundary_id = k.boundary_id"
    )
    return [from_row(r) for r in await raw.fetch(tx, sql, *raw.columns(sorted(set(keys)), 2))]


async def _instructions(tx: AsyncConnection, key: Key) -> str | None:
    """What the user asked of the compressor: it stands in the evidence, as long as that is kept and travels inline."""
    stored = (await stages.load_outputs(tx, [key], Stage.EVIDENCE)).get(key)
    if stored is None:
        return None
    try:
        return Evidence.model_validate_json(stored.output.body).custom_instructions
    except ValidationError:  # a claim check
        return None


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()
