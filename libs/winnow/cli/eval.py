"""`winnow eval`: how good a judge is on labelled boundaries."""

import asyncio
import itertools
import json
import sys
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.cli import records
from winnow.cli.terminal import Terminal
from winnow.contracts.errors import Permanent
from winnow.contracts.evaluation import Compressor, Exposure, Grader, GraderKind, json_schema, read_record
from winnow.contracts.events import sha256
from winnow.contracts.vocabulary import Rules

if TYPE_CHECKING:
    from winnow.cli.evaluating import Progress
    from winnow.cli.folding import Folds
    from winnow.judging.evaluation.labelled import LabelledBoundary
    from winnow.judging.port import Judge

#: Threshold of a new fleet.
TAU = 0.5
DataFile = Annotated[str, typer.Argument(metavar="DATA.jsonl", help="Labelled boundaries, one a line; - is standard input.")]
JudgeName = Annotated[str, typer.Option("--judge", metavar="NAME", help="The judge.")]
RulesOption = Annotated[Rules, typer.Option(help="`winnow`: the whole design; `published`: Source-Judged Compaction to the letter.")]
Timeout = Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="The most that one boundary may take.")]


class Fold(StrEnum):
    """What a fitted judge must not have seen of the boundary that it scores."""

    RUN = "run"
    DOMAIN = "domain"


class BadOption(Permanent):
    """An option has a value that it cannot have."""


def group() -> typer.Typer:
    """The commands of `winnow eval`."""
    made = typer.Typer(help="How good a judge is on labelled boundaries.", no_args_is_help=True)
    made.command("judge")(judge)
    made.command("scores")(scores)
    made.command("show")(show)
    made.command("schema")(schema)
    return made


