"""`winnow release`: a person ends a hold, and says why."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.cli.connection import in_transaction, operator
from winnow.cli.terminal import Terminal, plain
from winnow.contracts.errors import NotFound

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from winnow.storage.alarms import Released


def release(
    fleet: Annotated[str, typer.Argument(metavar="FLEET", help="The fleet.")],
    *,
    because: Annotated[str, typer.Option(help="Why; it goes into the audit log and the alert.")],
) -> None:
    """Release a fleet: its own mode counts from the next boundary on, and streams that had alarmed begin a new epoch.

    A new epoch has a smaller share of the error budget, so an alarm that is released again and again takes ever more evidence. Certificates
    that the alarm revoked stay revoked.
    """
    from winnow.storage import alarms, fleets

    async def work(tx: "AsyncConnection") -> "Released":
        if fleet not in await fleets.load(tx, [fleet]):
            msg = f"there is no fleet {plain(fleet, 80)!r}; `winnow fleet show` lists them"
            raise NotFound(msg)
        return await alarms.release(tx, fleet, by=operator(), because=because, webhook=False, now=datetime.now(UTC))

    done = in_transaction(work)
    if not done.released:
        Terminal().show(f"fleet {fleet} was not held")
        return
    Terminal().show(f"fleet {fleet} is released" + (f"; new epochs of {', '.join(done.streams)}" if done.streams else ""))
