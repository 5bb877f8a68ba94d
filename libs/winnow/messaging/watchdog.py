"""Looks at the offsets of a service's topics, and gets a partition going again that nobody reads though its group seems well."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from typing import Protocol

from aiokafka.coordinator.protocol import ConsumerProtocol
from aiokafka.errors import KafkaError

from winnow.contracts.rights import NotAllowed
from winnow.contracts.topics import Topic
from winnow.messaging.lag import LagReader
from winnow.messaging.stalls import Cure, Place, Stalls
from winnow.telemetry import Telemetry

#: Looks at a stand-still before it is cured: offsets are read that often within `stall_s`.
LOOKS = 4
#: Seconds that one look may take, and that leaving a group may: a broker that answers nothing is another check's finding.
LOOK_TIMEOUT_S, LEAVE_S = 10.0, 5.0
#: State of a group whose partitions are dealt out.
STABLE = "Stable"


class Watched(Protocol):
    """One subscription, as the watchdog needs it."""

    @property
    def topic(self) -> Topic:
        """The topic."""
        ...

    @property
    def group(self) -> str:
        """Its group's name on the broker."""
        ...

    def positions(self) -> dict[int, int | None] | None:
        """Next offset of each partition that is assigned (None: not known yet); None where the consumer does not run."""
        ...

    def excused(self) -> bool:
        """Its own partitions stand still on purpose: a batch is at work, or consumption is paused."""
        ...

    async def rejoin(self) -> None:
        """Leave the group and join it again."""
        ...

    def stand_still(self, why: str | None) -> None:
        """What liveness is to say."""
        ...


class Watchdog:
    """Watches subscriptions. `step` is one look; `Background` repeats it every `every_s` seconds."""

    def __init__(
        self, service: str, subscriptions: Sequence[Watched], reader: LagReader, *, stall_s: float, clock: Callable[[], float],
        telemetry: Telemetry,
    ) -> None:  # fmt: skip
        """`stall_s`: seconds from which a partition counts as standing still; `clock` is monotonic."""
        self.every_s = stall_s / LOOKS
        self._service = service
        self._watched = [(subscription, Stalls(stall_s)) for subscription in subscriptions]
        self._reader = reader
        self._stall_s = stall_s
        self._clock = clock
        self._telemetry = telemetry

    def __repr__(self) -> str:
        return f"<Watchdog({self._service}, {[stalls for _, stalls in self._watched]})>"

    async def step(self) -> bool:
        """One look at each topic; never asks for another at once."""
        for subscription, stalls in self._watched:
            try:
                async with asyncio.timeout(LOOK_TIMEOUT_S):
                    stalled = await self._look(subscription, stalls)
            except (KafkaError, NotAllowed, OSError, TimeoutError) as exc:
                # How long a partition stood still while nobody looked is not known.
                stalls.forget()
                self._telemetry.log.info("lag_unknown", error=exc)
                await self._reader.close()
                return False
            await self._treat(subscription, stalls, stalled)
        return False

    async def close(self) -> None:
        """Disconnect."""
        await self._reader.close()

    async def _look(self, subscription: Watched, stalls: Stalls) -> list[int]:
        """The partitions that have stood still for too long and are ours or nobody's."""
        own = subscription.positions()
        if own is None:
            stalls.forget()
            return []
        # Of a partition of ours the position counts: a transaction's marker is passed, and never committed.
        places = {
            n: Place(max(first, own.get(n) or 0), first + behind)
            for lag in await self._reader.read([(self._service, subscription.topic)])
            for n, (first, behind) in enumerate(zip(lag.next_offsets, lag.by_partition, strict=True))
        }
        excused = own.keys() if subscription.excused() else ()
        stalled = stalls.look(places, excused=excused, now=self._clock())
        if others := [n for n in stalled if n not in own]:
            # What another member has is looked at by that member.
            owned = await self._owned(subscription)
            stalls.forget([n for n in others if n in owned])
            stalled = [n for n in stalled if n not in owned or n in own]
        if stalls.calm:
            subscription.stand_still(None)
        return stalled

    async def _owned(self, subscription: Watched) -> set[int]:
        """Partitions that some member of the group has, by the broker's word; none while the group is not settled."""
        state, members = await self._reader.members(subscription.group)
        if state != STABLE:
            return set()
        assignments = [ConsumerProtocol.ASSIGNMENT.decode(member) for member in members if member]
        return {number for given in assignments for _, numbers in given.assignment for number in numbers}

    async def _treat(self, subscription: Watched, stalls: Stalls, stalled: Sequence[int]) -> None:
        """Join again first; where that did not help, let liveness say so."""
        cure = stalls.cure(stalled)
        if cure is Cure.NONE:
            return
        labels = {"service": self._service, "topic": subscription.topic.name}
        self._telemetry.metrics.count("winnow_stalls_total", cure=cure.value, **labels)
        self._telemetry.log.error("partitions_stalled", topic=subscription.topic.name, partitions=list(stalled), cure=cure.value)
        if cure is Cure.RESTART:
            some = ", ".join(map(str, stalled))
            subscription.stand_still(f"records wait in partitions {some} that nobody takes, and joining the group again did not help")
            return
        # The request may wait behind one that is never answered: the group is then joined anew without an answer.
        with contextlib.suppress(KafkaError, OSError, TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                await subscription.rejoin()
