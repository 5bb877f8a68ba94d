"""Alarms in words and numbers: the evidence, where the change likely was, whose losses brought it."""

import math
import shlex
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.assurance import attribution, changepoint, intervals
from winnow.assurance.blocks import Block
from winnow.assurance.config import MonitorConfig
from winnow.assurance.ledger import Fate, Watched
from winnow.contracts.events import Attribution
from winnow.contracts.vocabulary import AlertKind, Family, Guarantee
from winnow.storage import raw
from winnow.storage.alarms import Acting, Finding
from winnow.storage.epochs import Alarm
from winnow.storage.keys import StreamKey
from winnow.storage.watched import Loaded

#: Units since the likely change that an attribution looks at, newest last: an alarm must not wait for a million of them.
ATTRIBUTED_UNITS = 5_000
#: Groups that an alert names.
NAMED_GROUPS = 8
#: Confidence of the intervals that an alert tells.
CONFIDENCE = 0.95
#: Characters of a group's value.
VALUE_CHARS = 200


async def alarm_finding(
    tx: AsyncConnection, found: Loaded, at: Watched, seq: int, acting: Acting, *, rule: str, now: datetime, level: float | None = None
) -> Finding:
    """A stream alarmed. Fates must have been written: the window is told in sequence numbers of the ledger."""
    key, config, state = found.key, at.epoch.config, at.state
    reached = level if level is not None else config.level
    window = changepoint.change_window(state.history)
    ledger = StreamKey(key.fleet, key.stream.removeprefix("missing:"))
    places = await _places(tx, ledger, at, (window.first, window.last, window.best)) if window else None
    shares = await _attributed(tx, key, at, places[2], seq) if places and ledger == key else ()
    before, after = _halves(state.history, window.best if window else 1)
    whole = (before[0] + after[0], before[1] + after[1])
    label_free = found.family is Family.LABEL_FREE
    because = (
        f"stream {key.stream}: the evidence that its risk is above {config.alpha:g} is {_number(state.log_evidence)}, reaching the"
        f" level {reached:.4g} ({_RULES[rule]}); mean loss {_said(after, config)} since the likely change, {_said(before, config)} before"
    )
    return Finding(
        fleet=key.fleet,
        stream=key.stream,
        identity=("alarm", key.stream, at.epoch.number),
        because=because,
        guarantee=Guarantee(config.guarantee),
        hold=acting.hold_on_label_free if label_free else True,
        revoke=True,
        log_evidence=state.log_evidence,
        change_window=(places[0], places[1]) if places else None,
        attribution=shares,
        details={
            "rule": rule, "level": reached, "alpha": config.alpha, "epoch": at.epoch.number, "units": state.n,
            "error_share": config.delta * config.weight, "family": found.family.value, "window_guarantee": Guarantee.NONE.value,
            "rate_before": _rate(before), "rate_after": _rate(after),
            "intervals": {
                "confidence": CONFIDENCE, "method": "exact binomial" if _is_counted(config) else "Hoeffding",
                # The alarm chose when to look, and the data chose where the change is.
                "guarantee": Guarantee.NONE.value,
                "epoch": _interval(whole, config), "before": _interval(before, config), "after": _interval(after, config),
            },
        },
        epoch=at.epoch.number,
        alarm=Alarm(seq=seq, at=now, rule=rule, level=reached, log_evidence=state.log_evidence),
    )  # fmt: skip


_RULES = {
    "own": "the stream's own, false with at most its share of the error budget for the life of the fleet",
    "e-bh": "shared with the streams that alarmed beside it: at most the family's error budget of all alarms is false",
}


def warn_finding(found: Loaded, at: Watched) -> Finding:
    """A stream reached its warn level; nothing is held."""
    config = at.epoch.config
    return Finding(
        fleet=found.key.fleet,
        stream=found.key.stream,
        identity=("warn", found.key.stream, at.epoch.number),
        because=f"stream {found.key.stream}: its risk is above the warn level {config.warn_alpha:g}; the budget is {config.alpha:g}",
        guarantee=Guarantee(config.guarantee),
        kind=AlertKind.WARNED,
        hold=False,
        revoke=False,
        log_evidence=at.state.warn.log_evidence if at.state.warn else None,
    )


def unreadable_finding(found: Loaded) -> Finding:
    """A stream's state cannot be read, and no readable state never means free. An operator hears the ways out, and what each keeps."""
    return _unwatched(
        found,
        f"{found.unreadable}. `winnow streams replay {_named(found)} --repair` works its state out again from the ledger, evidence and all;"
        f" `winnow release {found.key.fleet} --because ...` ends the hold, and where nothing was repaired begins a new epoch",
    )


def misconfigured_finding(found: Loaded, problem: str) -> Finding:
    """A stream cannot go on under the configuration that was set for it."""
    return _unwatched(
        found,
        f"{problem}. Correct it with `winnow streams set {_named(found)}`, then `winnow release {found.key.fleet} --because ...`"
        " ends the hold",
    )


