"""What `winnow eval judge` does with a judge: ask it about the data, about changed boundaries, and again."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from winnow.cli.terminal import Terminal
from winnow.contracts.deadline import Deadline
from winnow.contracts.errors import Permanent
from winnow.contracts.events import JudgeId
from winnow.contracts.vocabulary import Rules
from winnow.judging.evaluation.labelled import LabelledBoundary
from winnow.judging.evaluation.probes import Again, Asked, JudgeOf, Told, ask, by_entry, in_other_order, stress
from winnow.judging.evaluation.samples import Samples, collect
from winnow.judging.evaluation.study import Other, Study
from winnow.judging.port import Judge

if TYPE_CHECKING:
    from winnow.judging.adapters.registry import Judges

T = TypeVar("T")

#: How often the identical request is sent to a local judge; a remote one is paid for each, so it is asked again only when told to.
REPEATS = 5
#: Seconds between two words on progress.
_PROGRESS_S = 2.0
#: Scores by boundary and entry number.
Scores = dict[tuple[str, int], float]


class RepetitionFailed(Permanent):
    """A fresh process did not answer the request again; standard error has its words."""


class Progress:
    """Words on progress on standard error, where a person reads it."""

    def __init__(self, terminal: Terminal) -> None:
        """Speak through `terminal`."""
        self._terminal = terminal
        self._last = time.monotonic()

    @contextmanager
    def of(self, what: str, total: int | None = None) -> Iterator[Told]:
        """Tell how far a step is: `what`, so many of `total`."""

        def told(done: int) -> None:
            now = time.monotonic()
            if now - self._last >= _PROGRESS_S and self._terminal.err.is_terminal:
                self._last = now
                self._terminal.note(f"{what}: {done}" + (f" of {total}" if total is not None else ""))

        yield told


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be measured, and how."""

    judge: JudgeId
    remote: bool
    #: The judge for each boundary: the same, or that of its fold.
    judge_of: JudgeOf
    other: Judge | None
    tau: float
    seed: int
    timeout_s: float
    repeats: int
    stress: bool
    folds: str | None = None

    def limit(self) -> Deadline:
        """The time for one boundary, from now."""
        return Deadline.after(self.timeout_s, time.monotonic)


async def study_of(plan: Plan, boundaries: Sequence[LabelledBoundary], progress: Progress, fresh: Callable[[], Scores] | None) -> Study:
    """Ask everything that the plan says.

    `fresh` asks the same in a fresh process with another hash seed, once a call; None: repetitions are sent from this process.
    """
    with progress.of("judged", len(boundaries)) as told:
        asked = await ask(plan.judge_of, boundaries, limit=plan.limit, told=told)
    samples, natural = collect(asked.judged), by_entry(asked.judged)
    repetition = await _repetition(plan, boundaries, samples, fresh, progress)
    stressing = order = None
    unshuffled = 0
    if plan.stress:
        with progress.of("changed boundaries judged") as told:
            stressing = await stress(
                plan.judge_of, boundaries, natural, tau=plan.tau, chance=_seeded(plan.seed), limit=plan.limit, told=told
            )
        with progress.of("reordered boundaries judged") as told:
            order, unshuffled = await in_other_order(
                plan.judge_of, boundaries, natural, chance=_seeded(plan.seed)(), limit=plan.limit, told=told
            )
    other = None
    if plan.other is not None:
        second = plan.other
        with progress.of("judged by the other", len(boundaries)) as told:
            theirs = await ask(lambda _: second, boundaries, limit=plan.limit, told=told)
        other = Other(judge=second.id, samples=collect(theirs.judged), tau=plan.tau)
    return Study(
        judge=plan.judge,
        tau=plan.tau,
        samples=samples,
        seed=plan.seed,
        by_scenario=any(boundary.by_scenario for boundary in boundaries),
        folds=plan.folds,
        stress=stressing,
        repetition=repetition,
        order=order,
        unshuffled=unshuffled,
        other=other,
        calls=asked.calls if plan.remote else (),
        unjudged=asked.unjudged,
    )


def _seeded(seed: int) -> Callable[[], Random]:
    """Makes generators that all begin alike."""
    return lambda: Random(seed)  # noqa: S311  a reproducible draw, nothing secret


async def _repetition(
    plan: Plan, boundaries: Sequence[LabelledBoundary], samples: Samples, fresh: Callable[[], Scores] | None, progress: Progress
) -> Again | None:
    """Send the identical request again; None where it is sent once."""
    if plan.repeats < 2:  # noqa: PLR2004  one asking has nothing to be compared with
        return None
    rows = [samples.score]
    keys = list(zip(samples.boundary.tolist(), samples.n.tolist(), strict=True))
    with progress.of("askings", plan.repeats) as told:
        for at in range(1, plan.repeats):
            if fresh is not None:
                found: Scores = fresh()
            else:
                again = await ask(plan.judge_of, boundaries, limit=plan.limit)
                found = {key: score for key, (_, score) in by_entry(again.judged).items()}
            rows.append(np.array([found[key] for key in keys], float))
            told(at + 1)
    return Again(np.array(rows), "fresh processes, other hash seeds" if fresh is not None else "one process")


def in_fresh_process(content: bytes, judge: str, rules: Rules, numbers: Iterator[int]) -> Scores:
    """Scores of the data from a process of its own, with the next of `numbers` as hash seed. Raise `RepetitionFailed`."""
    command = [sys.executable, "-m", "winnow.cli", "eval", "scores", "-", "--judge", judge, "--rules", rules.value]
    environment = {**os.environ, "PYTHONHASHSEED": str(next(numbers))}
    ran = subprocess.run(command, input=content, stdout=subprocess.PIPE, env=environment, check=False)  # noqa: S603  our own command
    if ran.returncode:
        raise RepetitionFailed
    found: Scores = {}
    for line in ran.stdout.splitlines():
        row = json.loads(line)
        found.update({(row["id"], n): np.nan if score is None else float(score) for n, _, score in row["scores"]})
    return found


async def closing(judges: "Judges", work: Awaitable[T]) -> T:
    """Do `work` and let go of the judges' connections, in the same event loop."""
    try:
        return await work
    finally:
        await judges.close()


async def plain_scores(judge: Judge, boundaries: Sequence[LabelledBoundary], timeout_s: float) -> Asked:
    """The scores alone."""
    return await ask(lambda _: judge, boundaries, limit=lambda: Deadline.after(timeout_s, time.monotonic))
