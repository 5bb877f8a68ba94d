"""What each stage answers, stored whole in one statement: the first stored answer wins."""

import hashlib
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeVar
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.events import BoundaryRef, Committed, Evidence, Scores
from winnow.storage import partitions, raw, sql_stages
from winnow.storage.keys import Key, Stage
from winnow.storage.values import array_literal, array_text, compress, decompress, jsonb, storable, storable_or_none


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """The exact record of a stage's answer. `body` is what is published (a claim check's body where `claim`)."""

    event_type: str
    record_key: str
    event_id: UUID
    body: bytes
    claim: bool = False
    traceparent: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredOutput:
    """An output as it was stored first; `created_at` is its event time, so that a repetition has the same headers."""

    fleet: str
    boundary_id: UUID
    stage: Stage
    output: Output
    created_at: datetime

    @property
    def key(self) -> Key:
        """The boundary."""
        return Key(self.fleet, self.boundary_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceAnswer:
    """What the retriever answers."""

    event: Evidence
    output: Output


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoresAnswer:
    """What the judge answers. `extra` holds scores of further judges of an ensemble, for the record only."""

    event: Scores
    output: Output
    extra: tuple[Scores, ...] = field(default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedAnswer:
    """What the pruner answers, or the retriever for a rejection."""

    event: Committed
    output: Output


class _Answer(Protocol):
    """What all answers have."""

    @property
    def event(self) -> BoundaryRef:
        """The event that is stored."""

    @property
    def output(self) -> Output:
        """Its record."""


A = TypeVar("A", bound=_Answer)
_Row = tuple[object, ...]

_MARKER = re.compile(r"^\s*(?:[-*+\u2022]|\d{1,4}[.)])\s+")


def text_key(text: str) -> str:
    """Identity of an entry's wording: 32 hex digits of the text without bullet, case and spacing. A check box is part of the claim."""
    # Most bullets are "- ": cutting those by hand halves the time of this (126 to 60 us for 23 entries).
    bare = text[2:] if text.startswith("- ") else _MARKER.sub("", text, count=1)
    wording = " ".join(bare.split()).casefold()
    return hashlib.sha256(wording.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _once(answers: Sequence[A]) -> list[tuple[int, A]]:
    """The first answer of each boundary, numbered, in key order."""
    first: dict[Key, A] = {}
    for answer in answers:
        first.setdefault(Key(answer.event.fleet, answer.event.boundary_id), answer)
    return [(i, first[key]) for i, key in enumerate(sorted(first))]


def _asked(batch: Sequence[tuple[int, _Answer]]) -> tuple[list[object], ...]:
    """Parameters 1 to 3."""
    return raw.columns([(i, a.event.fleet, a.event.boundary_id) for i, a in batch], 3)


def _outputs(batch: Sequence[tuple[int, _Answer]]) -> tuple[list[object], ...]:
    """Parameters 5 to 12."""
    rows = []
    for i, answer in batch:
        o = answer.output
        body, encoding = compress(o.body)
        rows.append((i, o.event_type, o.event_id, storable(o.record_key), body, encoding, o.claim, o.traceparent))
    return raw.columns(rows, 8)


def _columns(rows: Sequence[_Row], width: int, *free: int) -> list[object]:
    """Rows as parameters, a column each: as the text of an array, but the driver's own array where the column (by number) is free text."""
    return [column if i in free else array_text(column) for i, column in enumerate(raw.columns(rows, width))]


def _stored(rows: Sequence[raw.Record]) -> set[Key]:
    """The keys that a stage's statement stored."""
    return {Key(r["fleet"], r["boundary_id"]) for r in rows}


def stored_by(answers: Sequence[A], keys: Collection[Key], stage: Stage, *, now: datetime) -> dict[Key, StoredOutput]:
    """The outputs of `answers` that a `store_*` call at `now` has stored (it returned `keys`), as `load_outputs` would read them."""
    found: dict[Key, StoredOutput] = {}
    for answer in answers:
        key = Key(answer.event.fleet, answer.event.boundary_id)
        if key in keys and key not in found:
            found[key] = StoredOutput(fleet=key.fleet, boundary_id=key.boundary_id, stage=stage, output=answer.output, created_at=now)
    return found


async def store_evidence(tx: AsyncConnection, answers: Sequence[EvidenceAnswer], *, now: datetime) -> set[Key]:
    """Store entries, passages, their links and the output; stamp `operating_point`, `profile` and `evidence_at`.

    Return the keys that were stored by this call. A key that is left out has a stored answer already, or no boundary at all.
    """
    if not answers:
        return set()
    batch = _once(answers)
    await partitions.ensure(tx, [a.event.boundary_at for _, a in batch])
    boundaries: list[_Row] = []
    entries: list[_Row] = []
    passages: list[_Row] = []
    links: list[_Row] = []
    for i, answer in batch:
        event = answer.event
        boundaries.append((
            i, event.operating_point, storable(event.profile), len(event.entries), event.user_turns_survive, array_literal(event.warnings),
        ))  # fmt: skip
        for e in event.entries:
            entries.append((
                i, e.n, storable(e.section), e.section_class, storable(e.text), text_key(e.text), e.span[0], e.span[1],
                storable_or_none(e.pinned_by), e.truncated, e.provenance, "{" + ",".join(e.sources) + "}", e.previous_entry,
                e.previous_similarity, jsonb([(v.value, v.origin, v.message, v.tool) for v in e.values]), jsonb(e.features),
                e.key, e.parent, e.lead_in, e.previous_key, jsonb([f.model_dump(mode="json", exclude_defaults=True) for f in e.findings]),
            ))  # fmt: skip
            links.extend((i, e.n, x.rank, x.passage, x.bm25) for x in e.evidence)
        passages.extend((i, p.id, p.message, storable_or_none(p.tool), p.origin, p.start, p.end, storable(p.text)) for p in event.passages)
    rows = await raw.fetch(
        tx, sql_stages.EVIDENCE, *_asked(batch), now, *_outputs(batch), *raw.columns(boundaries, 6),
        *_columns(entries, 21, 2, 4, 14, 15, 20), *_columns(passages, 8, 7), *_columns(links, 5),
    )  # fmt: skip
    return _stored(rows)


async def store_scores(tx: AsyncConnection, answers: Sequence[ScoresAnswer], *, now: datetime) -> set[Key]:
    """Store scores and the output; stamp judge and `scored_at`. Return the keys that were stored by this call."""
    if not answers:
        return set()
    batch = _once(answers)
    boundaries: list[_Row] = []
    scores: list[_Row] = []
    for i, answer in batch:
        judge = answer.event.judge
        boundaries.append((i, storable(judge.name), storable(judge.version), storable_or_none(answer.event.fallback_for)))
        for said in (answer.event, *answer.extra):
            name, version, model = storable(said.judge.name), storable(said.judge.version), storable_or_none(said.judge.model)
            scores.extend(
                (
                    i, s.n, name, version, model, s.p, s.score, s.verdict, s.provenance, storable(s.explanation),
                    "{" + ",".join(map(str, s.passages)) + "}", "{" + ",".join(s.flags) + "}",
                )
                for s in said.scores
            )  # fmt: skip
    rows = await raw.fetch(
        tx, sql_stages.SCORES, *_asked(batch), now, *_outputs(batch), *raw.columns(boundaries, 4), *_columns(scores, 12, 9)
    )
    return _stored(rows)


async def store_committed(tx: AsyncConnection, answers: Sequence[CommittedAnswer], *, now: datetime) -> set[Key]:
    """Store decisions and the output; stamp outcome, mode, counts, parent and `committed_at`; NOTIFY `winnow_committed` with `Key.token`.

    The committed text must be stored as an original in the same transaction. Return the keys that were stored by this call.
    """
    if not answers:
        return set()
    batch = _once(answers)
    boundaries: list[_Row] = []
    decisions: list[_Row] = []
    for i, answer in batch:
        event = answer.event
        boundaries.append((
            i, event.outcome, event.reason, event.mode, event.held, storable_or_none(event.held_because), event.late, event.pruned,
            event.tau, storable(event.profile), event.committed_sha256, event.parent_boundary_id, event.operating_point,
            array_literal(event.warnings),
        ))  # fmt: skip
        decisions.extend(
            (
                i, d.n, d.decision, d.reason, d.score, d.verdict, d.provenance, d.root_source, storable(d.explanation),
                storable_or_none(d.pinned_by),
            )
            for d in event.decisions
        )  # fmt: skip
    rows = await raw.fetch(
        tx, sql_stages.COMMITTED, *_asked(batch), now, *_outputs(batch), *raw.columns(boundaries, 14), *_columns(decisions, 10, 8)
    )
    return _stored(rows)


_OUTPUTS = """
SELECT o.fleet, o.boundary_id, o.event_type, o.record_key, o.event_id, o.body, o.encoding, o.claim, o.traceparent, o.created_at
FROM unnest($1::text[], $2::uuid[]) AS k(fleet, boundary_id)
JOIN boundaries b ON b.fleet = k.fleet AND b.boundary_id = k.boundary_id
JOIN stage_outputs o ON o.fleet = b.fleet AND o.boundary_id = b.boundary_id AND o.boundary_at = b.boundary_at AND o.stage = $3
"""


async def load_outputs(tx: AsyncConnection, keys: Sequence[Key], stage: Stage) -> dict[Key, StoredOutput]:
    """The stored outputs of a stage: what is published, now and on every redelivery. Unknown keys are left out."""
    if not keys:
        return {}
    found = {}
    for row in await raw.fetch(tx, _OUTPUTS, *raw.columns(sorted(set(keys)), 2), stage):
        key = Key(row["fleet"], row["boundary_id"])
        output = Output(
            event_type=row["event_type"],
            record_key=row["record_key"],
            event_id=row["event_id"],
            body=decompress(row["body"], row["encoding"]),
            claim=row["claim"],
            traceparent=row["traceparent"],
        )
        found[key] = StoredOutput(fleet=key.fleet, boundary_id=key.boundary_id, stage=stage, output=output, created_at=row["created_at"])
    return found
