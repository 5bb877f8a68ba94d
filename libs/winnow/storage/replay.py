"""A stream again from its ledger: what its state must be, to the bit."""

from dataclasses import dataclass, replace
from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncConnection

from winnow.assurance import ledger, state
from winnow.assurance.ledger import Fate, Unit
from winnow.contracts.errors import NotFound, Permanent
from winnow.contracts.streams import MISSING_PREFIX
from winnow.storage import epochs, raw, streams, watched
from winnow.storage import ledger as stored_ledger
from winnow.storage.keys import StreamKey


class LedgerIncomplete(Permanent):
    """Retention has dropped units of the ledger, so it cannot be replayed from its first one; `winnow release` begins a new epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What a replay came to."""

    key: StreamKey
    epoch: int
    units: int
    #: What the ledger says that the state must be.
    state: str
    #: What is stored.
    stored: str
    log_evidence: float
    status: str

    @property
    def identical(self) -> bool:
        """They are the same to the last bit."""
        return self.state == self.stored


async def replay(tx: AsyncConnection, key: StreamKey, *, now: datetime, repair: bool = False) -> Replayed:
    """Fold the whole ledger of a stream again; with `repair` write the result where it differs, and let a held stream go on.

    Raise `NotFound` for a stream without a state, `LedgerIncomplete` where units are gone, `InvalidConfig` where an epoch was altered.
    """
    source = StreamKey(key.fleet, key.stream.removeprefix(MISSING_PREFIX))
    await watched.lock(tx, [source])
    row = await raw.fetch_one(tx, "SELECT * FROM monitor_states WHERE fleet = $1 AND stream = $2", *key)
    known = await epochs.of(tx, key)
    if row is None or not known:
        msg = f"stream {key.stream!r} of fleet {key.fleet!r} has no state; `winnow streams list` shows those that have"
        raise NotFound(msg)
    units: list[tuple[Unit, Fate]] = []
    last = 0
    through = await watched.decided_through(tx, source) if repair else row["last_seq"]
    async for unit, fate in stored_ledger.decisions(tx, source, through=through):
        if unit.seq != last + 1:
            raise LedgerIncomplete
        last = unit.seq
        units.append((unit, fate))
    if last < through:
        raise LedgerIncomplete
    if key != source:
        units = [(one, Fate.FOLDED) for one in ledger.as_missing(units)]
    frozen = {e.epoch.number: e.alarm_seq for e in known if e.alarm_rule == "e-bh" and e.alarm_seq is not None}
    found = ledger.replayed([e.epoch for e in known], units, frozen)
    text = state.dump(found.state, stream=watched.name_of(key), epoch=found.epoch.number)
    came = Replayed(
        key=key, epoch=found.epoch.number, units=len(units), state=text, stored=row["state"], log_evidence=found.state.log_evidence,
        status=found.state.status,
    )  # fmt: skip
    if repair and (not came.identical or row["status"] == "held"):
        columns = {name: row[name] for name in streams.State.__dataclass_fields__}
        before = streams.State(**columns)
        fixed = replace(
            before, epoch=came.epoch, state=text, last_seq=through, log_evidence=came.log_evidence, status=came.status,
            due_at=None if key != source else now, updated_at=now, recertification=None,
        )  # fmt: skip
        await streams.save_states(tx, [fixed])
    return came
