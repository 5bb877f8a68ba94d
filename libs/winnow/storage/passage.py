"""One stream on its way through a fold: its epochs as its units ask for them, the fates of its units, and what follows its alarm."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.assurance import ledger, monitor, recovery, state, terms
from winnow.assurance.ledger import Fate, Folded, Signature, Unit, Watched
from winnow.assurance.monitor import State
from winnow.assurance.refusals import InvalidConfig, StateUnreadable
from winnow.assurance.terms import Budgets
from winnow.contracts.streams import StreamConfig
from winnow.contracts.vocabulary import Family
from winnow.storage import epochs, watched
from winnow.storage.keys import StreamKey
from winnow.storage.ledger import Waiting
from winnow.storage.policy import Policy, Recertify
from winnow.storage.watched import Loaded


@dataclass(slots=True)
class Passage:
    """One stream on its way through a fold: what is known of it, what was decided, what operators must hear."""

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


async def advance(tx: AsyncConnection, run: Passage, waiting: Waiting, policy: Policy) -> None:
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


async def _terms(tx: AsyncConnection, run: Passage, units: Sequence[Unit], budgets: Budgets) -> None:
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


async def _next_epoch(tx: AsyncConnection, run: Passage, config: StreamConfig, stranger: Unit) -> None:
    """Open the epoch that a unit asks for."""
    current = run.watched
    if current is None:
        return
    old, new = current.epoch.signature, stranger.signature
    differs = [f"{name} {b} follows {a}" for name, a, b in zip(Signature._fields, old, new, strict=True) if None not in {a, b} and a != b]
    because = "; ".join(differs).replace("_", " ") or f"the horizon of {current.epoch.config.horizon} units is reached"
    await _open_next(tx, run, current, config, signature=new.filled(old), because=because)


async def _open_next(
    tx: AsyncConnection, run: Passage, current: Watched, config: StreamConfig, *, signature: Signature, because: str
) -> None:
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


def _note(run: Passage, folded: Folded, recertify: Recertify | None) -> None:
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


def _recertified(run: Passage, folded: Folded, recertify: Recertify) -> tuple[str | None, bool]:
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


async def beside(tx: AsyncConnection, run: Passage, fates: Sequence[tuple[Unit, Fate, int]], policy: Policy) -> None:
    """Fold a stream's missing grades: 1 where one did not come in time."""
    last = run.watched.last_seq if run.watched is not None else 0
    if run.watched is not None and fates[0][0].seq > last and _all_in_time(run, run.watched, fates):
        run.watched = ledger.silent(run.watched, len(fates), fates[-1][0].seq)
        return
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


def _all_in_time(run: Passage, watched: Watched, fates: Sequence[tuple[Unit, Fate, int]]) -> bool:
    """Every unit was graded in time, and nothing else is to be looked at: nearly always."""
    config = watched.epoch.config
    plain = config.horizon is None and watched.state.alarm_at is None and not terms.changed(watched.epoch, run.found.config)
    return plain and all(fate is Fate.FOLDED for _, fate, _ in fates)