def judge(  # noqa: PLR0913  the options of a command
    data: DataFile,
    *,
    name: JudgeName = "local",
    against: Annotated[str | None, typer.Option(metavar="NAME", help="A second judge to compare with.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="DIR", help="Folder for the record (JSON), Markdown and HTML.")] = None,
    gate: Annotated[list[str] | None, typer.Option(metavar="FIGURE>=N", help="A condition: auroc.reasoning>=0.9. May be repeated.")] = None,
    tau: Annotated[float, typer.Option(min=0, max=1, help="Keep where score >= tau.")] = TAU,
    folds: Annotated[Fold | None, typer.Option(help="Fit the local judge again for each run or domain, without it.")] = None,
    repeats: Annotated[int | None, typer.Option(min=1, max=100, help="Askings of the same request; left out: 5, remote judges 1.")] = None,
    stress: Annotated[bool | None, typer.Option(help="Changed and reordered boundaries; left out: yes, for remote judges no.")] = None,
    grader: Annotated[str | None, typer.Option(metavar="KIND[:NAME]", help="Who labelled: human, model, rule or synthetic.")] = None,
    compressor: Annotated[str | None, typer.Option(metavar="NAME", help="Who wrote the summaries.")] = None,
    rules: RulesOption = Rules.WINNOW,
    seed: Annotated[int, typer.Option(min=0, help="Seed of bootstrap, stress and orders.")] = 0,
    timeout: Timeout = 60.0,
    as_json: Annotated[bool, typer.Option("--json", help="The record on standard output, nothing else.")] = False,
) -> None:
    """Measure a judge on labelled boundaries: ranking, decisions, calibration, stress, repeatability, errors.

    A line is one of `winnow judge` with `entries`: n, text, source (or env and prev), and where annotators were asked user, refuted, done,
    correct. Intervals are bootstrap by run, or by `scenario` where lines have one. Grader and compressor are what the lines' fields of
    these names say, unless an option does.

    Exit code 6: measured, and a gate was not met. Without gates nothing has passed: the record says no_gate.

    Examples:  winnow eval judge dev.jsonl --out report --gate 'auroc.reasoning>=0.9' --gate 'stress_kept.digit_changed<=0.06'

    winnow eval judge dev.jsonl --folds domain --against formula --json
    """
    from winnow.cli import evaluating
    from winnow.cli.judges import named, registered
    from winnow.cli.labelled_lines import read_data
    from winnow.judging.evaluation.gates import Condition
    from winnow.judging.evaluation.record import Header, record_of

    terminal = Terminal()
    conditions = [Condition.parse(text) for text in gate or ()]
    asked_grader = None if grader is None else grader_of(grader)
    judges = registered()
    subject, other = named(judges, name), None if against is None else named(judges, against)
    content = records.read_bytes(data)
    found = read_data(content, rules)
    records.make_folder(out)
    remote = subject.capabilities.remote
    progress = evaluating.Progress(terminal)
    by_fold = None if folds is None else _fit_again(subject, found.boundaries, folds, seed=seed, content=content, progress=progress)
    plan = evaluating.Plan(
        judge=subject.id if by_fold is None else by_fold.id,
        remote=remote,
        judge_of=(lambda _: subject) if by_fold is None else by_fold.judge_of,
        other=other,
        tau=tau,
        seed=seed,
        timeout_s=timeout,
        repeats=repeats or (1 if remote else evaluating.REPEATS),
        stress=not remote if stress is None else stress,
        folds=None if folds is None else folds.value,
    )
    hash_seeds = itertools.count(1)
    # A judge of folds lives in this process only.
    fresh = None if remote or folds else lambda: evaluating.in_fresh_process(content, name, rules, hash_seeds)
    work = evaluating.study_of(plan, found.boundaries, progress, fresh)
    study = asyncio.run(evaluating.closing(judges, work))
    header = Header(
        id=uuid.uuid4(),
        created_at=datetime.now(UTC),
        command=records.command_line(
            "eval",
            "judge",
            data,
            *(() if stress is None else ("--stress" if stress else "--no-stress",)),
            judge=name,
            against=against,
            gate=gate,
            tau=tau,
            folds=None if folds is None else folds.value,
            repeats=repeats,
            grader=grader,
            compressor=compressor,
            rules=rules.value,
            seed=seed,
        ),
        software=records.software(),
        data=records.fingerprint(data, content, len(found.boundaries)),
        grader=asked_grader or _said_grader(found.graders),
        compressor=_compressor(compressor, found.compressors),
        exposure=_exposure(subject, content) if folds is None else Exposure.CROSS_FITTED,
    )
    records.finish(terminal, record_of(study, header, conditions), out, as_json=as_json)


def _fit_again(
    judge: "Judge", boundaries: "Sequence[LabelledBoundary]", by: Fold, *, seed: int, content: bytes, progress: "Progress"
) -> "Folds":
    """A judge for each fold. Raise `BadOption` for a judge that is not fitted here."""
    from winnow.cli.folding import folded
    from winnow.judging.local import LocalJudge

    if not isinstance(judge, LocalJudge):
        msg = f"--folds fits the local judge again; {judge.id.name} cannot be fitted here"
        raise BadOption(msg)
    with progress.of("boundaries read for the fits") as told:
        return folded(boundaries, by, seed=seed, data_sha256=sha256(content), told=told)


def scores(data: DataFile, *, name: JudgeName = "local", rules: RulesOption = Rules.WINNOW, timeout: Timeout = 60.0) -> None:
    """Print the scores of labelled entries, one line a boundary: {"id", "scores": [[n, p, score], ...]}; null where there is no answer."""
    from winnow.cli import evaluating
    from winnow.cli.judges import named, registered
    from winnow.cli.labelled_lines import read_data

    judges = registered()
    subject = named(judges, name)
    found = read_data(records.read_bytes(data), rules)
    asked = asyncio.run(evaluating.closing(judges, evaluating.plain_scores(subject, found.boundaries, timeout)))
    for boundary, _, of_boundary in asked.judged:
        said = {score.n: score for score in of_boundary}
        rows = [[label.n, *((said[label.n].p, said[label.n].score) if label.n in said else (None, None))] for label in boundary.labels]
        sys.stdout.write(json.dumps({"id": boundary.id, "scores": rows}) + "\n")


def show(
    record: Annotated[str, typer.Argument(metavar="RECORD.json", help="An evaluation record; - is standard input.")],
    *,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="DIR", help="Write Markdown and HTML again, beside the record.")
    ] = None,
) -> None:
    """Show an evaluation record of any kind, and write its documents again."""
    terminal = Terminal()
    found = read_record(records.read_bytes(record))
    if out is not None:
        for path in records.write(found, out):
            terminal.note(f"written: {path}")
    records.show(terminal, found)


def schema() -> None:
    """Print the JSON Schema of evaluation records."""
    sys.stdout.write(json.dumps(json_schema(), indent=2) + "\n")


def grader_of(text: str) -> Grader:
    """Read KIND or KIND:NAME. Raise `BadOption`."""
    kind, _, who = text.partition(":")
    if kind not in list(GraderKind) or not (who or ":" not in text) or len(who) > 200 or not who.isprintable():  # noqa: PLR2004  a name's limit
        msg = f"grader {text[:80]!r}: write human, model, rule or synthetic, perhaps with a name: model:two-annotators"
        raise BadOption(msg)
    return Grader(kind=GraderKind(kind), name=who or None)


def _said_grader(said: Sequence[str]) -> Grader:
    """The grader that the data names, where all lines name the same."""
    if len(said) == 1:
        return grader_of(said[0])
    return Grader(kind=GraderKind.UNSTATED, name=f"{len(said)} different graders" if said else None)


def _compressor(asked: str | None, said: Sequence[str]) -> Compressor | None:
    """The compressor that was asked for or that the data names."""
    name = asked or (said[0] if len(said) == 1 else f"{len(said)} compressors" if said else None)
    return None if name is None else Compressor(name="".join(c for c in name if c.isprintable())[:200] or "unnamed")


def _exposure(judge: "Judge", content: bytes) -> Exposure:
    """Whether the judge was fitted on this very file."""
    from winnow.cli.judges import trained_on

    fitted = trained_on(judge)
    return Exposure.TRAINED_ON if fitted == sha256(content) else Exposure.UNKNOWN
