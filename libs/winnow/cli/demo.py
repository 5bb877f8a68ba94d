"""`winnow demo`: from nothing to a result, on a real run."""

import asyncio
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.rule import Rule
from rich.text import Text

from winnow.cli.terminal import Terminal, cell, plain, table

if TYPE_CHECKING:
    from winnow.cli.decisions import Shown
    from winnow.cli.endpoints import Endpoints
    from winnow.demo.data import DemoRun
    from winnow.demo.player import Played

#: Seconds between two boundaries where a person watches: enough to read what was pruned. Nowhere else.
PACE_S = 2.0
#: Seconds between two looks at whether everything still runs, while it is left running.
WATCH_S = 0.5

#: What the demo asks the database, with the question in words. Both are views of the SQL API.
QUERIES = (
    (
        "Which sections did the unsupported entries stand in?",
        (
            "SELECT section, entries, unsupported, round(100 * share::numeric, 1) AS percent FROM unsupported_by_section"
            " ORDER BY share DESC, section"
        ),
    ),
    (
        "Where did the entries that were kept get their support from, boundary by boundary?",
        (
            "SELECT boundary_index, root_source, count(*) AS entries FROM entry_history WHERE decision = 'kept'"
            " GROUP BY boundary_index, root_source ORDER BY boundary_index, entries DESC"
        ),
    ),
)


def demo(
    *,
    broker: Annotated[str, typer.Option(help="`mesh`: from a wheel; `kafka`: Apache Kafka, needs Java 17.")] = "mesh",
    keep: Annotated[bool, typer.Option("--keep", help="Leave everything running afterwards, until Ctrl-C.")] = False,
    pace: Annotated[float | None, typer.Option(min=0.0, max=60.0, help="Seconds between boundaries; left out: 2 on a terminal.")] = None,
) -> None:
    """Start a whole Winnow in temporary folders, play three real boundaries through it, and show what it does with them."""
    from winnow.cli.exits import ExitCode
    from winnow.cli.stack import BrokerKind, Plan, Stack
    from winnow.cli.up import Stopped, hurrying, stopping_on_signals, tell
    from winnow.demo import data

    terminal = Terminal()
    if broker not in list(BrokerKind):
        terminal.fail(f"there is no broker {broker!r}; choose from {', '.join(BrokerKind)}", ExitCode.USAGE)
    run = data.load()
    _introduce(terminal, run)
    state = Path(tempfile.mkdtemp(prefix="winnow-demo-"))
    begun = time.monotonic()
    plan = Plan(state=state, broker=BrokerKind(broker), ephemeral=True)
    stack = Stack(plan, say=lambda text: terminal.note(f"… {text}"), environment=os.environ)
    try:
        with stopping_on_signals():
            endpoints = stack.start()
            terminal.note(f"ready after {time.monotonic() - begun:.1f} s")
            asyncio.run(_play(terminal, endpoints, run, PACE_S if pace is None and terminal.interactive else pace or 0.0))
            if keep or (terminal.interactive and typer.confirm("Leave it running, to look around?", default=False)):
                tell(terminal, endpoints, state, ephemeral=True)
                terminal.show(Text.assemble("  They find it with:  ", (f"export WINNOW_STATE_DIR={state}", "bold")))
                while True:
                    time.sleep(WATCH_S)
                    stack.check()
    except Stopped:
        terminal.note("… stopping (again to stop at once)")
    finally:
        with hurrying(stack):
            stack.stop()
        shutil.rmtree(state, ignore_errors=True)
    terminal.note("stopped; nothing is left behind")


def _introduce(terminal: Terminal, run: "DemoRun") -> None:
    """What is about to be seen."""
    terminal.show(
        Rule(Text("Winnow", style="bold")),
        Text(
            "An airline's agent helps a customer who wants her long flights cancelled. Its context fills up three times, and each time a "
            "compressor writes a summary that replaces what happened. Winnow checks every entry of it for a source in the outputs of the "
            "tools, or in the summary before, and removes those that have none."
        ),
        Text(f"A recorded run of {run.origin.repo} ({run.origin.licence}); the judge is local and deterministic.", style="dim"),
    )


