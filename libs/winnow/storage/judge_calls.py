"""Judge calls: an intent row before a judge is asked, its cost and latency afterwards. A crash in between stays visible."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.storage import partitions, raw
from winnow.storage.values import storable, storable_or_none


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """That a judge is about to be asked. `boundary_at` is the anchor's."""

    call_id: UUID
    fleet: str
    boundary_id: UUID
    boundary_at: datetime
    judge: str
    judge_version: str
    started_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a call ended. `error` is None for an answer; it never quotes content."""

    call_id: UUID
    fleet: str
    boundary_id: UUID
    boundary_at: datetime
    finished_at: datetime
    latency_ms: float
    model: str | None = None
    requests: int = 1
    input_tokens: int | None = None
    output_tokens: int | None = None
    cost_usd: Decimal | None = None
    error: str | None = None
    #: Requests that the boundary was split into, without retries; None for a judge that sends none.
    parts: int | None = None
    #: How far the furthest of them had to be shrunk to fit; None for a judge that sends none.
    state_stage: str | None = None
    #: Evidence was left out of one of them.
    evidence_truncated: bool | None = None


_START = """
INSERT INTO judge_calls (call_id, fleet, boundary_id, boundary_at, judge, judge_version, started_at)
SELECT * FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::timestamptz[], $5::text[], $6::text[], $7::timestamptz[])
ON CONFLICT DO NOTHING
"""

_FINISH = """
UPDATE judge_calls c SET finished_at = f.finished_at, latency_ms = f.latency_ms, model = f.model, requests = f.requests,
    input_tokens = f.input_tokens, output_tokens = f.output_tokens, cost_usd = f.cost_usd, error = f.error, parts = f.parts,
    state_stage = f.state_stage, evidence_truncated = f.evidence_truncated
FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::timestamptz[], $5::timestamptz[], $6::float8[], $7::text[], $8::int[], $9::bigint[],
    $10::bigint[], $11::numeric[], $12::text[], $13::int[], $14::text[], $15::bool[])
    AS f(call_id, fleet, boundary_id, boundary_at, finished_at, latency_ms, model, requests, input_tokens, output_tokens, cost_usd, error,
        parts, state_stage, evidence_truncated)
WHERE c.fleet = f.fleet AND c.boundary_id = f.boundary_id AND c.boundary_at = f.boundary_at AND c.call_id = f.call_id
"""

_RECORD = """
INSERT INTO judge_calls (call_id, fleet, boundary_id, boundary_at, judge, judge_version, started_at, finished_at, latency_ms, model,
    requests, input_tokens, output_tokens, cost_usd, error, parts, state_stage, evidence_truncated)
SELECT * FROM unnest($1::uuid[], $2::text[], $3::uuid[], $4::timestamptz[], $5::text[], $6::text[], $7::timestamptz[], $8::timestamptz[],
    $9::float8[], $10::text[], $11::int[], $12::bigint[], $13::bigint[], $14::numeric[], $15::text[], $16::int[], $17::text[], $18::bool[])
ON CONFLICT DO NOTHING
"""


def _intent(i: Intent) -> tuple[object, ...]:
    """The columns of an intent."""
    return (i.call_id, i.fleet, i.boundary_id, i.boundary_at, storable(i.judge), storable(i.judge_version), i.started_at)


def _end(f: Finished) -> tuple[object, ...]:
    """The columns that completing a call sets."""
    return (
        f.finished_at, f.latency_ms, storable_or_none(f.model), f.requests, f.input_tokens, f.output_tokens, f.cost_usd,
        storable_or_none(f.error), f.parts, f.state_stage, f.evidence_truncated,
    )  # fmt: skip


async def start(tx: AsyncConnection, intents: Sequence[Intent]) -> None:
    """Store intents, in a transaction of its own that is committed before the judge is asked."""
    if intents:
        await partitions.ensure(tx, [i.boundary_at for i in intents])
        await raw.execute(tx, _START, *raw.columns([_intent(i) for i in intents], 7))


async def finish(tx: AsyncConnection, calls: Sequence[Finished]) -> None:
    """Complete intents."""
    if calls:
        rows = [(f.call_id, f.fleet, f.boundary_id, f.boundary_at, *_end(f)) for f in sorted(calls, key=lambda f: f.call_id)]
        await raw.execute(tx, _FINISH, *raw.columns(rows, 15))


async def record(tx: AsyncConnection, calls: Sequence[tuple[Intent, Finished]]) -> None:
    """Store calls that are over, without an intent first: for judges that cost nothing and call nobody."""
    if calls:
        await partitions.ensure(tx, [i.boundary_at for i, _ in calls])
        await raw.execute(tx, _RECORD, *raw.columns([(*_intent(i), *_end(f)) for i, f in calls], 18))
