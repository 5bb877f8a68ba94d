"""The ledger: what is folded, in which order, under which epoch; a replay of what was decided is the same to the bit."""

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.assurance import ledger, monitor, terms
from winnow.assurance.config import MonitorConfig
from winnow.assurance.ledger import Epoch, Fate, Signature, Unit, Watched
from winnow.assurance.terms import Budgets
from winnow.contracts.streams import StreamConfig, family_of
from winnow.contracts.vocabulary import Family, LabelFree, Missing

CONFIG = MonitorConfig(alpha=0.1)
GRADERS = st.sampled_from([None, "g1", "g2"])
LOSSES = st.one_of(st.none(), st.sampled_from([0.0, 0.25, 1.0]))


def _epoch(**more) -> Epoch:
    return Epoch(**{"number": 1, "from_seq": 1, "config": CONFIG, "missing": Missing.FOLD, "signature": Signature()} | more)


def _watched(epoch: Epoch | None = None) -> Watched:
    at = epoch or _epoch()
    return Watched(epoch=at, state=monitor.initial(at.config), last_seq=at.from_seq - 1)


def _unit(seq, loss=0.0, *, grader=None, due=False, lo=0.0, probability=1.0) -> Unit:
    return Unit(seq, loss, lo if loss is not None else None, probability, Signature(grader=grader), due)


def test_an_ungraded_unit_holds_up_those_behind_it():
    """A unit without a grade stops the fold until its time has passed; then it is missing, and folded as its epoch says."""
    units = [_unit(1), _unit(2, None), _unit(3)]
    assert [f for _, f in ledger.fold(_watched(), units).fates] == [Fate.FOLDED]
    units[1] = units[1]._replace(due=True)
    folded = ledger.fold(_watched(), units)
    assert [f for _, f in folded.fates] == [Fate.FOLDED, Fate.MISSING, Fate.FOLDED]
    assert folded.watched.state == monitor.fold(CONFIG, monitor.initial(CONFIG), [0.0, 1.0, 0.0])
    skipped = ledger.fold(_watched(_epoch(missing=Missing.SKIP)), units)
    assert skipped.watched.state.n == 2
    assert ledger.as_missing(folded.fates) == [Unit(i + 1, x, 0.0, 1.0, Signature()) for i, x in enumerate([0.0, 1.0, 0.0])]


def test_the_alarm_names_its_unit():
    """The sequence number of the unit that alarmed is told, and what came behind it is kept apart."""
    folded = ledger.fold(_watched(), [_unit(seq, 1.0) for seq in range(1, 12)])
    alone = monitor.initial(CONFIG)
    while alone.alarm_at is None:
        alone = monitor.update(CONFIG, alone, 1.0)
    assert folded.alarm_seq == alone.alarm_at
    assert len(folded.afterwards) == 11 - alone.alarm_at
    again = ledger.fold(folded.watched, [_unit(12, 1.0)])
    assert (again.alarm_seq, again.watched.state, again.afterwards) == (None, folded.watched.state, ((1.0, 1.0),))


def test_an_alarm_outlasts_its_horizon():
    """Units beyond the horizon open no epoch behind an alarm, however they are cut into folds: it stands until a release."""
    config = replace(CONFIG, mode="horizon", horizon=7)
    units = [_unit(seq, 1.0) for seq in range(1, 20)]
    whole = ledger.fold(_watched(_epoch(config=config)), units)
    assert (whole.stranger, whole.watched.last_seq, whole.watched.state.status) == (None, 19, "alarm")
    first = ledger.fold(_watched(_epoch(config=config)), units[:5])
    assert ledger.fold(first.watched, units[5:]).watched == whole.watched
    calm = ledger.fold(_watched(_epoch(config=config)), [_unit(seq) for seq in range(1, 20)])
    assert calm.stranger is not None
    assert calm.stranger.seq == 8


def test_strangers():
    """A unit of another grader ends the epoch; parts that nobody knows agree with everything and are filled in."""
    folded = ledger.fold(_watched(), [_unit(1), _unit(2, grader="g1"), _unit(3), _unit(4, grader="g2")])
    assert folded.watched.last_seq == 3
    assert folded.watched.epoch.signature.grader == "g1"
    assert folded.stranger is not None
    assert folded.stranger.seq == 4
    assert ledger.refuse(folded.watched, folded.stranger).fates[0][1] is Fate.REFUSED


@pytest.mark.parametrize("unit", [_unit(1, -0.5, lo=-1.0), _unit(1, 0.5, probability=0.5), _unit(1, 0.0, lo=-1.0)])
def test_what_was_not_declared(unit):
    """A loss of another range and a unit drawn more rarely than declared are refused, and change nothing."""
    folded = ledger.fold(_watched(), [unit])
    assert [f for _, f in folded.fates] == [Fate.REFUSED]
    assert folded.watched.state == monitor.initial(CONFIG)


