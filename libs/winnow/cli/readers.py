"""`winnow readers`: SQL logins that see one fleet."""

import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.cli.connection import in_transaction, operator
from winnow.cli.terminal import Terminal, cell, minute, table

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from winnow.storage.readers import Reader

#: Bytes of randomness in a password.
PASSWORD_BYTES = 24


def group() -> typer.Typer:
    """The commands of `winnow readers`."""
    made = typer.Typer(help="SQL logins that see the views of one fleet and nothing else.", no_args_is_help=True)
    made.command("create")(create)
    made.command("list")(listed)
    made.command("drop")(drop)
    return made


def create(
    role: Annotated[str, typer.Argument(help="Name of the login role.")],
    *,
    fleet: Annotated[str, typer.Option(help="The fleet that it sees.")] = "default",
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON.")] = False,
) -> None:
    """Make a login role for a fleet, or give an existing reader of that fleet a new password. The password is printed once."""
    from winnow.storage import readers

    password = secrets.token_urlsafe(PASSWORD_BYTES)

    async def work(tx: "AsyncConnection") -> "Reader":
        return await readers.create(tx, fleet, role, password, by=operator(), now=datetime.now(UTC))

    made = in_transaction(work)
    terminal = Terminal()
    if as_json:
        terminal.json({"role": made.role, "fleet": made.fleet, "password": password})
        return
    terminal.note(f"role {made.role} sees fleet {made.fleet}; this is the only time that its password is shown:")
    terminal.show(password)


def listed(*, as_json: Annotated[bool, typer.Option("--json", help="One line of JSON a reader.")] = False) -> None:
    """List readers and their fleets."""
    from winnow.storage import readers

    found = in_transaction(readers.listed)
    terminal = Terminal()
    if as_json:
        for one in found:
            terminal.json({"role": one.role, "fleet": one.fleet, "created_at": one.created_at.isoformat()})
        return
    rows = table("role", "fleet", "created")
    for one in found:
        rows.add_row(cell(one.role), cell(one.fleet), cell(minute(one.created_at)))
    terminal.show(rows if found else "no readers; make one with `winnow readers create`")


def drop(role: Annotated[str, typer.Argument(help="Name of the login role.")]) -> None:
    """Drop a reader's role; it sees nothing from now on."""
    from winnow.storage import readers

    async def work(tx: "AsyncConnection") -> None:
        await readers.drop(tx, role, by=operator(), now=datetime.now(UTC))

    in_transaction(work)
    Terminal().show(f"dropped {role}")
