"""`winnow dead-letters`: what could not be handled, why, and how it is played again."""

import asyncio
import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from winnow.cli.connection import in_transaction, kafka_environment, no_broker, operator
from winnow.cli.exits import ExitCode
from winnow.cli.terminal import Terminal, cell, minute, plain, table
from winnow.contracts.errors import NotFound, WinnowError
from winnow.contracts.vocabulary import Reason

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from winnow.storage.dead_letters import DeadLetter

#: Characters of a body that a person is shown, and a program; --raw gives all bytes.
BODY_CHARS, JSON_CHARS = 2_000, 100_000
#: Letters that are read, published and marked at a time: at 10 MiB each they still fit into memory.
CHUNK = 20


def group() -> typer.Typer:
    """The commands of `winnow dead-letters`."""
    made = typer.Typer(help="Records that could not be handled: why, their bytes, and playing them again.", no_args_is_help=True)
    made.command("list")(listed)
    made.command("show")(show)
    made.command("replay")(replay)
    return made


def listed(
    *,
    topic: Annotated[str | None, typer.Option(help="Of this topic only.")] = None,
    reason: Annotated[Reason | None, typer.Option(help="With this reason only.")] = None,
    fleet: Annotated[str | None, typer.Option(help="Of this fleet only.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Rows.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON a dead letter, without bodies.")] = False,
) -> None:
    """List dead letters, newest first."""
    terminal = Terminal()
    found = in_transaction(lambda tx: _page(tx, topic=topic, reason=reason, fleet=fleet, limit=limit))
    if as_json:
        from winnow.messaging.showing import names

        for letter, run in zip(found, names([letter.letter.run for letter in found]), strict=True):
            terminal.json(_value(letter) | {"run": run})
        return
    rows = table("id", "at", "topic", "offset", "reason", "error", "replays")
    for letter in found:
        new = letter.letter
        values = (
            letter.id,
            minute(letter.created_at),
            new.topic,
            f"{new.partition}/{new.offset}",
            new.reason,
            new.error,
            letter.replays or "",
        )
        rows.add_row(*(cell(value, "dim" if letter.replays else "", most=200) for value in values))
    terminal.show(rows if found else "no dead letters")


def show(
    letter_id: Annotated[int, typer.Argument(metavar="ID", help="Its id, as `winnow dead-letters list` shows it.")],
    *,
    raw: Annotated[
        bool, typer.Option("--raw", help="The body byte for byte, secrets and all; with --json in base64. The audit trail notes it.")
    ] = False,
    because: Annotated[str | None, typer.Option(help="Why --raw is needed; it goes into the audit trail.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON.")] = False,
) -> None:
    """Show one dead letter with its headers and body, secrets masked."""
    import sys

    terminal = Terminal()
    if because is not None and not raw:
        terminal.fail("--because is for --raw", ExitCode.USAGE)
    letter = in_transaction(lambda tx: _get_raw(tx, letter_id, because) if raw else _get(tx, letter_id))
    new = letter.letter
    if raw and as_json:
        headers = [[name, _base64(value)] for name, value in new.headers]
        terminal.json(_value(letter) | {"key": _base64(new.key), "headers": headers, "body": _base64(new.value)})
    elif raw:
        sys.stdout.buffer.write(new.value or b"")
        sys.stdout.flush()
    else:
        _show_masked(terminal, letter, as_json=as_json)


def _show_masked(terminal: Terminal, letter: "DeadLetter", *, as_json: bool) -> None:
    """Everything that is shown by default."""
    from winnow.messaging.showing import names, shown

    new = letter.letter
    [run] = names([new.run])
    value = _value(letter) | {"run": run}
    seen = shown(new.key, new.headers, new.value, body_chars=JSON_CHARS if as_json else BODY_CHARS)
    if as_json:
        said = {"key": seen.key, "headers": [list(pair) for pair in seen.headers], "body": seen.body, "body_is_cut": seen.cut}
        terminal.json(value | said | {"masked": True})
        return
    for name, one in value.items():
        terminal.show(Text.assemble((f"{name:<12}", "cyan"), plain(str(one if one is not None else ""), 1_000)))
    terminal.show(Text.assemble(("key         ", "cyan"), plain(seen.key or "", 500)))
    for name, text in seen.headers:
        terminal.show(Text.assemble(("header      ", "cyan"), plain(f"{name}: {text}", 1_000)))
    if seen.more_headers:
        terminal.show(Text.assemble(("header      ", "cyan"), f"{seen.more_headers} more"))
    terminal.show(Text.assemble(("body        ", "cyan"), f"{seen.size} bytes, secrets masked"))
    terminal.show(plain(seen.body + (" …" if seen.cut else ""), BODY_CHARS + 2))


