"""Plain thresholds on what boundaries do: consecutive ones that were not judged, their rate, loops, silence, and the share that is pruned.

None of them bounds false alarms (guarantee class `none`, said with each); they tell of what the streams with a guarantee see later.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.assurance.profile import HALF_LIFE, Profile
from winnow.contracts.vocabulary import Guarantee
from winnow.storage import raw
from winnow.storage.alarms import Acting, Finding
from winnow.storage.watching import SLOT, Loop, ProfileKey, slot_of

#: What activity is compared with.
_PAST = timedelta(days=7)
#: Slots with boundaries that a rate or a silence is compared with: fewer say nothing of what is usual.
_FEWEST_SLOTS = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When a plain threshold tells. 0 turns one off."""

    #: Boundaries of a fleet in a row that were not judged.
    not_judged_in_row: int = 20
    #: Boundaries of one run within ten minutes.
    loop_boundaries: int = 30
    #: Times the fleet's usual number of boundaries in ten minutes, and the least number for which it tells.
    rate_factor: float = 10.0
    rate_least: int = 100
    #: Time without any boundary, and longer than three times the longest gap of the last week.
    silence: timedelta = timedelta(hours=6)


def _finding(fleet: str, identity: tuple[object, ...], because: str, acting: Acting, **details: object) -> Finding:
    """A threshold was crossed."""
    return Finding(
        fleet=fleet,
        stream=None,
        identity=("threshold", *identity),
        because=f"{because} (a plain threshold: nothing bounds how often it is wrong)",
        guarantee=Guarantee.NONE,
        hold=acting.hold_on_thresholds,
        revoke=False,
        details={"threshold": identity[0], **details},
    )


def loops(found: Iterable[Loop], limits: Limits, acting: Acting, *, now: datetime) -> list[Finding]:
    """Runs with too many boundaries in a few minutes. Told once a run and slot."""
    most = limits.loop_boundaries
    return [
        _finding(
            one.fleet, ("loop", one.run, slot_of(now)), f"run {one.run}: {one.boundaries} boundaries within ten minutes", acting,
            boundaries=one.boundaries,
        )
        for one in found
        if most and one.boundaries >= most
    ]  # fmt: skip


def departures(profiles: Mapping[ProfileKey, Profile], acting: Acting) -> list[Finding]:
    """Judges that find another share of entries unsupported than they did. Told once for each stretch in which they could have changed."""
    return [
        _finding(
            key.fleet,
            ("prune_rate", *key, p.recent // (4 * HALF_LIFE)),
            f"judge {key.judge} {key.judge_version}, {'later' if key.later else 'first'} boundaries: {p.recent_rate:.1%} of entries"
            f" unsupported lately, {p.rate:.1%} when the profile was learned",
            acting,
            rate=p.recent_rate,
            learned=p.rate,
            standard_errors=p.z,
        )
        for key, p in sorted(profiles.items())
        if p.departed
    ]


_IN_ROW = """
SELECT f.fleet, count(x.outcome) AS boundaries, bool_and(x.outcome = 'unjudged' OR x.fallback_for IS NOT NULL) AS all_of_them,
    max(x.boundary_at) AS last_at
FROM unnest($1::text[]) AS f(fleet) CROSS JOIN LATERAL (
    SELECT b.outcome, b.fallback_for, b.boundary_at FROM boundaries b
    WHERE b.fleet = f.fleet AND b.committed_at IS NOT NULL ORDER BY b.boundary_at DESC, b.boundary_id DESC LIMIT $2) AS x
GROUP BY f.fleet
"""

_ACTIVITY = """
WITH slots AS (
    SELECT fleet, slot, boundaries, slot - lag(slot) OVER (PARTITION BY fleet ORDER BY slot) AS gap FROM fleet_activity
    WHERE slot >= $1::timestamptz - $2::interval
)
SELECT fleet, count(*) FILTER (WHERE slot < $3) AS slots, avg(boundaries) FILTER (WHERE slot < $3) AS usual, max(slot) AS last_slot,
    max(gap) AS gap, coalesce(max(boundaries) FILTER (WHERE slot = $3), 0) AS lately
FROM slots GROUP BY fleet
"""


async def look(tx: AsyncConnection, limits: Limits, acting: Acting, *, now: datetime) -> list[Finding]:
    """What fleets' activity says: rate, silence, and boundaries in a row that were not judged."""
    rows = await raw.fetch(tx, _ACTIVITY, now, _PAST, slot_of(now))
    found: list[Finding] = []
    active: list[str] = []
    for r in rows:
        quiet = now - r["last_slot"] - SLOT
        if quiet < SLOT:
            active.append(r["fleet"])
        if r["slots"] < _FEWEST_SLOTS:
            continue
        usual, lately = float(r["usual"]), r["lately"]
        if limits.rate_factor and lately >= max(limits.rate_least, limits.rate_factor * usual):
            because = f"{lately} boundaries within ten minutes, {usual:.3g} are usual"
            found.append(_finding(r["fleet"], ("rate", slot_of(now)), because, acting, boundaries=lately, usual=usual))
        if limits.silence and quiet >= max(limits.silence, 3 * (r["gap"] or SLOT)):
            because = f"no boundary for {_hours(quiet)}; the longest gap of the last week was {_hours(r['gap'] or SLOT)}"
            found.append(_finding(r["fleet"], ("silence", r["last_slot"]), because, acting, seconds=quiet.total_seconds()))
    return found + await _unjudged_in_row(tx, active, limits, acting, now)


async def _unjudged_in_row(tx: AsyncConnection, fleets: Sequence[str], limits: Limits, acting: Acting, now: datetime) -> list[Finding]:
    """Fleets whose last boundaries were none of them judged by the judge that should have."""
    most = limits.not_judged_in_row
    if not most or not fleets:
        return []
    rows = await raw.fetch(tx, _IN_ROW, sorted(fleets), most)
    return [
        _finding(
            r["fleet"],
            ("not_judged_in_row", now.date()),
            f"none of the last {most} boundaries was judged by the fleet's judge",
            acting,
            boundaries=most,
        )
        for r in rows
        if r["boundaries"] >= most and r["all_of_them"]
    ]


def _hours(span: timedelta) -> str:
    """A span in words."""
    hours = span.total_seconds() / 3600
    return f"{hours:.1f} hours" if hours < 48 else f"{hours / 24:.1f} days"  # noqa: PLR2004  two days
