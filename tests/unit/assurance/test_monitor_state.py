"""The state as text, what is refused, modes, warn level and freeze."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.assurance.blocks import OF_ONE_SIZE, of_losses
from winnow.assurance.config import MonitorConfig
from winnow.assurance.designs import METHODS
from winnow.assurance.monitor import State, fold, freeze, initial, update
from winnow.assurance.refusals import EpochEnded, InvalidConfig, InvalidLoss, StateUnreadable
from winnow.assurance.state import dump, load

CONFIG = MonitorConfig(alpha=0.1)


def bits(state: State) -> str:
    """Every float to the bit: equality would take -0.0 for 0.0."""
    return repr(state)


@given(st.sampled_from(METHODS), st.lists(st.floats(0, 1), max_size=200), st.integers(0, 200), st.booleans())
def test_a_replay_from_text_is_identical_to_the_bit(method, losses, cut, warned):
    """A state that is written, read and gone on with equals the one that never left memory."""
    config = MonitorConfig(alpha=0.1, method=method, warn_alpha=0.05 if warned else None)
    half = fold(config, initial(config), losses[:cut])
    read = load(dump(half, stream="a", epoch=3), config, stream="a", epoch=3)
    assert bits(read) == bits(half)
    assert bits(fold(config, read, losses[cut:])) == bits(fold(config, initial(config), losses))


def test_a_state_stays_small():
    """A hundred thousand units are a text of some hundred bytes, and the blocks hold every unit once."""
    losses = [float(i % 37 == 0) for i in range(100_000)]
    state = fold(CONFIG, initial(CONFIG), losses)
    assert len(dump(state)) < 1_000
    assert sum(b.n for b in state.history) == state.n == 100_000
    assert math.fsum(b.total for b in state.history) == sum(losses)
    sizes = [b.n for b in state.history]
    assert sizes == sorted(sizes, reverse=True)
    assert all(sizes.count(s) <= OF_ONE_SIZE for s in sizes)


TEXT = dump(fold(CONFIG, initial(CONFIG), [0.0, 0.25, 0.0] * 20), stream="s", epoch=2)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "null",
        "[1]",
        "\x00",
        "{" * 50_000,
        "[" * 50_000,
        '"' * 10,
        "9" * 200_000,
        TEXT[:-1],
        TEXT.replace('"n":60', '"n":61'),
        TEXT.replace('"schema":1', '"schema":2'),
        TEXT.replace('"stream":"s"', '"stream":"t"'),
        TEXT.replace('"alarm_at":null', '"alarm_at":7'),
        "NaN",
        "\ud800",
    ],
    ids=range(16),
)
def test_what_is_no_state_is_refused(text):
    """A text that was cut, altered or never was a state raises one typed error; it is never taken for a fresh state."""
    with pytest.raises(StateUnreadable):
        load(text)


@given(st.integers(0, len(TEXT) - 1), st.characters(codec="utf-8"))
def test_one_altered_character_is_found(place, character):
    """Any one character that differs makes the text unreadable, or it says the same in other words."""
    altered = TEXT[:place] + character + TEXT[place + 1 :]
    try:
        found = load(altered)
    except StateUnreadable:
        return
    assert bits(found) == bits(load(TEXT))


def test_a_state_belongs_to_its_stream_epoch_and_configuration():
    """Another stream, epoch or any changed parameter makes the state unreadable: a change starts a new epoch, never goes on in silence."""
    load(TEXT, CONFIG, stream="s", epoch=2)
    for wrong in ({"stream": "t"}, {"epoch": 3}):
        with pytest.raises(StateUnreadable, match="another"):
            load(TEXT, **wrong)
    changes = [
        {"alpha": 0.11}, {"delta": 0.04}, {"lo": -1.0}, {"mode": "horizon", "horizon": 1_000}, {"mode": "arl", "arl": 1e4},
        {"method": "spending"}, {"weight": 0.5}, {"min_probability": 0.5}, {"warn_alpha": 0.05}, {"binary": True},
    ]  # fmt: skip
    for change in changes:
        other = MonitorConfig(**({"alpha": 0.1} | change))
        with pytest.raises(StateUnreadable, match="new epoch"):
            load(TEXT, other)
        with pytest.raises(StateUnreadable, match="new epoch"):
            update(other, load(TEXT), 0.0)


@pytest.mark.parametrize("loss", [math.nan, math.inf, -math.inf, -1e-9, 1.0000001, "1", None, True, [], 10**400, -(10**400), b"1", 1j])
@pytest.mark.parametrize("config", [CONFIG, MonitorConfig(alpha=0.1, method="seed"), MonitorConfig(alpha=0.1, warn_alpha=0.05)])
def test_bad_losses_are_refused_and_change_nothing(config, loss):
    """What is no number in [lo, 1] raises a typed error, alone and in the middle of good ones, and also after an alarm."""
    state = fold(config, initial(config), [0.5, 0.0])
    before = bits(state)
    for losses in ([loss], [0.0, loss, 1.0]):
        with pytest.raises(InvalidLoss):
            fold(config, state, losses)
    with pytest.raises(InvalidLoss):
        update(config, freeze(state), loss)
    assert bits(state) == before


def test_declared_binary_losses():
    """A stream that was declared binary takes booleans and 0 and 1, paired -1 too, and refuses what lies between."""
    config = MonitorConfig(alpha=0.1, binary=True)
    assert bits(fold(config, initial(config), [True, False, 1, 0.0])) == bits(fold(config, initial(config), [1.0, 0.0, 1.0, 0.0]))
    paired = MonitorConfig(alpha=0.1, lo=-1, binary=True)
    assert fold(paired, initial(paired), [-1, 0, 1]).n == 3
    for c, x in ((config, 0.5), (config, -1), (paired, -0.5)):
        with pytest.raises(InvalidLoss):
            update(c, initial(c), x)


@pytest.mark.parametrize(
    "parameters",
    [{"alpha": a} for a in (0, 1, -0.1, 1.5, math.nan, math.inf, "0.1", None, True)]
    + [{"alpha": 0.1, "delta": d} for d in (0, 1, math.nan, -1, 1e-13)]
    + [{"alpha": 0.1, "min_probability": p} for p in (0, -0.1, 1.1, math.nan)]
    + [{"alpha": 0.1, "lo": x} for x in (0.5, -2, math.nan, "0", None, [])]
    + [{"alpha": 0.1, "weight": w} for w in (0, 1.1, math.nan)]
    + [{"alpha": 0.1, "method": m} for m in ("", "hope", None)]
    + [{"alpha": 0.1, "mode": "horizon", "horizon": h} for h in (None, 0, -1, 1.5, True)]
    + [{"alpha": 0.1, "mode": "arl", "arl": a} for a in (None, 0, 1, math.nan, math.inf)]
    + [{"alpha": 0.1, "horizon": 5}, {"alpha": 0.1, "arl": 50.0}, {"alpha": 0.1, "mode": "for ever"}]
    + [{"alpha": 0.1, "warn_alpha": w} for w in (0.1, 0.2, 0, math.nan)]
    + [{"alpha": 0.1, "method": "seed", "min_probability": 0.5}, {"alpha": 0.1, "method": "seed", "mode": "arl", "arl": 50.0}],
)
def test_bad_parameters_are_refused(parameters):
    """A parameter without a meaning, or that would void the guarantee, raises a typed error."""
    with pytest.raises(InvalidConfig):
        MonitorConfig(**parameters)


@pytest.mark.parametrize("probability", [0, -0.1, 1.1, math.nan, "1", None, True, 0.049])
def test_bad_probabilities_are_refused(probability):
    """A sampling probability outside [min_probability, 1] raises a typed error."""
    config = MonitorConfig(alpha=0.1, min_probability=0.05)
    with pytest.raises(InvalidLoss):
        update(config, initial(config), 0.0, probability)
    with pytest.raises(InvalidLoss):
        fold(config, initial(config), [0.0, 0.0], [1.0])


def test_an_alarm_freezes():
    """At the alarm the state stops for good: evidence, units and all; the p-value shows the largest evidence."""
    state = fold(CONFIG, initial(CONFIG), [1.0] * 50)
    assert state.alarm_at == state.n < 10
    assert (state.status, state.evidence) == ("alarm", state.peak)
    assert state.evidence >= CONFIG.level == 20
    assert state.p_value == 1 / state.peak
    assert update(CONFIG, state, 0.0) is state
    frozen = freeze(fold(CONFIG, initial(CONFIG), [0.0] * 5))
    assert (frozen.alarm_at, update(CONFIG, frozen, 1.0)) == (5, frozen)


def test_a_share_of_the_budget_raises_the_level():
    """A stream with weight w alarms at 1/(delta·w)."""
    assert MonitorConfig(alpha=0.1, weight=1 / 6).level == pytest.approx(120)


def test_warn_level():
    """The warn level is a monitor of its own against the lower budget: between the budgets it warns, and the monitor stays quiet."""
    config = MonitorConfig(alpha=0.2, warn_alpha=0.05)
    between = fold(config, initial(config), [float(i % 8 == 0) for i in range(2_000)])
    alone = MonitorConfig(alpha=0.05)
    assert between.status == "warn"
    assert between.alarm_at is None
    assert between.warned_at == fold(alone, initial(alone), [float(i % 8 == 0) for i in range(2_000)]).alarm_at
    assert fold(config, initial(config), [0.0] * 500).status == "ok"


def test_a_horizon_ends():
    """In mode horizon all cash is staked by the last unit, and a unit beyond it asks for a new epoch."""
    config = MonitorConfig(alpha=0.1, method="grid7", mode="horizon", horizon=40)
    state = fold(config, initial(config), [0.0] * 40)
    assert state.cash == pytest.approx(0.0, abs=1e-15)
    with pytest.raises(EpochEnded):
        update(config, state, 0.0)


def test_arl_mode_says_its_class():
    """In mode arl the evidence starts from nothing, alarms at the level, and is of a class that never enters e-BH."""
    config = MonitorConfig(alpha=0.1, method="grid7", mode="arl", arl=1_000.0)
    state = fold(config, initial(config), [1.0] * 100)
    assert (config.guarantee, CONFIG.guarantee) == ("arl", "anytime")
    assert initial(config).evidence == 0.0
    assert state.evidence >= 1_000
    assert math.isfinite(initial(config).log_evidence)


def test_min_probability_everywhere_is_the_plain_update():
    """Units that are all drawn with min_probability give the plain evidence."""
    config = MonitorConfig(alpha=0.1, min_probability=0.05)
    losses = [0.0, 1.0, 0.0, 0.5] * 10
    sampled = fold(config, initial(config), losses, [0.05] * 40)
    assert sampled.evidence == pytest.approx(fold(CONFIG, initial(CONFIG), losses).evidence, rel=1e-12)


def test_long_histories_in_few_blocks():
    """Losses become at most about as many blocks as asked, of one unit each where there are few."""
    assert [b.n for b in of_losses([1.0, 0.0], 10)] == [1, 1]
    assert [b.n for b in of_losses([0.5] * 25, 10)] == [3] * 8 + [1]
    assert of_losses([], 10) == ()


def test_a_dump_is_json_that_anybody_reads():
    """The text is plain JSON without NaN or infinity, and names stream, epoch and units."""
    value = json.loads(TEXT, parse_constant=pytest.fail)
    assert (value["stream"], value["epoch"], value["n"], value["schema"]) == ("s", 2, 60, 1)
