"""What judges cost, how long they take, and how often two of them that saw the same entry disagree."""

from dataclasses import dataclass
from datetime import date, datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.storage import raw


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeUse:
    """What one judge and model did in a stretch of time."""

    judge: str
    judge_version: str
    model: str | None
    calls: int
    failed: int
    #: Announced and never completed: a crash in the middle, or at work now.
    unfinished: int
    requests: int
    input_tokens: int
    output_tokens: int
    #: US dollars; None where no call said.
    cost_usd: float | None
    #: Milliseconds.
    latency_p50: float | None
    latency_p95: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeDay:
    """Calls of one judge on a UTC day."""

    day: date
    judge: str
    calls: int
    cost_usd: float | None
    latency_p50: float | None
    latency_p95: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Disagreement:
    """Two judges on the entries that both scored."""

    one: str
    other: str
    entries: int
    #: Entries that one would keep and the other prune at the boundary's threshold.
    differ: int
    #: Mean absolute difference of the scores.
    distance: float

    @property
    def share(self) -> float:
        """Share of the entries on which they differ."""
        return self.differ / self.entries


_LATENCY = """
percentile_cont(0.5) WITHIN GROUP (ORDER BY c.latency_ms) AS latency_p50,
    percentile_cont(0.95) WITHIN GROUP (ORDER BY c.latency_ms) AS latency_p95
FROM judge_calls c WHERE c.fleet = $1 AND c.boundary_at >= $2
"""

_USE = f"""
SELECT c.judge, c.judge_version, c.model, count(*) AS calls, count(*) FILTER (WHERE c.error IS NOT NULL) AS failed,
    count(*) FILTER (WHERE c.finished_at IS NULL) AS unfinished, coalesce(sum(c.requests), 0)::bigint AS requests,
    coalesce(sum(c.input_tokens), 0)::bigint AS input_tokens, coalesce(sum(c.output_tokens), 0)::bigint AS output_tokens,
    sum(c.cost_usd)::float8 AS cost_usd, {_LATENCY} GROUP BY 1, 2, 3 ORDER BY calls DESC, 1, 2, 3
"""

_DAYS = f"""
SELECT (c.boundary_at AT TIME ZONE 'UTC')::date AS day, c.judge, count(*) AS calls, sum(c.cost_usd)::float8 AS cost_usd, {_LATENCY}
GROUP BY 1, 2 ORDER BY 1, 2
"""

_DISAGREEMENTS = """
SELECT concat(x.judge, ' ', x.judge_version) AS one, concat(y.judge, ' ', y.judge_version) AS other, count(*) AS entries,
    count(*) FILTER (WHERE (x.score >= coalesce(b.tau, 0.5)) <> (y.score >= coalesce(b.tau, 0.5))) AS differ,
    avg(abs(x.score - y.score))::float8 AS distance
FROM scores x
JOIN scores y ON y.fleet = x.fleet AND y.boundary_id = x.boundary_id AND y.boundary_at = x.boundary_at AND y.n = x.n
    AND (y.judge, y.judge_version) > (x.judge, x.judge_version)
JOIN boundaries b ON b.fleet = x.fleet AND b.boundary_id = x.boundary_id
WHERE x.fleet = $1 AND x.boundary_at >= $2 AND x.score IS NOT NULL AND y.score IS NOT NULL
GROUP BY 1, 2 ORDER BY entries DESC, 1, 2
"""


async def uses(tx: AsyncConnection, fleet: str, *, since: datetime) -> list[JudgeUse]:
    """Each judge and model on boundaries since `since`, the busiest first."""
    return [JudgeUse(**dict(r)) for r in await raw.fetch(tx, _USE, fleet, since)]


async def days(tx: AsyncConnection, fleet: str, *, since: datetime) -> list[JudgeDay]:
    """The same day by day, oldest first."""
    return [JudgeDay(**dict(r)) for r in await raw.fetch(tx, _DAYS, fleet, since)]


async def disagreements(tx: AsyncConnection, fleet: str, *, since: datetime) -> list[Disagreement]:
    """Each pair of judges that scored the same entries, those with most in common first."""
    return [Disagreement(**dict(r)) for r in await raw.fetch(tx, _DISAGREEMENTS, fleet, since)]
