"""`winnow erase`: forget a run or a fleet."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.cli.connection import in_transaction, operator
from winnow.cli.exits import ExitCode
from winnow.cli.terminal import Terminal, plain

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from winnow.storage.erase import Erased


def erase(
    *,
    fleet: Annotated[str, typer.Option(help="The fleet; without --run all of it is erased.")],
    run: Annotated[str | None, typer.Option(help="This run only.")] = None,
    because: Annotated[str | None, typer.Option(help="Why; it goes into the audit trail.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON.")] = False,
) -> None:
    """Erase a run or a whole fleet: rows, originals, handles, dead letters and queued events. There is no way back.

    Recovering an erased original answers 410 Gone. What is on the bus already leaves it with its retention, at most 7 days later.
    """
    from winnow.contracts.limits import CONTENT_RETENTION_DAYS
    from winnow.storage.erase import erase_fleet, erase_run

    terminal = Terminal()
    what = f"fleet {plain(fleet)}" if run is None else f"run {plain(run)} of fleet {plain(fleet)}"
    if not yes:
        if not terminal.interactive:
            terminal.fail(f"this erases {what} for good; say --yes if that is meant", ExitCode.USAGE)
        typer.confirm(f"Erase {what} for good?", abort=True)

    async def work(tx: "AsyncConnection") -> "Erased":
        now = datetime.now(UTC)
        if run is None:
            return await erase_fleet(tx, fleet, by=operator(), because=because, now=now)
        return await erase_run(tx, fleet, run, by=operator(), because=because, now=now)

    erased = asdict(in_transaction(work))
    if as_json:
        terminal.json({"fleet": fleet, "run": run, **erased})
        return
    terminal.show(f"erased {what}: " + ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in erased.items()))
    terminal.note(f"copies on the bus are gone within {CONTENT_RETENTION_DAYS} days, when the topics' retention has passed")