def _named(found: Loaded) -> str:
    """A stream as commands take it."""
    return f"{shlex.quote(found.key.stream)} --fleet {found.key.fleet}"


def _unwatched(found: Loaded, because: str) -> Finding:
    """Nothing of a stream is folded any more."""
    place = (found.row.epoch, found.row.last_seq) if found.row else (0, 0)
    return Finding(
        fleet=found.key.fleet,
        stream=found.key.stream,
        identity=("unreadable", found.key.stream, *place),
        because=f"stream {found.key.stream} cannot be watched: {because}",
        guarantee=Guarantee.NONE,
        revoke=False,
    )


_PLACES = """
SELECT (array_agg(o.seq ORDER BY o.seq))[1] AS seq FROM (
    SELECT seq FROM observations WHERE fleet = $1 AND stream = $2 AND seq >= $3 AND fate = ANY($4::text[])
    ORDER BY seq OFFSET $5 LIMIT 1) AS o
"""


async def _places(tx: AsyncConnection, key: StreamKey, at: Watched, units: tuple[int, int, int]) -> tuple[int, int, int] | None:
    """Sequence numbers of units that are counted from 1 within the epoch."""
    fates = [Fate.FOLDED, *([Fate.MISSING, Fate.LATE] if at.epoch.missing == "fold" else [])]
    found = []
    for unit in units:
        row = await raw.fetch_one(tx, _PLACES, *key, at.epoch.from_seq, fates, unit - 1)
        if row is None or row["seq"] is None:
            return None
        found.append(row["seq"])
    return found[0], found[1], found[2]


_SINCE = """
SELECT CASE WHEN o.fate = 'folded' THEN o.loss ELSE 1 END AS loss, b.agent, b.compressor, b.judge, b.effective_mode AS mode,
    CASE WHEN b.boundary_index IS NULL THEN NULL WHEN b.boundary_index = 1 THEN 'first' ELSE 'later' END AS boundary,
    CASE WHEN o.fate = 'folded' THEN 'graded' ELSE 'missing' END AS grade
FROM observations o LEFT JOIN boundaries b ON b.fleet = o.fleet AND b.boundary_id = o.boundary_id
WHERE o.fleet = $1 AND o.stream = $2 AND o.seq BETWEEN $3 AND $4 AND o.fate IN ('folded', 'missing') ORDER BY o.seq LIMIT $5
"""


async def _attributed(tx: AsyncConnection, key: StreamKey, at: Watched, first: int, last: int) -> tuple[Attribution, ...]:
    """Which units brought the evidence since the likely change, by what is known of their boundary."""
    rows = await raw.fetch(tx, _SINCE, *key, first, last, ATTRIBUTED_UNITS)
    units = [attribution.Unit(loss=r["loss"], labels={n: str(r[n])[:VALUE_CHARS] for n in _LABELS if r[n] is not None}) for r in rows]
    if not units:
        return ()
    found = attribution.attribute(at.epoch.config, units)
    return tuple(
        Attribution(group=s.label, value=s.value, units=s.n, losses=s.mean_loss * s.n, share=s.share) for s in found.shares[:NAMED_GROUPS]
    )


_LABELS = ("agent", "compressor", "judge", "mode", "boundary", "grade")


def _halves(blocks: tuple[Block, ...], change: int) -> tuple[tuple[int, float], tuple[int, float]]:
    """Units and sum of their losses, before and since the unit `change`, to within a block."""
    before_n, before = 0, 0.0
    after_n, after = 0, 0.0
    for block in blocks:
        if before_n + block.n < change:
            before_n, before = before_n + block.n, before + block.total
        else:
            after_n, after = after_n + block.n, after + block.total
    return (before_n, before), (after_n, after)


def _rate(half: tuple[int, float]) -> float:
    """Mean loss; 0 of nothing."""
    return half[1] / half[0] if half[0] else 0.0


def _is_counted(config: MonitorConfig) -> bool:
    """The losses are 0 and 1 by declaration, so that their sum is a count."""
    return config.binary and config.lo == 0


def _interval(half: tuple[int, float], config: MonitorConfig) -> tuple[float, float]:
    """Interval of the mean loss."""
    n, total = half
    if _is_counted(config):
        return intervals.exact(round(total), n, CONFIDENCE)
    return intervals.hoeffding(total, n, CONFIDENCE, config.lo)


def _said(half: tuple[int, float], config: MonitorConfig) -> str:
    """A mean loss in words."""
    low, high = _interval(half, config)
    return f"{_rate(half):.3g} ({CONFIDENCE:.0%} interval {low:.3g} to {high:.3g})" if half[0] else "unknown"


def _number(log_evidence: float) -> str:
    """An e-value from its logarithm, however large."""
    return f"{math.exp(log_evidence):.4g}" if log_evidence < 700 else f"e^{log_evidence:.1f}"  # noqa: PLR2004  the range of a double