def replay(
    ids: Annotated[
        list[int] | None, typer.Argument(metavar="[ID...]", help="These dead letters; left out: those that the options choose.")
    ] = None,
    *,
    topic: Annotated[str | None, typer.Option(help="All of this topic.")] = None,
    reason: Annotated[Reason | None, typer.Option(help="All with this reason.")] = None,
    fleet: Annotated[str | None, typer.Option(help="All of this fleet.")] = None,
    because: Annotated[str | None, typer.Option(help="Why; it goes into the audit trail.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Also what was replayed before.")] = False,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="At most so many.")] = 1_000,
) -> None:
    """Publish original bytes and headers to their topic again, oldest first, once their cause is mended.

    What is still bad becomes a dead letter again, at its new offset. A letter that cannot be published is named; the rest goes on.
    """
    terminal = Terminal()
    if not ids and topic is None and reason is None and fleet is None:
        terminal.fail("say which: ids, or --topic, --reason, --fleet", ExitCode.USAGE)
    environment = kafka_environment()
    if ids:
        chosen = sorted(set(ids))[:limit]
    else:
        found = in_transaction(lambda tx: _page(tx, topic=topic, reason=reason, fleet=fleet, limit=limit))
        chosen = sorted(letter.id for letter in found if again or letter.replays == 0)
    done = failed = 0
    for start in range(0, len(chosen), CHUNK):
        chunk = chosen[start : start + CHUNK]
        letters = [in_transaction(lambda tx, one=one: _get(tx, one)) for one in chunk]  # type: ignore[misc]  # the loop's id, bound now
        errors = asyncio.run(_publish(letters, environment))
        sent = [letter for letter, error in zip(letters, errors, strict=True) if error is None]
        in_transaction(lambda tx, sent=sent: _mark(tx, sent, because))  # type: ignore[misc]  # the same
        done += len(sent)
        for letter, error in zip(letters, errors, strict=True):
            if error is not None:
                failed += 1
                terminal.error(f"dead letter {letter.id}: {error}")
    terminal.show(f"replayed {done} of {len(chosen)} dead letters")
    if failed:
        raise SystemExit(int(ExitCode.FAILURE))


async def _publish(letters: "list[DeadLetter]", environment: dict[str, str]) -> list[Exception | None]:
    """Publish each letter as it was. Raise `Unreachable` or `BrokerRefuses` where no broker lets us in."""
    from aiokafka import AIOKafkaProducer
    from aiokafka.errors import KafkaError

    from winnow.cli.settings import kafka_settings
    from winnow.messaging.broker import producer_options

    settings = kafka_settings(environment)
    producer = AIOKafkaProducer(**producer_options(settings, service="cli", idempotent=False))
    try:
        await producer.start()
    except KafkaError as exc:
        await producer.stop()
        raise await no_broker(settings, exc) from exc
    errors: list[Exception | None] = []
    try:
        for letter in letters:
            try:
                await _publish_one(producer, letter)
                errors.append(None)
            except (KafkaError, WinnowError) as exc:
                errors.append(exc)
    finally:
        await producer.stop()
    return errors


async def _publish_one(producer: Any, letter: "DeadLetter") -> None:  # noqa: ANN401  aiokafka ships no annotations
    """Send one record and wait for its confirmation: a replay by hand is short, and order matters more than speed."""
    from winnow.messaging.deadletters import NotReplayable

    new = letter.letter
    if new.key is None and new.value is None:
        raise NotReplayable
    # Without a key a record goes back to its partition; with one it finds it by the key, also where there are more partitions now.
    partition = new.partition if new.key is None else None
    await producer.send_and_wait(new.topic, value=new.value, key=new.key, headers=list(new.headers), partition=partition)


async def _page(tx: "AsyncConnection", *, topic: str | None, reason: Reason | None, fleet: str | None, limit: int) -> "list[DeadLetter]":
    from winnow.storage import dead_letters

    return await dead_letters.page(tx, topic=topic, reason=reason, fleet=fleet, limit=limit)


async def _get(tx: "AsyncConnection", letter_id: int) -> "DeadLetter":
    from winnow.storage import dead_letters

    try:
        return await dead_letters.get(tx, letter_id)
    except NotFound:
        msg = f"there is no dead letter {letter_id}; `winnow dead-letters list` lists them"
        raise NotFound(msg) from None


async def _get_raw(tx: "AsyncConnection", letter_id: int, because: str | None) -> "DeadLetter":
    """The letter, and a row of the audit trail that says who took its bytes as they are."""
    from winnow.storage import audit

    letter = await _get(tx, letter_id)
    details = {"dead_letter": letter.id, "topic": letter.letter.topic, "bytes": len(letter.letter.value or b"")}
    await audit.add(
        tx, action="dead_letter.raw", by=operator(), now=datetime.now(UTC), fleet=letter.letter.fleet, because=because, details=details
    )
    return letter


async def _mark(tx: "AsyncConnection", letters: "list[DeadLetter]", because: str | None) -> None:
    """They were published again: note it, and who did it."""
    from winnow.storage import audit, dead_letters

    now = datetime.now(UTC)
    await dead_letters.mark_replayed(tx, [letter.id for letter in letters], now=now)
    for letter in letters:
        details = {"dead_letter": letter.id, "topic": letter.letter.topic, "reason": letter.letter.reason}
        await audit.add(
            tx, action="dead_letter.replay", by=operator(), now=now, fleet=letter.letter.fleet, because=because, details=details
        )


def _value(letter: "DeadLetter") -> dict[str, Any]:
    """The JSON form of a dead letter, without its content."""
    new = letter.letter
    return {
        "id": letter.id,
        "at": letter.created_at.isoformat(),
        "topic": new.topic,
        "partition": new.partition,
        "offset": new.offset,
        "fleet": new.fleet,
        "run": new.run,
        "reason": new.reason.value,
        "error": new.error,
        "service": new.service,
        "attempts": new.attempts,
        "bytes": len(new.value or b""),
        "replays": letter.replays,
        "replayed_at": letter.replayed_at.isoformat() if letter.replayed_at else None,
    }


def _base64(data: bytes | None) -> str | None:
    """Bytes for JSON."""
    return None if data is None else base64.b64encode(data).decode()
