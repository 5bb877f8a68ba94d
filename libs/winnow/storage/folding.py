"""The fold: in one transaction, units that can be decided go into the state of their stream, their fates into the ledger, alarms into acts.

The order: the caller holds the rows of the streams; load -> place and configuration of new streams -> the units that wait, stored or new ->
fold (pure) -> fates and new units -> states -> alarms. Whatever ends the process, all of it happened or nothing.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.assurance.ledger import Fate
from winnow.contracts.events import Alert
from winnow.contracts.streams import MISSING_PREFIX
from winnow.contracts.vocabulary import Family
from winnow.storage import alarms, epochs, raw, samples, streams, watched
from winnow.storage import ledger as stored_ledger
from winnow.storage.alarms import Acting, Finding
from winnow.storage.findings import alarm_finding, misconfigured_finding, unreadable_finding, warn_finding
from winnow.storage.keys import StreamKey
from winnow.storage.ledger import Decided, Waiting
from winnow.storage.passage import Passage, advance, beside
from winnow.storage.policy import Policy
from winnow.storage.samples import Taken
from winnow.storage.watched import Loaded

_NOTHING = Waiting([], [])
_NOTHING_NEW = Taken()


@dataclass(slots=True)
class Report:
    """What a fold came to."""

    fates: Counter[Fate] = field(default_factory=Counter)
    alerts: list[Alert] = field(default_factory=list)
    #: Streams that have more units to decide at once.
    more: list[StreamKey] = field(default_factory=list)


async def fold(tx: AsyncConnection, keys: Sequence[StreamKey], policy: Policy, *, now: datetime, taken: Taken = _NOTHING_NEW) -> Report:
    """Fold what can be decided of streams whose rows the caller has locked (`watched.lock`, or `samples.take`).

    `taken`: the batch that was taken in this transaction; its new units are folded with those that are stored, and written.
    """
    report = Report()
    found, companions = await _ready(tx, keys)
    report.alerts += await _hold_unreadable(tx, [*found.values(), *companions.values()], policy.acting, now)
    live = [f for f in found.values() if _live(f)]
    waiting = await _waiting(tx, live, taken, policy.limit, now)
    runs: list[Passage] = []
    decided: list[Decided] = []
    fates: dict[StreamKey, list[tuple[Fate, int]]] = {}
    for one in live:
        there = waiting.get(one.key, _NOTHING)
        run = Passage(found=one, now=now)
        await advance(tx, run, there, policy)
        new = taken.new.get(one.key, ())
        stored = sum(1 for unit, _, _ in run.fates if unit.seq < new[0].seq) if new else len(run.fates)
        decided += stored_ledger.stretches(one.key, run.fates[:stored], there.times)
        fates[one.key] = [(fate, epoch) for _, fate, epoch in run.fates[stored:]]
        runs.append(run)
        companion = companions.get(one.key)
        if companion is not None and _live(companion) and run.fates:
            silent = Passage(found=companion, now=now)
            await beside(tx, silent, run.fates, policy)
            runs.append(silent)
        report.fates.update(fate for _, fate, _ in run.fates)
        if len(there.units) == policy.limit and run.fates:
            report.more.append(one.key)
    await stored_ledger.decide(tx, decided, now=now)
    await samples.write(tx, taken, fates, now=now)
    rows = [row for run in runs if (row := _row(run, waiting.get(run.found.key, _NOTHING), policy)) is not None]
    await streams.save_states(tx, rows)
    report.alerts += await alarms.act(tx, await _findings(tx, runs, policy.acting), policy.acting, now=now)
    return report


async def _waiting(tx: AsyncConnection, live: Sequence[Loaded], taken: Taken, limit: int, now: datetime) -> dict[StreamKey, Waiting]:
    """The units of each stream that are not decided, at most `limit`: those that are stored, then those of this transaction."""
    after = {f.key: f.row.last_seq if f.row else 0 for f in live}
    # A stream whose next unit is a new one has nothing else that waits.
    behind = [(key, last) for key, last in after.items() if key not in taken.new or last + 1 < taken.new[key][0].seq]
    waiting = await stored_ledger.pending(tx, behind, limit=limit) if behind else {}
    for key in after:
        there = waiting.get(key, _NOTHING)
        new = taken.units(key, limit - len(there.units))
        if new:
            waiting[key] = stored_ledger.extended(there, new, now=now)
    return waiting


def companion_of(key: StreamKey) -> StreamKey:
    """The stream of a stream's missing grades."""
    return StreamKey(key.fleet, MISSING_PREFIX + key.stream)


def _live(found: Loaded) -> bool:
    """It can be folded."""
    return found.unreadable is None and (found.row is None or found.row.status != "held")


