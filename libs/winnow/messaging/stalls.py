"""Which partitions have records before them that nobody takes, and what is to be done about it. Pure.

A group's clients can lose each other: a member is struck down amid a rebalance, an answer is never sent, a fetcher dies without a word
(aiokafka#1154). Then heartbeats and pings go on, and one partition stands still. It shows in offsets alone, so they are what is looked at.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum
from typing import NamedTuple


class Cure(StrEnum):
    """What a stand-still asks for."""

    NONE = "none"
    #: Leave the group and join it again: partitions are dealt out anew, and positions are read again.
    REJOIN = "rejoin"
    #: Joining again did not help: the process must be restarted.
    RESTART = "restart"


class Place(NamedTuple):
    """One partition at one look, as offsets: the first record that is not handled yet, and the end of the partition."""

    next: int
    end: int


class Stalls:
    """Keeps how long each partition of a topic has stood still. One a subscription."""

    def __init__(self, after_s: float) -> None:
        """`after_s`: seconds from which a stand-still is cured; above what a rebalance takes."""
        self._after_s = after_s
        self._since: dict[int, tuple[int, float]] = {}
        #: Where partitions stood when their group was joined again.
        self._rejoined: dict[int, int] = {}

    def __repr__(self) -> str:
        return f"<Stalls(waiting={sorted(self._since)}, rejoined={sorted(self._rejoined)})>"

    @property
    def calm(self) -> bool:
        """No partition stands where it stood when its group was joined again."""
        return not self._rejoined

    def look(self, places: Mapping[int, Place], *, excused: Collection[int], now: float) -> list[int]:
        """Note a look at all partitions; return those that have stood still for too long, in order.

        `excused`: partitions that stand still for a reason (a batch of theirs is at work, they are paused on purpose). `now` is monotonic.
        """
        for number, place in places.items():
            if self._rejoined.get(number, place.next) != place.next or place.next >= place.end:
                self._rejoined.pop(number, None)
            if place.next >= place.end or number in excused:
                self._since.pop(number, None)
            elif self._since.get(number, (None, now))[0] != place.next:
                self._since[number] = (place.next, now)
        return sorted(n for n, (_, since) in self._since.items() if now - since >= self._after_s)

    def cure(self, stalled: Collection[int]) -> Cure:
        """What to do about partitions that `look` named; their time begins anew."""
        if not stalled:
            return Cure.NONE
        cure = Cure.RESTART if any(number in self._rejoined for number in stalled) else Cure.REJOIN
        for number in stalled:
            self._rejoined[number], _ = self._since.pop(number)
        return cure

    def forget(self, numbers: Collection[int] | None = None) -> None:
        """Begin anew for some partitions, or for all: somebody alive has them, or it is not known how they stand."""
        for number in list(self._since) if numbers is None else numbers:
            self._since.pop(number, None)
