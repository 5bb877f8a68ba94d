"""Findings of the bus: broker, topics against the registry, groups, lag, and records from the future."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from winnow.cli.checkup.findings import Finding, error, note, ok, warning

if TYPE_CHECKING:
    from winnow.contracts.rights import Right
    from winnow.messaging.groups import Group
    from winnow.messaging.lag import Lag
    from winnow.messaging.settings import KafkaSettings
    from winnow.messaging.topics import Finding as TopicFinding

#: Seconds that the broker may take for the whole look.
LOOK_S = 30.0
#: Seconds that it may take to tell who is in the groups.
GROUPS_S = 5.0
#: Records that wait for a service and are worth a word.
LAG_RECORDS = 1_000
#: Seconds by which a record may be ahead of this machine's clock.
AHEAD_S = 10.0


def of_topics(findings: Sequence["TopicFinding"], number: int) -> list[Finding]:
    """The topics against the registry of `number` topics."""
    from winnow.messaging.topics import Severity

    made = [
        (error if one.severity is Severity.ERROR else warning)(
            f"topic {one.topic}", said, advice or "see the registry: `winnow topics list`"
        )
        for one in findings
        for said, _, advice in [one.problem.partition("; ")]
    ]
    return made or [ok("topics", f"{number}, as the registry says")]


def of_rights(lacking: Sequence["Right"], user: str | None) -> list[Finding]:
    """What the broker's access rules keep from the services, for the user that this command signs in as."""
    from winnow.contracts.rights import refusal

    if not lacking:
        return [ok("broker.rights", "everything that the services do is allowed, as far as the broker tells")]
    said, _, advice = refusal(lacking, user).partition("; ")
    return [error("broker.rights", said, advice)]


def of_lags(lags: Sequence["Lag"], groups: Mapping[tuple[str, str], "Group"], most: int = LAG_RECORDS) -> list[Finding]:
    """What waits for each service, and whether anybody of it is there."""
    found: list[Finding] = []
    for lag in lags:
        check, group = f"lag {lag.service}", groups.get((lag.service, lag.topic))
        said = f"{lag.records} records of {lag.topic} wait"
        if group is not None and group.members == 0:
            made = error if lag.records else warning
            found.append(made(check, f"{said}, and no process of this service is in its group", f"start {lag.service}"))
        elif lag.records > most:
            full = group is not None and group.members >= len(lag.by_partition)
            advice = "each partition has a process already: see why they are slow" if full else f"add processes of {lag.service}"
            found.append(warning(check, said, f"{advice}; `winnow lag --watch` shows whether it shrinks"))
        else:
            found.append(ok(check, said + (f"; {group.members} members" if group is not None else "")))
    return found


def of_clocks(ahead: Sequence[str]) -> list[Finding]:
    """Records that bear a time from the future. A broker does not tell its clock; producers' clocks show in their records."""
    if not ahead:
        return [ok("broker.clock", f"no record is more than {AHEAD_S:.0f} s ahead of this machine's clock")]
    advice = "synchronise the clocks of producers and broker (NTP): latency, lag and retention are reckoned from record times"
    return [warning("broker.clock", f"records of {', '.join(ahead)} are more than {AHEAD_S:.0f} s ahead of this machine's clock", advice)]


async def look(settings: "KafkaSettings") -> list[Finding]:
    """Everything about the broker that `settings` name."""
    from aiokafka.admin import AIOKafkaAdminClient
    from aiokafka.errors import KafkaError

    from winnow.contracts.errors import WinnowError
    from winnow.messaging.reach import told
    from winnow.messaging.settings import TlsFiles

    servers = settings.kafka_bootstrap_servers
    try:
        options = settings.client_options()
    except TlsFiles as exc:
        return [error("broker", str(exc), "mend the file or the setting")]
    admin = AIOKafkaAdminClient(**(options | {"request_timeout_ms": 10_000}), client_id="winnow-doctor")
    try:
        async with asyncio.timeout(LOOK_S):
            await admin.start()
            return await _examined(admin, settings)
    except (KafkaError, OSError, TimeoutError) as exc:
        advice = (
            "see whether it runs, and WINNOW_KAFKA_BOOTSTRAP_SERVERS and its security settings; boundaries over HTTP wait in the outbox"
        )
        found = await told(settings, exc)
        if isinstance(found, WinnowError):
            said, _, advice = str(found).partition("; ")
            return [error("broker", said, advice)]
        return [error("broker", f"{servers} does not answer ({type(exc).__name__})", advice)]
    finally:
        await admin.close()


async def _examined(admin: object, settings: "KafkaSettings") -> list[Finding]:
    """All parts, on a started client."""
    from typing import cast

    from aiokafka.admin import AIOKafkaAdminClient
    from aiokafka.errors import KafkaError

    from winnow.contracts.rights import Operation, Resource
    from winnow.contracts.topics import TOPICS
    from winnow.messaging.groups import read
    from winnow.messaging.lag import LagReader
    from winnow.messaging.rights import SERVICES, missing, needs
    from winnow.messaging.topics import compare, look

    client = cast("AIOKafkaAdminClient", admin)
    found = [ok("broker", f"{settings.kafka_bootstrap_servers} answers")]
    lacking = await missing(client, needs(SERVICES, settings))
    found += of_rights(lacking, settings.kafka_sasl_username)
    if any(right.resource is Resource.TOPIC and right.operation is not Operation.WRITE for right in lacking):
        return found  # what this user may not see is neither missing nor behind
    there = await look(client, settings)
    found += of_topics(compare(there, settings), len(TOPICS))
    if any(not topic.config for topic in there.values()):
        found.append(note("topics", "this broker does not tell the topics' configuration, so sizes and retention were not compared"))
    if any(right.resource is Resource.GROUP for right in lacking):
        return found
    async with LagReader(settings) as reader:
        lags = await reader.read()
        try:
            async with asyncio.timeout(GROUPS_S):
                groups = await read(client, settings, [(lag.service, lag.topic) for lag in lags])
        except (KafkaError, TimeoutError, AttributeError, KeyError, ValueError) as exc:  # the embedded broker answers in another form
            groups = {}
            found.append(note("groups", f"this broker does not tell who is in a group ({type(exc).__name__})"))
        found += of_lags(lags, groups)
        found += of_clocks(await reader.ahead(AHEAD_S))
    return found