async def _ready(tx: AsyncConnection, keys: Sequence[StreamKey]) -> tuple[dict[StreamKey, Loaded], dict[StreamKey, Loaded]]:
    """The streams, each with a place, and by the same keys their streams of missing grades."""
    wanted = sorted(k for k in set(keys) if not k.stream.startswith(MISSING_PREFIX))
    found = await watched.load(tx, [*wanted, *map(companion_of, wanted)])
    graded = [k for k in wanted if k in found and found[k].family is Family.RISK]
    bare = [companion_of(k) for k in graded if companion_of(k) not in found]
    if bare:
        await raw.execute(
            tx,
            "INSERT INTO streams (fleet, stream, registered_at) SELECT k.fleet, k.stream, now()"
            " FROM unnest($1::text[], $2::text[]) AS k(fleet, stream) ORDER BY 1, 2 ON CONFLICT DO NOTHING",
            *raw.columns(bare, 2),
        )
        found |= await watched.load(tx, bare)
    found |= await watched.register(tx, list(found.values()))
    return {k: found[k] for k in wanted if k in found}, {k: found[companion_of(k)] for k in graded if companion_of(k) in found}


async def _hold_unreadable(tx: AsyncConnection, found: Sequence[Loaded], acting: Acting, now: datetime) -> list[Alert]:
    """Hold the fleets of streams that cannot be folded; their rows stay as they are."""
    bad = [f for f in found if f.unreadable is not None and (f.row is None or f.row.status != "held")]
    for one in bad:
        await streams.hold(tx, *one.key, now=now)
    return await alarms.act(tx, [unreadable_finding(f) for f in bad], acting, now=now)


def _row(run: Passage, waiting: Waiting, policy: Policy) -> streams.State | None:
    """The state to write; None where nothing changed."""
    now_at = run.watched
    if now_at is None:
        return _untouched(run, waiting, policy)
    due = _due(run, waiting, policy)
    if now_at is run.found.watched and run.found.row is not None and due == run.found.row.due_at:
        return None
    row = watched.written(run.found, now_at, now=run.now)
    counts = Counter(fate for _, fate, _ in run.fates)
    status = "recovered" if run.recovered and row.status == "alarm" else row.status
    if run.found.key.stream.startswith(MISSING_PREFIX):
        return replace(row, status=status, folded=now_at.state.n, recertification=run.recertification)
    return replace(
        row,
        status=status,
        folded=row.folded + counts[Fate.FOLDED],
        missing=row.missing + counts[Fate.MISSING],
        refused=row.refused + counts[Fate.REFUSED],
        due_at=due,
        recertification=run.recertification,
    )


def _untouched(run: Passage, waiting: Waiting, policy: Policy) -> streams.State | None:
    """The timer of a stream whose first unit still waits: a state without an epoch, so that somebody comes back."""
    due = _due(run, waiting, policy)
    if due is None or run.found.row is not None:
        return None
    return streams.State(
        fleet=run.found.key.fleet, stream=run.found.key.stream, epoch=0, state="", last_seq=0, log_evidence=None, status="insufficient",
        updated_at=run.now, due_at=due,
    )  # fmt: skip


def _due(run: Passage, waiting: Waiting, policy: Policy) -> datetime | None:
    """When to come back: the time of the unit that holds up the others, at once where there are more, never where nothing waits."""
    decided = len(run.fates)
    if not waiting.units:
        return None
    if decided == len(waiting.units):
        return run.now if decided == policy.limit else None
    if run.problem is not None:
        return None
    patience = run.found.config.watermark_s if run.found.config.watermark_s is not None else policy.budgets.watermark_s
    return waiting.times[decided] + timedelta(seconds=patience)


async def _findings(tx: AsyncConnection, runs: Sequence[Passage], acting: Acting) -> list[Finding]:
    """What operators must hear of these streams."""
    found: list[Finding] = []
    for run in runs:
        found += [await alarm_finding(tx, run.found, at, seq, acting, rule="own", now=run.now) for at, seq in run.findings]
        if run.warned is not None:
            found.append(warn_finding(run.found, run.warned))
        if run.watched is not None and run.before is not None and run.watched.epoch.signature != run.before.epoch.signature:
            await epochs.fill(tx, run.found.key, run.watched.epoch)
        if run.problem is not None:
            await streams.hold(tx, *run.found.key, now=run.now)
            found.append(misconfigured_finding(run.found, run.problem))
    return found


async def due(tx: AsyncConnection, *, limit: int, now: datetime) -> list[StreamKey]:
    """Streams whose timer has run out, longest first, each locked until the transaction ends; those that somebody holds are left out."""
    rows = await raw.fetch(
        tx,
        "SELECT s.fleet, s.stream FROM monitor_states m JOIN streams s ON s.fleet = m.fleet AND s.stream = m.stream"
        " WHERE m.due_at <= $1 ORDER BY m.due_at LIMIT $2 FOR NO KEY UPDATE OF s SKIP LOCKED",
        now,
        limit,
    )
    return [StreamKey(r["fleet"], r["stream"]) for r in rows]
