"""Streams at a glance: status, evidence, level, and what may be said of each."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts.vocabulary import Guarantee
from winnow.storage import raw


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamView:
    """One stream as operators see it."""

    fleet: str
    stream: str
    family: str
    #: ok, warn, alarm, held, recovered or insufficient.
    status: str
    #: breached, certified or unproven: no alarm is not "within budget".
    verdict: str
    epoch: int
    alpha: float | None
    #: Evidence at which the stream alarms by itself; beside others that alarm it is less (e-BH).
    level: float | None
    log_evidence: float | None
    sampled: int
    folded: int
    missing: int
    late: int
    refused: int
    #: Guarantee class of its alarm.
    guarantee: str
    updated_at: datetime | None

    @property
    def missing_share(self) -> float:
        """Share of the decided units whose grade did not come in time."""
        return self.missing / (self.folded + self.missing) if self.missing else 0.0


_STREAMS = """
SELECT s.fleet, s.stream, s.family, coalesce(m.status, 'insufficient') AS status, coalesce(m.epoch, 0) AS epoch,
    (e.config->>'alpha')::float8 AS alpha, e.config->>'mode' AS mode, (e.config->>'arl')::float8 AS arl, e.error_share, m.log_evidence,
    s.last_seq AS sampled, coalesce(m.folded, 0) AS folded, coalesce(m.missing, 0) AS missing, coalesce(m.late, 0) AS late,
    coalesce(m.refused, 0) AS refused, m.updated_at,
    EXISTS (SELECT FROM certificates c WHERE c.fleet = s.fleet AND c.record->>'stream' = s.stream AND c.revoked_at IS NULL
        AND c.expires_at > now()) AS certified
FROM streams s
LEFT JOIN monitor_states m ON m.fleet = s.fleet AND m.stream = s.stream
LEFT JOIN monitor_epochs e ON e.fleet = m.fleet AND e.stream = m.stream AND e.epoch = m.epoch
WHERE $1::text IS NULL OR s.fleet = $1 ORDER BY s.fleet, s.family, s.stream
"""


async def streams(tx: AsyncConnection, fleet: str | None = None) -> list[StreamView]:
    """Streams of a fleet, or of all, by name."""
    return [_view(r) for r in await raw.fetch(tx, _STREAMS, fleet)]


def _view(r: raw.Record) -> StreamView:
    """One row."""
    arl = r["mode"] == "arl"
    level = r["arl"] if arl else None if r["error_share"] is None else 1.0 / r["error_share"]
    breached = r["status"] in {"alarm", "recovered"}
    return StreamView(
        fleet=r["fleet"],
        stream=r["stream"],
        family=r["family"],
        status=r["status"],
        verdict="breached" if breached else "certified" if r["certified"] else "unproven",
        epoch=r["epoch"],
        alpha=r["alpha"],
        level=level,
        log_evidence=r["log_evidence"],
        sampled=r["sampled"],
        folded=r["folded"],
        missing=r["missing"],
        late=r["late"],
        refused=r["refused"],
        guarantee=(Guarantee.ARL if arl else Guarantee.ANYTIME).value,
        updated_at=r["updated_at"],
    )
