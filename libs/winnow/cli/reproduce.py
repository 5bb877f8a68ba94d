"""`winnow reproduce`: published figures, computed again from published counts."""

import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.cli import records, statistics
from winnow.cli.terminal import Terminal, cell, table

if TYPE_CHECKING:
    from winnow.assurance.reproduction.figures import Publication
    from winnow.contracts.evaluation import EvaluationRecord

Experiments = Annotated[list[str] | None, typer.Argument(metavar="[EXPERIMENT...]", help="Such as E3 or E10; left out: all.")]
Out = Annotated[Path | None, typer.Option("--out", "-o", metavar="DIR", help="Folder for the record (JSON), Markdown and HTML.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of permutations and simulated delays.")]
AsJson = Annotated[bool, typer.Option("--json", help="The record on standard output, nothing else.")]


def group() -> typer.Typer:
    """The commands of `winnow reproduce`."""
    made = typer.Typer(help="Published figures, computed again from published counts that ship with Winnow.", no_args_is_help=True)
    made.command("distil")(distil)
    made.command("sjc")(sjc)
    return made


def distil(experiments: Experiments = None, *, out: Out = None, seed: Seed = 0, as_json: AsJson = False) -> None:
    """Distil (certified decision-equivalent compression): E2, E3, E5, E7 to E11, E13, E14, and what it measured while serving.

    Each claim comes with the value found, a verdict (reproduced, reproduced with another definition, does not hold as worded) and the
    definition that gives the value. No model is called.

    Examples:  winnow reproduce distil

    winnow reproduce distil E3 E10 --out figures
    """
    from winnow.assurance.reproduction.distil import publication

    _reproduce(publication(), experiments, out, seed, as_json=as_json)


def sjc(experiments: Experiments = None, *, out: Out = None, seed: Seed = 0, as_json: AsJson = False) -> None:
    """Source-Judged Compaction: intervals and tests that follow from the counts that its paper prints.

    Examples:  winnow reproduce sjc

    winnow reproduce sjc gains --json
    """
    from winnow.assurance.reproduction.sjc import publication

    _reproduce(publication(), experiments, out, seed, as_json=as_json)


def _reproduce(publication: "Publication", experiments: list[str] | None, out: Path | None, seed: int, *, as_json: bool) -> None:
    """Compute the claims, write the record, show the claims."""
    from winnow.assurance.reproduction.figures import record as record_of

    terminal = Terminal()
    record = record_of(
        publication,
        experiments or [],
        id=uuid.uuid4(),
        now=datetime.now(UTC),
        seed=seed,
        command=records.command_line("reproduce", publication.name, *(experiments or []), seed=seed),
        software=statistics.software(),
    )
    if as_json:
        records.finish(terminal, record, out, as_json=True)
        return
    if out is not None:
        for path in records.write(record, out):
            terminal.note(f"written: {path}")
    _show(terminal, record)


def _show(terminal: Terminal, record: "EvaluationRecord") -> None:
    """The claims, and how many of them hold."""
    from winnow.judging.evaluation.documents import shown

    rows = table("claim", "published", "found", "verdict", "definition", title=record.title)
    for claim in record.claims:
        found = shown(claim.observed)
        if claim.interval is not None:
            found += f" [{shown(claim.interval.lo)}, {shown(claim.interval.hi)}]"
        verdict = claim.verdict.value.replace("_", " ")
        rows.add_row(*(cell(value) for value in (claim.name, shown(claim.published), found, verdict, claim.definition)))
    terminal.show(rows)
    for note in record.notes:
        terminal.show(f"Note: {note}")
    counted = record.table("verdicts")
    if counted is not None:
        terminal.show("; ".join(f"{n} {str(verdict).replace('_', ' ')}" for verdict, n in counted.rows))
