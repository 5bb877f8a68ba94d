"""`winnow rejudge`: stored boundaries scored again, by another judge or version, beside what was committed."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.cli.connection import in_transaction, on_database, operator
from winnow.cli.exits import ExitCode
from winnow.cli.report import Fleets, OfRules, Runs, utc
from winnow.cli.terminal import Terminal
from winnow.contracts.errors import Permanent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.ext.asyncio import AsyncConnection

    from winnow.cli.rejudging import Done
    from winnow.judging.port import Judge
    from winnow.storage.rejudging import Pending

#: Bytes of a token, where only bytes are known: 3.32 characters on the development set; other languages have more bytes a character.
BYTES_PER_TOKEN = 3.3


class NotRejudged(Permanent):
    """Some boundaries could not be judged again; the text above says why, and the same command tries them once more."""


def rejudge(  # noqa: PLR0913  the options of a command
    *,
    judge: Annotated[
        str | None, typer.Option(metavar="NAME", help="The judge: local, or one of WINNOW_JUDGES. With --pipeline left out: each fleet's.")
    ] = None,
    pipeline: Annotated[bool, typer.Option("--pipeline", help="Run them through a whole pipeline of their own and compare.")] = False,
    work: Annotated[
        Path | None, typer.Option(metavar="DIR", help="--pipeline: folder of the rerun; with it, a rerun that was stopped goes on.")
    ] = None,
    tau: Annotated[float | None, typer.Option(min=0.0, max=1.0, help="--pipeline: another threshold.")] = None,
    into_database: Annotated[
        str | None, typer.Option(metavar="URL", help="--pipeline: a new, empty database. Left out: one is started here.")
    ] = None,
    into_kafka: Annotated[
        str | None, typer.Option(metavar="SERVERS", help="--pipeline: a broker; the rerun's topics get a prefix. Left out: one is started.")
    ] = None,
    show: Annotated[int, typer.Option(min=0, help="--pipeline: boundaries that differ, listed at most.")] = 20,
    fleet: Fleets = None,
    run: Runs = None,
    since: Annotated[datetime | None, typer.Option(help="Boundaries since then (UTC).")] = None,
    until: Annotated[datetime | None, typer.Option(help="Boundaries before then (UTC).")] = None,
    rules: OfRules = None,
    limit: Annotated[int | None, typer.Option(min=1, help="The most boundaries to judge now.")] = None,
    per_minute: Annotated[float, typer.Option(min=0.1, help="Boundaries a minute, for remote judges.")] = 60.0,
    timeout: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="The most that one boundary may take.")] = 60.0,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say how much there is to do and what it may cost; ask no judge.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before a remote judge is paid.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON with the counts.")] = False,
) -> None:
    """Score stored boundaries again, from their originals, with another judge or version. Nothing that was committed changes.

    The new scores stand beside the old ones (`scores`, `composition_entries`, `winnow report composition --judge`). A boundary that this
    version of the judge has scored is left alone, so that a command that was stopped goes on where it was. Boundaries whose originals are
    gone, or in which this version finds other entries than were stored, are counted and left out; the exit code is then 1.

    With --pipeline, runs go whole through retriever, judge and pruner of a Winnow of its own (another database and broker, no webhook), and
    what it makes of them is compared with what was committed: outcomes, decisions, scores, bytes. Nothing reaches an agent.

    Example:  winnow rejudge --judge jev --fleet default --since 2026-11-01 --dry-run
              winnow rejudge --pipeline --fleet default --work rerun/
    """
    if pipeline:
        from winnow.cli import pipeline as other

        chosen = other.Chosen(
            fleets=fleet, runs=run, since=utc(since), until=utc(until), rules=None if rules is None else rules.value, limit=limit,
            judge=judge, tau=tau, work=work, database=into_database, kafka=into_kafka, dry_run=dry_run, yes=yes, show=show,
            as_json=as_json,
        )  # fmt: skip
        other.rerun(chosen)
        return
    from winnow.cli.evaluating import Progress, closing
    from winnow.cli.judges import input_price, named, registered
    from winnow.cli.rejudging import Done, Work
    from winnow.storage.rejudging import Where

    terminal = Terminal()
    if judge is None:
        terminal.fail("say which judge: --judge NAME; or --pipeline for all of it", ExitCode.USAGE)
    judges = registered()
    subject = named(judges, judge)
    where = Where(fleets=fleet, since=utc(since), until=utc(until), runs=run, rules=None if rules is None else rules.value)
    job = Work(judge=subject, where=where, per_minute=per_minute, timeout_s=timeout)
    pending = on_database(job.pending)
    number = pending.boundaries if limit is None else min(limit, pending.boundaries)
    (terminal.note if as_json else terminal.show)(_estimate(subject, pending, number, input_price(judge)))
    done = Done()
    if number and not dry_run:
        if subject.capabilities.remote and terminal.interactive and not yes and not typer.confirm("Ask it?"):
            return
        done = on_database(lambda database: closing(judges, job.run(database, Progress(terminal), number)))
        in_transaction(lambda tx: _audited(tx, fleet, subject, done))
    if not dry_run:
        _report(terminal, subject, done, as_json=as_json)
    if done.left_out:
        raise NotRejudged


async def _audited(tx: "AsyncConnection", fleets: "Sequence[str] | None", judge: "Judge", done: "Done") -> None:
    """A row in the audit trail: scores were added beside those that decided."""
    from winnow.storage import audit

    details = {"judge": judge.id.name, "version": judge.id.version, "judged": done.judged, "scores": done.scores}
    concerned: Sequence[str | None] = fleets or [None]
    for one in concerned:
        await audit.add(tx, action="rejudge", by=operator(), now=datetime.now(UTC), fleet=one, details=details)


def _estimate(judge: "Judge", pending: "Pending", number: int, price: float | None) -> str:
    """How much there is to do, and what it may cost."""
    text = f"{pending.boundaries} boundaries ({pending.entries} entries) have no score by {judge.id.name} ({judge.id.version})"
    if number < pending.boundaries:
        text += f"; {number} of them are judged now"
    if not judge.capabilities.remote or not pending.boundaries:
        return text + "."
    tokens = pending.request_bytes * number / pending.boundaries / BYTES_PER_TOKEN
    cost = (
        "; what they cost is not known (set price_input of the judge)"
        if price is None
        else f", about {tokens * price / 1e6:.2f} US dollars"
    )
    return f"{text}: at most about {tokens / 1e6:.2f} million input tokens{cost}."


def _report(terminal: Terminal, judge: "Judge", done: "Done", *, as_json: bool) -> None:
    """What became of the boundaries."""
    if as_json:
        terminal.json(
            {
                "judge": judge.id.name,
                "version": judge.id.version,
                "judged": done.judged,
                "scores": done.scores,
                "left_out": dict(sorted(done.left_out.items())),
                "input_tokens": done.input_tokens,
                "cost_usd": None if done.cost_usd is None else float(done.cost_usd),
            }
        )
        return
    text = f"{done.judged} boundaries judged again, {done.scores} scores stored."
    if judge.capabilities.remote:
        tokens = "an unknown number of" if done.input_tokens is None else str(done.input_tokens)
        cost = "unknown" if done.cost_usd is None else f"{done.cost_usd:.4f} US dollars"
        text += f" Input: {tokens} tokens; cost: {cost}."
    terminal.show(text)
    for reason, number in sorted(done.left_out.items()):
        terminal.error(f"{number} boundaries left out: {reason}")
