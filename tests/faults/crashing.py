"""A stage that kills itself at a chosen moment: `python -m tests.faults.crashing STAGE before|after`.

The service is the real one. Around its publisher stands a hand that pulls the plug between the commit and the publication, or between
the publication and the acknowledgement: the two moments at which at-least-once delivery is won or lost.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from services.__main__ import builder
from winnow.messaging.publisher import Publisher
from winnow.messaging.records import Outgoing
from winnow.messaging.runtime import run
from winnow.messaging.settings import KafkaSettings
from winnow.storage.settings import DatabaseSettings
from winnow.telemetry import Telemetry

Send = Callable[[Publisher, Sequence[Outgoing]], Coroutine[Any, Any, None]]


def pulling_the_plug(send: Send, moment: str) -> Send:
    """Wrap `Publisher.send`: it never returns."""

    async def wrapped(publisher: Publisher, outgoing: Sequence[Outgoing]) -> None:
        if moment == "after":
            await send(publisher, outgoing)
        os.kill(os.getpid(), signal.SIGKILL)

    return wrapped


def main(name: str, moment: str) -> int:
    """Run the stage until it kills itself."""
    Publisher.send = pulling_the_plug(Publisher.send, moment)  # type: ignore[method-assign, assignment]  # this process is made to die of it
    telemetry = Telemetry.plain(name)
    kafka = KafkaSettings()

    async def serve() -> int:
        return await run([builder(name)(telemetry, kafka, DatabaseSettings())], telemetry=telemetry, settings=kafka)

    return asyncio.run(serve())


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
