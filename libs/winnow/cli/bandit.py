"""`winnow bandit`: choose an operating point while traffic flows, from the losses so far; says which levels to sample next."""

import math
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from winnow.cli import records, statistics
from winnow.cli.terminal import Terminal

if TYPE_CHECKING:
    from winnow.assurance.bandit import Bandit, State
    from winnow.contracts.evaluation import Table


def bandit(  # noqa: PLR0913  the options of a command
    losses: Annotated[str, typer.Argument(metavar="FILE", help="Losses so far, in the order in which they came; - is standard input.")],
    *,
    level: Annotated[list[str], typer.Option(metavar="NAME", help="A level to choose among, mildest first; repeated.")],
    margin: Annotated[float, typer.Option(metavar="M", help="Largest acceptable mean loss: tasks lost less tasks gained, a task.")],
    delta: Annotated[float, typer.Option(metavar="D", help="Chance of ever certifying a level beyond the margin.")] = 0.025,
    batch: Annotated[int, typer.Option(min=1, metavar="N", help="Units to sample of a level between two looks.")] = 40,
    budget: Annotated[
        int, typer.Option(min=1, metavar="N", help="Units altogether; spent without a certificate: keep everything.")
    ] = 4_000,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="DIR", help="Folder for the record (JSON), Markdown and HTML.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw each level's evidence into an .svg or .png file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The record on standard output, nothing else.")] = False,
) -> None:
    """Certify or drop levels by e-processes, which may be looked at after every batch, and say which levels to sample next.

    A line of the file is one paired task under one level, `{"level": NAME, "loss": L}`, L 1 where it was lost, -1 gained, 0 neither; or a
    batch, `{"level": NAME, "lost": B, "gained": C, "n": N}`. Append what was sampled and look again, until nothing is left to sample: then
    the most aggressive certified level is the choice. There is no other state than the file.

    Exit code 6: finished, and no level is certified.

    Examples:  winnow bandit losses.jsonl --level tau-0.3 --level tau-0.5 --level tau-0.7 --margin .05

    winnow bandit - --level gate@6 --level gate@12 --margin .05 --json < losses.jsonl
    """
    from winnow.assurance import bandit as rule
    from winnow.cli.arm_lines import read_arms
    from winnow.contracts.evaluation import Direction, EvaluationKind, EvaluationRecord, Gate, Subject

    terminal = Terminal()
    if plot is not None:
        from winnow.cli.monitor_plot import check

        check(plot)
    plan = rule.Bandit(arms=tuple(level), margin=margin, delta=delta, batch=batch, budget=budget)
    content = records.read_bytes(losses)
    state = rule.initial(plan)
    for seen in read_arms(losses, content, plan.arms):
        state = rule.counted(plan, state, seen.place, lost=seen.lost, same=seen.same, gained=seen.gained)
    following, best = rule.wanted(plan, state), rule.choice(state)
    chosen = "keep everything" if best is None else plan.arms[best]
    if following:
        title = f"Sample next, {batch} units each: {', '.join(plan.arms[place] for place in following)}"
    else:
        title = f"Operating point: {chosen}" + (" (no level is certified)" if best is None else "")
    gate = Gate.judge(metric="certified", direction=Direction.AT_LEAST, threshold=1, observed=0 if best is None else 1)
    record = EvaluationRecord(
        id=uuid.uuid4(),
        kind=EvaluationKind.CALIBRATION,
        created_at=datetime.now(UTC),
        title=title[:200],
        command=records.command_line("bandit", losses, level=level, margin=margin, delta=delta, batch=batch, budget=budget),
        software=statistics.software(),
        data=(records.fingerprint(losses, content, sum(arm.n for arm in state)).model_copy(update={"unit": "run"}),),
        subject=Subject(
            kind="operating point",
            name=chosen[:200],
            parameters={
                "margin": margin, "delta": delta, "batch": batch, "budget": budget, "rule": "bandit", "guarantee": "anytime",
                "finished": not following,
            },
        ),
        gates=() if following else (gate,),
        tables=(_table(plan, state, following),),
        warnings=("levels rest on losses: that units are runs cannot be checked",),
        notes=("Valid at every look: the chance that a level beyond the margin is ever certified is at most delta, over all levels.",),
    )  # fmt: skip
    if plot is not None:
        statistics.draw(plot, record)
    records.finish(terminal, record, out, as_json=as_json)


def _table(plan: "Bandit", state: "State", following: tuple[int, ...]) -> "Table":
    """A level a row, mildest first."""
    from winnow.assurance import bandit as rule
    from winnow.contracts.evaluation import Table

    def verdict(place: int) -> str:
        arm = state[place]
        said = "certified" if arm.certified else "dropped" if arm.dropped else "open"
        return f"{said}, sample next" if place in following else said

    rows: tuple[tuple[Any, ...], ...] = tuple(
        (
            name[:200],
            arm.n,
            arm.lost,
            arm.gained,
            (arm.lost - arm.gained) / arm.n if arm.n else None,
            rule.log_feasible(arm, plan.margin) / math.log(10),
            rule.log_infeasible(arm, plan.margin) / math.log(10),
            verdict(place),
        )
        for place, (name, arm) in enumerate(zip(plan.arms, state, strict=True))
    )
    columns = ("level", "n", "lost", "gained", "mean loss", "evidence for (log10)", "evidence against (log10)", "verdict")
    certify, drop = math.log10(len(plan.arms) / plan.delta), math.log10(1 / plan.delta)
    note = f"Certified where the evidence for it has reached {certify:.2f}, dropped where that against it has reached {drop:.2f}."
    return Table(name="arms", title="Levels, mildest first", columns=columns, rows=rows, note=note)
