"""`winnow canaries`: does a judge give the known answers, and does being asked about them change the others?"""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

import typer

from winnow.cli.terminal import Terminal, cell, table
from winnow.contracts.deadline import Deadline
from winnow.contracts.vocabulary import CanaryKind, Rules

if TYPE_CHECKING:
    from winnow.cli.boundary_lines import BoundaryLine
    from winnow.judging.canaries import Donor, Ground
    from winnow.judging.port import Judge, JudgeAnswer, JudgeRequest

#: Local probability from which an entry of the data may be a donor: it has a source of its own, or its absence elsewhere would say little.
_DONOR_FROM = 0.9
#: Donors that are offered to a boundary, as many as a fleet's latest boundaries offer.
_DONORS = 48


@dataclass(slots=True)
class Shift:
    """How far two askings of the same entries are apart."""

    distance: list[float] = field(default_factory=list)
    flips: int = 0

    def add(self, one: "JudgeAnswer", other: "JudgeAnswer", tau: float) -> None:
        """Compare entry by entry; what one of them has not scored is left out."""
        second = {score.n: score.p for score in other.scores}
        for score in one.scores:
            p = second.get(score.n)
            if score.p is not None and p is not None:
                self.distance.append(abs(score.p - p))
                self.flips += (score.p >= tau) is not (p >= tau)

    def value(self) -> dict[str, Any]:
        """As JSON; null where nothing was compared."""
        n = len(self.distance)
        return {"entries": n, "mean_distance": sum(self.distance) / n if n else None, "flips": self.flips / n if n else None}


@dataclass(slots=True)
class Seen:
    """What was measured."""

    boundaries: int = 0
    without_answer: int = 0
    kept: dict[CanaryKind, list[bool]] = field(default_factory=lambda: {kind: [] for kind in CanaryKind})
    #: With canaries against without: their effect.
    effect: Shift = field(default_factory=Shift)
    #: Without against without again: what the judge changes by itself.
    noise: Shift = field(default_factory=Shift)


def canaries(
    boundaries: Annotated[
        str, typer.Argument(metavar="BOUNDARIES.jsonl", help="One boundary a line, of several runs; - is standard input.")
    ],
    *,
    judge: Annotated[str, typer.Option(metavar="NAME", help="local, or one of WINNOW_JUDGES.")] = "local",
    tau: Annotated[float, typer.Option(min=0.0, max=1.0, help="Threshold of a kept entry.")] = 0.5,
    seed: Annotated[int, typer.Option(help="Chooses donors, lines and entries.")] = 1,
    limit: Annotated[int | None, typer.Option(min=1, help="The most boundaries; a remote judge is asked three times about each.")] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for one request.")] = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON.")] = False,
) -> None:
    """Plant entries with known answers in boundaries of a file, and ask a judge with and without them.

    Prints which share of each kind it keeps, and how far its probabilities of the real entries move, beside how far they move when it is
    asked the same again. Where the first is not above the second, WINNOW_CANARY_SHARE changes nothing that the judge does not change by
    itself.
    """
    from winnow.cli.boundary_lines import BadLine, read_lines, source_of
    from winnow.cli.judges import named, registered

    terminal = Terminal()
    judges = registered()
    asked = named(judges, judge)
    with source_of(boundaries) as source:
        lines: list[BoundaryLine] = []
        for number, line in read_lines(source):
            if isinstance(line, BadLine):
                terminal.fail(f"{boundaries}, line {number}: {line}")
            else:
                lines.append(line)
    if not lines:
        terminal.fail(f"{boundaries} holds no boundary: one a line, as `winnow judge` takes them")

    async def work() -> Seen:
        try:
            return await _measure(asked, lines, tau=tau, rng=_chance(seed), limit=limit, seconds=timeout)
        finally:
            await judges.close()

    _report(terminal, judge, asyncio.run(work()), as_json=as_json)


def _chance(seed: int) -> random.Random:
    """Chance that repeats."""
    return random.Random(seed)  # noqa: S311  guards nothing


