"""The local judge and the evaluation suite: what a boundary costs, what a whole evaluation costs, beside plain ways to do the same."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from sklearn.metrics import roc_auc_score

from tests.benchmarks.boundaries import Factory
from tests.benchmarks.core import LARGE_ENTRIES, large, timed
from tests.benchmarks.figures import Figure, against
from tests.benchmarks.progress import say
from tests.harness.data import SHARED_DATA
from winnow.contracts.events import Candidate
from winnow.judging.evaluation.bootstrap import DRAWS, draw
from winnow.judging.evaluation.metrics import Ranking
from winnow.judging.local import score
from winnow.judging.offline import request_of
from winnow.judging.port import JudgeRequest

DEV = SHARED_DATA / "sourcebench" / "dev.jsonl"
#: Seconds that the whole suite of evaluations on dev may take on two cores.
SUITE_S = 120
#: Milliseconds of a boundary of recorded size.
BOUNDARY_MS = 3


def request(event: Candidate) -> JudgeRequest:
    """What the judge is asked about a boundary."""
    _, made = request_of(
        event.candidate,
        task=event.task,
        previous=event.previous_summary,
        history=event.history,
        retained=event.retained,
        host=event.host,
        rules=event.rules,
    )
    return made


def measure(*, quick: bool) -> Iterator[Figure]:
    """Measure the judge at recorded size and by the length of the span, the bootstrap, and the suite where the labelled data is there."""
    say("judging: recorded boundaries")
    samples = [sample.event for run in Factory.load().runs(15 if quick else 45) for sample in run]
    asked = [request(event) for event in samples]
    for one in asked[:5]:
        score(one.evidence)
    own = [timed(partial(score, one.evidence), 5) for one in asked]
    before = [timed(partial(request, event), 3) for event in samples]
    name = "local judge, a recorded boundary (baseline: parsing and analysing it)"
    yield against(name, median(own), "ms", median(before), goal=f"value <= {BOUNDARY_MS}")
    yield from _growth((100_000, 400_000))
    yield _bootstrap(quick=quick)
    if DEV.exists():
        yield _suite(DEV)
    else:
        say("judging: the suite is left out: the labelled data is absent")


def _growth(sizes: Sequence[int]) -> Iterator[Figure]:
    """The judge's own time at spans of several lengths: it sees the pooled evidence, never the span."""
    say("judging: growth with the span")
    asked = [request(large(size, LARGE_ENTRIES)) for size in sizes]
    base = timed(partial(score, asked[0].evidence), 5)
    for size, one in zip(sizes[1:], asked[1:], strict=True):
        factor = size // sizes[0]
        name = f"local judge, growth with span: {size:,} characters (baseline: {sizes[0]:,})"
        yield against(name, timed(partial(score, one.evidence), 5), "ms", base, goal=f"ratio <= {factor * 1.1:.1f}")


def _bootstrap(*, quick: bool) -> Figure:
    """Intervals by run on as many entries as dev has, beside a loop over draws with scikit-learn."""
    say("judging: bootstrap")
    rng = np.random.default_rng(0)
    n, runs = 1_066, 22
    label = (rng.random(n) < 0.7).astype(float)
    values = np.clip(0.3 * label + 0.7 * rng.random(n), 0, 1)
    groups = [f"run-{number}" for number in rng.integers(0, runs, n)]
    draws = draw(groups, what="run", seed=0)
    ranking = Ranking.of(label, values)
    every = np.ones(n, bool)
    by_name = {name: np.flatnonzero(np.array(groups) == name) for name in sorted(set(groups))}
    some = DRAWS // 20

    def plain() -> None:
        for row in draws.counts[:some]:
            chosen = np.concatenate([by_name[name] for name, times in zip(by_name, row, strict=True) for _ in range(int(times))])
            roc_auc_score(label[chosen], values[chosen])

    name = f"bootstrap of AUROC by run, {DRAWS:,} draws of {n:,} entries (ratio: times faster than a loop with scikit-learn)"
    theirs = timed(plain, 1) * DRAWS / some
    return against(name, timed(lambda: draws.values(every, ranking.auroc), 2 if quick else 5), "ms", theirs, inverse=True)


def _suite(data: Path) -> Figure:
    """The whole evaluation as a user runs it, documents and fresh processes included, beside judging the same data once."""
    say("judging: winnow eval judge on dev")
    winnow = [sys.executable, "-m", "winnow.cli"]
    with tempfile.TemporaryDirectory() as folder:
        base = _seconds([*winnow, "judge", str(data), "--out", str(Path(folder) / "scores.jsonl")])
        value = _seconds([*winnow, "eval", "judge", str(data), "--out", folder, "--against", "local"])
    name = "winnow eval judge on dev, everything (baseline: winnow judge on it)"
    return against(name, value, "s", base, goal=f"value <= {SUITE_S}")


def _seconds(command: Sequence[str]) -> float:
    """Seconds on the wall that a command takes."""
    start = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - start
