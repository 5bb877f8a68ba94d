"""`winnow eval`: how good a judge is on labelled boundaries."""

import asyncio
import itertools
import json
import platform
import shlex
import sys
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winnow import __version__
from winnow.cli.exits import ExitCode
from winnow.cli.terminal import Terminal, cell, table
from winnow.contracts.errors import Permanent
from winnow.contracts.evaluation import (
    Cell,
    Compressor,
    DataFingerprint,
    EvaluationRecord,
    Exposure,
    Grader,
    GraderKind,
    Table,
    json_schema,
    read_record,
)
from winnow.contracts.events import sha256
from winnow.contracts.vocabulary import Rules

if TYPE_CHECKING:
    from rich.table import Table as RichTable

    from winnow.judging.port import Judge

#: Name of the files that `--out` receives, without their endings.
STEM = "evaluation"
#: Threshold of a new fleet.
TAU = 0.5
#: Slices that the terminal shows; the documents have all.
_SLICES = frozenset({"all", "reasoning", "first", "later", "later reasoning", "forward"})
#: Figures of them that the terminal shows.
_FIGURES = ("auroc", "ap_unsourced", "precision_at_r900", "precision", "recall", "brier", "ece")
#: Tables that the terminal shows besides.
_TABLES = ("sections", "stress", "repetition", "disagreement")

