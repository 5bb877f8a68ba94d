"""The drift monitor: time of an update, its state, and delays and false alarms beside river's change detectors."""

import random
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from river.drift import ADWIN, PageHinkley

from tests.benchmarks.figures import Figure, against
from tests.benchmarks.progress import say
from winnow.assurance.config import MonitorConfig
from winnow.assurance.monitor import fold, initial, update
from winnow.assurance.state import dump

#: Units of a timed stream: a few milliseconds, so that the fastest of many has a core to itself. Of the stream whose state is measured.
UNITS, LONG = 2_000, 100_000
#: Units of a scenario before and after its change.
BEFORE, AFTER = 2_000, 3_000
#: Mean loss before and after, by scenario; the budget is .10. The first two are no breach of it, the last two are.
SCENARIOS = {
    "harmless rise .01 to .06": (0.01, 0.06),
    "improvement .09 to .03": (0.09, 0.03),
    "doubling .05 to .20": (0.05, 0.20),
    "constant .20": (0.20, 0.20),
}

#: Looks at a stream and returns the unit, from 1, at which it alarms; None: never.
Alarm = Callable[[Sequence[float]], int | None]


def monitor(method: str) -> Alarm:
    config = MonitorConfig(alpha=0.10, method=method)
    return lambda losses: fold(config, initial(config), losses).alarm_at


def detector(make: Callable[[], ADWIN | PageHinkley]) -> Alarm:
    def watch(losses: Sequence[float]) -> int | None:
        found = make()
        for n, x in enumerate(losses, start=1):
            found.update(x)
            if found.drift_detected:
                return n
        return None

    return watch


ALARMS: dict[str, Alarm] = {
    "patient": monitor("patient"),
    "spending": monitor("spending"),
    "seed": monitor("seed"),
    "ADWIN": detector(ADWIN),
    "Page-Hinkley": detector(PageHinkley),
}


def stream(before: float, after: float, seed: int) -> list[float]:
    source = random.Random(seed)
    return [float(source.random() < (before if i < BEFORE else after)) for i in range(BEFORE + AFTER)]


def fastest(work: Callable[[], object], times: int) -> float:
    """Return the fastest of some calls, in seconds of processor time."""
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def one_by_one(config: MonitorConfig, losses: Sequence[float]) -> None:
    state = initial(config)
    for x in losses:
        state = update(config, state, x)


def river(make: Callable[[], ADWIN | PageHinkley], losses: Sequence[float]) -> None:
    found = make()
    for x in losses:
        found.update(x)


def measure(*, quick: bool) -> Iterator[Figure]:
    """Measure updates, then scenarios."""
    say("assurance: updates")
    source = random.Random(1)
    losses = [float(source.random() < 0.05) for _ in range(UNITS)]
    calls = 10 if quick else 40
    micro = 1e6 / len(losses)
    config, seed = MonitorConfig(alpha=0.10), MonitorConfig(alpha=0.10, method="seed")
    times = {
        "seed": fastest(partial(fold, seed, initial(seed), losses), calls) * micro,
        "ADWIN": fastest(partial(river, ADWIN, losses), calls) * micro,
        "Page-Hinkley": fastest(partial(river, PageHinkley, losses), calls) * micro,
    }
    single = fastest(partial(one_by_one, config, losses), calls) * micro
    yield against(
        "assurance, an update, one at a time (baseline: the seed monitor, in batches)", single, "us", times["seed"], goal="value <= 5"
    )
    batch = fastest(partial(fold, config, initial(config), losses), calls) * micro
    for name, baseline in times.items():
        yield against(f"assurance, an update, in batches (baseline: {name})", batch, "us", baseline, goal="value <= 5")
    size = len(dump(fold(config, initial(config), [0.0, 0.0, 1.0, 0.0] + [0.0] * (LONG - 4))))
    yield Figure(name=f"assurance, state of a stream after {LONG:,} units", value=size, unit="bytes")
    yield from _scenarios(5 if quick else 40)


def _scenarios(runs: int) -> Iterator[Figure]:
    """Alarms in each scenario, and the mean delay of those that were found."""
    for scenario, (before, after) in SCENARIOS.items():
        say(f"assurance: {scenario}")
        breach, nu = after > 0.10, 0 if before > 0.10 else BEFORE
        streams = [stream(before, after, seed) for seed in range(runs)]
        seen = {name: [alarm(losses) for losses in streams] for name, alarm in ALARMS.items()}
        for name, alarms in seen.items():
            share = 100 * sum(a is not None for a in alarms) / runs
            baseline = 100 * sum(a is not None for a in seen["seed"]) / runs
            goal = ("value >= 95" if breach else "value <= 5") if name == "patient" else None
            figure = f"assurance, {scenario}: {name}, {'found' if breach else 'false alarms'} (baseline: seed)"
            yield Figure(name=figure, value=share, unit="%", baseline=baseline, goal=goal)
            delays = [a - nu for a in alarms if a is not None and a > nu]
            if breach and delays:
                yield Figure(name=f"assurance, {scenario}: {name}, mean delay", value=sum(delays) / len(delays), unit="units")
