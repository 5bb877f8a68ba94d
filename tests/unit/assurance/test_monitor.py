import json
import math

import pytest

from tests.harness.data import shared_data
from tests.unit.assurance import log_space, sequences
from winnow.assurance.config import MonitorConfig
from winnow.assurance.designs import DESIGNS
from winnow.assurance.monitor import fold, initial, update

ARMS = {"spending": "recommended_4fixed_3ewma", "grid7": "grid7"}


@pytest.fixture(scope="module")
def vectors():
    return json.loads(shared_data("assurance_golden.json").read_text())


@pytest.mark.parametrize("method", ARMS)
@pytest.mark.parametrize("name", sequences.golden())
def test_golden_runs(vectors, method, name):
    """Seven recorded streams give the recorded evidence and alarm; after the alarm, in log space, too."""
    row = next(r for r in vectors["monitor"]["rows"] if r["name"] == name)
    expected = row[ARMS[method]]
    alpha, lo, losses = sequences.golden()[name]
    assert sum(losses) == pytest.approx(row["sum"], abs=1e-9)
    config = MonitorConfig(alpha=alpha, lo=lo, method=method)
    state = initial(config)
    own = []
    for x in losses:
        state = update(config, state, x)
        own.append(state.log_evidence)
    unfrozen = list(log_space.log_evidence(DESIGNS[method], alpha, lo, losses))
    assert (state.alarm_at or 0) == expected["alarm_at"]
    assert max(0.0, *unfrozen) == pytest.approx(expected["max_logM"], abs=1e-9)
    for at, value in expected["logM"].items():
        assert unfrozen[int(at) - 1] == pytest.approx(value, abs=1e-9)
    for t, value in enumerate(own[: state.alarm_at]):
        assert value == pytest.approx(unfrozen[t], abs=1e-9)
    assert state == fold(config, initial(config), losses)


def test_extremes(vectors):
    """A hundred thousand zeros lose what was recorded, and the evidence rises at no stake."""
    config = MonitorConfig(alpha=0.1, method="spending")
    state = initial(config)
    for _ in range(4_000):
        after = fold(config, state, [0.0] * 25)
        assert after.evidence < state.evidence
        state = after
    assert state.log_evidence == pytest.approx(vectors["extremes"]["all_zeros_1e5_logM"], rel=1e-9)
    assert state.alarm_at is None
    assert all(math.isfinite(v) for v in (*state.capital, *state.drift, *state.spread))


@pytest.mark.parametrize("method", [m for m in DESIGNS if m != "recovery"])
@pytest.mark.parametrize("name", sequences.golden())
def test_linear_space_equals_log_space(method, name):
    """Every design's evidence equals that of the recursion in log space until the alarm, and nothing changes afterwards."""
    alpha, lo, losses = sequences.golden()[name]
    config = MonitorConfig(alpha=alpha, lo=lo, method=method)
    state = initial(config)
    for t, expected in enumerate(log_space.log_evidence(DESIGNS[method], alpha, lo, losses)):
        if state.alarm_at is not None:
            assert update(config, state, losses[t]) is state
            break
        state = update(config, state, losses[t])
        assert state.log_evidence == pytest.approx(expected, abs=1e-9)


def test_weights_are_shares():
    """The shares of every design sum to 1, at the first stake and later, one for each bet; every stake holds up every bet."""
    for design in DESIGNS.values():
        assert len(design.weights) == len(design.opening) == len(design.fixed) + len(design.half_lives) + len(design.waiting)
        assert math.fsum(design.weights) == pytest.approx(1.0, abs=1e-12)
        assert math.fsum(design.opening) == pytest.approx(1.0, abs=1e-12)
        assert len(design.patience) == len(design.waiting)
        assert min(*design.weights, *design.opening) > 0
