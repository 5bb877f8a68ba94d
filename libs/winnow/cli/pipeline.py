"""The shell of `winnow rejudge --pipeline`: a Winnow of its own is started, fed, compared and stopped."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from winnow import __version__
from winnow.cli.connection import checked_url, database_url, unreachable
from winnow.cli.terminal import Terminal, cell, table
from winnow.contracts.errors import Permanent

if TYPE_CHECKING:
    from winnow.cli.differences import Difference, Summary
    from winnow.cli.rerunning import Changes, Folder
    from winnow.storage.rejudging import Where
    from winnow.storage.reruns import Item


class NotAllRun(Permanent):
    """Some boundaries could not be run again; the text above says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What the command line says."""

    fleets: Sequence[str] | None
    runs: Sequence[str] | None
    since: datetime | None
    until: datetime | None
    rules: str | None
    limit: int | None
    judge: str | None
    tau: float | None
    #: None: a temporary folder, gone at the end.
    work: Path | None
    database: str | None
    kafka: str | None
    dry_run: bool
    yes: bool
    show: int
    as_json: bool


def rerun(chosen: Chosen) -> None:
    """Run it. Raise `NotAllRun` where boundaries were left out."""
    from winnow.cli.rerunning import Changes, Folder, plan_of
    from winnow.storage.rejudging import Where

    terminal = Terminal()
    where = Where(fleets=chosen.fleets, since=chosen.since, until=chosen.until, runs=chosen.runs, rules=chosen.rules)
    changes = Changes(judge=chosen.judge, tau=chosen.tau)
    url = database_url()
    with unreachable():
        items, source, remote = asyncio.run(_looked(url, where, changes))
    items = items if chosen.limit is None else items[: chosen.limit]
    say = terminal.note if chosen.as_json else terminal.show
    say(f"{len(items)} boundaries of {len({(i.key.fleet, i.run) for i in items})} runs go through a pipeline of their own.")
    if remote:
        say(f"They ask remote judges, which cost money: {', '.join(remote)}.")
    if chosen.dry_run or not items:
        return
    if remote and not chosen.yes:
        if not terminal.interactive:
            terminal.fail("say --yes if remote judges may be asked")
        if not typer.confirm("Ask them?"):
            return
    own = chosen.work or Path(tempfile.mkdtemp(prefix="winnow-rerun-"))
    try:
        folder = Folder(own)
        rerun_id = folder.claim(plan_of(where, changes, source, __version__))
        summary = _run(chosen, folder, rerun_id, where, changes, url, terminal)
        _told(terminal, chosen, summary, [one for one in folder.results() if not one.same])
    finally:
        if chosen.work is None:
            shutil.rmtree(own, ignore_errors=True)
    if summary.left_out:
        raise NotAllRun


async def _looked(url: str, where: "Where", changes: "Changes") -> "tuple[list[Item], str, list[str]]":
    """What is to be run, the name of the database (without its password), and the remote judges that would be asked."""
    from winnow.cli.judges import named, registered
    from winnow.storage import fleets, raw, reruns
    from winnow.storage.database import Database

    async with Database(url, pool_size=1, application_name="winnow-cli") as database, database.reading() as tx:
        items = await reruns.listed(tx, where)
        points = await fleets.points(tx, {item.operating_point for item in items})
        name = await raw.fetch_one(tx, "SELECT current_database() || '/' || (SELECT min(created_at) FROM fleets)::text AS name")
    judges = registered()
    asked = {changes.of(point.point).judge for point in points.values()}
    if changes.judge is not None:
        named(judges, changes.judge)
    remote = sorted(one for one in asked if one in judges.by_name and judges.by_name[one].capabilities.remote)
    return items, str(name["name"]) if name else "", remote


def _run(chosen: Chosen, folder: "Folder", rerun_id: str, where: "Where", changes: "Changes", url: str, terminal: Terminal) -> "Summary":
    """Start the other pipeline, run, and stop it."""
    from winnow.cli.evaluating import Progress
    from winnow.cli.rerunning import FLEET, Rerun, environment, free
    from winnow.cli.stack import BrokerKind, Plan, Stack
    from winnow.cli.up import Stopped, stopping_on_signals
    from winnow.storage.database import Database

    if chosen.database is not None:
        with unreachable():
            asyncio.run(free(checked_url(chosen.database), rerun_id))
    state = folder.place / "winnow"
    state.mkdir(mode=0o700, exist_ok=True)
    variables = environment(os.environ, state, database=chosen.database, kafka=chosen.kafka, prefix=f"rerun-{rerun_id}.")
    plan = Plan(state=state, broker=BrokerKind.MESH, ephemeral=chosen.work is None, gateway_port=None, fleet=FLEET)
    stack = Stack(plan, say=lambda text: terminal.note(f"… {text}"), environment=variables)

    async def work() -> "Summary":
        async with Database(url, pool_size=4, application_name="winnow-rerun-source") as source:
            job = Rerun(source=source, there=stack.endpoints, folder=folder, rerun_id=rerun_id, where=where, changes=changes)
            return await job.run(Progress(terminal), chosen.limit)

    try:
        with stopping_on_signals():
            stack.start()
            terminal.note("… running")
            with unreachable():
                return asyncio.run(work())
    except Stopped:
        raise KeyboardInterrupt from None
    finally:
        stack.stop()


def _told(terminal: Terminal, chosen: Chosen, summary: "Summary", differing: "list[Difference]") -> None:
    """What it came to."""
    if chosen.as_json:
        terminal.json(summary.value | {"differing": [one.value for one in differing[: chosen.show]]})
    else:
        _summed(terminal, summary)
        _listed(terminal, [one for one in differing if one.left_out is None][: chosen.show])
    for why, number in sorted(summary.left_out.items()):
        terminal.error(f"{number} boundaries left out: {why}")
    if chosen.work is not None:
        terminal.note(f"every comparison: {chosen.work / 'results.jsonl'}")


def _summed(terminal: Terminal, summary: "Summary") -> None:
    """The sums."""
    differ = summary.boundaries - summary.same - sum(summary.left_out.values())
    terminal.show(f"{summary.boundaries} boundaries, {summary.entries} entries: {summary.same} the same, {differ} differ.")
    for title, pairs in (("outcome", summary.outcomes), ("entries", summary.decisions), ("judge", summary.judges)):
        for (was, now), number in pairs.most_common():
            if was != now:
                terminal.show(f"  {title}: {number} × {was} → {now}")
    if summary.rescored:
        terminal.show(f"  scores: {summary.rescored} entries decided alike have another one, by at most {summary.largest_shift:.3f}")
    for section, number in summary.sections.most_common():
        terminal.show(f"  section {section}: {number} entries decided otherwise")


def _listed(terminal: Terminal, shown: "Sequence[Difference]") -> None:
    """Boundaries that differ."""
    if shown:
        rows = table("fleet", "run", "boundary", "outcome", "kept → pruned", "pruned → kept", "bytes")
        for one in shown:
            pruned = [change.n for change in one.changes if (change.was, change.now) == ("kept", "pruned")]
            kept = [change.n for change in one.changes if (change.was, change.now) == ("pruned", "kept")]
            outcome = one.was if one.was == one.now else f"{one.was} → {one.now}"
            cells = (one.fleet, one.run, one.boundary_id, outcome, pruned or "", kept or "", "same" if one.same_bytes else "differ")
            rows.add_row(*(cell(value, most=120) for value in cells))
        terminal.show(rows)