DataFile = Annotated[str, typer.Argument(metavar="DATA.jsonl", help="Labelled boundaries, one a line; - is standard input.")]
JudgeName = Annotated[str, typer.Option("--judge", metavar="NAME", help="The judge.")]
RulesOption = Annotated[Rules, typer.Option(help="`winnow`: the whole design; `published`: Source-Judged Compaction to the letter.")]
Timeout = Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="The most that one boundary may take.")]


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

    winnow eval judge dev.jsonl --judge local --against formula --json
    """
    from winnow.cli import evaluating
    from winnow.cli.judges import judge_named
    from winnow.cli.labelled_lines import read_data
    from winnow.judging.evaluation.gates import Condition
    from winnow.judging.evaluation.record import Header, record_of

    terminal = Terminal()
    conditions = [Condition.parse(text) for text in gate or ()]
    asked_grader = None if grader is None else grader_of(grader)
    subject, other = judge_named(name), None if against is None else judge_named(against)
    content = read_bytes(data)
    found = read_data(content, rules)
    remote = subject.capabilities.remote
    plan = evaluating.Plan(
        judge=subject,
        judge_of=lambda _: subject,
        other=other,
        tau=tau,
        seed=seed,
        timeout_s=timeout,
        repeats=repeats or (1 if remote else evaluating.REPEATS),
        stress=not remote if stress is None else stress,
    )
    hash_seeds = itertools.count(1)
    fresh = None if remote else lambda: evaluating.in_fresh_process(content, name, rules, hash_seeds)
    study = asyncio.run(evaluating.study_of(plan, found.boundaries, evaluating.Progress(terminal), fresh))
    header = Header(
        id=uuid.uuid4(),
        created_at=datetime.now(UTC),
        command=command_line("eval", "judge", data, judge=name, against=against, gate=gate, tau=tau, rules=rules.value, seed=seed),
        software=software(),
        data=fingerprint(data, content, len(found.boundaries)),
        grader=asked_grader or _said_grader(found.graders),
        compressor=_compressor(compressor, found.compressors),
        exposure=_exposure(subject, content),
    )
    finish(terminal, record_of(study, header, conditions), out, as_json=as_json)


def finish(terminal: Terminal, record: EvaluationRecord, out: Path | None, *, as_json: bool) -> None:
    """Write the documents, show the record, and end with exit code 6 where a gate was not met."""
    if out is not None:
        for path in write(record, out):
            terminal.note(f"written: {path}")
    if as_json:
        sys.stdout.write(record.to_json())
    else:
        _show(terminal, record)
    if any(not one.passed for one in record.gates):
        raise SystemExit(int(ExitCode.GATE))


def scores(data: DataFile, *, name: JudgeName = "local", rules: RulesOption = Rules.WINNOW, timeout: Timeout = 60.0) -> None:
    """Print the scores of labelled entries, one line a boundary: {"id", "scores": [[n, p, score], ...]}; null where there is no answer."""
    from winnow.cli import evaluating
    from winnow.cli.judges import judge_named
    from winnow.cli.labelled_lines import read_data

    subject = judge_named(name)
    found = read_data(read_bytes(data), rules)
    asked = asyncio.run(evaluating.plain_scores(subject, found.boundaries, timeout))
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
    found = read_record(read_bytes(record))
    if out is not None:
        for path in write(found, out):
            terminal.note(f"written: {path}")
    _show(terminal, found)


def schema() -> None:
    """Print the JSON Schema of evaluation records."""
    sys.stdout.write(json.dumps(json_schema(), indent=2) + "\n")


def read_bytes(name: str) -> bytes:
    """A whole file, or standard input for `-`."""
    from winnow.cli.boundary_lines import source_of

    try:
        with source_of(name) as file:
            return file.read()
    except OSError as exc:
        msg = f"{name}: {exc.strerror or exc}"
        raise Permanent(msg) from None


def fingerprint(name: str, content: bytes, boundaries: int) -> DataFingerprint:
    """The data by its bytes; its name without its folder."""
    source = "standard input" if name == "-" else "".join(c if c.isprintable() else "?" for c in Path(name).name)[:200]
    return DataFingerprint(source=source or "data", sha256=sha256(content), n=boundaries, unit="boundary")


def software() -> dict[str, str]:
    """Versions that figures depend on."""
    import numpy as np

    from winnow.compaction.analysis import FEATURES_VERSION
    from winnow.compaction.parse import PARSER_VERSION

    return {
        "winnow": __version__,
        "parser": PARSER_VERSION,
        "features": FEATURES_VERSION,
        "python": platform.python_version(),
        "numpy": np.__version__,
    }


def command_line(*words: str, **options: object) -> str:
    """A command as it can be given again: options that are None are left out, a list is one option each."""
    said = ["winnow", *words]
    for name, value in options.items():
        values = value if isinstance(value, list) else [] if value is None else [value]
        for one in values:
            said += [f"--{name.replace('_', '-')}", str(one)]
    return shlex.join(said)


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


def write(record: EvaluationRecord, folder: Path) -> list[Path]:
    """Write record, Markdown and HTML into a folder; return their paths. Raise `Permanent` where that is not possible."""
    from winnow.judging.evaluation import documents, plots

    pages = {
        "json": record.to_json(),
        "md": documents.markdown(record),
        "html": documents.html(record, plots.of(record) if plots.drawable() else None),
    }
    written = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for ending, text in pages.items():
            path = folder / f"{STEM}.{ending}"
            path.write_text(text, encoding="utf-8")
            written.append(path)
    except (OSError, ValueError) as exc:
        msg = f"{folder}: {getattr(exc, 'strerror', None) or exc}"
        raise Permanent(msg) from None
    return written


def _show(terminal: Terminal, record: EvaluationRecord) -> None:
    """The record in short."""
    from winnow.judging.evaluation.documents import facts, gate_text, ranged, shown

    terminal.show(record.title)
    for warning in record.warnings:
        terminal.show(f"Note well: {warning}")
    for name, value in facts(record):
        terminal.show(f"  {name}: {value}")
    by_slice = {metric.slice: metric for metric in record.metrics if metric.name == "pruned"}
    if by_slice:
        rows = table("slice", "n", "sourced", *_FIGURES, title="Figures by slice")
        for name, counted in by_slice.items():
            if name in _SLICES:
                of = [record.metric(figure, name) for figure in _FIGURES]
                values = ["" if one is None else ranged(one.value, one.interval if one.name == "auroc" else None) for one in of]
                rows.add_row(*(cell(value) for value in (name, counted.n, counted.positives, *values)))
        terminal.show(rows)
    chosen = [one for one in record.tables if one.name in _TABLES or not by_slice]
    for one in chosen:
        terminal.show(_rich(one, shown))
    for gate in record.gates:
        terminal.show(f"gate {'passed' if gate.passed else 'FAILED'}: {gate_text(gate)}")
    terminal.show(f"status: {record.status.value}" + ("" if record.gates else " (no --gate was given; that is not a pass)"))


def _rich(found: Table, shown: Callable[[Cell], str]) -> "RichTable":
    """A table for the terminal."""
    rows = table(*found.columns, title=found.title)
    for row in found.rows:
        rows.add_row(*(cell(shown(one)) for one in row))
    return rows
