"""`winnow topics`: the topics of the bus."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.cli.connection import Unreachable, kafka_environment
from winnow.cli.terminal import Terminal, cell, table

if TYPE_CHECKING:
    from winnow.messaging.lag import Lag

#: Seconds that a question about groups is repeated, and between two tries. A fresh Kafka needs half a second.
PATIENCE_S, PAUSE_S = 15.0, 0.5


def group() -> typer.Typer:
    """The commands of `winnow topics`."""
    made = typer.Typer(help="The topics of the bus.", no_args_is_help=True)
    made.command("ensure")(ensure)
    made.command("list")(listed)
    made.command("lag")(lag)
    return made


def listed(
    *,
    prefix: Annotated[str, typer.Option(help="Put before every topic name.", envvar="WINNOW_TOPIC_PREFIX")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON a topic.")] = False,
) -> None:
    """List the topics of the registry: key, retention, sizes. Asks no broker."""
    from winnow.contracts.topics import TOPICS

    terminal = Terminal()
    rows = table("topic", "key", "days kept", "largest record", "what")
    for topic in TOPICS:
        name = prefix + topic.name
        if as_json:
            seconds = int(topic.retention.total_seconds())
            terminal.json({"topic": name, "key": topic.key, "retention_s": seconds, "max_record_bytes": topic.max_record_bytes})
        else:
            rows.add_row(*(cell(v) for v in (name, topic.key, topic.retention.days, topic.max_record_bytes, topic.description)))
    if not as_json:
        terminal.show(rows)


def ensure() -> None:
    """Create the topics that are missing and check the others against the registry. Safe at any time, also several times at once."""
    terminal = Terminal()
    environment = kafka_environment()
    for warning in asyncio.run(ensured(environment)):
        terminal.note(warning, style="yellow")
    terminal.show(f"the topics {environment.get('WINNOW_TOPIC_PREFIX', '')}winnow.* are there and fit the registry")


def lag(*, as_json: Annotated[bool, typer.Option("--json", help="One line of JSON a service and topic.")] = False) -> None:
    """Show how many records wait for each service."""
    found = asyncio.run(_lags(kafka_environment()))
    terminal = Terminal()
    rows = table("service", "topic", "records", "by partition")
    for one in found:
        if as_json:
            terminal.json({"service": one.service, "topic": one.topic, "records": one.records, "by_partition": list(one.by_partition)})
        else:
            waiting = ", ".join(f"{n}: {records}" for n, records in enumerate(one.by_partition) if records)
            rows.add_row(cell(one.service), cell(one.topic), cell(one.records, "yellow" if one.records else ""), cell(waiting, "dim"))
    if not as_json:
        terminal.show(rows)


async def _lags(environment: Mapping[str, str]) -> "list[Lag]":
    """Read all lags. Raise `Unreachable` where no broker answers."""
    from aiokafka.errors import KafkaConnectionError, KafkaError

    from winnow.cli.settings import kafka_settings
    from winnow.messaging.lag import LagReader

    settings = kafka_settings(environment)
    until = asyncio.get_running_loop().time() + PATIENCE_S
    while True:
        try:
            async with LagReader(settings) as reader:
                return await reader.read()
        except KafkaError as exc:
            # A fresh broker makes its offsets topic with the first question about a group, and has no coordinator until then.
            if exc.retriable and not isinstance(exc, KafkaConnectionError) and asyncio.get_running_loop().time() < until:
                await asyncio.sleep(PAUSE_S)
                continue
            msg = f"the broker at {settings.kafka_bootstrap_servers} does not answer ({type(exc).__name__}); see whether it runs"
            raise Unreachable(msg) from exc


async def ensured(environment: Mapping[str, str]) -> list[str]:
    """Create and check the topics of the bus that `environment` names; return what is worth a warning.

    Raises:
        TopicMismatch: a topic does not fit the registry; the text says which and what to do.
        Unreachable: no broker answers.
        BadSetting: a variable has a value that it cannot have.
    """
    from aiokafka.errors import KafkaError

    from winnow.cli.settings import kafka_settings
    from winnow.messaging.topics import ensure_topics
    from winnow.telemetry import Telemetry

    settings = kafka_settings(environment)
    try:
        findings = await ensure_topics(settings, Telemetry.plain("cli"))
    except KafkaError as exc:
        msg = f"the broker at {settings.kafka_bootstrap_servers} does not answer ({type(exc).__name__}); see whether it runs"
        raise Unreachable(msg) from exc
    return [f"{finding.topic}: {finding.problem}" for finding in findings]