async def _play(terminal: Terminal, endpoints: "Endpoints", run: "DemoRun", pace: float) -> None:
    """Play all boundaries and show each."""
    from winnow.client import HttpTransport, WinnowClient
    from winnow.demo.player import play

    # Another run name each time: the same run again would only find the stored results.
    name = f"{run.run}-{secrets.token_hex(2)}"
    last: Played | None = None
    async with WinnowClient(HttpTransport(endpoints.gateway_url, endpoints.api_key), fleet=endpoints.fleet) as client:
        async for played in _paced(play(client, run, name=name, fleet=endpoints.fleet), pace):
            _show(terminal, played, len(run.boundaries))
            last = played
        if last is not None and last.result.candidate_handle:
            _show_recovered(terminal, last, await client.original(last.result.candidate_handle))
    await _show_queries(terminal, endpoints)


async def _paced(boundaries: "AsyncIterator[Played]", pace: float) -> "AsyncIterator[Played]":
    """The same, with a pause after each but the last."""
    previous: Played | None = None
    async for one in boundaries:
        if previous is not None:
            yield previous
            await asyncio.sleep(pace)
        previous = one
    if previous is not None:
        yield previous


def _show(terminal: Terminal, played: "Played", of: int) -> None:
    """One boundary: the candidate with the fate of each entry, and the committed summary."""
    from winnow.cli import decisions

    result, candidate = played.result, played.candidate
    terminal.show(Rule(Text(f"Boundary {candidate.index} of {of}", style="bold")))
    if result.bypassed_because is not None:
        terminal.show(Text(f"the agent goes on with its own candidate: {result.bypassed_because}", style="bold red"))
        return
    before = len(candidate.previous_summary or "")
    spans = f"{len(candidate.history) + len(candidate.retained)} messages" + (
        f" and a previous summary of {before} characters" if before else ""
    )
    terminal.show(
        Text.assemble(("What the compressor wrote", "bold"), f", and what Winnow found in {spans} ({result.elapsed_s:.2f} s):"),
        decisions.rendered(_entries(played), width=terminal.out.width),
        Text.assemble(
            ("What the agent goes on with", "bold"),
            f": {len(result.decisions) - result.pruned} of {len(result.decisions)} entries, ",
            f"{len(result.summary)} of {len(candidate.candidate)} characters",
        ),
        Text(plain(result.summary.rstrip("\n")), style="green"),
    )


def _entries(played: "Played") -> "list[Shown]":
    """The decisions with the texts that they are about: spans are byte offsets into the candidate."""
    from winnow.cli.decisions import Shown

    data = played.candidate.candidate.encode()
    return [
        Shown(
            n=one.n,
            section=one.section,
            text=data[one.span[0] : one.span[1]].decode(errors="replace").rstrip("\r\n"),
            kept=one.decision == "kept",
            score=one.score,
            reason=one.reason.value,
            explanation=one.explanation,
        )
        for one in played.result.decisions
    ]


def _show_recovered(terminal: Terminal, played: "Played", original: bytes) -> None:
    """Nothing is lost: the candidate comes back by its handle."""
    from winnow.contracts.events import sha256

    exact = original == played.candidate.candidate.encode()
    terminal.show(
        Rule(Text("Nothing is lost", style="bold")),
        Text.assemble("The last candidate, asked back by its handle ", (played.result.candidate_handle or "", "cyan"), ":"),
        Text.assemble(
            f"  {len(original)} bytes, SHA-256 {sha256(original)[:16]}…, ",
            ("identical to what the compressor wrote", "bold green") if exact else ("NOT what the compressor wrote", "bold red"),
        ),
    )


async def _show_queries(terminal: Terminal, endpoints: "Endpoints") -> None:
    """The history in SQL."""
    from winnow.cli.database import select
    from winnow.storage.database import Database

    terminal.show(Rule(Text("The history in SQL", style="bold")))
    database = Database(endpoints.database_url, pool_size=1, application_name="winnow-demo")
    try:
        for question, sql in QUERIES:
            columns, rows = await select(database, sql)
            made = table(*columns)
            for row in rows:
                made.add_row(*(cell(value) for value in row))
            terminal.show(Text(question, style="bold"), Text(sql, style="dim"), made, "")
    finally:
        await database.close()
