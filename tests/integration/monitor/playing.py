"""Losses that are reported to a fold without a bus, and what came of them."""

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tests.integration.monitor.conftest import Clock
from winnow.contracts.events import Alert, Graded, Observation, Sampled
from winnow.storage import folding, raw, samples, streams, watched
from winnow.storage.database import Database
from winnow.storage.folding import Report
from winnow.storage.keys import StreamKey
from winnow.storage.policy import Policy

GRADER = "rule 1"


@dataclass
class Player:
    """Reports to one stream of a fleet."""

    db: Database
    fleet: str
    clock: Clock
    stream: str = "harm"
    policy: Policy = field(default_factory=Policy)
    count: int = 0
    alerts: list[Alert] = field(default_factory=list)

    @property
    def key(self) -> StreamKey:
        return StreamKey(self.fleet, self.stream)

    def event(
        self, unit: str, *, loss: float | None = None, sampled: bool = True, grader: str = GRADER, lo: float = 0.0, p: float = 1.0, **more
    ):
        now = self.clock()
        return Observation(
            fleet=self.fleet, event_id=uuid.uuid4(), stream=self.stream, unit=unit,
            sampled=Sampled(probability=p, at=now) if sampled else None,
            graded=Graded(loss=loss, lo=lo, grader=grader, at=now) if loss is not None else None,
            **more,
        )  # fmt: skip

    def units(self, losses: Iterable[float], **more) -> list[Observation]:
        """Whole observations, one a loss."""
        made = []
        for loss in losses:
            self.count += 1
            made.append(self.event(f"u{self.count}", loss=loss, **more))
        return made

    async def send(self, events: Sequence[Observation]) -> Report:
        """Store and fold, as the service does."""
        async with self.db.transaction() as tx:
            taken = await samples.take(tx, events, now=self.clock())
            report = await folding.fold(tx, taken.streams, self.policy, now=self.clock(), taken=taken)
        self.alerts += report.alerts
        return report

    async def play(self, losses: Iterable[float], **more) -> Report:
        """Whole observations at once."""
        return await self.send(self.units(losses, **more))

    async def tick(self) -> Report:
        """Look at this stream's timer, as the service does with those that are due."""
        async with self.db.transaction() as tx:
            await watched.lock(tx, [self.key])
            report = await folding.fold(tx, [self.key], self.policy, now=self.clock())
        self.alerts += report.alerts
        return report

    async def state(self, stream: str | None = None) -> streams.State | None:
        async with self.db.transaction() as tx:
            return await streams.lock_state(tx, self.fleet, stream or self.stream)

    async def rows(self, sql: str, *arguments: object):
        async with self.db.transaction() as tx:
            return await raw.fetch(tx, sql, *arguments)

    async def fates(self) -> list[str | None]:
        rows = await self.rows("SELECT fate FROM observations WHERE fleet = $1 AND stream = $2 ORDER BY seq", self.fleet, self.stream)
        return [r["fate"] for r in rows]
