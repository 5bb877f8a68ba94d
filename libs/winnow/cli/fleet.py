"""`winnow fleet`: what may happen to a fleet's boundaries."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from winnow.cli import release
from winnow.cli.connection import in_transaction, operator
from winnow.cli.exits import ExitCode
from winnow.cli.terminal import Terminal, cell, minute, plain, table
from winnow.contracts.errors import NotFound
from winnow.contracts.vocabulary import Mode

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from winnow.storage.fleets import Fleet, OperatingPoint

Name = Annotated[str, typer.Argument(metavar="FLEET", help="The fleet.")]
Because = Annotated[str, typer.Option(help="Why; it goes into the audit log.")]


def group() -> typer.Typer:
    """The commands of `winnow fleet`."""
    made = typer.Typer(help="A fleet's operating point, and holds.", no_args_is_help=True)
    made.command("show")(show)
    made.command("set-mode")(set_mode)
    made.command("hold")(hold)
    made.command("release")(release.release)
    return made


def show(
    name: Annotated[str | None, typer.Argument(metavar="[FLEET]", help="Left out: all fleets.")] = None,
    *,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON a fleet.")] = False,
) -> None:
    """Show mode, threshold, judge and hold of one fleet or all."""
    from winnow.storage import fleets

    async def work(tx: "AsyncConnection") -> "list[Fleet]":
        return await fleets.all_fleets(tx) if name is None else list((await fleets.load(tx, [name])).values())

    terminal = Terminal()
    found = in_transaction(work)
    if name is not None and not found:
        terminal.fail(f"there is no fleet {plain(name, 80)!r}; `winnow fleet show` lists them", ExitCode.NOT_FOUND)
    if as_json:
        for fleet in found:
            terminal.json(_value(fleet))
        return
    rows = table("fleet", "mode", "tau", "judge", "assurance", "held")
    for fleet in found:
        point = fleet.operating_point.point
        held = (
            Text("no", style="green")
            if fleet.held_since is None
            else cell(f"since {minute(fleet.held_since)}: {fleet.held_because}", "bold red")
        )
        assurance = [
            "certified" if point.require_certificate else "uncertified",
            "watched" if point.hold_if_monitor_stale else "unwatched",
        ]
        rows.add_row(
            cell(fleet.fleet), cell(point.mode.value, "cyan"), cell(f"{point.tau:g}"), cell(point.judge), cell(", ".join(assurance)), held
        )
    terminal.show(rows if found else "no fleets yet; a fleet is made with its first boundary or key")


def set_mode(
    name: Name,
    mode: Annotated[Mode, typer.Argument(help="The most that may happen: shadow, annotate or enforce.")],
    *,
    tau: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="Keep an entry if its score is at least this; left out: as it is.")
    ] = None,
    judge: Annotated[str | None, typer.Option(help="Judge; left out: as it is.")] = None,
    require_certificate: Annotated[
        bool | None, typer.Option("--require-certificate/--no-certificate", help="Hold without a valid certificate; left out: as it is.")
    ] = None,
    hold_if_monitor_stale: Annotated[
        bool | None, typer.Option("--hold-if-stale/--no-hold-if-stale", help="Hold while the monitor is silent; left out: as it is.")
    ] = None,
    because: Because = "",
) -> None:
    """Set a new operating point; boundaries that come in from now on use it."""
    from winnow.storage import fleets

    async def work(tx: "AsyncConnection") -> "OperatingPoint":
        now = datetime.now(UTC)
        known = (await fleets.load(tx, [name])).get(name)
        if known is None:
            msg = f"there is no fleet {plain(name, 80)!r}; `winnow fleet show` lists them"
            raise NotFound(msg)
        wanted = {"tau": tau, "judge": judge, "require_certificate": require_certificate, "hold_if_monitor_stale": hold_if_monitor_stale}
        changes: dict[str, Any] = {field: value for field, value in wanted.items() if value is not None}
        point = replace(known.operating_point.point, mode=mode, **changes)
        return await fleets.set_point(tx, name, point, by=operator(), because=because or None, now=now)

    made = in_transaction(work)
    Terminal().show(f"fleet {name}: operating point {made.id}, mode {made.point.mode}, tau {made.point.tau:g}, judge {made.point.judge}")


def hold(name: Name, *, because: Because) -> None:
    """Hold a fleet: nothing is pruned until it is released; verdicts are still returned."""
    from winnow.storage import fleets

    async def work(tx: "AsyncConnection") -> bool:
        await _known(tx, name)
        return await fleets.hold(tx, name, by=operator(), because=because, now=datetime.now(UTC))

    done = in_transaction(work)
    Terminal().show(f"fleet {name} is held" if done else f"fleet {name} was held already; the first reason stays")


async def _known(tx: "AsyncConnection", name: str) -> None:
    """Raise `NotFound` where there is no such fleet."""
    from winnow.storage import fleets

    if name not in await fleets.load(tx, [name]):
        msg = f"there is no fleet {plain(name, 80)!r}; `winnow fleet show` lists them"
        raise NotFound(msg)


def _value(fleet: "Fleet") -> dict[str, Any]:
    """The JSON form of a fleet."""
    point = fleet.operating_point.point
    return {
        "fleet": fleet.fleet,
        "operating_point": fleet.operating_point.id,
        "mode": point.mode.value,
        "tau": point.tau,
        "judge": point.judge,
        "require_certificate": point.require_certificate,
        "hold_if_monitor_stale": point.hold_if_monitor_stale,
        "held_since": fleet.held_since.isoformat() if fleet.held_since else None,
        "held_because": fleet.held_because,
    }
