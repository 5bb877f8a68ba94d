"""`winnow keys`: API keys of the gateway, each bound to a fleet, or to some where people look after several."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any
from uuid import UUID

import typer

from winnow.cli.connection import in_transaction, operator
from winnow.cli.terminal import Terminal, cell, minute, table
from winnow.contracts.access import Role

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from winnow.storage.api_keys import ApiKey

#: Hours that a replaced key goes on working: a day, in which whoever uses it is given the new one.
OVERLAP_H = 24.0
#: Hours of the longest overlap and expiry: a hundred years, far from where dates end.
MOST_H = 100 * 365.25 * 24


def group() -> typer.Typer:
    """The commands of `winnow keys`."""
    made = typer.Typer(help="API keys of the gateway: made, listed, rotated, revoked.", no_args_is_help=True)
    made.command("create")(create)
    made.command("list")(listed)
    made.command("rotate")(rotate)
    made.command("revoke")(revoke)
    return made


def create(
    *,
    fleet: Annotated[
        list[str] | None,
        typer.Option(help="The fleet that the key speaks for, made if it is not there; auditors and operators may have several."),
    ] = None,
    name: Annotated[str, typer.Option(help="What the key is for, so that it can be told from others.")] = "unnamed",
    role: Annotated[Role, typer.Option(help="What it may do: submit, grade, read everything, or operate as well.")] = Role.RUNTIME,
    days: Annotated[float | None, typer.Option(min=0, help="Days until it expires; without it, it does not.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON.")] = False,
) -> None:
    """Make a key. The secret is printed once and kept nowhere."""
    from pydantic import TypeAdapter, ValidationError

    from winnow.contracts.events.base import Fleet
    from winnow.storage import api_keys, fleets

    terminal = Terminal()
    first, *also = dict.fromkeys(fleet or ["default"])
    try:
        TypeAdapter(list[Fleet]).validate_python([first, *also])
    except ValidationError:
        terminal.fail("a fleet's name is 1 to 64 lower-case letters, digits, dots, dashes and underscores")

    async def work(tx: "AsyncConnection") -> "tuple[str, ApiKey]":
        now = datetime.now(UTC)
        await fleets.ensure(tx, [first, *also], default=fleets.Point(), now=now)
        return await api_keys.create(
            tx, first, also=also, name=name, role=role, expires_at=_expiry(now, days), by=operator(), now=now
        )  # fmt: skip

    _tell(terminal, *in_transaction(work), as_json=as_json)


def rotate(
    key_id: Annotated[UUID, typer.Argument(help="The key to replace, as `winnow keys list` shows it.")],
    *,
    overlap_h: Annotated[float, typer.Option("--overlap", min=0, help="Hours that the old key goes on working.")] = OVERLAP_H,
    days: Annotated[float | None, typer.Option(min=0, help="Days until the new key expires; without it, it does not.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON.")] = False,
) -> None:
    """Make a key that may do the same, and let the old one expire. Both work until then; the secret is printed once."""
    from winnow.storage import api_keys

    async def work(tx: "AsyncConnection") -> "tuple[str, ApiKey]":
        now = datetime.now(UTC)
        return await api_keys.rotate(
            tx, key_id, overlap=timedelta(hours=min(overlap_h, MOST_H)), expires_at=_expiry(now, days), by=operator(), now=now
        )  # fmt: skip

    terminal = Terminal()
    _tell(terminal, *in_transaction(work), as_json=as_json)
    terminal.note(f"key {key_id} works for {overlap_h:g} more hours at most")


def listed(
    *,
    fleet: Annotated[str | None, typer.Option(help="Of this fleet only.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON a key.")] = False,
) -> None:
    """List keys, revoked and expired ones included; never their secrets."""
    from winnow.storage import api_keys

    async def work(tx: "AsyncConnection") -> "list[ApiKey]":
        return await api_keys.listed(tx, fleet)

    terminal = Terminal()
    found = in_transaction(work)
    if as_json:
        for key in found:
            terminal.json(_value(key))
        return
    rows = table("key", "fleet", "name", "role", "created", "last used", "expires", "revoked")
    now = datetime.now(UTC)
    for key in found:
        times = (key.created_at, key.last_used_at, key.expires_at, key.revoked_at)
        values = (key.key_id, ", ".join(key.fleets), key.name, key.role, *map(minute, times))
        rows.add_row(*(cell(value, "" if key.alive(now) else "dim") for value in values))
    terminal.show(rows if found else "no keys; make one with `winnow keys create`")


def revoke(
    key_id: Annotated[UUID, typer.Argument(help="The key's id, as `winnow keys list` shows it.")],
    *,
    because: Annotated[str | None, typer.Option(help="Why; it goes into the audit trail.")] = None,
) -> None:
    """Revoke a key for good; requests with it are refused from now on."""
    from winnow.storage import api_keys

    async def work(tx: "AsyncConnection") -> "ApiKey":
        return await api_keys.revoke(tx, key_id, by=operator(), because=because, now=datetime.now(UTC))

    key = in_transaction(work)
    Terminal().show(f"revoked {key.key_id} ({key.name}, fleet {key.fleet})")


def _expiry(now: datetime, days: float | None) -> datetime | None:
    """When a key that is made now expires."""
    return None if days is None else now + timedelta(hours=min(days * 24, MOST_H))


def _tell(terminal: Terminal, secret: str, key: "ApiKey", *, as_json: bool) -> None:
    """Show a new key with its secret, for the only time."""
    if as_json:
        terminal.json(_value(key) | {"secret": secret})
        return
    until = f" until {minute(key.expires_at)}" if key.expires_at else ""
    terminal.note(f"key {key.key_id} ({key.role}) for fleet {', '.join(key.fleets)}{until}; this is the only time that it is shown:")
    terminal.show(secret)


def _value(key: "ApiKey") -> dict[str, Any]:
    """The JSON form of a key."""
    return {
        "key_id": str(key.key_id),
        "fleet": key.fleet,
        "name": key.name,
        "role": key.role.value,
        "also": list(key.also),
        "replaces": str(key.replaces) if key.replaces else None,
        "expires_at": key.expires_at.isoformat() if key.expires_at else None,
        "created_at": key.created_at.isoformat(),
        "last_used_at": key.last_used_at.isoformat() if key.last_used_at else None,
        "revoked_at": key.revoked_at.isoformat() if key.revoked_at else None,
    }