@given(
    st.lists(st.tuples(LOSSES, GRADERS, st.booleans()), max_size=60),
    st.lists(st.integers(1, 9), min_size=1, max_size=20),
    st.sampled_from([CONFIG, replace(CONFIG, mode="horizon", horizon=7), replace(CONFIG, binary=True)]),
    st.sampled_from(list(Missing)),
)
def test_cuts_change_nothing_and_a_replay_is_identical(drawn, cuts, config, missing):
    """However the units are cut into folds, state and fates are the same; a replay of the ledger gives the same state, to the bit."""
    units = [_unit(i, loss, grader=grader, due=True) for i, (loss, grader, _) in enumerate(drawn, start=1)]

    def run(pieces):
        watched, epochs, fates = _watched(_epoch(config=config, missing=missing)), [], []
        epochs.append(watched.epoch)
        for piece in pieces:
            left = list(piece)
            while left:
                folded = ledger.fold(watched, left)
                fates += folded.fates
                left = left[len(folded.fates) :]
                watched = folded.watched
                epochs[-1] = watched.epoch
                if folded.stranger is None:
                    assert not left
                    break
                signature = folded.stranger.signature.filled(watched.epoch.signature)
                opened = _epoch(
                    config=config, missing=missing, number=watched.epoch.number + 1, from_seq=folded.stranger.seq, signature=signature
                )
                watched = Watched(epoch=opened, state=monitor.initial(config), last_seq=watched.last_seq)
                epochs.append(opened)
        return watched, epochs, fates

    pieces, at = [], 0
    for cut in [*cuts, len(units)]:
        pieces.append(units[at : at + cut])
        at += cut
    whole = run([units])
    assert run([*pieces, units[at:]]) == whole
    watched, epochs, fates = whole
    assert [u.seq for u, _ in fates] == [u.seq for u in units]
    assert ledger.replayed(epochs, fates, {}).state == watched.state


def test_a_replay_freezes_where_a_shared_level_did():
    """A stream that alarmed beside others is frozen in the replay behind the same unit."""
    units = [(_unit(seq, 0.5), Fate.FOLDED) for seq in range(1, 9)]
    found = ledger.replayed([_epoch()], units, {1: 4})
    first = monitor.fold(CONFIG, monitor.initial(CONFIG), [0.5] * 4)
    assert found.state == monitor.freeze(first)
    assert found.last_seq == 8


def test_an_opened_epoch_without_units_is_the_last():
    """A release opens an epoch before its first unit comes; the replay ends there."""
    later = _epoch(number=2, from_seq=3)
    found = ledger.replayed([_epoch(), later], [(_unit(1), Fate.FOLDED), (_unit(2), Fate.FOLDED)], {})
    assert (found.epoch.number, found.state, found.last_seq) == (2, monitor.initial(CONFIG), 2)


def test_shares_never_exceed_the_budget():
    """All streams that can ever join, in all epochs that they can ever have, together spend the family's budget and no more."""
    streams = [terms.weight_of(k, e) for k in range(1, 400) for e in range(1, 400)]
    assert 0.99 < math.fsum(streams) < 1.0
    assert terms.weight_of(1, 1) > terms.weight_of(2, 1) > terms.weight_of(2, 2)


def test_what_is_left_out_is_settled_once():
    """A configuration takes what it leaves out from the settings and its first unit, and from the epoch it follows ever after."""
    first = _unit(1, -0.5, lo=-1.0, probability=0.25)
    settled = terms.settled("harm", StreamConfig(), Budgets(risk_alpha=0.07), first, None)
    assert (settled.alpha, settled.lo, settled.min_probability, settled.missing) == (0.07, -1, 0.25, Missing.FOLD)
    assert settled.method == "patient"  # one design for losses of every kind: nobody has to say which, and none is guessed
    epoch = terms.opened(settled, delta=0.05, position=1, number=1, from_seq=1, signature=Signature())
    assert not terms.changed(epoch, settled)
    assert terms.settled("harm", settled, Budgets(risk_alpha=0.5), _unit(1), epoch.config) is settled
    anew = terms.settled("harm", StreamConfig(alpha=0.2), Budgets(risk_alpha=0.5), _unit(1), epoch.config)
    assert (anew.alpha, anew.lo, anew.min_probability) == (0.2, -1, 0.25)
    assert terms.changed(epoch, anew)
    assert terms.changed(epoch, settled.model_copy(update={"missing": Missing.SKIP}))


@pytest.mark.parametrize("name", [*LabelFree, "missing:harm"])
def test_families_by_name(name):
    """The streams that Winnow fills, and missing grades, share no budget with those that somebody grades."""
    assert family_of(name) is Family.LABEL_FREE
    assert family_of("harm") is Family.RISK
    assert 0 < Budgets().alpha(name) < 1
