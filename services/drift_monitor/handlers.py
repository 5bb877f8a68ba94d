"""What runtimes, graders and the pruner report, stored once and folded.

Observations: `seq` is given in the transaction that first stores `sampled`; what can be decided then is folded in the same transaction.
Runtime events and committed boundaries keep their runs open; `loops` closes them.
"""

import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from services.drift_monitor.telling import Teller
from winnow.contracts.errors import EventIdTaken
from winnow.contracts.events import Event, JudgeId, Model, Observation, RuntimeEvent
from winnow.contracts.streams import MISSING_PREFIX
from winnow.contracts.topics import COMMITTED, OBSERVATION, RUNTIME, Topic
from winnow.contracts.vocabulary import Decision, Outcome, Reason, RuntimeEventKind
from winnow.messaging.records import Dead, Handled, Received
from winnow.storage import alarms, fleets, folding, runtime_events, samples, thresholds, watching
from winnow.storage.database import Database
from winnow.storage.keys import Key
from winnow.storage.policy import Policy
from winnow.storage.thresholds import Limits
from winnow.storage.watching import Ended

#: Milliseconds in which runtime events and committed boundaries gather: a transaction costs as much as thirty of them, and what they
#: lead to (open runs, thresholds, pins of the next boundary) takes seconds at least.
GATHER_MS = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """When a run is over."""

    #: After the last sign of it.
    idle: timedelta
    #: After `run_ended`: what is under way still arrives.
    settle: timedelta


class RuntimeHandler:
    """Consumes runtime events."""

    topic: Topic = RUNTIME
    model = RuntimeEvent
    gather_ms = GATHER_MS

    def __init__(
        self, database: Database, *, default_point: fleets.Point, patience: Patience, clock: Callable[[], datetime], tell: Teller
    ) -> None:
        """`default_point` is the first operating point of a fleet that is seen for the first time."""
        self._database = database
        self._default_point = default_point
        self._patience = patience
        self._clock = clock
        self._tell = tell

    def identity(self, event: RuntimeEvent) -> Hashable:
        """The event's own id within its fleet, and what it says: something else under the same id is no repetition."""
        return event.fleet, event.event_id, event.said

    async def handle(self, batch: Sequence[Received[RuntimeEvent]]) -> Handled:
        """Store a batch in one transaction, and note of which runs something was heard.

        An id that stands for another event already makes a dead letter: the first event is the one that was acted upon.
        """
        now = self._clock()
        events = [r.event for r in batch]
        async with self._database.transaction() as tx:
            await fleets.ensure(tx, {e.fleet for e in events}, default=self._default_point, now=now)
            new = await runtime_events.store(tx, events, now=now)
            taken = await runtime_events.taken(tx, events) if len(new) < len(events) else frozenset()
            stored = [e for e in events if e.event_id in new and e not in taken]
            heard: dict[tuple[str, str], bool] = {}
            for event in stored:
                ended = event.kind is RuntimeEventKind.RUN_ENDED
                heard[event.fleet, event.run] = heard.get((event.fleet, event.run), False) or ended
            await watching.touch(tx, heard, settle=self._patience.settle, idle=self._patience.idle, now=now)
            missed = await runtime_events.misses(tx, stored)
        self._tell.runtime(stored, missed=missed)
        return Handled(
            dead=[Dead(record=r.record, reason=EventIdTaken.reason, error=str(EventIdTaken())) for r in batch if r.event in taken]
        )


