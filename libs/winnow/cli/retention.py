"""`winnow retention`: drop what is older than it need be."""

from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.cli.connection import in_transaction
from winnow.cli.terminal import Terminal

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from winnow.storage.retention import Kept


def retention(
    *,
    history: Annotated[int, typer.Option(min=1, help="Days of boundaries, in whole months; partitions are dropped.")] = 365,
    outputs: Annotated[int, typer.Option(min=1, help="Days of stored stage answers: what a resubmission is answered with.")] = 365,
    outbox: Annotated[int, typer.Option(min=1, help="Days of events that were sent.")] = 7,
    dead_letters: Annotated[int, typer.Option(min=1, help="Days of dead letters.")] = 90,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON.")] = False,
) -> None:
    """Apply the retention once: drop old partitions, purge what was sent, collect originals that nothing refers to.

    Safe at any time and from several machines; run it once a day.
    """
    from winnow.storage import retention as stored

    policy = stored.Policy(
        history=timedelta(days=history),
        outputs=timedelta(days=outputs),
        outbox=timedelta(days=outbox),
        dead_letters=timedelta(days=dead_letters),
    )

    async def work(tx: "AsyncConnection") -> "Kept":
        return await stored.apply(tx, policy, now=datetime.now(UTC))

    removed = asdict(in_transaction(work))
    terminal = Terminal()
    if as_json:
        terminal.json(removed)
        return
    for name, value in removed.items():
        terminal.show(f"{name.replace('_', ' '):<16}{', '.join(value) or 0 if isinstance(value, tuple) else value}")
