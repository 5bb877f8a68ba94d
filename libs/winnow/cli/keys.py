"""`winnow keys`: API keys of the gateway, each bound to one fleet."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from winnow.cli.connection import in_transaction, operator
from winnow.cli.terminal import Terminal, cell, minute, table

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from winnow.storage.api_keys import ApiKey


class Role(StrEnum):
    """Who uses a key, as `winnow.storage.api_keys` knows it."""

    RUNTIME = "runtime"
    GRADER = "grader"
    OPERATOR = "operator"


def group() -> typer.Typer:
    """The commands of `winnow keys`."""
    made = typer.Typer(help="API keys of the gateway, each bound to one fleet.", no_args_is_help=True)
    made.command("create")(create)
    made.command("list")(listed)
    made.command("revoke")(revoke)
    return made


def create(
    *,
    fleet: Annotated[str, typer.Option(help="The fleet that the key speaks for; made if it is not there.")] = "default",
    name: Annotated[str, typer.Option(help="What the key is for, so that it can be told from others.")] = "unnamed",
    role: Annotated[Role, typer.Option(help="Who uses it.")] = Role.RUNTIME,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON.")] = False,
) -> None:
    """Make a key. The secret is printed once and kept nowhere."""
    from pydantic import TypeAdapter, ValidationError

    from winnow.contracts.events.base import Fleet
    from winnow.storage import api_keys, fleets

    terminal = Terminal()
    try:
        TypeAdapter(Fleet).validate_python(fleet)
    except ValidationError:
        terminal.fail("a fleet's name is 1 to 64 lower-case letters, digits, dots, dashes and underscores")

    async def work(tx: "AsyncConnection") -> "tuple[str, ApiKey]":
        now = datetime.now(UTC)
        await fleets.ensure(tx, [fleet], default=fleets.Point(), now=now)
        return await api_keys.create(tx, fleet, name=name, role=role.value, by=operator(), now=now)

    secret, key = in_transaction(work)
    if as_json:
        terminal.json(_value(key) | {"secret": secret})
        return
    terminal.note(f"key {key.key_id} for fleet {fleet}; this is the only time that it is shown:")
    terminal.show(secret)


def listed(
    *,
    fleet: Annotated[str | None, typer.Option(help="Of this fleet only.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON a key.")] = False,
) -> None:
    """List keys, revoked ones included; never their secrets."""
    from winnow.storage import api_keys

    async def work(tx: "AsyncConnection") -> "list[ApiKey]":
        return await api_keys.listed(tx, fleet)

    terminal = Terminal()
    found = in_transaction(work)
    if as_json:
        for key in found:
            terminal.json(_value(key))
        return
    rows = table("key", "fleet", "name", "role", "created", "last used", "revoked")
    for key in found:
        style = "dim" if key.revoked_at else ""
        values = (key.key_id, key.fleet, key.name, key.role, minute(key.created_at), minute(key.last_used_at), minute(key.revoked_at))
        rows.add_row(*(cell(value, style) for value in values))
    terminal.show(rows if found else "no keys; make one with `winnow keys create`")


def revoke(key_id: Annotated[UUID, typer.Argument(help="The key's id, as `winnow keys list` shows it.")]) -> None:
    """Revoke a key for good; requests with it are refused from now on."""
    from winnow.storage import api_keys

    async def work(tx: "AsyncConnection") -> "ApiKey":
        return await api_keys.revoke(tx, key_id, by=operator(), now=datetime.now(UTC))

    key = in_transaction(work)
    Terminal().show(f"revoked {key.key_id} ({key.name}, fleet {key.fleet})")


def _value(key: "ApiKey") -> dict[str, Any]:
    """The JSON form of a key."""
    return {
        "key_id": str(key.key_id),
        "fleet": key.fleet,
        "name": key.name,
        "role": key.role,
        "created_at": key.created_at.isoformat(),
        "last_used_at": key.last_used_at.isoformat() if key.last_used_at else None,
        "revoked_at": key.revoked_at.isoformat() if key.revoked_at else None,
    }
