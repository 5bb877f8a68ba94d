"""`winnow fleet`: what may happen to a fleet's boundaries."""

import math
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
    from collections.abc import Mapping

    from sqlalchemy.ext.asyncio import AsyncConnection

    from winnow.storage.fleets import Fleet, OperatingPoint

#: The judge that named thresholds belong to.
LOCAL = "local"

Name = Annotated[str, typer.Argument(metavar="FLEET", help="The fleet.")]
Because = Annotated[str, typer.Option(help="Why; it goes into the audit log.")]


def _finite(tau: float | None) -> float | None:
    """Refuse what is no number: nothing is below or above it, so no range does."""
    if tau is not None and not math.isfinite(tau):
        raise typer.BadParameter("must be a number from 0 to 1")
    return tau


def group() -> typer.Typer:
    """The commands of `winnow fleet`."""
    made = typer.Typer(help="A fleet's operating point, and holds.", no_args_is_help=True)
    made.command("show")(show)
    made.command("set-mode")(set_mode)
    made.command("points")(points)
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


def set_mode(  # noqa: PLR0913  the options of a command
    name: Name,
    mode: Annotated[Mode, typer.Argument(help="The most that may happen: shadow, annotate or enforce.")],
    *,
    tau: Annotated[
        float | None,
        typer.Option(min=0.0, max=1.0, callback=_finite, help="Keep an entry if its score is at least this; left out: as it is."),
    ] = None,
    point: Annotated[
        str | None, typer.Option("--point", metavar="NAME", help="A named threshold of the local judge (`winnow fleet points`).")
    ] = None,
    judge: Annotated[str | None, typer.Option(help="Judge; left out: as it is.")] = None,
    require_certificate: Annotated[
        bool | None, typer.Option("--require-certificate/--no-certificate", help="Hold without a valid certificate; left out: as it is.")
    ] = None,
    hold_if_monitor_stale: Annotated[
        bool | None, typer.Option("--hold-if-stale/--no-hold-if-stale", help="Hold while the monitor is silent; left out: as it is.")
    ] = None,
    prune_stale: Annotated[
        bool | None,
        typer.Option("--prune-stale/--keep-stale", help="Prune what is listed as open although it was done; left out: as it is."),
    ] = None,
    because: Because = "",
) -> None:
    """Set a new operating point; boundaries that come in from now on use it."""
    from winnow.storage import fleets

    if point is not None:
        if tau is not None or judge not in {None, LOCAL}:
            Terminal().fail(
                "--point names a threshold of the local judge: give it without --tau and without another --judge", ExitCode.USAGE
            )
        tau, judge = _named(point), LOCAL

    async def work(tx: "AsyncConnection") -> "OperatingPoint":
        now = datetime.now(UTC)
        known = (await fleets.load(tx, [name])).get(name)
        if known is None:
            msg = f"there is no fleet {plain(name, 80)!r}; `winnow fleet show` lists them"
            raise NotFound(msg)
        wanted = {
            "tau": tau,
            "judge": judge,
            "require_certificate": require_certificate,
            "hold_if_monitor_stale": hold_if_monitor_stale,
            "prune_stale": prune_stale,
        }
        changes: dict[str, Any] = {field: value for field, value in wanted.items() if value is not None}
        wished = replace(known.operating_point.point, mode=mode, **changes)
        why = ", ".join(part for part in (because, f"point {point}" if point else "") if part)
        return await fleets.set_point(tx, name, wished, by=operator(), because=why or None, now=now)

    made = in_transaction(work)
    Terminal().show(f"fleet {name}: operating point {made.id}, mode {made.point.mode}, tau {made.point.tau:g}, judge {made.point.judge}")


def points(*, as_json: Annotated[bool, typer.Option("--json", help="One line of JSON a point.")] = False) -> None:
    """Named thresholds of the local judge that ships with this version.

    `default` is the one that its data suggest; `published-recall` the one at which it has the recall of the published judge on decisions
    and open items (.642): the published gains were made by a judge that prunes far more than sources justify.
    """
    terminal = Terminal()
    rows = table("point", "judge", "tau")
    for name, tau in _points().items():
        if as_json:
            terminal.json({"point": name, "judge": LOCAL, "tau": tau})
        rows.add_row(cell(name), cell(LOCAL), cell(f"{tau:g}"))
    if not as_json:
        terminal.show(rows)


def hold(name: Name, *, because: Because) -> None:
    """Hold a fleet: nothing is pruned until it is released; verdicts are still returned."""
    from winnow.storage import fleets

    async def work(tx: "AsyncConnection") -> bool:
        await _known(tx, name)
        return await fleets.hold(tx, name, by=operator(), because=because, now=datetime.now(UTC))

    done = in_transaction(work)
    Terminal().show(f"fleet {name} is held" if done else f"fleet {name} was held already; the first reason stays")


def _points() -> "Mapping[str, float]":
    """The thresholds that the shipped model names."""
    from winnow.judging.model import shipped

    return shipped().points


def _named(point: str) -> float:
    """The threshold of that name. Raise `NotFound`."""
    found = _points().get(point)
    if found is None:
        msg = f"there is no point {plain(point, 80)!r}; there are {', '.join(_points())}"
        raise NotFound(msg)
    return found


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
        "prune_stale": point.prune_stale,
        "held_since": fleet.held_since.isoformat() if fleet.held_since else None,
        "held_because": fleet.held_because,
    }
