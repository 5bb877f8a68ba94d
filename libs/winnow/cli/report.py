"""`winnow report`: what was stored, summed up."""

import hashlib
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.cli.connection import on_database
from winnow.cli.records import command_line, finish, make_folder, software
from winnow.cli.terminal import Terminal, plain
from winnow.contracts.errors import NotFound
from winnow.contracts.evaluation import (
    DataFingerprint,
    EvaluationKind,
    EvaluationRecord,
    Exposure,
    Grader,
    GraderKind,
    Subject,
)
from winnow.contracts.vocabulary import Rules

if TYPE_CHECKING:
    from winnow.judging.evaluation.composition import Composition
    from winnow.storage.composition import JudgeVersion, Wanted
    from winnow.storage.database import Database

Fleets = Annotated[list[str] | None, typer.Option("--fleet", metavar="FLEET", help="A fleet; may be repeated. Left out: all.")]
Runs = Annotated[list[str] | None, typer.Option("--run", metavar="RUN", help="A run; may be repeated. Left out: all.")]
Since = Annotated[datetime | None, typer.Option(help="Runs with a boundary since then (UTC); they are counted whole.")]
Until = Annotated[datetime | None, typer.Option(help="Runs with a boundary before then (UTC).")]
OfRules = Annotated[Rules | None, typer.Option("--rules", help="Boundaries that were judged under these rules. Left out: all.")]


class NothingStored(NotFound):
    """No stored boundary fits; see `winnow runs` and `winnow fleet show` for what there is."""


def group() -> typer.Typer:
    """The commands of `winnow report`."""
    made = typer.Typer(help="What was stored, summed up.", no_args_is_help=True)
    made.callback()(_only)
    made.command("composition")(composition)
    return made


def _only() -> None:
    """What was stored, summed up."""


def composition(  # noqa: PLR0913  the options of a command
    *,
    judge: Annotated[
        str | None, typer.Option(metavar="NAME[@VERSION]", help="Judge whose scores count. Left out: the one that scored most boundaries.")
    ] = None,
    fleet: Fleets = None,
    run: Runs = None,
    since: Since = None,
    until: Until = None,
    rules: OfRules = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="DIR", help="Folder for the record (JSON), Markdown and HTML.")] = None,
    gate: Annotated[list[str] | None, typer.Option(metavar="FIGURE<=N", help="A condition: unsupported.reasoning<=0.4.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The record on standard output, nothing else.")] = False,
) -> None:
    """What stored summaries consist of: unsupported entries by section and boundary, how long they stay, what was pruned.

    Unsupported means: score below 0.5 by the judge. Runs in which a boundary was enforced stand apart, and beside each share stands the
    same by root source. The published composition analysis stands beside. The views `composition_...` give the same to SQL, except that
    they follow entries by wording alone.

    Example:  winnow report composition --fleet default --judge local --out report
    """
    from winnow.judging.evaluation import composed
    from winnow.judging.evaluation.gates import Condition
    from winnow.storage.composition import Wanted

    terminal = Terminal()
    conditions = [Condition.parse(text) for text in gate or ()]
    make_folder(out)
    wanted = Wanted(fleets=fleet, runs=run, since=utc(since), until=utc(until), rules=None if rules is None else rules.value)
    found = on_database(lambda database: _counted(database, wanted, judge))
    figures = composed.figures_of(found.counts)
    command = command_line(
        "report", "composition", judge=judge, fleet=fleet, run=run, since=since, until=until, rules=wanted.rules, gate=gate
    )
    record = EvaluationRecord(
        id=uuid.uuid4(),
        kind=EvaluationKind.COMPOSITION,
        created_at=datetime.now(UTC),
        title=f"Composition of stored summaries, judged by {found.judge.judge} ({found.judge.version})",
        command=command,
        software=software(),
        data=(found.fingerprint,),
        subject=Subject(kind="summaries", name=", ".join(fleet or ["all fleets"])[:200], parameters={"supported from": 0.5}),
        grader=Grader(kind=GraderKind.MODEL, name=found.judge.judge, version=found.judge.version),
        exposure=Exposure.UNKNOWN,
        metrics=tuple(figures),
        gates=tuple(condition.on(figures) for condition in conditions),
        tables=tuple(composed.tables_of(found.counts)),
        warnings=tuple(_warnings(found)),
        notes=(
            "watched: runs in shadow or annotate mode throughout; enforced: runs in which some boundary was enforced.",
            "A share is the judge's opinion: `winnow eval judge` says how good the judge is.",
        ),
    )
    finish(terminal, record, out, as_json=as_json)


def utc(at: datetime | None) -> datetime | None:
    """A time of the command line, which has no zone, as UTC."""
    return None if at is None else at.replace(tzinfo=UTC) if at.tzinfo is None else at


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """What was counted."""

    judge: "JudgeVersion"
    others: "Sequence[JudgeVersion]"
    counts: "dict[bool, Composition]"
    unscored: int
    fingerprint: DataFingerprint


async def _counted(database: "Database", wanted: "Wanted", asked: str | None) -> _Counted:
    """Read the runs that are wanted, some at a time, and count. Raise `NothingStored`."""
    from winnow.judging.adapters.tokens import o200k
    from winnow.judging.evaluation.composition import compose
    from winnow.storage import composition as stored

    counts: dict[bool, Composition] = {}
    digest = hashlib.sha256()
    number = 0
    tokens = o200k()
    async with database.reading() as tx:
        runs = await stored.runs(tx, wanted)
        judges = await stored.judges(tx, runs)
        judge = _chosen(judges, asked)
        async for block in stored.entries(tx, runs, judge, wanted.rules):
            compose(block, tokens, counts)
            number += len(block)
            for row in block:
                digest.update(json.dumps(row).encode())
        unscored = await stored.unscored(tx, runs, judge, wanted.rules)
    if not number:
        raise NothingStored
    fingerprint = DataFingerprint(
        source="database",
        sha256=digest.hexdigest(),
        of="entries with scores, by fleet, run, summary and n",
        n=number,
        unit="entry",
    )
    others = [one for one in judges if one != judge]
    return _Counted(judge=judge, others=others, counts=counts, unscored=unscored, fingerprint=fingerprint)


def _chosen(judges: "Sequence[JudgeVersion]", asked: str | None) -> "JudgeVersion":
    """The judge that was asked for; of its versions the one with most boundaries. Raise `NothingStored`."""
    name, _, version = (asked or "").partition("@")
    fitting = [one for one in judges if (not name or one.judge == name) and (not version or one.version == version)]
    if fitting:
        return fitting[0]
    if not judges:
        raise NothingStored
    there = ", ".join(f"{one.judge}@{one.version}" for one in judges[:10])
    msg = f"no stored score is by {plain(asked or '', 80)!r}; there are {there}; `winnow rejudge` adds another"
    raise NothingStored(msg)


def _warnings(found: _Counted) -> list[str]:
    """What makes the shares say less than they seem to."""
    said = []
    if found.unscored:
        said.append(f"{found.unscored} summaries have no score by this judge and are left out; `winnow rejudge` scores them.")
    if found.others:
        there = ", ".join(f"{one.judge}@{one.version} ({one.boundaries})" for one in found.others[:10])
        said.append(f"Other judges or versions scored summaries too: {there}.")
    if False not in found.counts:
        said.append("There is no run that was only watched: nothing here can be compared with the published figures.")
    return said
