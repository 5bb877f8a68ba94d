"""`winnow lag`: what waits for each service, where, and for how long."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.cli.connection import kafka_environment, no_broker
from winnow.cli.terminal import Terminal, cell, table

if TYPE_CHECKING:
    from winnow.messaging.lag import Lag
    from winnow.messaging.settings import KafkaSettings

#: Seconds that a question about groups is repeated, and between two tries. A fresh Kafka needs half a second.
PATIENCE_S, PAUSE_S = 15.0, 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """A lag, and the seconds since the first waiting record of each partition was written (None: it could not be read)."""

    lag: "Lag"
    ages: Mapping[int, float | None]

    @property
    def oldest(self) -> float | None:
        """Seconds of the oldest; None where nothing waits or nothing could be read."""
        return max((age for age in self.ages.values() if age is not None), default=None)

    @property
    def value(self) -> dict[str, object]:
        """As JSON."""
        return {
            "service": self.lag.service,
            "topic": self.lag.topic,
            "records": self.lag.records,
            "by_partition": list(self.lag.by_partition),
            "oldest_age_s": None if self.oldest is None else round(self.oldest, 3),
            "oldest_age_by_partition_s": {str(n): None if age is None else round(age, 3) for n, age in self.ages.items()},
        }


def lag(
    *,
    watch: Annotated[bool, typer.Option("--watch", "-w", help="Look again and again, until Ctrl-C.")] = False,
    interval: Annotated[float, typer.Option(min=0.1, max=3600.0, metavar="SECONDS", help="Between two looks of --watch.")] = 2.0,
    count: Annotated[int | None, typer.Option(min=1, help="End --watch after so many looks.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One line of JSON a service and topic.")] = False,
) -> None:
    """Show how many records wait for each service, in which partitions, and since when the oldest does.

    A service that has never read a topic is behind by everything that it still holds.
    """
    asyncio.run(_watched(Terminal(), kafka_environment(), interval_s=interval, looks=(count if watch else 1), as_json=as_json))


async def _watched(terminal: Terminal, environment: Mapping[str, str], *, interval_s: float, looks: int | None, as_json: bool) -> None:
    """Look, show, and look again."""
    from winnow.cli.settings import kafka_settings

    settings = kafka_settings(environment)
    before: dict[tuple[str, str], int] = {}
    done = 0
    while True:
        found = await waiting(settings)
        _show(terminal, found, before, as_json=as_json)
        before = {(one.lag.service, one.lag.topic): one.lag.records for one in found}
        done += 1
        if looks is not None and done >= looks:
            return
        await asyncio.sleep(interval_s)


async def waiting(settings: "KafkaSettings") -> list[Waiting]:
    """All lags with their ages. Raise `Unreachable` or `BrokerRefuses` where no broker lets us in, `NotAllowed` where one hides topics."""
    from aiokafka.errors import KafkaConnectionError, KafkaError

    from winnow.messaging import rights
    from winnow.messaging.lag import CONSUMPTIONS, LagReader

    until = asyncio.get_running_loop().time() + PATIENCE_S
    while True:
        try:
            async with LagReader(settings) as reader:
                lags = await reader.read()
                if len(lags) < len(CONSUMPTIONS):
                    await rights.check(settings, [])  # a topic that the broker hides is not one that nobody has made
                return [Waiting(lag=one, ages=await reader.oldest(one)) for one in lags]
        except KafkaError as exc:
            # A fresh broker makes its offsets topic with the first question about a group, and has no coordinator until then.
            if exc.retriable and not isinstance(exc, KafkaConnectionError) and asyncio.get_running_loop().time() < until:
                await asyncio.sleep(PAUSE_S)
                continue
            raise await no_broker(settings, exc) from exc


def _show(terminal: Terminal, found: list[Waiting], before: Mapping[tuple[str, str], int], *, as_json: bool) -> None:
    """One look; `before` has the records of the last one."""
    rows = table("service", "topic", "records", "change", "oldest", "by partition")
    for one in found:
        if as_json:
            terminal.json(one.value)
            continue
        records, last = one.lag.records, before.get((one.lag.service, one.lag.topic))
        change = "" if last is None else f"{records - last:+d}"
        oldest = "" if one.oldest is None else f"{one.oldest:.1f} s"
        by = ", ".join(f"{n}: {waits}" for n, waits in enumerate(one.lag.by_partition) if waits)
        style = "yellow" if records else ""
        rows.add_row(cell(one.lag.service), cell(one.lag.topic), cell(records, style), cell(change), cell(oldest, style), cell(by, "dim"))
    if not as_json:
        terminal.show(rows)
