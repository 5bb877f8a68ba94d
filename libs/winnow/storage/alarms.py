"""What is done about an alarm, in the transaction that found it: alerts, the hold, certificates, the epoch's last word. And the release.

Locks are taken in one order: rows of streams, then rows of fleets by name, then the rest; the pruner shares the fleet's row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.contracts import ids
from winnow.contracts.events import Alert, Attribution
from winnow.contracts.vocabulary import AlertKind, Guarantee
from winnow.storage import alerts, certificates, epochs, fleets, raw, watched
from winnow.storage.keys import StreamKey
from winnow.storage.values import storable

#: Who acts, for the audit log.
MONITOR = "drift_monitor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acting:
    """What the monitor may do by itself."""

    #: Write a delivery to the webhook for each alert.
    webhook: bool = False
    #: Hold the fleet on an alarm of a stream that nobody grades.
    hold_on_label_free: bool = True
    #: Hold the fleet on a plain threshold, which has no guarantee.
    hold_on_thresholds: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something that operators must hear of, and what is to be done about it."""

    fleet: str
    #: None: the fleet as a whole.
    stream: str | None
    #: What makes it this finding and no other: told again, it is the same alert.
    identity: tuple[object, ...]
    because: str
    guarantee: Guarantee
    kind: AlertKind = AlertKind.RAISED
    hold: bool = True
    #: Revoke the certificates that rest on the stream.
    revoke: bool = True
    log_evidence: float | None = None
    change_window: tuple[int, int] | None = None
    attribution: tuple[Attribution, ...] = ()
    details: Mapping[str, object] = field(default_factory=dict)
    #: The epoch that alarmed, and how.
    epoch: int | None = None
    alarm: epochs.Alarm | None = None


async def act(tx: AsyncConnection, findings: Sequence[Finding], acting: Acting, *, now: datetime) -> list[Alert]:
    """Raise alerts, hold fleets and revoke certificates. A finding that was told before does nothing again. Return the new alerts."""
    told: list[Alert] = []
    for finding in sorted(findings, key=lambda f: (f.fleet, f.stream or "")):
        told += await _one(tx, finding, acting, now)
    return told


async def _one(tx: AsyncConnection, finding: Finding, acting: Acting, now: datetime) -> list[Alert]:
    """One finding."""
    alert_id = ids.alert_id(finding.fleet, finding.kind, *finding.identity)
    if await raw.fetch_one(tx, "SELECT FROM alerts WHERE alert_id = $1", alert_id) is not None:
        return []
    done: list[str] = []
    more: list[Alert] = []
    if finding.hold:
        held = await fleets.hold(tx, finding.fleet, by=MONITOR, because=finding.because, now=now, alert_id=alert_id)
        done.append("held the fleet: nothing is pruned" if held else "the fleet was held already")
        if held:
            more.append(_step(finding, AlertKind.HELD, "nothing is pruned until the fleet is released", now))
    if finding.revoke:
        revoked = await certificates.revoke_resting_on(tx, finding.fleet, finding.stream, by=MONITOR, because=finding.because, now=now)
        if revoked:
            done.append(f"revoked {len(revoked)} certificate{'s' if len(revoked) > 1 else ''}")
            more.append(_step(finding, AlertKind.CERTIFICATE_REVOKED, ", ".join(map(str, revoked)), now))
    raised = Alert(
        fleet=finding.fleet,
        alert_id=alert_id,
        kind=finding.kind,
        at=now,
        stream=finding.stream,
        log_evidence=finding.log_evidence,
        change_window=finding.change_window,
        guarantee=finding.guarantee,
        attribution=finding.attribution,
        because=finding.because,
        done="; ".join(done) or "nothing: this tells, it does not act",
    )
    if finding.epoch is not None and finding.alarm is not None and finding.stream is not None:
        await epochs.alarmed(tx, StreamKey(finding.fleet, finding.stream), finding.epoch, finding.alarm, alert_id=alert_id)
    return await alerts.publish(tx, [raised, *more], webhook=acting.webhook, now=now, details=finding.details)


def _step(finding: Finding, kind: AlertKind, done: str, now: datetime) -> Alert:
    """What was done, as an alert of its own."""
    return Alert(
        fleet=finding.fleet,
        alert_id=ids.alert_id(finding.fleet, kind, *finding.identity),
        kind=kind,
        at=now,
        stream=finding.stream,
        because=finding.because,
        done=done,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Released:
    """What a release did."""

    released: bool
    #: Streams that begin a new epoch.
    streams: tuple[str, ...] = ()


async def release(tx: AsyncConnection, fleet: str, *, by: str, because: str, webhook: bool, now: datetime) -> Released:
    """Release a fleet: its own mode counts again, and every stream that had alarmed or was held begins a new epoch.

    A stream whose state could not be read begins anew too: releasing says that its past is given up. With an audit row and an alert.
    Raise `NotFound` for an unknown fleet.
    """
    because = storable(because)  # it is also told on the bus
    names = [
        r["stream"] for r in await raw.fetch(tx, "SELECT stream FROM streams WHERE fleet = $1 ORDER BY stream FOR NO KEY UPDATE", fleet)
    ]
    row = await raw.fetch_one(tx, "SELECT held_since FROM fleets WHERE fleet = $1", fleet)
    since = row["held_since"] if row else None
    if not await fleets.release(tx, fleet, by=by, because=because, now=now):
        return Released(released=False)
    # After an alarm of the fleet as a whole no stream may keep the evidence that it rested on.
    whole = await raw.fetch_one(
        tx,
        "SELECT FROM alerts WHERE fleet = $1 AND kind = 'raised' AND stream IS NULL AND guarantee = 'anytime' AND at >= $2",
        fleet,
        since,
    )
    rows = await raw.fetch(
        tx,
        "SELECT stream FROM monitor_states WHERE fleet = $1 AND stream = ANY($2::text[])"
        " AND (status IN ('alarm', 'held', 'recovered') OR $3)"
        " ORDER BY stream",
        fleet,
        names,
        whole is not None,
    )
    anew = tuple(r["stream"] for r in rows)
    await watched.begin_anew(tx, [StreamKey(fleet, s) for s in anew], because=f"the fleet was released: {because}", now=now)
    done = f"new epochs of {', '.join(anew)}" if anew else "its own mode counts again"
    alert = Alert(
        fleet=fleet, alert_id=ids.alert_id(fleet, AlertKind.RELEASED, since), kind=AlertKind.RELEASED, at=now, because=because, done=done
    )
    await alerts.publish(tx, [alert], webhook=webhook, now=now)
    return Released(released=True, streams=anew)