async def _measure(
    judge: "Judge", lines: "Sequence[BoundaryLine]", *, tau: float, rng: random.Random, limit: int | None, seconds: float
) -> Seen:
    """Ask about every boundary that gets canaries: without, without again, with."""
    from dataclasses import replace

    from winnow.judging.canaries import Draw, plant, with_canaries

    async def ask(request: "JudgeRequest") -> "JudgeAnswer":
        return await judge.judge(request, Deadline.after(seconds, time.monotonic))

    seen = Seen()
    grounds = [_ground(line) for line in lines]
    donors = [donor for ground, request in grounds for donor in _donors(ground, request)]
    for ground, request in grounds:
        if limit is not None and seen.boundaries >= limit:
            break
        offered = rng.sample(donors, min(_DONORS, len(donors)))
        planted = plant(ground, offered, Draw(planted=True, counts=True, seed=0), rng)
        if not planted:
            continue
        seen.boundaries += 1
        plain, again = await ask(request), await ask(request)
        more = await ask(with_canaries(replace(request, evidence=request.evidence.model_copy(update={"canaries": planted}))))
        if not (plain.scores and more.scores):
            seen.without_answer += 1
            continue
        seen.noise.add(plain, again, tau)
        seen.effect.add(plain, more, tau)
        said = {score.n: score.p for score in more.scores}
        for canary in planted:
            p = said.get(canary.entry.n)
            if p is not None:
                seen.kept[canary.kind].append(p >= tau)
    return seen


def _ground(line: "BoundaryLine") -> "tuple[Ground, JudgeRequest]":
    """A boundary of the file."""
    from winnow.judging.canaries import Ground
    from winnow.judging.offline import request_of

    parts: dict[str, Any] = {"task": line.task, "previous": line.previous_summary, "history": line.history, "retained": line.retained}
    examined, request = request_of(line.candidate, host=line.host, profile=line.profile, index=line.index, **parts)
    return Ground(run=line.run or line.id, rules=Rules.WINNOW, examined=examined, **parts), request


def _donors(ground: "Ground", request: "JudgeRequest") -> "list[Donor]":
    """Entries of a boundary that certainly have a source there."""
    from winnow.judging import local
    from winnow.judging.canaries import Donor

    sure = {score.n for score in local.score(request.evidence) if (score.p or 0.0) >= _DONOR_FROM}
    return [Donor(run=ground.run, section=entry.section, text=entry.text) for entry in request.evidence.entries if entry.n in sure]


def _report(terminal: Terminal, judge: str, seen: Seen, *, as_json: bool) -> None:
    """Print it."""
    kept = {kind.value: {"n": len(of), "kept": sum(of) / len(of) if of else None} for kind, of in seen.kept.items()}
    value = {
        "judge": judge, "boundaries": seen.boundaries, "without_answer": seen.without_answer, "kept": kept,
        "effect": seen.effect.value(), "noise": seen.noise.value(),
    }  # fmt: skip
    if as_json:
        terminal.json(value)
        return
    rows = table("canary", "answer", "asked", "kept")
    for kind in CanaryKind:
        of = kept[kind.value]
        share = "-" if of["kept"] is None else f"{of['kept']:.3f}"
        rows.add_row(cell(kind.value), cell("supported" if kind.supported else "unsupported"), cell(str(of["n"])), cell(share))
    terminal.show(rows)
    moved = table("real entries, asked again", "entries", "mean distance of p", "change of side")
    for name, shift in (("with canaries", seen.effect), ("the same again", seen.noise)):
        of_shift = shift.value()
        numbers = ["-" if of_shift[what] is None else f"{of_shift[what]:.4f}" for what in ("mean_distance", "flips")]
        moved.add_row(cell(name), cell(str(of_shift["entries"])), *(cell(number) for number in numbers))
    terminal.show(moved)
    if seen.without_answer:
        terminal.error(f"{seen.without_answer} of {seen.boundaries} boundaries had no answer")
