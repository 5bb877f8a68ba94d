"""`winnow judge`: score boundaries from a file, without a broker or database."""

import asyncio
import json
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from winnow.cli.exits import ExitCode
from winnow.cli.terminal import Terminal
from winnow.contracts.errors import WinnowError
from winnow.contracts.vocabulary import Outcome, Rules, Verdict

if TYPE_CHECKING:
    from winnow.cli.boundary_lines import BoundaryLine
    from winnow.compaction.boundary import Examined
    from winnow.judging.port import Judge, JudgeAnswer

#: Boundaries between two words on progress: about a second's worth.
PROGRESS_EVERY = 100
#: The judge without a name.
LOCAL = "local"


def judge(
    boundaries: Annotated[str, typer.Argument(metavar="BOUNDARIES.jsonl", help="One boundary a line; - is standard input.")],
    *,
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="Where the scores go, one line a boundary; - is standard output.")
    ],
    rules: Annotated[
        Rules, typer.Option(help="`winnow`: the whole design; `published`: Source-Judged Compaction to the letter.")
    ] = Rules.WINNOW,
    profile: Annotated[str | None, typer.Option(help="Summary format of all lines; left out: the line's own, else detected.")] = None,
    name: Annotated[str, typer.Option("--judge", metavar="NAME", help="local, or one of WINNOW_JUDGES.")] = LOCAL,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for one boundary of a remote judge.")] = 60.0,
) -> None:
    """Score every entry of every boundary with a judge.

    A line is a JSON object with id, candidate_summary, and where there are some task, previous_summary, history, retained. Scores come
    without inheritance: each boundary is seen alone. A bad line is named on standard error, the rest is judged and the exit code is 1; so
    is a boundary that a remote judge gave no answer for, which has its entries without scores. A remote judge's lines also say who answered
    and what it took.
    """
    from winnow.cli.boundary_lines import BadLine, read_lines, source_of
    from winnow.cli.judges import named, registered
    from winnow.cli.target import target_of

    terminal = Terminal()
    judges = registered()
    asked = named(judges, name)
    bad = done = 0
    with asyncio.Runner() as runner, source_of(boundaries) as source, target_of(out) as target:
        try:
            for number, line in read_lines(source):
                try:
                    if isinstance(line, BadLine):
                        raise line
                    examined, answer = runner.run(_ask(asked, line, rules=rules, profile=profile, seconds=timeout))
                except WinnowError as exc:
                    bad += 1
                    terminal.error(f"{boundaries}, line {number}: {exc}")
                    continue
                if answer.outcome is Outcome.UNJUDGED and examined.analysis.entries:
                    bad += 1
                    terminal.error(f"{boundaries}, line {number}: {_why(answer)}")
                target.write(json.dumps(_result(line, examined, answer, asked, rules)) + "\n")
                done += 1
                if terminal.err.is_terminal and done % PROGRESS_EVERY == 0:
                    terminal.note(f"{done} boundaries judged")
        finally:
            runner.run(judges.close())
    if terminal.err.is_terminal:
        terminal.note(f"{done} boundaries judged" + (f", {bad} bad lines" if bad else ""))
    if bad:
        raise SystemExit(int(ExitCode.FAILURE))


async def _ask(
    asked: "Judge", line: "BoundaryLine", *, rules: Rules, profile: str | None, seconds: float
) -> "tuple[Examined, JudgeAnswer]":
    """Examine one boundary, and ask the judge for its entries."""
    from winnow.contracts.deadline import Deadline
    from winnow.judging.offline import request_of

    examined, request = request_of(
        line.candidate,
        task=line.task,
        previous=line.previous_summary,
        history=line.history,
        retained=line.retained,
        host=line.host,
        profile=profile or line.profile,
        rules=rules,
        pins=line.pins,
        user_turns_survive=line.user_turns_survive,
        index=line.index,
    )
    return examined, await asked.judge(request, Deadline.after(seconds, time.monotonic))


def _result(line: "BoundaryLine", examined: "Examined", answer: "JudgeAnswer", asked: "Judge", rules: Rules) -> dict[str, Any]:
    """The result for one boundary; this form is kept. No entries where the candidate is no summary."""
    scores = {score.n: score for score in answer.scores}
    result: dict[str, Any] = {"id": line.id, "profile": examined.parsed.profile, "rules": rules.value, "entries": []}
    for entry in examined.analysis.entries:
        score = scores.get(entry.n)
        result["entries"].append(
            {
                "n": entry.n,
                "section": entry.section,
                "text": entry.text,
                "span": list(entry.span),
                "score": score.score if score else None,
                "verdict": (score.verdict if score else Verdict.UNSCORED).value,
                "explanation": score.explanation if score else _why(answer),
            }
        )
    if asked.capabilities.remote:
        costs = [call.cost_usd for call in answer.calls]
        result["judge"] = answer.judge.model_dump(exclude_none=True)
        result["outcome"] = answer.outcome.value
        result["requests"] = sum(call.requests for call in answer.calls)
        result["cost_usd"] = None if not costs or None in costs else sum(cost for cost in costs if cost is not None)
    return result


def _why(answer: "JudgeAnswer") -> str:
    """Why there is no answer."""
    errors = sorted({call.error for call in answer.calls if call.error is not None})
    return f"not judged: {answer.judge.name} gave no usable answer" + (f" ({', '.join(errors)})" if errors else "")