class ObservationHandler:
    """Consumes observations."""

    topic: Topic = OBSERVATION
    model = Observation
    #: An observation has some hundred bytes, and a commit costs as much as folding hundreds of them. No more than `Policy.limit`: of one
    #: stream, what is above it would be written undecided, read again and folded by the next batch.
    records_at_once = 1_000
    #: A hold that comes a twentieth of a second later holds as well, and a call for a few units costs as much as for a hundred.
    gather_ms = 50

    def __init__(
        self, database: Database, *, default_point: fleets.Point, policy: Policy, clock: Callable[[], datetime], tell: Teller
    ) -> None:
        """`default_point` is the first operating point of a fleet that is seen for the first time."""
        self._database = database
        self._default_point = default_point
        self._policy = policy
        self._clock = clock
        self._tell = tell

    def identity(self, event: Observation) -> Hashable:
        """The event's own id within its fleet, and what it is about: a grade under the id of its sample is no repetition."""
        return event.fleet, event.event_id, event.stream, event.unit, event.sampled is None, event.graded is None

    async def handle(self, batch: Sequence[Received[Observation]]) -> Handled:
        """Store a batch in the order of its streams and fold what can be decided, in one transaction."""
        now, began = self._clock(), time.perf_counter()
        dead = [
            Dead(record=r.record, reason=Reason.INVALID, error=f"stream: names that begin with {MISSING_PREFIX!r} are the monitor's own")
            for r in batch
            if r.event.stream.startswith(MISSING_PREFIX)
        ]
        events = [r.event for r in batch if not r.event.stream.startswith(MISSING_PREFIX)]
        if not events:
            return Handled(dead=dead)
        async with self._database.transaction() as tx:
            await fleets.ensure(tx, {e.fleet for e in events}, default=self._default_point, now=now)
            taken = await samples.take(tx, events, now=now)
            report = await folding.fold(tx, taken.streams, self._policy, now=now, taken=taken)
        self._tell.folded(report, seconds=time.perf_counter() - began, late=taken.late, duplicates=len(events) - len(taken.changed))
        return Handled(dead=dead)


class DecisionSeen(Model):
    """Of a decision, only which."""

    decision: Decision


class CommittedSeen(Event):
    """Of a committed boundary what the monitor counts: the rest of the event, most of it text, is not read."""

    run: str
    boundary_id: UUID
    index: int
    outcome: Outcome
    judge: JudgeId | None = None
    fallback_for: str | None = None
    decisions: tuple[DecisionSeen, ...] = ()

    @property
    def key(self) -> str:
        """Record key: `fleet/run`."""
        return f"{self.fleet}/{self.run}"


class CommittedHandler:
    """Consumes committed boundaries."""

    topic: Topic = COMMITTED
    model = CommittedSeen
    gather_ms = GATHER_MS

    def __init__(
        self, database: Database, *, policy: Policy, limits: Limits, patience: Patience, clock: Callable[[], datetime], tell: Teller
    ) -> None:
        """`limits`: when plain thresholds tell."""
        self._database = database
        self._acting = policy.acting
        self._limits = limits
        self._patience = patience
        self._clock = clock
        self._tell = tell

    def identity(self, event: CommittedSeen) -> Hashable:
        """The boundary."""
        return event.fleet, event.boundary_id

    async def handle(self, batch: Sequence[Received[CommittedSeen]]) -> Handled:
        """Count a batch once: activity, open runs, profiles."""
        now = self._clock()
        ended = [_ended(r.event) for r in batch if r.event.outcome is not Outcome.REJECTED]
        if not ended:
            return Handled()
        async with self._database.transaction() as tx:
            seen = await watching.count(tx, ended, idle=self._patience.idle, now=now)
            profiles = await watching.learn(tx, [b for b in ended if b.key in seen.counted], now=now)
            findings = [
                *thresholds.loops(seen.loops, self._limits, self._acting, now=now),
                *thresholds.departures(profiles, self._acting),
            ]
            told = await alarms.act(tx, findings, self._acting, now=now)
        self._tell.alerts(told)
        return Handled()


def _ended(event: CommittedSeen) -> Ended:
    """What is counted of a boundary."""
    judged = event.outcome in {Outcome.JUDGED, Outcome.JUDGED_PARTIAL}
    return Ended(
        key=Key(event.fleet, event.boundary_id),
        unsupported=sum(d.decision is Decision.PRUNED for d in event.decisions) if judged else None,
        entries=len(event.decisions),
        judge=event.judge.name if event.judge else None,
        judge_version=event.judge.version if event.judge else None,
        later=event.index > 1,
        judged=event.outcome is not Outcome.UNJUDGED and event.fallback_for is None,
    )
