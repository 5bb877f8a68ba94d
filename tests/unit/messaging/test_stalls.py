"""Partitions that stand still: noticed, joined anew, and at last told to liveness."""

from hypothesis import given
from hypothesis import strategies as st

from winnow.messaging.stalls import Cure, Place, Stalls

AFTER_S = 60.0


def _look(stalls: Stalls, at: float, *, excused: tuple[int, ...] = (), **places: tuple[int, int]) -> list[int]:
    return stalls.look({int(name[1:]): Place(*offsets) for name, offsets in places.items()}, excused=excused, now=at)


def test_a_partition_that_nobody_reads():
    """A partition that keeps its offset with records before it is joined anew once, and the second time liveness is told."""
    stalls = Stalls(AFTER_S)
    assert _look(stalls, 0, p0=(5, 9), p1=(7, 7)) == []
    assert _look(stalls, 59, p0=(5, 9), p1=(7, 7)) == []
    assert _look(stalls, 60, p0=(5, 12), p1=(7, 7)) == [0]
    assert stalls.cure([0]) is Cure.REJOIN
    assert not stalls.calm
    assert _look(stalls, 61, p0=(5, 12)) == []
    assert _look(stalls, 121, p0=(5, 12)) == [0]
    assert stalls.cure([0]) is Cure.RESTART
    assert not stalls.calm
    assert _look(stalls, 122, p0=(6, 12)) == []
    assert stalls.calm


def test_what_moves_was_healed():
    """A partition that moved after its group was joined again begins anew: the next stand-still is joined anew too."""
    stalls = Stalls(AFTER_S)
    _look(stalls, 0, p0=(5, 9))
    assert stalls.cure(_look(stalls, 60, p0=(5, 9))) is Cure.REJOIN
    _look(stalls, 70, p0=(6, 9))
    assert stalls.cure(_look(stalls, 130, p0=(6, 9))) is Cure.REJOIN


def test_reasons_to_stand_still():
    """A batch at work, an end that is reached, another owner and a time without looks all begin the time anew."""
    stalls = Stalls(AFTER_S)
    _look(stalls, 0, p0=(5, 9), p1=(5, 9), p2=(5, 9))
    assert _look(stalls, 61, excused=(0,), p0=(5, 9), p1=(9, 9), p2=(5, 9)) == [2]
    stalls.forget([2])
    assert _look(stalls, 119, p0=(5, 9), p1=(9, 10), p2=(5, 9)) == []
    stalls.forget()
    assert _look(stalls, 500, p0=(5, 9), p1=(9, 10), p2=(5, 9)) == []
    assert stalls.cure([]) is Cure.NONE


@given(st.lists(st.tuples(st.floats(0.1, 30), st.integers(0, 3), st.booleans()), min_size=1, max_size=40))
def test_only_true_stand_stills(steps):
    """What is named has kept its offset, unexcused and behind its end, at every look for as long as that."""
    stalls, now, offset = Stalls(AFTER_S), 0.0, 0
    history: list[tuple[float, int, bool]] = []
    for seconds, taken, excused in steps:
        now, offset = now + seconds, offset + max(0, taken - 2)
        history.append((now, offset, excused))
        named = stalls.look({0: Place(offset, 10_000)}, excused=(0,) if excused else (), now=now)
        still = [entry for entry in history if entry[0] > now - AFTER_S]
        if named:
            assert all(at == offset and not on_purpose for _, at, on_purpose in still)
            assert stalls.cure(named) in {Cure.REJOIN, Cure.RESTART}
            history.clear()
