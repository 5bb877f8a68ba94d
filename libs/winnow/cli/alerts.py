"""`winnow alerts`: what operators were told, and what Winnow did about it."""

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from winnow.cli.connection import in_transaction
from winnow.cli.terminal import Terminal, cell, minute, one_line, table

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from winnow.contracts.events import Alert
    from winnow.storage.webhooks import Standing


def alerts(
    fleet: Annotated[str | None, typer.Option("--fleet", help="One fleet; left out: all.")] = None,
    *,
    before: Annotated[datetime | None, typer.Option(help="Only those before this time (UTC): the next page.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="How many.")] = 20,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw them over time into an .svg or .png file.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON an alert.")] = False,
) -> None:
    """List alerts, newest first: the evidence with its guarantee class, what was done, and whether the webhook took it."""
    from datetime import UTC

    from winnow.storage import alerts as stored
    from winnow.storage import webhooks

    if plot is not None:
        from winnow.cli.monitor_plot import check

        check(plot)

    async def work(tx: "AsyncConnection") -> "tuple[list[Alert], dict[str, Standing]]":
        found = await stored.page(tx, fleet, before=before.replace(tzinfo=UTC) if before else None, limit=limit)
        return found, await webhooks.standing(tx, [a.alert_id for a in found])

    (found, sent), terminal = in_transaction(work), Terminal()
    if plot is not None:
        from winnow.cli.overview_plot import Moment, timeline

        timeline(plot, [Moment(alert.at.astimezone(UTC), alert.fleet, alert.kind.value) for alert in found])
    if as_json:
        for alert in found:
            terminal.json(alert.model_dump(mode="json") | {"webhook": _delivery(sent.get(str(alert.alert_id)))})
        return
    rows = table("at", "fleet", "kind", "stream", "guarantee", "because", "done", "webhook")
    for alert in found:
        standing = sent.get(str(alert.alert_id))
        rows.add_row(
            cell(minute(alert.at)),
            cell(alert.fleet),
            cell(alert.kind.value, "bold red" if alert.kind.value in {"raised", "held"} else ""),
            cell(alert.stream),
            cell(alert.guarantee.value if alert.guarantee else ""),
            Text(one_line(alert.because, 400)),
            cell(alert.done, most=200),
            cell("" if standing is None else standing.word, "red" if standing is not None and standing.dead else ""),
        )
    terminal.show(rows if found else "no alerts")


def _delivery(standing: "Standing | None") -> dict[str, Any] | None:
    """How the delivery of an alert stands."""
    if standing is None:
        return None
    return {"state": standing.word, "attempts": standing.attempts, "last_status": standing.last_status, "last_error": standing.last_error}
