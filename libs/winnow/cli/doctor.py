"""`winnow doctor`: looks at everything, changes nothing, and says what to do."""

import asyncio
import logging
import os
from typing import Annotated

import typer
from rich.text import Text

from winnow.cli.checkup.findings import Finding, Level, error, exit_code, guarded, note, worst
from winnow.cli.connection import NotConnected, checked_url, kafka_environment, running
from winnow.cli.terminal import Terminal

#: How a level looks on a terminal.
STYLES = {Level.OK: "green", Level.NOTE: "dim", Level.WARNING: "yellow", Level.ERROR: "bold red"}
NOWHERE = "start `winnow up` in another terminal, or set {}"


def doctor(
    *,
    all_: Annotated[bool, typer.Option("--all", "-a", help="Also show what is well.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON a finding, well or not, and one with the worst level.")] = False,
) -> None:
    """Examine this Winnow: broker, topics, groups, lag, database, roles, row-level security, clocks, backlogs, judges, gateway, disk.

    Nothing is changed, no judge is asked anything, and no secret or content is printed. Exit code 0: all is well; 7: it works, and
    something needs a look; 1: something does not work.
    """
    terminal = Terminal()
    # Libraries log, with tracebacks, what is a finding here.
    for noisy in ("aiokafka", "httpx", "asyncio"):
        logging.getLogger(noisy).setLevel(logging.CRITICAL)
    findings = asyncio.run(examined())
    if as_json:
        for finding in findings:
            terminal.json({"level": finding.level.word, "check": finding.check, "found": finding.found, "advice": finding.advice})
        terminal.json({"worst": worst(findings).word, "findings": len(findings)})
    else:
        _show(terminal, findings, everything=all_)
    if code := exit_code(findings):
        raise SystemExit(int(code))


async def examined() -> list[Finding]:
    """All findings, part by part, in the order in which a fault in one explains the next."""
    return [
        finding
        for part in await asyncio.gather(
            guarded("database", _database), guarded("broker", _broker), guarded("gateway", _gateway), guarded("judges", _judges),
            guarded("state", _state),
        )
        for finding in part
    ]  # fmt: skip


async def _database() -> list[Finding]:
    """The database of WINNOW_DATABASE_URL or of the running `winnow up`."""
    from winnow.cli.checkup import database
    from winnow.storage.database import transient
    from winnow.storage.faults import silence, untrusted

    found = running()
    url = os.environ.get("WINNOW_DATABASE_URL") or (found.database_url if found else None)
    if url is None:
        return [error("database", "none is named", NOWHERE.format("WINNOW_DATABASE_URL"))]
    url = checked_url(url)
    try:
        return await database.look(url, _judge_names())
    except Exception as exc:
        if (refused := untrusted(exc)) is not None:
            said, _, advice = str(refused).partition("; ")
            return [error("database", said, advice)]
        if not transient(exc) and not isinstance(exc, OSError):
            raise
        said, _, advice = silence(exc).partition("; ")
        return [error("database", said, f"{advice}; WINNOW_DATABASE_URL says where it is")]


async def _broker() -> list[Finding]:
    """The broker of WINNOW_KAFKA_BOOTSTRAP_SERVERS or of the running `winnow up`."""
    from winnow.cli.checkup import broker
    from winnow.cli.settings import kafka_settings

    try:
        environment = kafka_environment()
    except NotConnected:
        return [error("broker", "none is named", NOWHERE.format("WINNOW_KAFKA_BOOTSTRAP_SERVERS"))]
    if "WINNOW_PARTITIONS" not in environment and running() is not None:
        from winnow.cli.stack import PARTITIONS

        environment = environment | {"WINNOW_PARTITIONS": str(PARTITIONS)}  # what `winnow up` creates
    return await broker.look(kafka_settings(environment))


async def _gateway() -> list[Finding]:
    """The gateway of WINNOW_GATEWAY_URL or of the running `winnow up`."""
    from winnow.cli.checkup import place

    found = running()
    url = os.environ.get("WINNOW_GATEWAY_URL") or (found.gateway_url if found else None)
    return [note("gateway", "none is named", "set WINNOW_GATEWAY_URL to have it looked at")] if url is None else await place.of_gateway(url)


async def _judges() -> list[Finding]:
    """The judges of WINNOW_JUDGES."""
    from winnow.cli.checkup import judges
    from winnow.cli.judges import settings

    return await judges.look(settings())


async def _state() -> list[Finding]:
    """The state folder and its disk."""
    from winnow.cli.checkup import place
    from winnow.embedded import state_dir

    return await asyncio.to_thread(place.of_state, state_dir())


def _judge_names() -> tuple[str, ...]:
    """Names of the judges of this process; of broken settings the look at the judges tells."""
    from winnow.cli.judges import BadJudges, settings
    from winnow.judging.adapters.specs import RESERVED

    try:
        return settings().names
    except BadJudges:
        return RESERVED


def _show(terminal: Terminal, findings: list[Finding], *, everything: bool) -> None:
    """The findings for a person, the worst first."""
    shown = [finding for finding in findings if everything or finding.level > Level.NOTE]
    for finding in sorted(shown, key=lambda one: -one.level):
        style = STYLES[finding.level]
        terminal.show(Text.assemble((f"{finding.level.word:<8}", style), (finding.check, "bold"), f": {finding.found}"))
        if finding.advice:
            terminal.show(Text(f"{'':<8}{finding.advice}", style="dim"))
    counts = {level: sum(finding.level is level for finding in findings) for level in Level}
    well = f"{counts[Level.OK]} well"
    bad = ", ".join(_number(counts[level], level) for level in (Level.ERROR, Level.WARNING, Level.NOTE))
    terminal.show(f"{well}; {bad}" + ("" if everything else " (--all shows everything)"))


def _number(count: int, level: Level) -> str:
    """How many findings of a level there are, in words."""
    return f"{count} {level.word}{'' if count == 1 else 's'}"
