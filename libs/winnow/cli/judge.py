"""`winnow judge`: score boundaries from a file, without a broker or database."""

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from winnow.cli.exits import ExitCode
from winnow.cli.terminal import Terminal
from winnow.contracts.errors import WinnowError
from winnow.contracts.vocabulary import Mode, Rules

if TYPE_CHECKING:
    from winnow.cli.boundary_lines import BoundaryLine
    from winnow.compaction.boundary import Examined
    from winnow.contracts.events import Evidence

#: Boundaries between two words on progress: about a second's worth.
PROGRESS_EVERY = 100


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
) -> None:
    """Score every entry of every boundary with the local judge.

    A line is a JSON object with id, candidate_summary, and where there are some task, previous_summary, history, retained. Scores come
    without inheritance: each boundary is seen alone. A bad line is named on standard error, the rest is judged and the exit code is 1.
    """
    from winnow.cli.boundary_lines import BadLine, read_lines, source_of
    from winnow.cli.target import target_of

    terminal = Terminal()
    bad = done = 0
    with source_of(boundaries) as source, target_of(out) as target:
        for number, line in read_lines(source):
            try:
                if isinstance(line, BadLine):
                    raise line
                result = judged(line, rules=rules, profile=profile)
            except WinnowError as exc:
                bad += 1
                terminal.error(f"{boundaries}, line {number}: {exc}")
                continue
            target.write(json.dumps(result) + "\n")
            done += 1
            if terminal.err.is_terminal and done % PROGRESS_EVERY == 0:
                terminal.note(f"{done} boundaries judged")
    if terminal.err.is_terminal:
        terminal.note(f"{done} boundaries judged" + (f", {bad} bad lines" if bad else ""))
    if bad:
        raise SystemExit(int(ExitCode.FAILURE))


def judged(line: "BoundaryLine", *, rules: Rules, profile: str | None = None) -> dict[str, Any]:
    """The result for one boundary; this form is kept. No entries where the candidate is no summary."""
    from winnow.compaction.boundary import examine
    from winnow.judging import local

    examined = examine(
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
    )
    scores = {score.n: score for score in local.score(_evidence(line, examined, rules))}
    return {
        "id": line.id,
        "profile": examined.parsed.profile,
        "rules": rules.value,
        "entries": [
            {
                "n": entry.n,
                "section": entry.section,
                "text": entry.text,
                "span": list(entry.span),
                "score": scores[entry.n].score,
                "verdict": scores[entry.n].verdict.value,
                "explanation": scores[entry.n].explanation,
            }
            for entry in examined.analysis.entries
        ],
    }


def _evidence(line: "BoundaryLine", examined: "Examined", rules: Rules) -> "Evidence":
    """What the local judge is asked. Names and times of the boundary do not enter a score, so an offline one has none."""
    from winnow.compaction.analysis import FEATURES_VERSION
    from winnow.compaction.parse import PARSER_VERSION
    from winnow.contracts.events import Evidence, Text, sha256

    return Evidence(
        fleet="offline",
        run="offline",
        agent="offline",
        boundary_id=UUID(int=0),
        request_sha256=sha256(""),
        candidate_sha256=sha256(""),
        operating_point=0,
        index=line.index,
        boundary_at=datetime.fromtimestamp(0, UTC),
        mode=Mode.SHADOW,
        rules=rules,
        host=None,
        profile=examined.parsed.profile,
        user_turns_survive=examined.user_turns_survive,
        not_a_summary=examined.parsed.outcome,
        task=Text.of(line.task),
        previous=None if line.previous_summary is None else Text.of(line.previous_summary),
        retained=Text.of(""),
        passages=examined.analysis.passages,
        entries=examined.analysis.entries,
        parser_version=PARSER_VERSION,
        features_version=FEATURES_VERSION,
        messages_sha256=sha256(""),
    )
