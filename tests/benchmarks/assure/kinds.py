"""Every kind of loss that a stream can carry: what is shipped beside the specified design, and its false alarms over a long life."""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from tests.benchmarks.assure.checks import Check, false_alarms
from tests.benchmarks.assure.sections import CAP, DELTA, NUS, config, rng
from winnow.assurance import simulation as sim
from winnow.assurance.designs import DEFAULT

#: Most that the shipped design may be later than the specified one, where the change comes after 500 units or more.
MOST_LATER = 1.10
#: The same where there is drift from the first unit: no later, but for the noise of a thousand runs.
MOST_EARLY = 1.02
LATEST = 50_000
#: Units of a stream that keeps exactly to its budget.
LIFE = 20_000


def beta(mean: float) -> sim.Draw:
    """Losses from Beta(10·mean, 10·(1 - mean)): they vary less than those of yes and no by a factor of eleven."""
    return lambda source, runs: source.beta(10 * mean, 10 * (1 - mean), runs)


def turns(mean: float) -> sim.Draw:
    """Means of ten turns of yes and no, correlated within a run by .2."""

    def draw(source: np.random.Generator, runs: int) -> sim.Floats:
        return source.binomial(10, source.beta(4 * mean, 4 * (1 - mean), runs)) / 10

    return draw


def noisy(harm: float) -> sim.Draw:
    """Paired differences of graders that disagree with themselves in 30 % of units."""
    return sim.paired(harm, 0.30)


def paired_grades(harm: float) -> sim.Draw:
    """Differences of two grades, each from a Beta law, around .2 + harm and .2."""
    return lambda source, runs: source.beta(1 + 5 * harm, 4 - 5 * harm, runs) - source.beta(1, 4, runs)


def paired_turns(harm: float) -> sim.Draw:
    """Means of ten paired differences."""
    one = sim.paired(harm)

    def draw(source: np.random.Generator, runs: int) -> sim.Floats:
        return np.mean([one(source, runs) for _ in range(10)], axis=0)

    return draw


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of loss: its law by its mean, the budget, and the mean before and after the change."""

    draw: Callable[[float], sim.Draw]
    alpha: float
    healthy: float
    changed: tuple[float, float, float]
    lo: float = 0.0
    #: Most that it may be later after 50,000 units; None: shown for the record (docs/assurance.md says which, and why).
    latest: float | None = MOST_LATER


def _of_budget(draw: Callable[[float], sim.Draw], alpha: float) -> Kind:
    """Half the budget, then 1.5, 2 and 3 times it."""
    return Kind(draw=draw, alpha=alpha, healthy=alpha / 2, changed=(1.5 * alpha, 2 * alpha, 3 * alpha))


def _paired(draw: Callable[[float], sim.Draw]) -> Kind:
    return Kind(draw=draw, alpha=0.05, healthy=0.01, changed=(0.10, 0.15, 0.25), lo=-1.0)


KINDS = {
    "binary, alpha .10": _of_budget(sim.bernoulli, 0.10),
    "binary, alpha .30": replace(_of_budget(sim.bernoulli, 0.30), latest=None),
    "zero-inflated Beta, alpha .05": _of_budget(sim.zero_inflated_beta, 0.05),
    "uniform, alpha .10": _of_budget(sim.uniform, 0.10),
    "Beta, alpha .10": _of_budget(beta, 0.10),
    "means of turns, alpha .10": _of_budget(turns, 0.10),
    "paired, floor .15": _paired(sim.paired),
    "paired, floor .30": _paired(noisy),
    "paired grades": _paired(paired_grades),
    "means of paired turns": _paired(paired_turns),
}


def kinds(scale: float) -> Iterator[Check]:
    """Worst ratio of the mean delays to those of `spending` over three sizes of change, by nu; and alarms at exactly the budget."""
    for name, kind in KINDS.items():
        for nu in (*NUS, LATEST):
            runs = max(50, int((200 if nu == LATEST else 1_000) * scale))
            found = {method: _means(kind, method, nu, runs, f"{name} {nu}") for method in (DEFAULT, "spending")}
            worst = max(one / other for one, other in zip(found[DEFAULT], found["spending"], strict=True))
            most = kind.latest if nu == LATEST else MOST_LATER if nu else MOST_EARLY
            yield Check(table="kinds", row=name, column=f"nu {nu:,}", value=worst, most=most, runs=runs)
        runs = max(100, int(1_000 * scale))
        c, _ = config(DEFAULT, kind.alpha, kind.lo)
        alarms = sim.first_alarms(c, kind.draw(kind.alpha), runs=runs, units=LIFE, rng=rng(f"life {name}"))
        count = int((alarms > 0).sum())
        yield false_alarms("kinds", name, f"alarms within {LIFE:,}", alarms=count, runs=runs, delta=DELTA, expected=None)


def _means(kind: Kind, method: str, nu: int, runs: int, seed: str) -> list[float]:
    """Mean delays after each change."""
    c, _ = config(method, kind.alpha, kind.lo)
    changed = [kind.draw(mean) for mean in kind.changed]
    found = sim.delays(c, kind.draw(kind.healthy), changed, nu=nu, runs=runs, rng=rng(seed), cap=CAP)
    means = [one.mean for one in found]
    assert all(map(math.isfinite, means))
    return means
