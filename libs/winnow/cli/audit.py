"""`winnow audit`: who did what, when and why."""

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from winnow.cli.connection import in_transaction
from winnow.cli.terminal import Terminal, cell, minute, table

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from winnow.storage.audit import Entry


def audit(
    fleet: Annotated[str | None, typer.Option("--fleet", help="One fleet; left out: all, and what concerns the installation.")] = None,
    *,
    action: Annotated[str | None, typer.Option(help="One action (fleet.hold), or one kind (fleet, key, erase, certificate).")] = None,
    before: Annotated[int | None, typer.Option(min=1, help="Only entries before this number: the next page.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=500, help="How many.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON an entry.")] = False,
) -> None:
    """List the audit trail, newest first: actions of operators and services. It is append-only: nothing of Winnow can change it."""
    from winnow.storage import audit as trail

    async def work(tx: "AsyncConnection") -> "list[Entry]":
        return await trail.page(tx, fleet=fleet, action=action, before_id=before, limit=limit)

    found, terminal = in_transaction(work), Terminal()
    if as_json:
        for entry in found:
            terminal.json(_value(entry))
        return
    rows = table("number", "at", "fleet", "action", "who", "why", "outcome", "details")
    for entry in found:
        failed = entry.outcome.value == "failed"
        details = json.dumps(dict(entry.details), ensure_ascii=False) if entry.details else ""
        values = (entry.id, minute(entry.at), entry.fleet, entry.action, entry.actor, entry.because, entry.outcome.value, details)
        rows.add_row(*(cell(value, "red" if failed else "", most=200) for value in values))
    terminal.show(rows if found else "nothing was done yet")


def _value(entry: "Entry") -> dict[str, Any]:
    """The JSON form of an entry."""
    return {
        "id": entry.id,
        "at": entry.at.isoformat(),
        "fleet": entry.fleet,
        "action": entry.action,
        "actor": entry.actor,
        "because": entry.because,
        "outcome": entry.outcome.value,
        "details": dict(entry.details),
    }
