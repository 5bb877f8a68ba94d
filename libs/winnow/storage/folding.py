"""The fold: in one transaction, units that can be decided go into the state of their stream, their fates into the ledger, alarms into acts.

The order: the caller holds the rows of the streams; load -> place and configuration of new streams -> the units that wait -> fold (pure) ->
fates -> states -> alarms. Whatever ends the process, all of it happened or nothing.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.assurance import ledger, monitor, recovery, state, terms
from winnow.assurance.ledger import Fate, Folded, Signature, Unit, Watched
from winnow.assurance.monitor import State
from winnow.assurance.refusals import InvalidConfig, StateUnreadable
from winnow.assurance.terms import Budgets
from winnow.contracts.events import Alert
from winnow.contracts.streams import MISSING_PREFIX, StreamConfig
from winnow.contracts.vocabulary import Family
from winnow.storage import alarms, epochs, raw, streams, watched
from winnow.storage import ledger as stored_ledger
from winnow.storage.alarms import Acting, Finding
from winnow.storage.findings import alarm_finding, unreadable_finding, warn_finding
from winnow.storage.keys import StreamKey
from winnow.storage.ledger import Decided, Waiting
from winnow.storage.watched import Loaded


@dataclass(frozen=True, slots=True, kw_only=True)
class Recertify:
    """When a hold may end by itself: the risk of fresh units is shown to be below `margin` times the budget, with an error of `delta`."""

    margin: float = 0.8
    delta: float = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """How streams are folded."""

    budgets: Budgets = field(default_factory=Budgets)
    acting: Acting = field(default_factory=Acting)
    #: None: only people end a hold.
    recertify: Recertify | None = None
    #: Units of one stream in one transaction.
    limit: int = 5_000


_NOTHING = Waiting([], [])


@dataclass(slots=True)
class Report:
    """What a fold came to."""

    fates: Counter[Fate] = field(default_factory=Counter)
    alerts: list[Alert] = field(default_factory=list)
    #: Streams that have more units to decide at once.
    more: list[StreamKey] = field(default_factory=list)


@dataclass(slots=True)
class _Run:
    """One stream on its way through a fold."""

    found: Loaded
    now: datetime
    watched: Watched | None = None
    before: Watched | None = None
    fates: list[tuple[Unit, Fate, int]] = field(default_factory=list)
    findings: list[tuple[Watched, int]] = field(default_factory=list)
    warned: Watched | None = None
    recertification: str | None = None
    recovered: bool = False
    problem: str | None = None

    def __post_init__(self) -> None:
        """Begin where the stored state is."""
        self.watched = self.before = self.found.watched
        if self.found.row is not None:
            self.recertification = self.found.row.recertification
            self.recovered = self.found.row.status == "recovered"


async def fold(tx: AsyncConnection, keys: Sequence[StreamKey], policy: Policy, *, now: datetime) -> Report:
    """Fold what can be decided of streams whose rows the caller has locked (`watched.lock`, or storing observations of them)."""
    report = Report()
    found, companions = await _ready(tx, keys)
    report.alerts += await _hold_unreadable(tx, [*found.values(), *companions.values()], policy.acting, now)
    live = [f for f in found.values() if _live(f)]
    waiting = await stored_ledger.pending(tx, [(f.key, f.row.last_seq if f.row else 0) for f in live], limit=policy.limit)
    runs: list[_Run] = []
    decided: list[Decided] = []
    for one in live:
        there = waiting.get(one.key, _NOTHING)
        run = _Run(found=one, now=now)
        await _advance(tx, run, there, policy)
        decided += stored_ledger.stretches(one.key, run.fates, there.times)
        runs.append(run)
        companion = companions.get(one.key)
        if companion is not None and _live(companion) and run.fates:
            beside = _Run(found=companion, now=now)
            await _beside(tx, beside, run.fates, policy)
            runs.append(beside)
        report.fates.update(fate for _, fate, _ in run.fates)
        if len(there.units) == policy.limit and run.fates:
            report.more.append(one.key)
    await stored_ledger.decide(tx, decided, now=now)
    rows = [row for run in runs if (row := _row(run, waiting.get(run.found.key, _NOTHING), policy)) is not None]
    await streams.save_states(tx, rows)
    report.alerts += await alarms.act(tx, await _findings(tx, runs, policy.acting), policy.acting, now=now)
    return report


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


async def _advance(tx: AsyncConnection, run: _Run, waiting: Waiting, policy: Policy) -> None:
    """Decide the units of one stream, as far as they can be."""
    key, now = run.found.key, run.now
    patience = timedelta(seconds=run.found.config.watermark_s if run.found.config.watermark_s is not None else policy.budgets.watermark_s)
    # Of what nobody grades, only the operating point makes an epoch.
    bare = run.found.family is Family.LABEL_FREE
    units = (
        waiting.units if not bare else [u._replace(signature=Signature(operating_point=u.signature.operating_point)) for u in waiting.units]
    )
    units = [
        unit if unit.loss is not None else unit._replace(due=at + patience <= now) for unit, at in zip(units, waiting.times, strict=True)
    ]
    if not units or (units[0].loss is None and not units[0].due):
        return
    try:
        await _terms(tx, run, units, policy.budgets)
        while units and run.watched is not None:
            folded = ledger.fold(run.watched, units)
            _note(run, folded, policy.recertify)
            stranger = folded.stranger
            if stranger is None:
                break
            units = units[len(folded.fates) :]
            if await _belongs_to_the_past(tx, key, run.watched, stranger):
                _note(run, ledger.refuse(run.watched, stranger), None)
                units = units[1:]
            else:
                await _next_epoch(tx, run, run.found.config, stranger)
    except InvalidConfig as exc:
        run.problem = str(exc)


async def _terms(tx: AsyncConnection, run: _Run, units: Sequence[Unit], budgets: Budgets) -> None:
    """See to it that the stream has an epoch, and the one that its configuration asks for."""
    found, current = run.found, run.watched
    first = units[0]._replace(lo=next((u.lo for u in units if u.lo is not None), None))
    config = terms.settled(found.key.stream, found.config, budgets, first, current.epoch.config if current else None)
    if config != found.config:
        await watched.settle(tx, found.key, config)
        run.found = found = replace(found, config=config)
    if current is None:
        run.watched = await watched.open_epoch(
            tx, found, config, delta=budgets.delta, number=1, from_seq=first.seq, signature=first.signature, because="first unit",
            now=run.now,
        )  # fmt: skip
    elif terms.changed(current.epoch, config):
        await _open_next(tx, run, current, config, signature=current.epoch.signature, because="the configuration was changed")


async def _next_epoch(tx: AsyncConnection, run: _Run, config: StreamConfig, stranger: Unit) -> None:
    """Open the epoch that a unit asks for."""
    current = run.watched
    if current is None:
        return
    old, new = current.epoch.signature, stranger.signature
    differs = [f"{name} {b} follows {a}" for name, a, b in zip(Signature._fields, old, new, strict=True) if None not in {a, b} and a != b]
    because = "; ".join(differs).replace("_", " ") or f"the horizon of {current.epoch.config.horizon} units is reached"
    await _open_next(tx, run, current, config, signature=new.filled(old), because=because)


async def _open_next(tx: AsyncConnection, run: _Run, current: Watched, config: StreamConfig, *, signature: Signature, because: str) -> None:
    """Open the epoch behind the current one."""
    if current.epoch.signature != (run.before or current).epoch.signature:
        await epochs.fill(tx, run.found.key, current.epoch)
    run.watched = await watched.open_epoch(
        tx, run.found, config, delta=current.epoch.config.delta, number=current.epoch.number + 1, from_seq=current.last_seq + 1,
        signature=signature, because=because, now=run.now,
    )  # fmt: skip
    run.before, run.recertification, run.recovered = run.watched, None, False


async def _belongs_to_the_past(tx: AsyncConnection, key: StreamKey, current: Watched, unit: Unit) -> bool:
    """A unit of an operating point, compressor or grader that another one has followed."""
    signature = current.epoch.signature
    if signature.agrees(unit.signature) or current.epoch.number == 1:
        return False
    return epochs.is_past(unit.signature, signature, await epochs.earlier(tx, key, current.epoch.number))


def _note(run: _Run, folded: Folded, recertify: Recertify | None) -> None:
    """Take over what a fold came to."""
    if run.watched is None:
        return
    was_warned = run.watched.state.warned_at is not None
    number = run.watched.epoch.number
    run.watched = folded.watched
    run.fates += [(unit, fate, number) for unit, fate in folded.fates]
    if folded.alarm_seq is not None:
        run.findings.append((folded.watched, folded.alarm_seq))
    elif folded.watched.state.warned_at is not None and not was_warned:
        run.warned = folded.watched
    # What was folded together with the unit that alarmed was drawn before the hold: it is not fresh.
    if recertify is not None and folded.afterwards and folded.alarm_seq is None and not run.recovered:
        run.recertification, run.recovered = _recertified(run, folded, recertify)


def _recertified(run: _Run, folded: Folded, recertify: Recertify) -> tuple[str | None, bool]:
    """Fold what came after the alarm into the test that may end the hold; units drawn more often than the rarest ones are left out."""
    config = folded.watched.epoch.config
    test = recovery.recovery_config(config, delta=recertify.delta, alpha=config.lo + (config.alpha - config.lo) * recertify.margin)
    name, number = watched.name_of(run.found.key), folded.watched.epoch.number
    try:
        known: State = (
            monitor.initial(test) if run.recertification is None else state.load(run.recertification, test, stream=name, epoch=number)
        )
    except StateUnreadable:  # the margin was changed: begin again, which can only take longer
        known = monitor.initial(test)
    for loss, probability in folded.afterwards:
        if probability == config.min_probability:
            known = recovery.recover(test, config, known, loss)
    return state.dump(known, stream=name, epoch=number), known.alarm_at is not None


async def _beside(tx: AsyncConnection, run: _Run, fates: Sequence[tuple[Unit, Fate, int]], policy: Policy) -> None:
    """Fold a stream's missing grades: 1 where one did not come in time."""
    last = run.watched.last_seq if run.watched is not None else 0
    units = [u for u in ledger.as_missing([(unit, fate) for unit, fate, _ in fates]) if u.seq > last]
    if not units:
        return
    if not run.found.config.binary:
        run.found = replace(run.found, config=run.found.config.model_copy(update={"binary": True, "lo": 0, "min_probability": 1.0}))
    try:
        await _terms(tx, run, units, policy.budgets)
        while units and run.watched is not None:
            folded = ledger.fold(run.watched, units)
            _note(run, folded, policy.recertify)
            if folded.stranger is None:
                break
            units = units[len(folded.fates) :]
            await _next_epoch(tx, run, run.found.config, folded.stranger)
    except InvalidConfig as exc:
        run.problem = str(exc)


def _row(run: _Run, waiting: Waiting, policy: Policy) -> streams.State | None:
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


def _untouched(run: _Run, waiting: Waiting, policy: Policy) -> streams.State | None:
    """The timer of a stream whose first unit still waits: a state without an epoch, so that somebody comes back."""
    due = _due(run, waiting, policy)
    if due is None or run.found.row is not None:
        return None
    return streams.State(
        fleet=run.found.key.fleet, stream=run.found.key.stream, epoch=0, state="", last_seq=0, log_evidence=None, status="insufficient",
        updated_at=run.now, due_at=due,
    )  # fmt: skip


def _due(run: _Run, waiting: Waiting, policy: Policy) -> datetime | None:
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


async def _findings(tx: AsyncConnection, runs: Sequence[_Run], acting: Acting) -> list[Finding]:
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
            found.append(unreadable_finding(replace(run.found, unreadable=run.problem)))
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
