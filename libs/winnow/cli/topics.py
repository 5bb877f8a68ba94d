"""`winnow topics`: the topics of the bus."""

import asyncio
from collections.abc import Mapping
from typing import Annotated

import typer

from winnow.cli import lag
from winnow.cli.connection import kafka_environment, no_broker
from winnow.cli.terminal import Terminal, cell, table


def group() -> typer.Typer:
    """The commands of `winnow topics`."""
    made = typer.Typer(help="The topics of the bus.", no_args_is_help=True)
    made.command("ensure")(ensure)
    made.command("list")(listed)
    made.command("lag")(lag.lag)
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


async def ensured(environment: Mapping[str, str]) -> list[str]:
    """Create and check the topics of the bus that `environment` names; return what is worth a warning.

    Raises:
        TopicMismatch: a topic does not fit the registry; the text says which and what to do.
        Unreachable, BrokerRefuses: no broker answers, or none lets us in.
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
        raise await no_broker(settings, exc) from exc
    return [f"{finding.topic}: {finding.problem}" for finding in findings]
